"""Rehearsals: what is bad never touches what runs, what is good takes over, a fix goes on by itself."""

import pytest

from headrace.core.model import AttemptPhase, Code, CodeProblem, Ended, Ending, Problem, RollbackRequest
from tests.sim.stream import INCOMPATIBLE
from tests.sim.upgrades import becomes, condition, is_exact, is_quiet, outcomes, versions
from tests.sim.upgrades import rehearsing as running
from tests.sim.upgrades import tick_rehearsing as tick
from tests.sim.world import OperatorKilled

FOUND = ["crash", "crash-after-0", "other-meaning", "unfit", "slow", "never", "no-rights"]


def test_a_good_version_is_rehearsed_beside_the_old_one_and_then_takes_over():
    world = running()
    world.code = Code("code-2")
    seen = []
    for _ in range(20):
        tick(world)
        operation = world.status.operation
        if operation is not None and operation.step == "Rehearsing":
            seen.append((world.driver.run, world.driver.phase, condition(world, "Ready").status))
            assert condition(world, "Reconciling").reason == "Rehearsing"
    assert set(seen) == {(1, AttemptPhase.RUNNING, "True")}
    world.settle()
    assert (world.status.run.number, world.status.last_stable.run) == (2, 2)
    assert (condition(world, "Rehearsed").status, condition(world, "Rehearsed").reason) == ("True", "Passed")
    is_exact(world)
    is_quiet(world)


@pytest.mark.parametrize("bad", FOUND)
def test_what_a_rehearsal_finds_does_not_touch_what_runs(bad):
    world = running()
    driver = world.driver
    becomes(world, bad)
    assert world.driver is driver and not driver.drain_asked
    assert len(world.drivers) == 1
    assert condition(world, "Ready").status == "True"
    assert condition(world, "Stalled").reason == "RehearsalFailed"
    assert condition(world, "Rehearsed").status == "False"
    assert world.status.operation is None
    assert not [c for c in world.candidates if c.ended is None]
    assert [(entry.run, entry.outcome) for entry in world.status.history] == [(2, "Refused")]
    is_quiet(world)
    # The fix, once saved, goes on by itself.
    becomes(world, "code-2")
    assert (world.status.run.number, world.status.last_stable.run) == (2, 2)
    assert condition(world, "Stalled").status == "False"
    assert condition(world, "Rehearsed").status == "True"
    is_exact(world)
    is_quiet(world)


def test_the_condition_carries_sparks_error_class_and_the_sentence():
    world = running()
    becomes(world, "unfit")
    rehearsed = condition(world, "Rehearsed")
    assert rehearsed.reason == INCOMPATIBLE
    assert "an aggregate was added" in rehearsed.message
    assert "Run 1 goes on untouched" in rehearsed.message


def test_missing_rights_to_read_are_told_by_their_class_and_what_they_are_for():
    world = running()
    becomes(world, "no-rights")
    rehearsed = condition(world, "Rehearsed")
    assert rehearsed.reason == "org_apache_kafka_common_errors_TopicAuthorizationException"
    assert "Not authorized to access topics: [payments]" in rehearsed.message


def test_a_changed_meaning_is_taken_when_the_spec_vouches_for_it():
    world = running()
    becomes(world, "other-meaning")
    assert condition(world, "Rehearsed").reason == "MeaningChanged"
    world.rehearsals_end = [Ended(ending=Ending.REHEARSED)]
    world.edit(upgrade={"stateCompatible": True})
    world.settle()
    assert world.status.last_stable.run == 2


def test_a_live_edit_does_not_rehearse_what_was_refused_again():
    world = running()
    becomes(world, "crash")
    candidates = world.status.candidates
    world.edit(executors={"count": 4})
    world.settle()
    assert world.status.candidates == candidates


def test_cold_it_is_tried_without_a_rehearsal():
    world = running()
    becomes(world, "crash")
    world.edit(upgrade={"strategy": "Cold"})
    world.settle()
    assert world.pinned[3].code == "code-1"  # tried, and rolled back
    assert condition(world, "RolledBack").status == "True"


def test_without_room_it_takes_over_cold_and_says_so():
    world = running()
    world.full = True
    becomes(world, "code-2")
    assert world.status.last_stable.run == 2
    assert (condition(world, "Rehearsed").status, condition(world, "Rehearsed").reason) == (
        "Unknown",
        "NoRoom",
    )
    assert world.loud("takes over cold, without a rehearsal")
    assert not [c for c in world.candidates if c.ended is None]


def test_what_says_nothing_about_the_version_is_tried_again_a_few_times():
    world = running()
    lost = Ended(ending=Ending.STORE_UNAVAILABLE, message="the store does not answer")
    world.rehearsals_end = [lost, lost]
    becomes(world, "code-2")
    assert (world.status.last_stable.run, world.status.candidates) == (2, 3)
    world.rehearsals_end = [lost, lost, lost]
    becomes(world, "code-3")
    assert world.status.last_stable.run == 2
    assert "the store does not answer" in condition(world, "Stalled").message


