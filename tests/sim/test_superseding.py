"""A newer edit at any step of an upgrade, and the operator killed after every one."""

import pytest

from headrace.core.model import Code, CodeProblem, Ending, RollbackRequest
from tests.sim.upgrades import (
    BAD,
    condition,
    is_exact,
    is_quiet,
    is_true,
    outcomes,
    running,
    tick,
    upgraded,
    versions,
)
from tests.sim.world import OperatorKilled


@pytest.mark.parametrize("first", ["code-2", *BAD])
def test_a_newer_edit_supersedes_at_any_step(first):
    for ticks in range(16):
        world = running()
        world.code = Code(first)
        for _ in range(ticks):
            tick(world)
        upgraded("code-9", world)
        assert versions(world)[-1] == "code-9", f"after {ticks} ticks"
        assert world.status.last_stable.run == world.status.run.number
        assert world.status.rejected is None
        assert not is_true(world, "RolledBack")
        is_exact(world)
        is_quiet(world)


@pytest.mark.parametrize("second", ["crash", "crash-after-2", "hang"])
def test_a_newer_edit_that_is_bad_too_goes_back_to_the_last_good_one(second):
    for ticks in range(16):
        world = running()
        world.code = Code("crash-after-2")
        for _ in range(ticks):
            tick(world)
        upgraded(second, world)
        assert versions(world)[-1] == "code-1", f"after {ticks} ticks"
        assert world.pinned[world.status.rejected.run].code == second
        is_exact(world)
        is_quiet(world)


@pytest.mark.parametrize("bad", BAD)
def test_taken_back_at_any_step_the_old_version_runs_and_nothing_stands_rejected(bad):
    for ticks in range(16):
        world = running()
        world.code = Code(bad)
        for _ in range(ticks):
            tick(world)
        upgraded("code-1", world)
        assert versions(world)[-1] == "code-1", f"after {ticks} ticks"
        assert world.status.rejected is None
        assert condition(world, "Stalled").status == "False"
        is_exact(world)
        is_quiet(world)


def test_broken_code_saved_during_a_rollback_does_not_stop_it():
    for ticks in range(3, 12):
        world = running()
        world.code = Code("crash")
        for _ in range(ticks):
            tick(world)
        world.code = CodeProblem("job.py:1: oops")
        world.settle()
        assert world.pinned[world.status.run.number].code == "code-1", f"after {ticks} ticks"
        assert condition(world, "Stalled").reason == "CodeProblem"
        assert condition(world, "Ready").status == "True"


# ---- the operator is killed --------------------------------------------------------------------------


def stories():
    def good(world):
        upgraded("code-2", world)

    def bad(code):
        return lambda world: upgraded(code, world)

    def by_hand(world):
        upgraded("code-2", world)
        world.ask_rollback(RollbackRequest(run=2))
        world.settle()

    def manual(world):
        world.edit(upgrade={"rollback": "Manual"})
        world.code = Code("crash-after-2")
        for _ in range(12):
            tick(world)
        world.ask_rollback(RollbackRequest(run=2))
        world.settle()

    def stateless(world):
        world.edit(upgrade={"strategy": "Stateless"})
        upgraded("code-2", world)

    def rewound(world):
        world.code = Code("other-state-x")
        for _ in range(8):
            tick(world)
        if world.status.run.number == 2:  # told again, it may be over
            world.driver_ends(Ending.QUERY_FAILED, "boom")
        world.settle()

    return {
        "good": good,
        **{code: bad(code) for code in BAD},
        "by hand": by_hand,
        "manual": manual,
        "stateless": stateless,
        "rewound": rewound,
    }


@pytest.mark.parametrize("name", list(stories()))
def test_killed_after_any_step_it_ends_the_same(name):
    story = stories()[name]
    unharmed = running()
    unharmed.steps_left = 10_000
    story(unharmed)
    steps = 10_000 - unharmed.steps_left
    assert steps > 6
    for k in range(steps):
        world = running()
        world.steps_left = k
        while True:
            try:
                story(world)
                break
            except OperatorKilled:
                world.steps_left = None  # its successor goes on from where the world is
        world.settle()
        assert versions(world) == versions(unharmed), f"killed after step {k}"
        assert world.status.state == unharmed.status.state
        assert outcomes(world) == outcomes(unharmed)
        assert world.stream.sink.lost() == []
        if name not in ("rewound", "stateless"):
            is_exact(world)
        is_quiet(world)
