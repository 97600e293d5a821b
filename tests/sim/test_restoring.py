"""A job that runs is taken back to a savepoint: one request, one new run, and never two writers."""

from dataclasses import replace

import pytest

from headrace.core.model import Code, CodeProblem, Ending, ObservedSavepoint
from tests.sim.world import OperatorKilled, World, a_world

GOOD = ObservedSavepoint(name="good", job="clicks", path="s3://buck/shop/clicks/_savepoints/good")
OTHER = ObservedSavepoint(name="other", job="views", path="s3://buck/shop/views/_savepoints/other")


def a_running_world() -> World:
    world = a_world()
    world.savepoints = {"good": GOOD, "other": OTHER}
    world.settle()
    return world


def ask(world: World, wanted: str | None) -> None:
    world.job = replace(world.job, restore=wanted)


def condition(world: World, kind: str) -> tuple[str, str]:
    found = next(c for c in world.status.conditions if c.type == kind)
    return found.reason, found.message


def started(world: World) -> list[tuple[int, int]]:
    return [(driver.run, driver.number) for driver in world.drivers]


def passes(world: World, number: int = 8) -> None:
    for _ in range(number):
        world.pass_once()
        world.drains_finish()
        world.driver_runs()


@pytest.mark.parametrize(("name", "lineage"), [("good", "forward"), ("other", "new")])
def test_it_drains_and_a_new_run_begins_with_the_savepoint(name, lineage):
    world = a_running_world()
    ask(world, f"{name}@1")
    world.settle()
    assert started(world) == [(1, 1), (2, 1)]
    assert world.restored == {2: (world.savepoints[name].path, lineage, None)}
    run = world.status.run
    assert (run.seeded_from, run.started_from) == (world.savepoints[name].path, f"savepoint {name}")
    assert (world.status.restored, world.status.operation) == (f"{name}@1", None)
    world.settle()
    assert len(world.drivers) == 2, "a request is carried out once"


def test_the_same_savepoint_again_is_another_request():
    world = a_running_world()
    for number in (1, 2):
        ask(world, f"good@{number}")
        world.settle()
    assert started(world) == [(1, 1), (2, 1), (3, 1)]
    assert set(world.restored) == {2, 3}


@pytest.mark.parametrize(
    ("name", "reason"), [("missing", "SavepointNotFound"), ("half", "SavepointNotReady")]
)
def test_a_job_runs_on_while_its_savepoint_cannot_be_restored(name, reason):
    world = a_running_world()
    world.savepoints["half"] = ObservedSavepoint(name="half", job="clicks", problem="copied 3 of 9")
    ask(world, name)
    passes(world)
    assert condition(world, "Stalled")[0] == reason
    assert condition(world, "Ready")[0] == "Running"
    assert started(world) == [(1, 1)]
    ask(world, None)
    passes(world)
    assert condition(world, "Stalled")[0] == "Settled"
    world.savepoints[name] = GOOD
    ask(world, name)
    world.settle()
    assert started(world) == [(1, 1), (2, 1)]


def test_taken_back_before_anything_was_copied_the_run_goes_on():
    world = a_running_world()
    ask(world, "good")
    world.pass_once()
    world.pass_once()
    assert world.status.operation.kind == "Restore"
    ask(world, None)
    world.settle()
    assert (world.restored, world.status.run.number) == ({}, 1)
    assert world.status.state == "Running"


def test_taken_back_in_the_middle_of_the_copy_another_run_begins_with_what_the_old_one_has():
    world = a_running_world()
    world.seed_problem = "it is damaged"
    ask(world, "good")
    passes(world)
    assert condition(world, "Stalled")[0] == "RestoreFailed"
    ask(world, None)
    world.seed_problem = None
    world.settle()
    assert started(world) == [(1, 1), (3, 1)]
    assert world.seeds == {3: (1, None)}
    assert world.status.restored is None


def test_a_damaged_one_is_given_up_for_another():
    world = a_running_world()
    world.seed_problem = "it is damaged"
    ask(world, "good")
    passes(world)
    ask(world, "other")
    world.seed_problem = None
    world.settle()
    assert started(world) == [(1, 1), (3, 1)]
    assert world.restored == {3: (OTHER.path, "new", None)}


def test_an_upgrade_under_way_ends_first_and_broken_code_holds_it():
    world = a_running_world()
    world.code = Code("code-2")
    world.pass_once()
    ask(world, "good")
    world.settle()
    assert started(world) == [(1, 1), (2, 1), (3, 1)]
    assert set(world.restored) == {3}
    world.code = CodeProblem("job.py:1: oops")
    ask(world, "other")
    passes(world)
    assert condition(world, "Stalled")[0] == "CodeProblem"
    assert len(world.drivers) == 3


def test_a_failed_and_a_suspended_job_can_be_taken_back_too():
    world = a_running_world()
    world.driver_ends(Ending.REFUSED, "the state does not fit")
    passes(world)
    ask(world, "good")
    world.edit(suspend=True)
    passes(world)
    assert (world.status.state, world.restored) == ("Suspended", {})
    world.edit(suspend=False)
    world.settle()
    assert started(world) == [(1, 1), (2, 1)]


def test_killed_after_any_step_it_ends_the_same():
    def story(world: World) -> None:
        world.settle()
        ask(world, "good")
        world.settle()

    unharmed = a_running_world()
    unharmed.steps_left = 1000
    story(unharmed)
    for k in range(1000 - unharmed.steps_left):
        world = a_running_world()
        world.steps_left = k
        with pytest.raises(OperatorKilled):
            story(world)
        world.steps_left = None
        ask(world, "good")
        world.settle()
        assert (started(world), world.restored) == (started(unharmed), unharmed.restored), k