def test_an_edit_taken_back_while_it_is_rehearsed_has_touched_nothing():
    world = running()
    world.code = Code("code-2")
    for _ in range(3):
        world.pass_once()
    assert world.status.operation.step == "Rehearsing"
    becomes(world, "code-1")
    assert len(world.drivers) == 1
    assert world.status.operation is None
    assert not [c for c in world.candidates if c.ended is None]
    is_quiet(world)


def test_what_failed_its_rehearsal_is_not_on_show_when_it_is_asked_for_no_more():
    world = running()
    becomes(world, "crash")
    assert condition(world, "Rehearsed").status == "False"
    becomes(world, "code-1")
    assert (condition(world, "Rehearsed").status, condition(world, "Rehearsed").reason) == (
        "Unknown",
        "Edited",
    )
    is_quiet(world)
    becomes(world, "crash")
    world.edit(upgrade={"strategy": "Cold"})
    becomes(world, "code-2")
    assert world.status.last_stable.run == world.status.run.number
    assert condition(world, "Rehearsed").status == "Unknown"


def test_one_whose_agent_cannot_be_reached_is_refused_with_that_as_the_reason():
    world = running()
    world.code = Code("code-2")
    while not any(c.running for c in world.candidates):
        tick(world)
    (candidate,) = world.candidates
    candidate.standby, candidate.silent = False, True
    candidate.waiting = Problem("AgentSilent", "its agent at 10.1.2.3 does not answer")
    world.later(3600)
    world.pass_once()
    assert condition(world, "Rehearsed").reason == "RehearsalTimeout"
    assert "its agent at 10.1.2.3 does not answer" in condition(world, "Rehearsed").message


def test_however_many_are_refused_there_is_still_what_ran_before():
    world = running()
    becomes(world, "code-2")
    for number in range(12):
        world.edit(application={"file": "job.py", "args": [f"--{number}"]})
        becomes(world, "crash")
    assert outcomes(world) == [(3, "Refused")] * 3 + [(1, "Replaced")]
    world.ask_rollback(RollbackRequest(run=2))
    world.settle()
    assert versions(world) == ["code-1", "code-2", "code-1"]


def test_what_does_not_run_is_repaired_without_a_rehearsal():
    world = running()
    world.driver_ends(Ending.QUERY_FAILED, "boom")
    world.pass_once()
    becomes(world, "code-2")
    assert world.candidates == []
    assert world.status.last_stable.run == 2


def test_a_crash_of_the_incumbent_during_a_rehearsal_is_restarted_as_always():
    world = running()
    world.code = Code("code-2")
    for _ in range(3):
        world.pass_once()
    world.driver_ends(Ending.QUERY_FAILED, "boom")
    for _ in range(3):
        world.pass_once()
        world.later(10)
    world.settle(200)
    assert [(d.run, d.number) for d in world.drivers] == [(1, 1), (1, 2), (2, 1)]
    is_exact(world)


@pytest.mark.parametrize("first", ["code-2", *FOUND])
@pytest.mark.parametrize("second", ["code-9", "crash"])
def test_a_newer_edit_supersedes_at_any_step(first, second):
    for ticks in range(0, 16, 2):
        world = running()
        world.code = Code(first)
        for _ in range(ticks):
            tick(world)
        becomes(world, second)
        if second == "code-9":
            assert world.pinned[world.status.run.number].code == "code-9", f"after {ticks} ticks"
            assert world.status.last_stable.run == world.status.run.number
        else:
            assert world.pinned[world.status.run.number].code in ("code-1", first), f"after {ticks} ticks"
            assert condition(world, "Stalled").status == "True"
        assert not [c for c in world.candidates if c.ended is None]
        is_exact(world)
        is_quiet(world)


def test_a_rollback_that_is_asked_for_ends_a_rehearsal():
    world = running()
    becomes(world, "code-2")
    world.code = Code("code-3")
    for _ in range(3):
        world.pass_once()
    world.ask_rollback(RollbackRequest(run=2))
    world.settle()
    assert world.pinned[world.status.run.number].code == "code-1"
    assert not [c for c in world.candidates if c.ended is None]


def test_broken_code_saved_during_a_rehearsal_does_not_stop_it():
    world = running()
    world.code = Code("code-2")
    for _ in range(3):
        tick(world)
    world.code = CodeProblem("job.py:1: oops")
    world.settle()
    assert world.pinned[world.status.run.number].code == "code-2"
    assert condition(world, "Stalled").reason == "CodeProblem"


@pytest.mark.parametrize("code", ["code-2", "crash", "never"])
def test_killed_after_any_step_it_ends_the_same(code):
    unharmed = running()
    unharmed.steps_left = 10_000
    becomes(unharmed, code)
    steps = 10_000 - unharmed.steps_left
    assert steps > 3
    for k in range(steps):
        world = running()
        world.steps_left = k
        while True:
            try:
                becomes(world, code)
                break
            except OperatorKilled:
                world.steps_left = None
        world.settle()
        assert (
            world.status.run == unharmed.status.run or world.status.run.number == unharmed.status.run.number
        )
        assert world.status.state == unharmed.status.state
        assert len(world.drivers) == len(unharmed.drivers), f"killed after step {k}"
        assert world.status.candidates == unharmed.status.candidates
        is_exact(world)
        is_quiet(world)
