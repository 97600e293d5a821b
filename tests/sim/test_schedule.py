"""Finite jobs that start again by a schedule. The world begins on Thursday, 1 January 2026, 00:00 UTC."""

from datetime import UTC, datetime

import pytest

from headrace.core.model import Code, CodeProblem, Ending
from tests.sim.test_lifecycle import condition, started
from tests.sim.world import OperatorKilled, World, a_world

NIGHTLY = {"mode": "AvailableNow", "schedule": "30 1 * * *"}


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


def completed(trigger: dict | None = None, **spec) -> World:
    """Its first start was when it was made; it ended ten minutes later."""
    world = a_world({"trigger": trigger or NIGHTLY, **spec})
    world.settle()
    complete(world)
    return world


def complete(world: World) -> None:
    world.later(300)
    world.driver_ends(Ending.COMPLETED)
    world.settle()
    assert world.status.state == "Completed"


def until(world: World, moment: datetime) -> None:
    world.now = moment
    world.settle()


def test_a_completed_job_says_when_it_ended_and_when_it_starts_again():
    world = completed()
    assert world.status.completed_at == at(1, 0, 10)
    assert world.status.next_start_at == at(1, 1, 30)
    ready = condition(world, "Ready")
    assert (ready.status, ready.reason) == ("True", "Completed")
    assert ready.message.endswith("next start at 2026-01-01 01:30 UTC")


def test_at_its_time_the_next_attempt_of_the_same_run_starts():
    world = completed()
    until(world, at(1, 1, 29))
    assert len(world.drivers) == 1
    until(world, at(1, 1, 30))
    assert started(world) == [(1, 1, 1), (1, 2, 2)]
    assert world.seeds == {}
    assert world.status.state == "Running"
    assert world.status.next_start_at is None
    assert world.status.completed_at == at(1, 0, 10)
    complete(world)
    assert world.status.next_start_at == at(2, 1, 30)


def test_waiting_for_the_next_start_writes_nothing():
    world = completed()
    writes = world.writes
    for _ in range(10):
        world.later(300)
        assert not world.pass_once()
    assert world.writes == writes


def test_starts_that_come_while_it_runs_are_left_out():
    world = completed({"mode": "AvailableNow", "schedule": "0 * * * *"})
    until(world, at(1, 1))
    until(world, at(1, 3, 20))
    assert len(world.drivers) == 2
    complete(world)
    assert world.status.next_start_at == at(1, 4)


def test_starts_that_were_missed_are_made_up_for_once():
    world = completed({"mode": "AvailableNow", "schedule": "0 * * * *"})
    until(world, at(1, 7, 20))  # nobody acted for hours
    assert len(world.drivers) == 2
    complete(world)
    assert world.status.next_start_at == at(1, 8)
    until(world, at(1, 7, 59))
    assert len(world.drivers) == 2


def test_an_end_that_nobody_saw_counts_from_when_it_was():
    world = a_world({"trigger": NIGHTLY})
    world.settle()
    world.driver_ends(Ending.COMPLETED, at=at(1, 0, 40))
    until(world, at(1, 9))
    assert world.status.completed_at == at(1, 0, 40)
    assert started(world) == [(1, 1, 1), (1, 2, 2)]  # 01:30 was missed


def test_a_failed_start_is_tried_again_and_the_next_time_changes_nothing():
    world = completed(
        {"mode": "AvailableNow", "schedule": "0 * * * *"}, restart={"backoff": {"min": "90m", "max": "90m"}}
    )
    until(world, at(1, 1))
    world.driver_ends(Ending.QUERY_FAILED, "boom")
    world.pass_once()
    assert world.status.restarts.next_at == at(1, 2, 30)
    assert world.status.next_start_at is None
    world.now = at(1, 2, 0)
    world.pass_once()
    assert len(world.drivers) == 2
    until(world, at(1, 2, 30))
    assert len(world.drivers) == 3
    complete(world)
    assert world.status.next_start_at == at(1, 3)


