"""Where a job starts: with a savepoint, with a checkpoint, at a time; an edit corrects a mistake."""

from dataclasses import replace

import pytest

from headrace.core.model import EarlierLineage, Ending, ObservedSavepoint
from tests.sim.world import OperatorKilled, World, a_world

NIGHTLY = ObservedSavepoint(name="nightly", job="clicks", path="s3://buck/shop/clicks/_savepoints/n")
FORK = ObservedSavepoint(name="other", job="views", path="s3://buck/shop/views/_savepoints/o")


def world_with(start: dict, **savepoints: ObservedSavepoint) -> World:
    world = a_world({"startFrom": start})
    world.savepoints = savepoints
    return world


def condition(world: World, kind: str) -> tuple[str, str]:
    found = next(c for c in world.status.conditions if c.type == kind)
    return found.reason, found.message


def started(world: World) -> list[tuple[int, int]]:
    return [(driver.run, driver.number) for driver in world.drivers]


def passes(world: World, number: int = 6) -> None:
    for _ in range(number):
        world.pass_once()


@pytest.mark.parametrize(
    ("start", "restored"),
    [
        ({"savepoint": "nightly"}, (NIGHTLY.path, "forward", None)),
        ({"savepoint": "other"}, (FORK.path, "new", None)),
        ({"path": "s3://buck/old"}, ("s3://buck/old", "auto", None)),
        ({"path": "s3://buck/old", "query": "clicks"}, ("s3://buck/old", "auto", "clicks")),
    ],
)
def test_the_first_run_is_made_from_it(start, restored):
    world = world_with(start, nightly=NIGHTLY, other=FORK)
    world.settle()
    assert world.restored == {1: restored}
    assert started(world) == [(1, 1)]
    assert world.status.run.seeded_from == restored[0]
    assert world.status.beginning is None


@pytest.mark.parametrize(
    "start", [{"timestamp": "2026-01-31T08:00:00Z"}, {"offsets": {"q": '{"t":{"0":1}}'}}]
)
def test_a_start_without_state_passes_an_earlier_lineage_over_on_purpose(start):
    world = world_with(start)
    world.earlier = EarlierLineage(uid="older", last_run=4)
    world.settle()
    assert (world.restored, world.seeds, started(world)) == ({}, {}, [(1, 1)])
    assert world.status.run.started_from.split()[0] in start


@pytest.mark.parametrize(
    ("start", "reason", "words"),
    [
        ({"savepoint": "nightly"}, "SavepointNotFound", "there is no savepoint nightly"),
        ({"savepoint": "broken"}, "SavepointNotReady", "its manifest was altered. Name another one"),
        ({"timestamp": "2026-02-31T08:00:00Z"}, "StartInvalid", "spec.startFrom.timestamp"),
        ({"offsets": {"q": "{t"}}, "StartInvalid", "spec.startFrom.offsets.q: it is not JSON"),
        ({"offsets": {"q": "[]"}}, "StartInvalid", "it names no topic"),
        ({"offsets": {"q": '{"t":{}}'}}, "StartInvalid", "topic t has no partitions"),
        ({"offsets": {"q": '{"t":{"0":-3}}'}}, "StartInvalid", "has the offset -3"),
        ({"offsets": {"q": '{"t":{"x":1}}'}}, "StartInvalid", "partition x of topic t"),
    ],
)
def test_what_cannot_be_started_from_is_said_and_an_edit_corrects_it(start, reason, words):
    broken = ObservedSavepoint(name="broken", job="clicks", problem="its manifest was altered", lasting=True)
    world = world_with(start, broken=broken)
    passes(world)
    assert condition(world, "Stalled")[0] == reason
    assert words in condition(world, "Stalled")[1]
    assert (world.drivers, world.restored) == ([], {})
    world.savepoints["good"] = NIGHTLY
    world.edit(startFrom={"savepoint": "good"})
    world.settle()
    assert world.restored == {1: (NIGHTLY.path, "forward", None)}
    assert world.status.state == "Running"


def test_a_savepoint_that_is_being_taken_is_waited_for_and_looked_at_again():
    world = world_with({"savepoint": "nightly"}, nightly=replace(NIGHTLY, path=None, problem="copied 3 of 9"))
    passes(world)
    reason, message = condition(world, "Ready")
    assert (reason, message) == ("SavepointNotReady", "waiting for the savepoint nightly: copied 3 of 9")
    world.savepoints["nightly"] = NIGHTLY
    world.settle()
    assert started(world) == [(1, 1)]


def test_one_that_comes_late_is_found():
    world = world_with({"savepoint": "nightly"})
    passes(world)
    world.savepoints["nightly"] = NIGHTLY
    world.settle()
    assert started(world) == [(1, 1)]


