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


# ---- what is told, and what is asked for ---------------------------------------------------------------


def test_what_supersedes_is_told_with_its_own_reason_and_fields():
    world = running()
    world.edit(image="shop:2")
    world.pass_once()
    assert world.status.operation.changes == ("spec.image",)
    world.edit(image=None, application={"file": "job.py", "args": ["--x"]})
    told = len(world.sentences)
    world.pass_once()
    assert world.status.operation.changes == ("spec.application.args",)
    assert "spec.image" not in world.status.operation.reason
    world.settle()
    assert world.status.run.changes == ("spec.application.args",)
    assert not any("spec.image" in one for one in world.sentences[told:])


def test_an_edit_that_supersedes_a_rollback_has_a_reason_of_its_own():
    world = running()
    world.code = Code("crash")
    while world.status.operation is None or world.status.operation.kind != "Rollback":
        tick(world)
    world.code = Code("code-9")
    world.pass_once()
    operation = world.status.operation
    assert operation.kind == "Upgrade"
    assert operation.reason == "the code changed: a new run from its state"


def until_seeding(world, kind):
    while world.status.operation is None or (world.status.operation.kind, world.status.operation.step) != (
        kind,
        "Seeding",
    ):
        world.pass_once()
        world.drains_finish()
        world.driver_runs()
        world.driver_works()


def test_an_edit_that_supersedes_a_rollback_in_its_copy_runs_its_own_files():
    world = running()
    world.code = Code("crash-after-2")
    until_seeding(world, "Rollback")
    world.code = Code("code-9")
    world.settle(200)
    run = world.status.run
    assert world.pinned[run.number].code == "code-9"
    assert world.files_of[run.number] is None, "what the rollback had copied is the old version's"
    assert world.status.last_stable.run == run.number
    is_exact(world)
    is_quiet(world)


def test_a_rollback_that_supersedes_an_upgrade_in_its_copy_runs_the_files_of_its_version():
    world = upgraded("code-2")
    world.code = Code("code-3")
    until_seeding(world, "Upgrade")
    world.ask_rollback(RollbackRequest(run=2))
    world.settle(200)
    run = world.status.run
    assert world.pinned[run.number].code == "code-1"
    assert world.files_of[run.number] == 1, "fetched anew, they may be newer"
    is_exact(world)
    is_quiet(world)


def test_to_and_fro_while_the_state_is_copied_no_path_is_used_for_two_versions():
    world = upgraded("code-2")
    world.code = Code("code-3")
    until_seeding(world, "Upgrade")
    world.ask_rollback(RollbackRequest(run=2))
    until_seeding(world, "Rollback")
    world.code = Code("code-4")
    world.settle(200)
    run = world.status.run
    assert (world.pinned[run.number].code, world.files_of[run.number]) == ("code-4", None)
    is_exact(world)
    is_quiet(world)


def until_held(world):
    """The savepoint before the upgrade does not come to an end, and run 1 runs."""
    world.held_by_savepoint = True
    for _ in range(6):
        tick(world)
    assert world.status.operation.step == "Draining"
    assert not world.driver.drain_asked


@pytest.mark.parametrize(
    "edit", [{"application": {"file": "job.py", "args": ["--x"]}}, {"state": {"partitions": 4}}]
)
def test_an_edit_that_is_taken_back_before_the_drain_has_touched_nothing(edit):
    world = running()
    before = world.job.spec
    world.edit(**edit)
    until_held(world)
    world.edit(**{name: before.model_dump(mode="json")[name] for name in edit})
    world.pass_once()
    assert world.status.operation is None
    world.held_by_savepoint = False
    world.settle()
    assert [d.run for d in world.drivers] == [1]
    assert condition(world, "Reconciling").status == "False"
    is_quiet(world)


def test_taken_back_after_the_drain_was_asked_for_the_upgrade_goes_on():
    world = running()
    world.code = Code("code-2")
    while not world.driver.drain_asked:
        world.pass_once()
    world.code = Code("code-1")
    world.pass_once()
    assert world.status.operation is not None
    world.settle()
    assert versions(world) == ["code-1", "code-1"]
    is_exact(world)


def test_an_edit_that_is_taken_back_gives_a_run_on_trial_its_trial_again():
    world = running({"upgrade": {"verifyWindow": "5m"}})
    world.code = Code("crash-after-2")
    while world.status.run.number == 1 or world.status.operation.step != "Verifying":
        tick(world)
    world.code, world.held_by_savepoint = Code("code-3"), True
    for _ in range(4):
        world.pass_once()
    assert (world.status.operation.to_run, world.driver.drain_asked) == (3, False)
    world.code, world.held_by_savepoint = Code("crash-after-2"), False
    world.settle(200)
    assert versions(world) == ["code-1", "crash-after-2", "code-1"], "it still has a way back"
    assert is_true(world, "RolledBack")
    is_exact(world)


@pytest.mark.parametrize("with_other_code", [True, False])
@pytest.mark.parametrize("strategy", ["Cold", "Rehearsed"])
def test_stateless_asked_for_before_the_drain_is_without_state(strategy, with_other_code):
    world = running({"upgrade": {"strategy": strategy}})
    world.code = Code("code-2")
    if strategy == "Cold":
        until_held(world)
    else:
        world.pass_once()
        assert world.status.operation.step == "Rehearsing"
    world.edit(upgrade={"strategy": "Stateless"})
    world.code = Code("code-3") if with_other_code else world.code
    world.held_by_savepoint = False
    world.settle()
    assert world.status.run.seeded_from == "none"
    assert world.loud("WITHOUT the state of run 1")


def test_stateless_is_not_for_a_rollback():
    world = running()
    world.code = Code("crash-after-2")
    while world.status.operation is None or world.status.operation.kind != "Rollback":
        tick(world)
    world.edit(upgrade={"strategy": "Stateless"})
    world.settle(200)
    assert world.status.run.seeded_from == "run-2"
