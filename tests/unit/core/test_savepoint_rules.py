"""The plan of a savepoint: requests to check it, its time limit, jobs that do not come."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace.core.model import Problem
from headrace.core.savepoint_model import (
    Savepoint,
    SavepointObserved,
)
from headrace.core.savepoint_plan import plan_savepoint
from tests.unit.core.savepoint_plans import (
    AGAIN,
    BEGUN,
    NOON,
    PATH,
    PLAIN,
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