def test_a_copy_that_fails_says_why_and_goes_on():
    world = world_with({"path": "s3://other/x"})
    world.seed_problem = "not allowed to list s3://other/x: s3:ListBucket is needed"
    passes(world)
    reason, message = condition(world, "Stalled")
    assert reason == "RestoreFailed"
    assert "the state at s3://other/x could not be copied: not allowed to list" in message
    world.seed_problem = None
    world.settle()
    assert started(world) == [(1, 1)]


@pytest.mark.parametrize(
    "other", [{"path": "s3://buck/right"}, {"none": True}, {"timestamp": "2026-01-31T08:00:00Z"}]
)
def test_another_start_before_it_has_begun_is_another_run_with_its_own_path(other):
    """Whoever still copies for the first one, or has done half of it, does no harm there."""
    world = world_with({"path": "s3://buck/wrong"})
    world.seed_problem = "damaged"
    passes(world)
    world.edit(startFrom=other)
    world.seed_problem = None
    world.settle()
    assert started(world) == [(2, 1)]
    assert world.restored == ({2: ("s3://buck/right", "auto", None)} if "path" in other else {})


def test_said_no_more_it_does_not_begin_with_half_of_a_copy():
    world = world_with({"path": "s3://buck/wrong"})
    world.seed_problem = "damaged"
    passes(world)
    world.edit(startFrom=None)
    world.settle()
    assert started(world) == [(2, 1)]


def test_after_an_earlier_lineage_was_found_a_savepoint_may_be_said():
    world = a_world()
    world.settle()
    world.driver_ends(
        Ending.REFUSED, "the store holds state of an earlier clicks", error_class="EarlierLineage"
    )
    passes(world)
    assert condition(world, "Stalled")[0] == "EarlierLineage"
    world.edit(startFrom={"path": "s3://buck/right"})
    world.settle()
    assert started(world) == [(1, 1), (2, 1)]
    assert world.restored == {2: ("s3://buck/right", "auto", None)}


def test_a_start_that_does_not_fit_the_queries_is_corrected_by_an_edit():
    world = world_with({"savepoint": "nightly"}, nightly=NIGHTLY, other=FORK)
    world.settle()
    world.driver_ends(Ending.REFUSED, "query clicks is not in it", error_class="StartRefused")
    passes(world)
    assert condition(world, "Stalled") == ("Refused", "query clicks is not in it")
    assert started(world) == [(1, 1)]
    world.edit(startFrom=None)
    passes(world)
    assert condition(world, "Stalled")[0] == "StartRefused"
    assert "{none: true}" in condition(world, "Stalled")[1]
    assert started(world) == [(1, 1)]
    world.edit(startFrom={"savepoint": "other"})
    world.settle()
    assert started(world) == [(1, 1), (2, 1)]
    assert world.restored[2] == (FORK.path, "new", None)


def test_the_code_that_does_not_fit_is_corrected_by_an_upgrade_from_what_was_restored():
    world = world_with({"savepoint": "nightly"}, nightly=NIGHTLY)
    world.settle()
    world.driver_ends(Ending.REFUSED, "query clicks is not in it", error_class="StartRefused")
    passes(world)
    world.edit(application={"file": "job.py", "args": ["--right"]})
    world.settle()
    assert started(world) == [(1, 1), (2, 1)]
    assert world.seeds == {2: (1, None)}
    assert world.status.run.started_from == "savepoint nightly"


def test_a_job_that_has_begun_does_not_look_at_it_any_more():
    world = world_with({"savepoint": "nightly"}, nightly=NIGHTLY)
    world.settle()
    world.savepoints = {}
    world.edit(startFrom={"path": "s3://buck/elsewhere"})
    world.settle()
    world.driver_ends(Ending.QUERY_FAILED)
    world.settle()
    assert started(world) == [(1, 1), (1, 2)]
    assert world.restored == {1: (NIGHTLY.path, "forward", None)}


@pytest.mark.parametrize(
    "start", [{"savepoint": "nightly"}, {"path": "s3://buck/x"}, {"timestamp": "2026-01-31T08:00:00Z"}]
)
def test_killed_after_any_step_it_begins_once_and_with_the_same(start):
    def story(world: World) -> None:
        world.settle()
        world.edit(startFrom={"path": "s3://buck/elsewhere"})
        world.settle()

    unharmed = world_with(start, nightly=NIGHTLY)
    unharmed.steps_left = 1000
    story(unharmed)
    for k in range(1000 - unharmed.steps_left):
        world = world_with(start, nightly=NIGHTLY)
        world.steps_left = k
        with pytest.raises(OperatorKilled):
            story(world)
        world.steps_left = None
        world.edit(startFrom=start)
        world.settle()
        assert (started(world), world.restored) == (started(unharmed), unharmed.restored), k
