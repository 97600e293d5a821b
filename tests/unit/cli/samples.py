"""Jobs in the states that people meet, for the pages of `kubectl streamjob`."""

from datetime import timedelta
from typing import Any

from headrace.api import (
    Attempt,
    Condition,
    ExecutorsStatus,
    HistoryEntry,
    LagStatus,
    Operation,
    PlannedEdit,
    Restarts,
    Run,
    StableRun,
    StreamJobStatus,
    StreamSavepoint,
    Termination,
    UserFrame,
)
from headrace.cli.jobs import LiveJob
from tests.unit.cli.fakes import NOW, a_cluster, add_job, api_of

PATH = "s3://acme-streams/checkpoints/shop/clicks/7c1e/run-4"
LOG = f"{PATH}/_logs/attempt-3.log"


def ago(**what: float):
    return NOW - timedelta(**what)


def condition(kind: str, status: str, reason: str, message: str = "", **since: float) -> Condition:
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=ago(**(since or {"minutes": 20})),
        observed_generation=1,
    )


def settled(ready: Condition) -> tuple[Condition, ...]:
    return (ready, condition("Reconciling", "False", "Settled"), condition("Stalled", "False", "Settled"))


RUNNING = condition("Ready", "True", "Running", "all queries are active")


def a_run(number: int = 4, *, attempt: int = 1, state: str = "Started", **more: Any) -> Run:
    driver = Attempt(number=attempt, epoch=9, state=state, started_at=ago(hours=3), uid="u-1")  # pyright: ignore[reportArgumentType]
    whole = {"revision": "abc", "image": "acme/clicks@sha256:1f2e", "path": PATH, "started_at": ago(hours=3)}
    return Run(number=number, attempt=driver, **{**whole, **more})


HISTORY = (
    HistoryEntry(
        run=3,
        revision="x",
        outcome="Replaced",
        changes=("spec.image",),
        started_at=ago(days=3),
        ended_at=ago(hours=3),
    ),
    HistoryEntry(
        run=2,
        revision="y",
        outcome="RolledBack",
        message="job.py:14: KeyError: 'price'",
        changes=("spec.application.args",),
        started_at=ago(days=3, hours=1),
        ended_at=ago(days=3),
    ),
)


def a_status(**fields: Any) -> StreamJobStatus:
    whole: dict[str, Any] = {
        "observed_generation": 1,
        "state": "Running",
        "conditions": settled(RUNNING),
        "epoch": 9,
        "run": a_run(),
        "executors": ExecutorsStatus(
            replicas=3,
            ready=3,
            target=3,
            reason="3: 12,400 rows/s come in, one executor manages 5,100",
            decided_at=ago(minutes=4),
        ),
        "lag": LagStatus(band="Ok", message="2 s behind, the objective is 30 s"),
        "last_stable": StableRun(run=4, revision="abc", at=ago(hours=2)),
        "last_savepoint": "clicks-0300",
        "history": HISTORY,
    }
    return StreamJobStatus(**{**whole, **fields})