def test_an_edited_schedule_counts_from_now_on():
    world = completed()
    until(world, at(1, 1, 0))
    world.edit(trigger={"mode": "AvailableNow", "schedule": "30 0 * * *"})  # passed half an hour ago
    world.settle()
    assert len(world.drivers) == 1
    assert world.status.next_start_at == at(2, 0, 30)
    world.edit(trigger={"mode": "AvailableNow", "schedule": "*/10 * * * *"})
    world.settle()
    assert world.status.next_start_at == at(1, 1, 10)
    world.edit(trigger={"mode": "AvailableNow", "schedule": "0 9 * * *", "timeZone": "Asia/Tokyo"})
    world.settle()
    assert world.status.next_start_at == at(2, 0, 0)


def test_an_edit_while_nobody_acted_drops_the_time_that_was_missed():
    world = completed()
    world.edit(trigger={"mode": "AvailableNow", "schedule": "0 12 * * *"})
    until(world, at(1, 2))
    assert len(world.drivers) == 1
    assert world.status.next_start_at == at(1, 12)


def test_without_a_schedule_it_is_done():
    world = completed()
    world.edit(trigger={"mode": "AvailableNow"})
    world.settle()
    assert world.status.next_start_at is None
    until(world, at(3, 0))
    assert len(world.drivers) == 1
    assert world.status.state == "Completed"
    world.edit(trigger=NIGHTLY)
    world.settle()
    assert world.status.next_start_at == at(3, 1, 30)


def test_a_suspended_job_misses_its_times_for_good():
    world = completed()
    world.edit(suspend=True)
    world.settle()
    assert world.status.next_start_at is None
    until(world, at(1, 6))
    world.edit(suspend=False)
    world.settle()
    assert len(world.drivers) == 1
    assert (world.status.state, world.status.next_start_at) == ("Completed", at(2, 1, 30))


def test_a_start_that_a_suspend_cut_short_goes_on_at_the_resume():
    world = completed()
    until(world, at(1, 1, 30))
    world.edit(suspend=True)
    world.settle()
    world.edit(suspend=False)
    world.settle()
    assert started(world)[-1] == (1, 3, 3)


def test_new_code_does_not_wait_for_the_schedule():
    world = completed()
    world.code = Code("code-2")
    world.settle()
    assert started(world)[-1] == (2, 1, 2)
    assert world.status.next_start_at is None


def test_a_refused_edit_does_not_keep_it_from_starting():
    world = completed()
    world.code = CodeProblem("job.py:1: oops")
    world.settle()
    assert condition(world, "Stalled").reason == "CodeProblem"
    assert world.status.state == "Completed"
    until(world, at(1, 1, 30))
    assert started(world)[-1] == (1, 2, 2)


def test_a_day_that_never_comes_is_said():
    world = completed({"mode": "AvailableNow", "schedule": "0 0 31 2 *"})
    assert world.status.next_start_at is None
    assert "never comes" in condition(world, "Ready").message


def test_a_zone_that_this_operator_does_not_know_is_said():
    world = completed()
    world.edit(trigger={**NIGHTLY, "timeZone": "Europe/Atlantis"})
    world.settle()
    assert condition(world, "Stalled").reason == "UnknownTimeZone"
    assert "spec.trigger.timeZone" in condition(world, "Stalled").message
    until(world, at(4, 0))
    assert len(world.drivers) == 1


@pytest.mark.parametrize("steps", range(4))
def test_killed_around_a_start_it_starts_once(steps: int):
    world = completed()
    world.now = at(1, 1, 30)
    world.steps_left = steps
    try:
        world.settle()
    except OperatorKilled:
        world.steps_left = None
        world.settle()
    assert started(world) == [(1, 1, 1), (1, 2, 2)]
    assert world.status.state == "Running"
