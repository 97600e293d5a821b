"""The plan of a savepoint as tables: given what is wanted and seen, then what is done, said and meant."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.api import StreamJobSpec, StreamSavepointSpec, StreamSavepointStatus
from headrace.core.model import Problem
from headrace.core.savepoint_access import access_of
from headrace.core.savepoint_contents import in_words, place_of, size_text, with_contents
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
KEPT = a_savepoint(held=False, deletionPolicy="Retain")
LISTED = a_savepoint(held=False, path=PATH)
GONE = a_savepoint(deleting=True)
TAKE, LOOK, DROP = "RunKeeper take Objects", "RunKeeper verify Objects", "RunKeeper discard Objects"
FURTHER, ONCE_MORE = "RunKeeper verify State", "RunKeeper check State"
AGAIN = a_savepoint(check="State@2")
STATE = {**TAKEN, "verified": {"level": "State"}}

CASES = [
    # taken
    ("it begins", PLAIN, {}, seen(), ("Taking", "-Taking", [TAKE])),
    ("held first", a_savepoint(held=False), {}, seen(), ("Taking", "-Taking", ["HoldCopy", TAKE])),
    ("not held where the copy stays", KEPT, {}, seen(), ("Taking", "-Taking", [TAKE])),
    ("no job", PLAIN, {}, seen(None), ("Waiting", "-JobNotFound", [])),
    (
        "a job of another version",
        PLAIN,
        {},
        seen(Problem("InvalidSpec", "x")),
        ("Waiting", "-InvalidSpec", []),
    ),
    (
        "no run",
        PLAIN,
        {},
        seen(SavedJob(spec=SPEC, generation=1, run=None)),
        ("Waiting", "-NothingToSave", []),
    ),
    ("under way", PLAIN, BEGUN, seen(take=[a_try("Running")]), ("Taking", "-Taking", [TAKE])),
    (
        "the job has gone meanwhile",
        PLAIN,
        BEGUN,
        seen(None, take=[a_try("Running")]),
        ("Taking", "-Taking", [TAKE]),
    ),
    (
        "the store is away",
        PLAIN,
        BEGUN,
        seen(take=[a_try("Failed", reason="StoreUnavailable", message="away")]),
        ("Taking", "-Taking", [TAKE]),
    ),
    ("killed without a word", PLAIN, BEGUN, seen(take=[a_try("Failed")]), ("Taking", "-Taking", [TAKE])),
    (
        "for good",
        PLAIN,
        BEGUN,
        seen(take=[a_try("Failed", reason="CheckpointDamaged", message="lacks offsets/6")]),
        ("Failed", "-CheckpointDamaged", ["StopKeepers ('take',)"]),
    ),
    (
        "done",
        PLAIN,
        BEGUN,
        seen(take=[a_try("Succeeded", **WORDS)]),
        ("Ready", "+Taken", ["StopKeepers ('take',)"]),
    ),
    (
        "done, after one that failed",
        PLAIN,
        BEGUN,
        seen(take=[a_try("Failed"), a_try("Succeeded", 2, **WORDS)]),
        ("Ready", "+Taken", ["StopKeepers ('take',)"]),
    ),
    ("at rest", PLAIN, TAKEN, seen(), ("Ready", "+Taken", [])),
    ("at rest without a job", PLAIN, TAKEN, seen(None), ("Ready", "+Taken", [])),
    ("paused", a_savepoint(paused=True), {}, seen(), ("Paused", "", [])),
    # verified
    ("further", a_savepoint(verify="State"), TAKEN, seen(), ("Verifying", "+Taken", [FURTHER])),
    (
        "the job is gone, its rights are kept",
        a_savepoint(verify="State"),
        TAKEN,
        seen(None),
        ("Verifying", "+Taken", [FURTHER]),
    ),
    (
        "nobody's rights",
        a_savepoint(verify="State"),
        {**TAKEN, "access": None},
        seen(None),
        ("Ready", "+Taken", []),
    ),
    (
        "found good",
        a_savepoint(verify="State"),
        TAKEN,
        seen(verify=[a_try("Succeeded", verified={"level": "State", "message": "all there"})]),
        ("Ready", "+Taken", ["StopKeepers ('verify',)"]),
    ),
    (
        "found damaged",
        a_savepoint(verify="State"),
        TAKEN,
        seen(verify=[a_try("Failed", reason="SavepointDamaged", message="x", verified={"level": "None"})]),
        ("Failed", "-SavepointDamaged", ["StopKeepers ('verify',)"]),
    ),
    (
        "found missing",
        a_savepoint(verify="State"),
        TAKEN,
        seen(verify=[a_try("Failed", reason="SavepointFailed", message="there is none")]),
        ("Failed", "-SavepointFailed", ["StopKeepers ('verify',)"]),
    ),
    (
        "tried often enough",
        a_savepoint(verify="State"),
        TAKEN,
        seen(verify=[a_try("Failed", 5, reason="StoreUnavailable", message="away")]),
        ("Ready", "+Taken", ["StopKeepers ('verify',)"]),
    ),
    # checked again
    ("again", AGAIN, STATE, seen(), ("Verifying", "+Taken", [ONCE_MORE])),
    ("again, without the job", AGAIN, STATE, seen(None), ("Verifying", "+Taken", [ONCE_MORE])),
    ("answered", AGAIN, {**STATE, "check": {"asked": "State@2"}}, seen(), ("Ready", "+Taken", [])),
    (
        "asked once more",
        AGAIN,
        {**STATE, "check": {"asked": "State@1"}},
        seen(),
        ("Verifying", "+Taken", [ONCE_MORE]),
    ),
    ("not while it is taken", AGAIN, BEGUN, seen(take=[a_try("Running")]), ("Taking", "-Taking", [TAKE])),
    (
        "good again",
        AGAIN,
        STATE,
        seen(check=[a_try("Succeeded", verified={"level": "State", "message": "all there"})]),
        ("Ready", "+Taken", ["StopKeepers ('check',)"]),
    ),
    (
        "damaged since",
        AGAIN,
        STATE,
        seen(check=[a_try("Failed", reason="SavepointDamaged", message="x", verified={"level": "None"})]),
        ("Failed", "-SavepointDamaged", ["StopKeepers ('check',)"]),
    ),
    (
        "the store is away, and it is looked again",
        AGAIN,
        STATE,
        seen(check=[a_try("Failed", 4, reason="StoreUnavailable", message="away")]),
        ("Verifying", "+Taken", [ONCE_MORE]),
    ),
    (
        "looked often enough",
        AGAIN,
        STATE,
        seen(check=[a_try("Failed", 5, reason="StoreUnavailable", message="away")]),
        ("Ready", "+Taken", ["StopKeepers ('check',)"]),
    ),
    ("no such level", a_savepoint(check="Restore"), STATE, seen(), ("Ready", "+Taken", [])),
    ("nobody's rights to look", AGAIN, {**STATE, "access": None}, seen(None), ("Ready", "+Taken", [])),
    # imported
    ("looked at", LISTED, {}, seen(), ("Importing", "-Importing", [LOOK])),
    ("under whose rights?", LISTED, {}, seen(None), ("Waiting", "-JobNotFound", [])),
    (
        "needs no run",
        LISTED,
        {},
        seen(SavedJob(spec=SPEC, generation=1, run=None)),
        ("Importing", "-Importing", [LOOK]),
    ),
    (
        "adopted",
        LISTED,
        {"path": PATH, "started_at": NOON, "access": {}},
        seen(verify=[a_try("Succeeded", verified={"level": "Objects"}, **WORDS)]),
        ("Ready", "+Imported", ["StopKeepers ('verify',)"]),
    ),
    (
        "not there",
        LISTED,
        {"path": PATH, "started_at": NOON, "access": {}},
        seen(verify=[a_try("Failed", reason="SavepointFailed", message="there is none")]),
        ("Failed", "-SavepointFailed", ["StopKeepers ('verify',)"]),
    ),
    # deleted
    ("its copy goes", GONE, TAKEN, seen(), ("Deleting", "-Deleting", [DROP])),
    (
        "its copy went",
        GONE,
        TAKEN,
        seen(discard=[a_try("Succeeded")]),
        ("Deleting", "-Deleting", ["ReleaseCopy"]),
    ),
    ("never begun", GONE, {}, seen(None), ("Deleting", "-Deleting", ["ReleaseCopy"])),
    (
        "being taken",
        GONE,
        BEGUN,
        seen(take=[a_try("Running")]),
        ("Deleting", "-Deleting", ["StopKeepers ('take', 'verify', 'check')"]),
    ),
    (
        "being taken on a lost node",
        GONE,
        BEGUN,
        seen(take=[KeeperTry(number=1, phase=KeeperPhase.RUNNING, lost=True)]),
        ("Deleting", "-Deleting", [DROP]),
    ),
    ("in use", GONE, TAKEN, seen(in_use_by=("fork",)), ("Deleting", "-Deleting", [])),
    (
        "retained after all",
        a_savepoint(deleting=True, deletionPolicy="Retain"),
        TAKEN,
        seen(discard=[a_try("Running")]),
        ("Deleting", "-Deleting", ["ReleaseCopy"]),
    ),
    (
        "the store refuses",
        GONE,
        TAKEN,
        seen(discard=[a_try("Failed", reason="StoreUnavailable", message="no")]),
        ("Stalled", "-DeletionFailed", [DROP]),
    ),
    (
        "with its namespace",
        GONE,
        TAKEN,
        seen(refused=Problem("KeeperRefused", "terminating"), namespace_ends=True),
        ("Deleting", "-Deleting", ["ReleaseCopy"]),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_what_is_done(case: tuple[str, Savepoint, dict[str, Any], SavepointObserved, Any]) -> None:
    _, savepoint, status, observed, then = case
    assert in_short(planned(savepoint, status, observed)) == then


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_every_condition_is_set_and_agrees(
    case: tuple[str, Savepoint, dict[str, Any], SavepointObserved, Any],
) -> None:
    _, savepoint, status, observed, _ = case
    if savepoint.paused:
        return
    after = planned(savepoint, status, observed).status
    word = {kind: after.condition(kind) for kind in ("Ready", "Reconciling", "Stalled")}
    assert all(one is not None and one.observed_generation == 2 for one in word.values())
    true = {kind for kind, one in word.items() if one is not None and one.status == "True"}
    assert true in ({"Ready"}, {"Reconciling"}, {"Stalled"}, {"Ready", "Reconciling"})
    assert (after.failed_at is not None) == (after.state == "Failed")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_planned_again_from_its_own_status_it_says_the_same(
    case: tuple[str, Savepoint, dict[str, Any], SavepointObserved, Any],
) -> None:
    """So a settled savepoint is written once."""
    _, savepoint, status, observed, _ = case
    first = planned(savepoint, status, observed)
    again = plan_savepoint(savepoint, first.status, observed, NOON + timedelta(seconds=30))
    assert again.status.conditions == first.status.conditions
    assert again.status.state == first.status.state


@pytest.mark.parametrize(
    ("known", "asked", "known_then"),
    [("Objects", "Objects@2", "Objects"), ("Objects", "State@2", "State"), ("Restore", "State@2", "Restore")],
)
def test_a_check_is_answered_and_what_is_known_beyond_it_stays(
    known: str, asked: str, known_then: str
) -> None:
    level = asked.partition("@")[0]
    status = {**TAKEN, "verified": {"level": known, "message": "long ago"}}
    found = seen(check=[a_try("Succeeded", verified={"level": level, "message": "today"})])
    after = planned(a_savepoint(check=asked), status, found).status
    assert after.check is not None
    assert (after.check.asked, after.check.level, after.check.message) == (asked, level, "today")
    assert after.verified.level == known_then


@pytest.mark.parametrize(
    ("savepoint", "status", "observed", "told"),
    [
        (AGAIN, STATE, seen(check=[a_try("Failed", 5, reason="StoreUnavailable", message="away")]), "away"),
        (a_savepoint(check="Restore"), STATE, seen(), "say Objects or State, not Restore"),
        (AGAIN, {**STATE, "access": None}, seen(None), "there is no StreamJob clicks"),
    ],
)
def test_a_check_that_nobody_could_make_says_so_and_changes_no_verdict(
    savepoint: Savepoint, status: dict[str, Any], observed: SavepointObserved, told: str
) -> None:
    plan = planned(savepoint, status, observed)
    assert plan.status.check is not None and plan.status.check.level == "None"
    assert told in plan.status.check.message and told in plan.says[0].message
    assert plan.status.verified.level == "State"


def test_what_had_no_room_in_the_status_is_said() -> None:
    query = {"name": "q", "lineage": "l", "batch": 7}
    told = {"queries": [query], "more_queries": 3, "offsets_left_out": ["q"]}
    status = with_contents(StreamSavepointStatus(), told)
    assert (status.more_queries, status.offsets_left_out, status.batch) == (3, ("q",), None)
    assert "and 3 more queries that its manifest names" in in_words(status)
    many = with_contents(
        StreamSavepointStatus(), {"queries": [{**query, "name": f"q{n}"} for n in range(70)]}
    )
    assert (len(many.queries), many.more_queries) == (64, 6)


def test_the_intent_names_the_place_and_the_run() -> None:
    status = planned(PLAIN, {}, seen()).status
    assert (status.path, status.source, status.run, status.revision) == (PATH, "uid/run-3", 3, "r3")
    assert status.started_at == NOON


@pytest.mark.parametrize(
    ("observed", "told"),
    [
        (seen(take=[a_try("Running")]), "it took longer than spec.timeLimit, 10m"),
        (seen(take=[a_try("Failed", reason="StoreUnavailable", message="s3 is away")]), "10m: s3 is away"),
        (seen(refused=Problem("KeeperRefused", "exceeded quota")), "10m: exceeded quota"),
    ],
)
def test_its_time_is_limited(observed: SavepointObserved, told: str) -> None:
    """By how long it is seen to be under way, whatever the time of day says."""
    savepoint = a_savepoint(timeLimit="10m")
    in_time, over = (replace(observed, under_way=timedelta(seconds=seconds)) for seconds in (600, 601))
    assert planned(savepoint, BEGUN, in_time, after=99_999).status.failed_at is None
    late = planned(savepoint, BEGUN, over)
    assert in_short(late)[:2] == ("Failed", "-TimeLimit") and late.failed
    stalled = late.status.condition("Stalled")
    assert stalled is not None and told in stalled.message


def test_what_was_done_in_time_is_good_also_when_nobody_looked() -> None:
    late = planned(PLAIN, BEGUN, seen(take=[a_try("Succeeded", **WORDS)]), after=99_999)
    assert in_short(late)[:2] == ("Ready", "+Taken")


def test_a_job_that_does_not_come_is_waited_for_then_somebody_is_told_then_it_may_come_yet() -> None:
    first = planned(PLAIN, {}, seen(None))
    later = plan_savepoint(PLAIN, first.status, seen(None), NOON + timedelta(hours=2))
    assert (later.status.state, later.says) == ("Stalled", ())
    came = plan_savepoint(PLAIN, later.status, seen(), NOON + timedelta(hours=3))
    assert in_short(came) == ("Taking", "-Taking", [TAKE])


def test_restored_is_what_a_job_says() -> None:
    savepoint = a_savepoint(verify="Restore")
    status = {**TAKEN, "verified": {"level": "State"}}
    waiting = planned(savepoint, status, seen()).status.condition("Verified")
    assert waiting is not None and (waiting.status, waiting.reason) == ("False", "NotRestored")
    done = planned(savepoint, status, seen(restored_by="fork")).status
    assert done.verified.level == "Restore"


def test_what_reaches_the_store_is_kept_without_any_value_of_a_variable() -> None:
    spec = StreamJobSpec.parse(
        {
            "application": {"file": "job.py", "args": ["--password=x"]},
            "checkpoint": {"s3": {"credentials": {"secret": "keys"}}},
            "driver": {"env": [{"name": "A", "value": "geheim"}], "memory": "4Gi"},
            "imagePullSecrets": [{"name": "registry"}],
        }
    )
    assert access_of(spec) == {
        "checkpoint": {"s3": {"credentials": {"secret": "keys"}}},
        "imagePullSecrets": [{"name": "registry"}],
    }


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (PATH, ("s3://streams/ckpt/shop/clicks", "_savepoints/nightly-0a1b2c3d")),
        ("s3://backup/of/nightly", ("s3://backup/of", "nightly")),
    ],
)
def test_where_a_savepoint_lies(path: str, place: tuple[str, str]) -> None:
    assert place_of(path) == place


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (1023, "1023"), (1536, "1.5Ki"), (20 * 2**20, "20Mi"), (1300 * 2**30, "1.3Ti")],
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_keeper_of_another_version_may_tell_less() -> None:
    status = StreamSavepointStatus()
    assert with_contents(status, None) == status
    assert with_contents(status, {"queries": []}).bytes is None
