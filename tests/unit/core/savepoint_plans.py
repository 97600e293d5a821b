"""A savepoint, what is seen of it, and its plan in short."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.api import StreamJobSpec, StreamSavepointSpec, StreamSavepointStatus
from headrace.core.savepoint_model import (
    KeeperPhase,
    KeeperTry,
    RunToSave,
    SavedJob,
    Savepoint,
    SavepointObserved,
)
from headrace.core.savepoint_plan import SavepointPlan, plan_savepoint

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SPEC = StreamJobSpec.parse({"application": {"file": "job.py"}})
RUN = RunToSave(number=3, revision="r3", path="s3://streams/ckpt/shop/clicks/uid/run-3")
JOB = SavedJob(spec=SPEC, generation=1, run=RUN)
PATH = "s3://streams/ckpt/shop/clicks/_savepoints/nightly-0a1b2c3d"
BEGUN = {"path": PATH, "source": "uid/run-3", "started_at": NOON, "access": {}}
TAKEN = {**BEGUN, "completed_at": NOON, "verified": {"level": "Objects"}}
WORDS = {
    "reason": "Completed",
    "savepoint": {
        "queries": [{"name": "q", "lineage": "l", "batch": 7}],
        "objects": 3,
        "bytes": 2048,
        "run": "uid/run-3",
    },
}


def a_savepoint(
    *,
    deleting: bool = False,
    held: bool = True,
    paused: bool = False,
    check: str | None = None,
    **spec: Any,
) -> Savepoint:
    return Savepoint(
        namespace="shop",
        name="nightly",
        uid="0a1b2c3d-4444",
        generation=2,
        spec=StreamSavepointSpec.parse({"job": {"name": "clicks"}, **spec}),
        deleting=deleting,
        held=held,
        paused=paused,
        check=check,
    )


def a_try(phase: str, number: int = 1, **words: Any) -> KeeperTry:
    return KeeperTry(number=number, phase=KeeperPhase(phase), words=words, ended_at=NOON)


def seen(
    job: Any = JOB, *, take: Any = (), verify: Any = (), check: Any = (), discard: Any = (), **more: Any
) -> SavepointObserved:
    tries = {"take": take, "verify": verify, "check": check, "discard": discard}
    return SavepointObserved(job=job, tries=tries, **more)


def planned(
    savepoint: Savepoint, status: dict[str, Any], observed: SavepointObserved, *, after: float = 0
) -> SavepointPlan:
    return plan_savepoint(
        savepoint, StreamSavepointStatus.model_validate(status), observed, NOON + timedelta(seconds=after)
    )


def in_short(plan: SavepointPlan) -> tuple[str, str, list[str]]:
    """State, the reason of Ready (with a + where it is true), and the actions."""
    ready = plan.status.condition("Ready")
    word = "" if ready is None else ("+" if ready.status == "True" else "-") + ready.reason
    actions = [_action(one) for one in plan.actions]
    return plan.status.state, word, actions


def _action(action: Any) -> str:
    fields = [str(value) for value in vars(action).values()]
    return " ".join([type(action).__name__, *fields])


PLAIN = a_savepoint()
TAKE, LOOK, DROP = "RunKeeper take Objects", "RunKeeper verify Objects", "RunKeeper discard Objects"
FURTHER, ONCE_MORE = "RunKeeper verify State", "RunKeeper check State"
AGAIN = a_savepoint(check="State@2")
STATE = {**TAKEN, "verified": {"level": "State"}}
