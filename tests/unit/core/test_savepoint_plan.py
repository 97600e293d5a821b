"""The plan of a savepoint as tables: given what is wanted and seen, then what is done, said and meant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headrace.core.model import Problem
from headrace.core.savepoint_model import (
    KeeperPhase,
    KeeperTry,
    SavedJob,
    Savepoint,
    SavepointObserved,
)
from headrace.core.savepoint_plan import plan_savepoint
from tests.unit.core.savepoint_plans import (
    AGAIN,
    BEGUN,
    DROP,
    FURTHER,
    LOOK,
    NOON,
    ONCE_MORE,
    PATH,
    PLAIN,
    SPEC,
    STATE,
    TAKE,
    TAKEN,
    WORDS,
    a_savepoint,
    a_try,
    in_short,
    planned,
    seen,
)

KEPT = a_savepoint(held=False, deletionPolicy="Retain")
LISTED = a_savepoint(held=False, path=PATH)
GONE = a_savepoint(deleting=True)

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
