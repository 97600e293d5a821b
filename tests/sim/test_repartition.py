"""Another number of state partitions: the new run splits its copy of the state. Output is counted."""

import pytest

from headrace.core.actions import StartCandidate
from headrace.core.model import AttemptPhase, Code, Ending, Problem
from headrace.core.repartition import hands_over_cold
from tests.sim.upgrades import condition, is_exact, is_quiet, outcomes, running, tick, ways

SPLIT = {"state": {"partitions": 8}}


def partitions(world) -> list[int | None]:
    return [world.stream.partitions(f"run-{run}") for run in sorted({d.run for d in world.drivers})]


def to_the_new_driver(world):
    while world.status.run.number == 1 or world.driver is None:
        world.pass_once()
        world.drains_finish()
        world.rehearse()
    return world


def test_the_new_run_splits_its_copy_and_the_old_one_keeps_what_it_has():
    world = running()
    world.edit(**SPLIT)
    world.settle()
    assert world.status.last_stable.run == 2
    assert partitions(world) == [16, 8]
    assert world.status.run.repartition and world.status.run.state_partitions is None
    assert outcomes(world) == [(1, "Replaced")]
    is_exact(world)
    is_quiet(world)


def test_an_edit_of_anything_else_splits_nothing():
    world = running()
    world.edit(**SPLIT)
    world.settle()
    world.code = Code("code-2")
    world.settle()
    assert world.status.last_stable.run == 3
    assert not world.status.run.repartition
    assert [d.repartition for d in world.drivers] == [False, True, False]
    is_exact(world)


def test_every_attempt_of_the_run_is_told_and_half_of_it_is_done_again():
    world = running()
    world.edit(**SPLIT)
    to_the_new_driver(world)
    world.stream.begin("run-2")
    world.stream.split("run-2", 8, until="state")
    world.driver_ends(Ending.KILLED)
    world.settle()
    assert [(d.run, d.number, d.repartition) for d in world.drivers] == [
        (1, 1, False),
        (2, 1, True),
        (2, 2, True),
    ]
    assert partitions(world) == [16, 8]
    is_exact(world)


def test_the_candidate_is_told_too_and_takes_over_cold():
    world = running({"upgrade": {"strategy": "Rehearsed"}})
    started = []
    world.edit(**SPLIT)
    perform = world._perform

    def noting(action):
        started.append(action)
        return perform(action)

    world._perform = noting
    while not world.candidates:
        world.pass_once()
    operation = world.status.operation
    assert operation.repartition and hands_over_cold(operation)
    assert [one.repartition for one in started if isinstance(one, StartCandidate)] == [True]
    world.settle()
    assert world.status.last_stable.run == 2
    is_exact(world)


@pytest.mark.parametrize(("code", "has"), [("crash", 16), ("crash-after-0", 8), ("crash-after-2", 8)])
def test_a_version_that_fails_beside_it_goes_back_and_the_number_is_what_the_state_has(code, has):
    world = running()
    world.edit(**SPLIT)
    world.code = Code(code)
    world.settle(200)
    assert (world.status.run.number, world.status.last_stable.run) == (3, 3)
    assert condition(world, "RolledBack").status == "True"
    assert ways(world, 3) == ["Handover" if has == 16 else "Forward"]
    assert partitions(world) == [16, 8, has]
    assert world.status.run.state_partitions == (None if has == 16 else 8)
    assert not world.status.run.repartition, "nothing is split on the way back"
    is_exact(world)
    # The next edit says how many there are to be, whatever the state has.
    world.edit(state={"partitions": 16})
    world.code = Code("code-2")
    world.settle(200)
    assert world.status.last_stable.run == 4
    assert partitions(world)[-1] == 16
    assert world.status.run.state_partitions is None
    is_exact(world)


def test_a_batch_that_was_cut_is_finished_by_the_old_version():
    world = running()
    world.stream.batch("run-1", size=2, until="sink")
    world.edit(**SPLIT)
    world.settle(200)
    assert (world.status.run.number, world.status.last_stable.run) == (3, 3)
    assert condition(world, "RolledBack").reason == "Refused"
    assert "a batch has begun" in condition(world, "RolledBack").message
    assert partitions(world)[-1] == 16
    is_exact(world)
    world.edit(restartNonce="again")
    world.settle(200)
    assert (world.status.last_stable.run, partitions(world)[-1]) == (4, 8)
    is_exact(world)


def test_with_nothing_to_go_back_to_the_job_goes_on_with_the_number_that_it_has():
    world = running({"application": {"file": "job.py"}})
    world.status = world.status.model_copy(update={"last_stable": None, "conditions": ()})
    world.stream.batch("run-1", size=2, until="sink")
    world.driver_ends(Ending.KILLED)
    world.edit(**SPLIT)
    world.settle(200)
    assert (world.status.run.number, world.status.state) == (2, "Running")
    assert world.status.run.state_partitions == 16
    assert any("to try again, change spec.restartNonce" in said for said in world.sentences)
    is_exact(world)
    world.edit(restartNonce="again")
    world.settle(200)
    assert (world.status.last_stable.run, partitions(world)[-1]) == (3, 8)
    is_exact(world)


def test_where_nothing_is_rolled_back_by_itself_it_goes_on_as_well():
    world = running({"upgrade": {"rollback": "Manual"}})
    world.stream.batch("run-1", size=2, until="sink")
    world.edit(**SPLIT)
    world.settle(200)
    assert (world.status.last_stable.run, partitions(world)) == (2, [16, 16])
    assert world.status.run.state_partitions == 16
    assert world.said.count("CannotRepartition") == 1
    is_exact(world)


def test_a_newer_edit_before_the_start_decides_anew():
    world = running()
    world.edit(**SPLIT)
    world.pass_once()
    assert world.status.operation.repartition
    world.edit(state={"partitions": 16}, application={"file": "job.py", "args": ["--x"]})
    world.pass_once()
    assert not world.status.operation.repartition
    world.settle()
    assert partitions(world) == [16, 16]
    is_exact(world)


def test_a_newer_edit_after_half_of_it_splits_the_whole():
    world = running()
    world.edit(**SPLIT)
    to_the_new_driver(world)
    world.stream.begin("run-2")
    world.stream.split("run-2", 8, until="state")
    world.code = Code("code-2")
    world.settle(200)
    assert (world.status.last_stable.run, partitions(world)[-1]) == (3, 8)
    is_exact(world)


def test_it_may_take_longer_than_a_start_does():
    world = running({"upgrade": {"startTimeout": "2m"}})
    world.edit(**SPLIT)
    to_the_new_driver(world)
    world.driver.waiting = Problem("Repartitioning", "the state of query q is split into 8 partitions")
    for _ in range(10):
        world.later(600)
        world.pass_once()
    assert (world.status.run.number, world.status.state) == (2, "Starting")
    assert condition(world, "Reconciling").reason == "Repartitioning"
    assert world.driver.phase is AttemptPhase.STARTING
    world.driver.waiting = None
    tick(world)
    world.settle()
    assert world.status.last_stable.run == 2


def test_without_state_there_is_nothing_to_split():
    world = running()
    world.edit(**SPLIT, upgrade={"strategy": "Stateless"})
    world.settle()
    assert world.status.run.number == 2
    assert not world.status.run.repartition