FINE = a_status()
FAILING = a_status(
    state="Backoff",
    conditions=(
        condition(
            "Ready", "False", "QueryFailed", "job.py:14: KeyError: 'price' (next attempt at 12:00:40 UTC)"
        ),
        condition("Reconciling", "True", "QueryFailed"),
        condition("Stalled", "False", "QueryFailed"),
    ),
    run=a_run(attempt=3, state="Ended"),
    executors=ExecutorsStatus(),
    lag=LagStatus(band="Behind", message="4 m behind, the objective is 30 s"),
    restarts=Restarts(total=7, in_a_row=3, next_at=NOW + timedelta(seconds=40)),
    last_termination=Termination(
        run=4,
        attempt=3,
        reason="QueryFailed",
        message="job.py:14: KeyError: 'price'",
        error_class="PYTHON_EXCEPTION",
        exit_code=66,
        user_frame=UserFrame(file="job.py", line=14, code='return row["price"] * row["count"]'),
        at=ago(seconds=50),
        log_file=LOG,
    ),
)
UPGRADING = a_status(
    state="Upgrading",
    conditions=(
        condition("Ready", "False", "Upgrading", "run 4 finishes its batch"),
        condition("Reconciling", "True", "Upgrading", "run 4 finishes its batch"),
        condition("Stalled", "False", "Upgrading"),
    ),
    operation=Operation(
        kind="Upgrade",
        step="Draining",
        from_run=4,
        to_run=5,
        reason='spec.image "acme/clicks:1.4.2" → "acme/clicks:1.4.3": a new run from its state',
        started_at=ago(seconds=12),
    ),
    plan=PlannedEdit(
        verdict="new run",
        sentence='spec.image "acme/clicks:1.4.2" → "acme/clicks:1.4.3": a new run from its state',
        run=5,
        change_class="restart",
        steps=("rehearse", "savepoint", "drain", "activate", "verify", "promote"),
        gap="0s to 7s",
        catch_up="0s to 5s, at best",
        sinks=("Kafka: each row once; of a batch that is cut at least once",),
    ),
)
ROLLED_BACK = a_status(
    conditions=(
        RUNNING,
        condition("Reconciling", "False", "EditRefused"),
        condition(
            "Stalled",
            "True",
            "RolledBack",
            "the spec still asks for what was rolled back. Correct the manifest, or put the fields back",
        ),
        condition("RolledBack", "True", "QueryFailed", "run 3 failed its verification: job.py:14: KeyError"),
    ),
)
REFUSED = a_status(
    conditions=(
        RUNNING,
        condition("Reconciling", "False", "EditRefused"),
        condition(
            "Stalled", "True", "RehearsalFailed", "run 5 failed its rehearsal: job.py:14: KeyError: 'price'"
        ),
        condition("Rehearsed", "False", "QueryFailed", "job.py:14: KeyError: 'price'"),
    ),
)
SUSPENDED = a_status(
    state="Suspended",
    conditions=settled(condition("Ready", "True", "Suspended", "stopped as asked; the checkpoint is kept")),
    run=a_run(state="Ended"),
    executors=ExecutorsStatus(),
    lag=None,
    history=(),
)
NEW = StreamJobStatus()


def a_live_job(status: StreamJobStatus, *, generation: int = 1, **more: Any) -> LiveJob:
    cluster = a_cluster()
    add_job(cluster, status=status, generation=generation, **more)
    (found,) = api_of(cluster).objects.values()
    return LiveJob(found)


def a_savepoint(name: str = "clicks-0300", job: str = "clicks", **status: Any) -> dict[str, Any]:
    told = {
        "observedGeneration": 1,
        "state": "Ready",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Taken",
                "message": "",
                "lastTransitionTime": "2026-05-01T11:55:00Z",
            }
        ],
        "path": f"s3://acme-streams/checkpoints/shop/clicks/_savepoints/{name}",
        "run": 4,
        "sparkVersion": "4.2.1",
        "batch": 4711,
        "queries": [
            {
                "name": "counts",
                "lineage": "6f1c",
                "batch": 4711,
                "watermark": "2026-05-01T11:50:00Z",
                "offsets": {"0": {"clicks": {"0": 99}}},
            }
        ],
        "objects": 212,
        "bytes": 1288490189,
        "startedAt": "2026-05-01T11:54:40Z",
        "completedAt": "2026-05-01T11:55:00Z",
        "verified": {"level": "State", "message": "every store can be loaded"},
        **status,
    }
    return {
        "apiVersion": "headrace.dev/v1alpha1",
        "kind": "StreamSavepoint",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"job": {"name": job}},
        "status": told,
    }


def parsed_savepoint() -> StreamSavepoint:
    return StreamSavepoint.parse(a_savepoint())
