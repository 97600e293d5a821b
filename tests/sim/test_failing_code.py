"""Code that raises: attempts with growing waits, then `Stalled` with Spark's error class, and on it goes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.core.model import AttemptPhase, CodeProblem, Ending, Problem
from headrace.core.restarts import FAILURES_UNTIL_STALLED
from tests.sim.world import World, a_world

MISSING = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `prices` cannot be found"
CLASS = "TABLE_OR_VIEW_NOT_FOUND"
LONGEST = timedelta(minutes=5)


def condition(world: World, kind: str) -> tuple[str, str]:
    found = world.status.condition(kind)
    assert found is not None
    return found.status, found.reason


def fail(
    world: World,
    *,
    times: int = 1,
    ending: Ending = Ending.APPLICATION_ERROR,
    error_class: str | None = CLASS,
) -> None:
    """So many attempts that end before a batch."""
    for _ in range(times):
        begin(world)
        world.driver_ends(ending, MISSING, error_class=error_class)
        world.pass_once()


def begin(world: World) -> None:
    """The next attempt, as soon as it is due."""
    due = world.status.restarts.next_at
    world.now = due if due is not None else world.now
    for _ in range(4):
        if world.driver is not None:
            return
        world.pass_once()
    raise AssertionError("no attempt follows")


def test_a_first_run_whose_code_raises_is_stalled_with_the_error_class_after_some_attempts():
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED - 1)
    assert condition(world, "Stalled")[0] == "False"
    assert condition(world, "Ready") == ("False", "ApplicationError")
    fail(world)
    assert world.status.state == "Backoff"
    assert condition(world, "Ready") == ("False", CLASS)
    assert condition(world, "Stalled") == ("True", CLASS)
    assert condition(world, "Reconciling")[0] == "False"
    stalled = world.status.condition("Stalled")
    assert stalled is not None
    assert MISSING in stalled.message
    assert f"{FAILURES_UNTIL_STALLED} attempts in a row" in stalled.message


def test_it_is_tried_on_with_the_longest_wait_and_says_so_all_the_time():
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED)
    for _ in range(3):
        assert world.status.restarts.next_at == world.now + LONGEST
        begin(world)
        world.pass_once()
        assert world.driver is not None and condition(world, "Stalled") == ("True", CLASS)
        fail(world)
        assert condition(world, "Stalled") == ("True", CLASS)
    assert len(world.drivers) == FAILURES_UNTIL_STALLED + 3


def test_when_the_cause_goes_the_first_batch_ends_it_without_help():
    """A table that was missing is there: nobody had to touch the job."""
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED)
    begin(world)
    world.driver_runs()
    world.pass_once()
    assert world.driver is not None and world.driver.phase is AttemptPhase.RUNNING
    assert condition(world, "Ready") == ("False", CLASS)  # no batch yet: so it went the times before
    assert condition(world, "Stalled") == ("True", CLASS)
    assert world.recheck_at is not None and world.recheck_at <= world.now + timedelta(seconds=10)
    world.settle()
    assert condition(world, "Ready") == ("True", "Running")
    assert condition(world, "Stalled")[0] == "False"
    assert world.status.restarts.without_progress == 0


def test_one_without_anything_to_read_is_taken_for_good_when_it_has_lived_long_enough():
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED)
    begin(world)
    world.driver_runs()
    world.pass_once()
    world.later(600)
    world.pass_once()
    assert condition(world, "Ready") == ("True", "Running")
    assert condition(world, "Stalled")[0] == "False"


def test_what_a_new_attempt_waits_for_is_the_reason_why_it_is_not_ready():
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED)
    begin(world)
    assert world.driver is not None
    world.driver.waiting = Problem("Unschedulable", "0/3 nodes are available")
    world.pass_once()
    assert condition(world, "Ready") == ("False", "Unschedulable")
    assert condition(world, "Stalled") == ("True", CLASS)


def test_a_job_that_commits_batches_between_its_failures_is_not_stalled():
    """It goes on, if slowly: an alert tells of the restarts."""
    world = a_world()
    for _ in range(FAILURES_UNTIL_STALLED + 3):
        begin(world)
        world.driver_runs()
        world.driver_works()
        world.pass_once()
        world.driver_ends(Ending.QUERY_FAILED, "KeyError: 'price'", error_class="KeyError")
        world.pass_once()
        assert condition(world, "Stalled")[0] == "False"
    assert world.status.restarts.in_a_row == FAILURES_UNTIL_STALLED + 3


@pytest.mark.parametrize("ending", [Ending.STORE_UNAVAILABLE, Ending.EVICTED, Ending.OUT_OF_MEMORY])
def test_what_is_not_an_error_of_the_code_is_tried_again_and_nothing_else(ending: Ending):
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED + 1, ending=ending, error_class=None)
    assert condition(world, "Stalled")[0] == "False"
    assert condition(world, "Reconciling") == ("True", ending)


@pytest.mark.parametrize(
    ("error_class", "reason"),
    [
        (None, "QueryFailed"),
        ("", "QueryFailed"),
        ("STREAM_FAILED.NO-DATA", "STREAM_FAILED_NO_DATA"),
        ("9", "QueryFailed"),
    ],
)
def test_the_reason_is_a_word_that_kubernetes_takes(error_class: str | None, reason: str):
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED, ending=Ending.QUERY_FAILED, error_class=error_class)
    assert condition(world, "Stalled") == ("True", reason)


def test_an_edit_or_a_nonce_begins_anew():
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED)
    world.edit(restartNonce="again")
    world.settle()
    assert condition(world, "Stalled")[0] == "False"
    assert condition(world, "Ready") == ("True", "Running")


def test_suspended_it_is_ready_and_resumed_it_is_tried_again():
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED)
    world.edit(suspend=True)
    world.settle()
    assert condition(world, "Ready") == ("True", "Suspended")
    assert condition(world, "Stalled")[0] == "False"
    world.edit(suspend=False)
    world.settle()
    assert condition(world, "Ready") == ("True", "Running")


def test_code_that_cannot_be_read_meanwhile_does_not_hide_the_failure():
    world = a_world()
    fail(world, times=FAILURES_UNTIL_STALLED)
    world.code = CodeProblem("job.py:3: invalid syntax")
    world.pass_once()
    assert condition(world, "Stalled") == ("True", CLASS)
