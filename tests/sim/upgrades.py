"""What the tests of upgrades share: worlds on the way, and what is looked at in them."""

from __future__ import annotations

from headrace.core.model import Code
from tests.sim.world import World, a_world

REHEARSED = {"upgrade": {"strategy": "Rehearsed"}}
BAD = ["crash", "crash-after-0", "crash-after-2", "never", "hang"]


def condition(world, kind):
    return next((c for c in world.status.conditions if c.type == kind), None)


def is_true(world, kind):
    found = condition(world, kind)
    return found is not None and found.status == "True"


def versions(world):
    """The code of each run, in order."""
    return [world.pinned[number].code for number in sorted({d.run for d in world.drivers})]


def ways(world, run):
    return [query.how for query in world.seeded_queries[run]]


def outcomes(world):
    return [(entry.run, entry.outcome) for entry in world.status.history]


def running(spec=None):
    world = a_world(spec)
    world.settle()
    assert world.status.last_stable.run == 1
    return world


def rehearsing(spec=None):
    """As `running`; its edits are rehearsed."""
    return running({**REHEARSED, **(spec or {})})


def becomes(world, code):
    world.code = Code(code)
    world.settle(200)


def upgraded(code, world=None):
    world = world or running()
    world.code = Code(code)
    world.settle(200)
    return world


def is_quiet(world):
    writes = world.writes
    for _ in range(20):
        world.later(600)
        assert not world.pass_once()
    assert world.writes == writes


def is_exact(world):
    assert world.stream.sink.lost() == []
    assert world.stream.sink.repeated() == 0


def to_trial(code, spec=None):
    world = running(spec)
    world.code = Code(code)
    while world.status.run.number == 1 or world.driver is None:
        world.pass_once()
        world.drains_finish()
    world.driver_runs()
    world.pass_once()
    return world


def tick(world: World):
    world.pass_once()
    world.drains_finish()
    world.driver_runs()
    world.driver_works()


def tick_rehearsing(world: World):
    """Candidates get on, too."""
    tick(world)
    world.rehearse()
