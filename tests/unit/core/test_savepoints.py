"""The rules of savepoints as tables: given what is known, then what is decided, and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.api.lifecycle import Savepoints
from headrace.api.names import JOB_NAME_MAX
from headrace.api.savepoint import SAVEPOINT_NAME_MAX
from headrace.core.savepoints import (
    Gate,
    Known,
    Phase,
    before,
    disposal,
    due_by_schedule,
    has_moved,
    judge,
    next_look,
    scheduled_name,
    step_name,
    summary,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
TAKING, GOOD, FAILED = Phase.TAKING, Phase.GOOD, Phase.FAILED


def hourly(cron: str, after: datetime) -> datetime | None:
    """Stands for the cron of the API: every full hour, or never."""
    if cron == "0 0 31 2 *":
        return None
    return after.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def policy(**fields: Any) -> Savepoints:
    return Savepoints.model_validate(fields)


def a(cause: Any, phase: Phase = GOOD, *, ago: float, name: str = "", **more: Any) -> Known:
    """Begun so many minutes before noon."""
    began_at = NOON - timedelta(minutes=ago)
    return Known(name=name or f"{cause}-{ago:g}".lower(), cause=cause, phase=phase, began_at=began_at, **more)


HOURLY = {"schedule": "0 * * * *"}
SCHEDULE = [
    ("no schedule", {}, [], True, False),
    ("the first hour is not over", HOURLY, [a("Schedule", ago=0)], True, False),
    ("an hour has passed", HOURLY, [a("Schedule", ago=60)], True, True),
    ("many hours were missed: one makes up for them", HOURLY, [a("Schedule", ago=600)], True, True),
    ("the last one failed: not again before its time", HOURLY, [a("Schedule", FAILED, ago=0)], True, False),
    ("it failed an hour ago", HOURLY, [a("Schedule", FAILED, ago=61)], True, True),
    ("a manual one does not replace it", HOURLY, [a("Schedule", ago=61), a("Manual", ago=5)], True, True),
    ("one is being made", HOURLY, [a("Schedule", ago=61), a("Manual", TAKING, ago=5)], True, False),
    ("nothing happened since", HOURLY, [a("Schedule", ago=600)], False, False),
    ("the first one of a job", HOURLY, [], True, True),
    ("a day that never comes", {"schedule": "0 0 31 2 *"}, [a("Schedule", ago=600)], True, False),
]


@pytest.mark.parametrize(
    ("case", "fields", "known", "moves", "is_due"), SCHEDULE, ids=[c[0] for c in SCHEDULE]
)
def test_by_schedule(
    case: str, fields: dict[str, Any], known: list[Known], moves: bool, is_due: bool
) -> None:
    due = due_by_schedule(
        policy(**fields), known, since=NOON - timedelta(hours=2), moves=moves, now=NOON, next_time=hourly
    )
    assert (due is not None) == is_due
    if due is not None:
        assert "UTC" in due.message


@pytest.mark.parametrize(("missed", "minute"), [(30, 0), (90, 0), (60 * 24 * 40, 25)])
def test_one_that_makes_up_for_many_has_the_date_of_the_last(missed: float, minute: int) -> None:
    now = NOON + timedelta(minutes=minute)
    due = due_by_schedule(
        policy(**HOURLY), [a("Schedule", ago=missed)], since=NOON, moves=True, now=now, next_time=hourly
    )
    assert due is not None and due.at == NOON


def test_a_time_of_long_ago_is_not_looked_for_in_vain() -> None:
    asked: list[datetime] = []

    def yearly(_: str, after: datetime) -> datetime | None:
        asked.append(after)
        new_year = datetime(2025, 6, 1, tzinfo=UTC)
        return new_year if after < new_year else datetime(2027, 6, 1, tzinfo=UTC)

    due = due_by_schedule(
        policy(**HOURLY), [a("Schedule", ago=600_000)], since=NOON, moves=True, now=NOON, next_time=yearly
    )
    assert due is not None and due.at.year == 2025 and len(asked) < 10


def test_the_schedule_says_when_to_look_again() -> None:
    known = [a("Schedule", ago=30)]
    assert next_look(policy(**HOURLY), known, since=NOON, now=NOON, next_time=hourly) == NOON
    assert next_look(policy(), known, since=NOON, now=NOON, next_time=hourly) is None


NAME = "clicks-step-2-0a1b2c3d"


def own(cause: Any, phase: Phase = GOOD, **more: Any) -> list[Known]:
    return [a(cause, phase, ago=1, name=NAME, **more)]


NOTHING = {"reason": "NothingToSave", "problem": "no query has begun"}
STEPS = [
    ("Upgrade", {}, [], {}, Gate.TAKE, "savepoints.onUpgrade asks for one before the upgrade"),
    ("Upgrade", {"onUpgrade": False}, [], {}, Gate.GO_ON, "onUpgrade is false"),
    ("Upgrade", {}, [a("Upgrade", ago=1)], {}, Gate.TAKE, "asks for one"),  # of another upgrade
    ("Upgrade", {}, [a("Manual", ago=1)], {}, Gate.TAKE, "asks for one"),
    ("Upgrade", {}, own("Upgrade", TAKING), {}, Gate.WAIT, f"waiting for savepoint {NAME}"),
    ("Upgrade", {}, own("Upgrade"), {}, Gate.GO_ON, f"{NAME} is good"),
    (
        "Upgrade",
        {},
        own("Upgrade", FAILED, problem="no space left"),
        {},
        Gate.HELD,
        "no space left. Delete it to have another one taken, or set savepoints.onUpgrade: false",
    ),
    ("Upgrade", {}, own("Upgrade", FAILED, **NOTHING), {}, Gate.GO_ON, "no query has begun"),
    ("Upgrade", {}, [], {"has_state": False}, Gate.GO_ON, "no batch was ever committed"),
    ("Upgrade", {}, [], {"refused": "exceeded quota"}, Gate.HELD, "cannot be made: exceeded quota"),
    ("Upgrade", {}, own("Upgrade"), {"refused": "exceeded quota"}, Gate.GO_ON, "is good"),
    ("Suspend", {}, [], {}, Gate.TAKE, "before the suspension"),
    ("Suspend", {}, own("Suspend", FAILED), {}, Gate.GO_ON, "the checkpoint itself stays"),
    ("Suspend", {}, [], {"refused": "exceeded quota"}, Gate.GO_ON, "goes on without it"),
    ("Suspend", {"onSuspend": False}, [], {}, Gate.GO_ON, "onSuspend is false"),
    ("Delete", {}, [], {}, Gate.GO_ON, "onDelete is false"),
    ("Delete", {"onDelete": True}, [], {}, Gate.TAKE, "before the deletion"),
    ("Delete", {"onDelete": True}, [], {"retains": False}, Gate.GO_ON, "deletionPolicy is Delete"),
    ("Delete", {"onDelete": True}, own("Delete", FAILED), {}, Gate.GO_ON, "goes on without it"),
]


@pytest.mark.parametrize("case", STEPS, ids=lambda case: f"{case[0]}: {case[5][:40]}")
def test_before_a_step(case: tuple[Any, ...]) -> None:
    step, fields, known, more, gate, says = case
    found = before(step, policy(**fields), known, name=NAME, **{"has_state": True, **more})
    assert (found.gate, says in found.message) == (gate, True), found.message


def test_the_name_of_a_step_is_its_own() -> None:
    names = {
        step_name("clicks", step, number, scope=scope)
        for step in ("Upgrade", "Suspend")
        for number in (1, 2)
        for scope in ("uid-1", "uid-2")
    }
    assert len(names) == 8
    longest = step_name("x" * JOB_NAME_MAX, "Upgrade", 9_999_999, scope="uid")
    assert len(longest) <= SAVEPOINT_NAME_MAX
    assert scheduled_name("clicks", NOON) == "clicks-20260131-1200"


MOVES = [
    ("there is none", [], {"q": 4}, True),
    ("nobody knows", [a("Manual", ago=1, batches={"q": 4})], {}, True),
    ("the same batch", [a("Manual", ago=1, batches={"q": 4})], {"q": 4}, False),
    ("a newer one", [a("Manual", ago=1, batches={"q": 4})], {"q": 5}, True),
    ("another query", [a("Manual", ago=1, batches={"q": 4})], {"q": 4, "r": 1}, True),
    (
        "the newest counts",
        [a("Manual", ago=9, batches={"q": 5}), a("Manual", ago=1, batches={"q": 4})],
        {"q": 5},
        True,
    ),
    (
        "what is not told of many queries is not compared",
        [a("Manual", ago=1, batches={"q": 4}, more_queries=True)],
        {"q": 4, "r": 1},
        False,
    ),
    (
        "of many queries one has moved",
        [a("Manual", ago=1, batches={"q": 4}, more_queries=True)],
        {"q": 5, "r": 1},
        True,
    ),
    ("an imported one does not", [a("Manual", ago=1, batches={"q": 4}, imported=True)], {"q": 4}, True),
]


@pytest.mark.parametrize(("case", "known", "committed", "moved"), MOVES, ids=[c[0] for c in MOVES])
def test_moving(case: str, known: list[Known], committed: dict[str, int | None], moved: bool) -> None:
    assert has_moved(known, committed) is moved


SUMMARIES = [
    ("nothing yet, and nothing due", {}, [], None, False, None),
    ("never one, and one is due", HOURLY, [], None, False, 60),
    ("a good one in time", HOURLY, [a("Schedule", ago=0)], "schedule-0", False, None),
    (
        "it failed: the good one before counts",
        HOURLY,
        [a("Schedule", FAILED, ago=0), a("Schedule", ago=180)],
        "schedule-180",
        True,
        120,
    ),
    (
        "nothing to save is no failure",
        HOURLY,
        [a("Schedule", ago=0), a("Upgrade", FAILED, ago=0, **NOTHING)],
        "schedule-0",
        False,
        None,
    ),
]


@pytest.mark.parametrize("case", SUMMARIES, ids=[c[0] for c in SUMMARIES])
def test_in_numbers(case: tuple[Any, ...]) -> None:
    _, fields, known, last, failed, overdue_minutes = case
    told = summary(
        policy(**fields), known, since=NOON - timedelta(hours=2), moves=True, now=NOON, next_time=hourly
    )
    assert (told.last_good.name if told.last_good else None, told.failed) == (last, failed)
    since = NOON - timedelta(minutes=overdue_minutes) if overdue_minutes is not None else None
    assert told.overdue_since == since


RETENTION = [
    ("within both limits", {"keep": 2}, [a("Schedule", ago=1), a("Schedule", ago=2)], []),
    ("too many", {"keep": 1}, [a("Schedule", ago=1), a("Schedule", ago=2)], ["schedule-2: Surplus"]),
    (
        "too old",
        {"maxAge": "1h"},
        [a("Schedule", ago=1), a("Schedule", ago=61), a("Schedule", ago=59)],
        ["schedule-61: TooOld"],
    ),
    ("the last good one stays, however old", {"keep": 1, "maxAge": "1h"}, [a("Schedule", ago=999)], []),
    (
        "also when younger ones failed",
        {"keep": 1, "maxAge": "1h"},
        [a("Schedule", FAILED, ago=1), a("Schedule", ago=999)],
        [],
    ),
    ("what is in use stays", {"keep": 1}, [a("Schedule", ago=1), a("Schedule", ago=2, in_use_by=("b",))], []),
    (
        "one that is being checked takes nobody's place",
        {"keep": 1},
        [a("Schedule", ago=1, verifying=True), a("Schedule", ago=2)],
        [],
    ),
    (
        "nor keeps it an older one from being surplus",
        {"keep": 1},
        [a("Schedule", ago=1, verifying=True), a("Schedule", ago=2), a("Schedule", ago=3)],
        ["schedule-3: Surplus"],
    ),
    ("what is pinned stays", {"keep": 1}, [a("Schedule", ago=1), a("Schedule", ago=2, pinned=True)], []),
    ("what is imported stays", {"keep": 1}, [a("Schedule", ago=1), a("Schedule", ago=2, imported=True)], []),
    ("manual ones stay", {"keep": 1, "maxAge": "1m"}, [a("Schedule", ago=1), a("Manual", ago=99)], []),
    ("what is being made stays", {"keep": 1}, [a("Schedule", ago=1), a("Schedule", TAKING, ago=2)], []),
    (
        "a pinned one counts as one of those kept",
        {"keep": 1},
        [a("Schedule", ago=1, pinned=True), a("Schedule", ago=2), a("Schedule", ago=3)],
        ["schedule-2: Surplus", "schedule-3: Surplus"],
    ),
    (
        "a failed one goes when one was good since",
        {},
        [a("Schedule", ago=1), a("Schedule", FAILED, ago=2)],
        ["schedule-2: Failed"],
    ),
    (
        "of each cause so many",
        {"keep": 1},
        [a("Upgrade", ago=1), a("Schedule", ago=2), a("Upgrade", ago=3), a("Suspend", ago=4)],
        ["upgrade-3: Surplus"],
    ),
    ("what a deleted job left stays", {"keep": 1}, [a("Delete", ago=1), a("Delete", ago=2)], []),
    (
        "of failures too, so many are enough",
        {"keep": 1},
        [a("Upgrade", FAILED, ago=1), a("Upgrade", FAILED, ago=2)],
        ["upgrade-2: Surplus"],
    ),
    (
        "an imported one is not the last good one",
        {"keep": 1, "maxAge": "1m"},
        [a("Manual", ago=1, imported=True), a("Schedule", ago=2)],
        [],
    ),
    ("a failed one stays until then", {}, [a("Schedule", FAILED, ago=1), a("Schedule", ago=2)], []),
]


@pytest.mark.parametrize(("case", "fields", "known", "removed"), RETENTION, ids=[c[0] for c in RETENTION])
def test_retention(case: str, fields: dict[str, Any], known: list[Known], removed: list[str]) -> None:
    judged = judge(policy(**fields), known, now=NOON)
    assert [f"{one.name}: {one.reason}" for one in judged if one.remove] == removed
    assert [one.name for one in judged] == [one.name for one in sorted(known, key=lambda k: k.began_at)[::-1]]
    assert all(one.message for one in judged)


def test_retention_never_removes_all_good_ones() -> None:
    """Whatever the policy: if there was a good one, there is a good one."""
    for keep in (1, 2):
        for count in range(1, 6):
            known = [a("Schedule", GOOD if n % 2 else FAILED, ago=1000 + n) for n in range(count)]
            judged = judge(policy(keep=keep, maxAge="1m"), known, now=NOON)
            gone = {one.name for one in judged if one.remove}
            good = {one.name for one in known if one.phase is GOOD}
            assert not good or good - gone


@pytest.mark.parametrize(
    ("wanted", "imported", "then"),
    [
        (None, False, "Delete"),
        (None, True, "Retain"),
        ("Retain", False, "Retain"),
        ("Delete", True, "Delete"),
    ],
)
def test_disposal(wanted: Any, imported: bool, then: str) -> None:
    assert disposal(wanted, imported=imported) == then
