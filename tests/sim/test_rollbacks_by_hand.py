"""Rollbacks that somebody asks for, and upgrades without state, on purpose."""

import pytest

from headrace.core.model import Code, Ending, Problem, RollbackRequest
from tests.sim.upgrades import (
    condition,
    is_exact,
    is_quiet,
    is_true,
    outcomes,
    running,
    tick,
    to_trial,
    upgraded,
    versions,
)


def left_to_the_user():
    world = running({"upgrade": {"rollback": "Manual"}, "restart": {"backoff": {"min": "1s", "max": "1s"}}})
    world.code = Code("crash")
    for _ in range(30):
        world.pass_once()
        world.drains_finish()
        world.driver_runs()
        world.later(1)
    return world


def test_left_to_the_user_it_says_so_and_tries_again():
    world = left_to_the_user()
    assert versions(world) == ["code-1", "crash"]
    assert len(world.drivers) > 3
    assert condition(world, "Stalled").reason == "VerificationFailed"
    assert 'headrace.dev/rollback: "2"' in condition(world, "Stalled").message
    assert not is_true(world, "RolledBack")


def test_and_goes_back_when_it_is_asked():
    world = left_to_the_user()
    world.ask_rollback(RollbackRequest(run=2))
    world.settle()
    assert versions(world) == ["code-1", "crash", "code-1"]
    assert condition(world, "RolledBack").reason == "Requested"
    is_exact(world)
    is_quiet(world)


def test_or_when_the_spec_leaves_it_to_us_after_all():
    world = left_to_the_user()
    world.edit(upgrade={"rollback": "Auto"})
    world.settle()
    assert versions(world) == ["code-1", "crash", "code-1"]


def test_or_recovers_and_is_promoted_after_all():
    world = to_trial("code-2", {"upgrade": {"rollback": "Manual"}})
    world.driver_ends(Ending.QUERY_FAILED, "Kafka was down")
    world.settle()
    assert versions(world) == ["code-1", "code-2"]
    assert world.status.last_stable.run == 2
    assert condition(world, "Stalled").status == "False"
    is_quiet(world)


def test_a_rollback_of_a_proven_run_is_made_once():
    world = upgraded("code-3", upgraded("code-2"))
    world.ask_rollback(RollbackRequest(run=3))
    world.settle()
    assert versions(world) == ["code-1", "code-2", "code-3", "code-2"]
    assert world.seeds[4] == (3, None)
    is_exact(world)
    is_quiet(world)  # the annotation still stands
    # The spec is edited, and later somebody goes back once more.
    upgraded("code-4", world)
    assert versions(world)[-1] == "code-4"
    world.ask_rollback(RollbackRequest(run=5, to=1))
    world.settle()
    assert versions(world)[-1] == "code-1"
    is_exact(world)


@pytest.mark.parametrize("passes", range(1, 5))
def test_an_edit_that_is_newer_than_the_request_is_taken(passes):
    world = upgraded("code-2")
    world.ask_rollback(RollbackRequest(run=2))
    for _ in range(passes):
        world.pass_once()
        world.drains_finish()
    upgraded("code-3", world)  # the annotation still stands
    assert versions(world)[-1] == "code-3"
    assert world.status.rejected is None
    is_exact(world)
    is_quiet(world)


def test_and_another_request_is_newer_than_that_edit():
    world = upgraded("code-3", upgraded("code-2"))
    world.ask_rollback(RollbackRequest(run=3))
    world.pass_once()
    world.code = Code("code-4")
    world.pass_once()
    assert world.status.operation.kind == "Upgrade"
    world.ask_rollback(RollbackRequest(run=3, to=1))
    world.settle(200)
    assert versions(world)[-1] == "code-1"
    is_exact(world)


def test_from_a_run_on_trial_it_goes_to_the_handover_point_also_while_an_edit_is_on_its_way():
    world = to_trial("other-state-x", {"upgrade": {"verifyWindow": "5m"}})
    tick(world)
    world.code, world.held_by_savepoint = Code("code-3"), True
    for _ in range(4):
        world.pass_once()
    assert (world.status.operation.to_run, world.driver.drain_asked) == (3, False)
    world.ask_rollback(RollbackRequest(run=2))
    world.settle(200)
    assert versions(world)[-1] == "code-1"
    assert condition(world, "Ready").status == "True", "it can read what run 1 has left"
    assert world.stream.sink.lost() == []


