"""A source that is away while a job is edited: that is not the fault of the version, and needs no help."""

from __future__ import annotations

import pytest

from headrace.core.model import Code, Ended, Ending, RollbackRequest
from tests.sim.world import World, a_world


def condition(world: World, kind: str) -> tuple[str, str]:
    found = world.status.condition(kind)
    assert found is not None
    return found.status, found.reason


def running(strategy: str) -> World:
    world = a_world({"upgrade": {"strategy": strategy}})
    world.settle()
    return world


def some_passes(world: World, count: int = 12) -> None:
    """With the time that each wait takes: during an outage nothing settles."""
    for _ in range(count):
        world.pass_once()
        world.drains_finish()
        world.driver_runs()
        world.rehearse()
        due = world.status.restarts.next_at
        world.now = due if due is not None and due > world.now else world.now
        world.later(5)


def runs_what_is_asked_for(world: World) -> bool:
    run = world.status.run
    return run is not None and world.pinned[run.number].code == world.code.digest


def test_a_cold_upgrade_that_was_rolled_back_in_an_outage_is_made_when_the_outage_is_over():
    world = running("Cold")
    world.sources_away, world.code = True, Code("code-2")
    some_passes(world, 20)
    assert condition(world, "RolledBack") == ("True", "OldVersionFailsToo")
    assert condition(world, "Stalled")[0] == "True"
    rolled_back = world.status.condition("RolledBack")
    assert rolled_back is not None and "tried again by itself" in rolled_back.message
    number = world.status.run.number
    some_passes(world, 30)
    assert world.status.run.number == number, "the outage is no reason to go to and fro"
    world.sources_away = False
    world.settle(200)
    assert runs_what_is_asked_for(world)
    assert condition(world, "Ready") == ("True", "Running")
    assert condition(world, "Stalled")[0] == "False"
    assert world.status.rejected is None


def test_an_edit_that_was_refused_in_an_outage_is_rehearsed_again_when_the_outage_is_over():
    world = running("Rehearsed")
    world.sources_away, world.code = True, Code("code-2")
    some_passes(world, 4)
    assert world.status.rejected is not None and world.status.rejected.kind == "Refused"
    assert world.status.rejected.reason == "TimeoutException"
    world.driver_ends(Ending.QUERY_FAILED, "no broker answers")  # the old version finds it later
    some_passes(world, 12)
    assert world.status.rejected.reason == "OldVersionFailsToo"
    assert condition(world, "Stalled")[0] == "True"
    assert world.status.run.number == 1
    world.sources_away = False
    world.settle(200)
    assert runs_what_is_asked_for(world)
    assert condition(world, "Rehearsed") == ("True", "Passed")
    assert condition(world, "Stalled")[0] == "False"


def test_and_so_where_the_old_version_had_found_it_first():
    world = running("Rehearsed")
    world.sources_away, world.code = True, Code("code-2")
    world.pass_once()
    world.pass_once()
    world.driver_ends(Ending.QUERY_FAILED, "no broker answers")
    some_passes(world, 12)
    assert world.status.rejected is not None and world.status.rejected.reason == "OldVersionFailsToo"
    world.sources_away = False
    world.settle(200)
    assert runs_what_is_asked_for(world)


@pytest.mark.parametrize("strategy", ["Cold", "Rehearsed"])
def test_a_version_that_is_bad_all_the_same_is_refused_after_one_more_try(strategy: str):
    world = running(strategy)
    world.sources_away, world.code = True, Code("crash")
    some_passes(world, 4)
    world.driver_ends(Ending.QUERY_FAILED, "no broker answers")
    some_passes(world, 20)
    world.sources_away = False
    world.settle(200)
    assert world.status.rejected is not None
    assert world.status.rejected.reason != "OldVersionFailsToo"
    assert condition(world, "Ready") == ("True", "Running")
    number = world.status.run.number
    world.later(3600)
    world.settle()
    assert world.status.run.number == number


def test_a_failure_of_the_old_version_long_after_is_another_story():
    world = running("Rehearsed")
    world.code = Code("crash")
    world.settle(200)
    assert world.status.rejected is not None
    world.later(3600)
    world.driver_ends(Ending.QUERY_FAILED, "KeyError: 'price'")
    world.settle()
    assert world.status.rejected.reason == "ApplicationError"
    assert not runs_what_is_asked_for(world)


def test_a_driver_that_is_evicted_says_nothing_for_the_version():
    world = running("Rehearsed")
    world.code = Code("crash")
    world.settle(200)
    world.driver_ends(Ending.EVICTED)
    world.settle()
    assert world.status.rejected is not None and world.status.rejected.reason == "ApplicationError"


def test_an_old_version_that_cannot_read_the_newer_state_is_no_outage():
    """It goes back to the handover point, and that is that."""
    world = running("Cold")
    world.code = Code("other-state-crash")
    world.settle(30)
    world.driver_ends(Ending.QUERY_FAILED, "boom")
    world.settle(200)
    number = world.status.run.number
    assert world.status.rejected is None or world.status.rejected.reason != "OldVersionFailsToo"
    world.later(3600)
    world.settle()
    assert world.status.run.number == number


def test_what_a_rehearsal_finds_stays_found_while_the_old_version_works():
    world = running("Rehearsed")
    world.rehearsals_end = [Ended(ending=Ending.QUERY_FAILED, error_class="TimeoutException", message="away")]
    world.code = Code("code-2")
    world.settle(200)
    world.later(3600)
    world.settle()
    assert world.status.rejected is not None and world.status.rejected.reason == "TimeoutException"


def test_one_that_is_suspended_at_the_last_moment_is_not_looked_at_in_a_loop():
    world = running("Rehearsed")
    world.sources_away, world.code = True, Code("code-2")
    some_passes(world, 4)
    world.driver_ends(Ending.QUERY_FAILED, "no broker answers")
    some_passes(world, 12)
    world.sources_away = False
    while world.status.restarts.without_progress or world.recheck_at != world.now:
        world.driver_runs()
        world.driver_works()
        world.pass_once()
        world.now = world.status.restarts.next_at or world.now
    world.edit(suspend=True)
    world.settle()
    assert world.status.state == "Suspended" and world.recheck_at is None
    world.edit(suspend=False)
    world.settle(200)
    assert runs_what_is_asked_for(world)


def test_a_rollback_that_somebody_asked_for_is_his_wish():
    world = running("Cold")
    world.code = Code("code-2")
    world.settle(100)
    world.ask_rollback(RollbackRequest(run=2))
    for _ in range(6):
        world.pass_once()
        world.drains_finish()
    world.driver_ends(Ending.QUERY_FAILED, "no broker answers")
    world.settle(100)
    assert world.status.rejected is not None and world.status.rejected.reason == "Requested"
    assert not runs_what_is_asked_for(world)