def test_a_version_that_never_ran_is_nothing_to_go_back_to():
    world = running({"upgrade": {"strategy": "Rehearsed"}})
    world.code = Code("other-meaning")
    world.settle(200)
    assert outcomes(world) == [(2, "Refused")]
    world.code = Code("code-1")
    world.settle()
    world.ask_rollback(RollbackRequest(run=1, to=2))
    world.settle()
    assert versions(world) == ["code-1"]
    stalled = condition(world, "Stalled")
    assert (stalled.reason, "Runs to go back to: none" in stalled.message) == ("NoVersion", True)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (RollbackRequest(run=2, to=9), "NoVersion"),
        (RollbackRequest(run=2, to=2), "SameVersion"),
        (Problem("BadRollback", "headrace.dev/rollback: 'x' is not the number of a run"), "BadRollback"),
    ],
)
def test_a_rollback_that_cannot_be_is_refused_and_the_job_goes_on(request_, reason):
    world = upgraded("code-2")
    world.ask_rollback(request_)
    world.settle()
    assert versions(world) == ["code-1", "code-2"]
    assert condition(world, "Stalled").reason == reason
    assert condition(world, "Ready").status == "True"
    is_quiet(world)
    world.ask_rollback(None)
    world.settle()
    assert condition(world, "Stalled").status == "False"


# ---- without state -----------------------------------------------------------------------------------


def test_without_state_on_purpose_only_and_loudly():
    world = running()
    world.edit(upgrade={"strategy": "Stateless"})
    world.settle()
    assert len(world.drivers) == 1
    upgraded("code-2", world)
    assert world.seeds == {}
    assert world.status.run.seeded_from == "none"
    assert world.status.last_stable.run == 2
    assert world.loud("WITHOUT the state")


def test_without_state_a_change_of_its_layout_is_no_obstacle():
    world = running({"state": {"partitions": 8}})
    world.edit(state={"partitions": 16}, upgrade={"strategy": "Stateless"})
    world.settle()
    assert (world.status.run.number, world.seeds) == (2, {})


def test_taken_back_in_time_the_state_is_kept():
    world = running()
    world.edit(upgrade={"strategy": "Stateless"})
    world.code = Code("code-2")
    world.pass_once()
    world.pass_once()
    assert world.status.operation.without_state
    world.edit(upgrade={"strategy": "Cold"})
    world.settle()
    assert world.seeds == {2: (1, None)}


def test_a_rollback_from_a_run_without_state_returns_to_the_state():
    world = running()
    world.edit(upgrade={"strategy": "Stateless"})
    upgraded("crash-after-2", world)
    assert world.seeds == {3: (1, None)}
    assert world.stream.sink.lost() == []


@pytest.mark.parametrize("edits", [["other-state-x"], ["code-3", "other-state-x"]])
def test_and_so_from_a_run_that_followed_it_on_trial(edits):
    world = running()
    world.edit(upgrade={"strategy": "Stateless"})
    world.code = Code("crash-after-2")
    while world.status.run.number == 1 or world.driver is None:
        tick(world)
    world.edit(upgrade={"strategy": "Cold"})
    for code in edits:
        number, world.code = world.status.run.number, Code(code)
        while world.status.run.number == number or world.driver is None:
            tick(world)
    tick(world)
    world.driver_ends(Ending.QUERY_FAILED, "boom")
    world.settle(200)
    assert versions(world)[-1] == "code-1"
    assert world.status.run.seeded_from == "run-1", "nothing of what began without state"
    assert condition(world, "Ready").status == "True"
    assert world.status.last_stable.run == world.status.run.number


def test_and_what_another_run_on_trial_wrote_before_it_is_not_forgotten():
    """Its batches are in the sinks under the lineage of the good version: other rows under the same numbers
    would be dropped."""
    world = to_trial("code-2", {"upgrade": {"verifyWindow": "5m"}})
    for _ in range(4):
        tick(world)
    assert (world.status.run.number, world.status.last_stable.run) == (2, 1)
    world.edit(upgrade={"strategy": "Stateless"})
    upgraded("crash", world)
    assert versions(world)[-1] == "code-1"
    assert world.status.run.seeded_from == "run-2"
    assert world.stream.sink.lost() == []
