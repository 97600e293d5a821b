"""The warm handover: a rehearsed candidate becomes the attempt. Whatever befalls it, there is one writer."""

import pytest

from headrace.core.model import Code, Ended, Ending, RollbackRequest
from tests.sim.upgrades import becomes, condition, is_exact, is_quiet, outcomes
from tests.sim.upgrades import rehearsing as running
from tests.sim.upgrades import tick_rehearsing as tick
from tests.sim.world import OperatorKilled

ENDINGS = [Ending.KILLED, Ending.STANDBY_EXPIRED, Ending.STORE_UNAVAILABLE, Ending.EVICTED]
# More than an upgrade takes.
TICKS = 16


def after(ticks, code="code-2"):
    world = running()
    world.code = Code(code)
    for _ in range(ticks):
        tick(world)
    return world


def until(world, step):
    for _ in range(TICKS):
        operation = world.status.operation
        if operation is not None and operation.step == step:
            return
        tick(world)
    raise AssertionError(f"never {step}")


def waiting(code="code-2"):
    """A candidate waits, and the old run runs: a savepoint is taken first."""
    world = running()
    world.held_by_savepoint = True
    world.code = Code(code)
    until(world, "Draining")
    assert world.driver.run == 1 and not world.driver.drain_asked
    assert world.status.operation.candidate.state == "Standby"
    return world


def test_what_a_rehearsal_could_not_check_is_in_its_condition():
    world = running()
    world.held_by_savepoint = True
    world.code = Code("code-2")
    while not world.candidates:
        world.pass_once()
    world.candidates[-1].notes = tuple(f"note {number}" for number in range(6))
    until(world, "Draining")
    told = condition(world, "Rehearsed")
    assert told.status == "True"
    assert told.message.endswith(
        "candidate 1 waits, warm; note 0; note 1; note 2; note 3; and 2 more notes in its log"
    )


def go_on(world):
    world.held_by_savepoint = False
    world.settle(200)


def ordered(*, copied):
    """The candidate has the order, and has copied the state, or not."""
    world = running()
    world.code = Code("code-2")
    until(world, "Draining")
    while not took_over_warm(world, 2):
        world.pass_once()
        world.drains_finish()
    if copied:
        world.driver_runs()
    assert world.driver.copied == copied
    return world


def is_left_in_order(world):
    assert not [c for c in world.candidates if c.ended is None]
    assert sum(d.live for d in world.drivers) == 1
    is_exact(world)
    is_quiet(world)


def took_over_warm(world, run):
    return [d for d in world.drivers if d.run == run and d.order is not None]


def test_a_version_that_rehearsed_well_takes_over_without_a_new_driver():
    world = running()
    world.code = Code("code-2")
    steps = []
    for _ in range(TICKS):
        tick(world)
        operation = world.status.operation
        if operation is not None and operation.step not in steps:
            steps.append(operation.step)
    assert steps == ["Rehearsing", "Draining", "Activating", "Verifying"]
    world.settle()
    assert [(d.run, d.number) for d in world.drivers] == [(1, 1), (2, 1)]
    assert took_over_warm(world, 2)
    assert world.seeds == {}  # no keeper was needed
    assert world.status.run.seeded_from == "run-1"
    assert (world.status.last_stable.run, world.status.epoch) == (2, 2)
    assert (condition(world, "Rehearsed").status, condition(world, "Rehearsed").reason) == ("True", "Passed")
    assert outcomes(world) == [(1, "Replaced")]
    assert {"Rehearsed", "Activating", "HandedOver", "Promoted"} <= set(world.said)
    is_left_in_order(world)


def test_the_status_names_the_candidate_as_the_attempt_before_it_hears_of_it():
    world = running()
    world.code = Code("code-2")
    until(world, "Draining")
    world.drains_finish()
    while world.driver is not None:
        world.pass_once()
        world.drains_finish()
    world.steps_left = 1
    with pytest.raises(OperatorKilled):
        world.pass_once()
    attempt = world.status.run.attempt
    assert (world.status.run.number, attempt.number, attempt.epoch, attempt.state) == (2, 1, 2, "Intended")
    assert (attempt.activation.candidate, attempt.activation.uid) == (1, "c1")
    assert not took_over_warm(world, 2)  # the order was never given
    world.steps_left = None
    world.settle()
    assert took_over_warm(world, 2)
    is_left_in_order(world)


def test_the_old_run_is_not_drained_before_somebody_waits():
    world = waiting()
    world.candidates[0].silent = True
    world.held_by_savepoint = False
    for _ in range(3):
        world.pass_once()
    assert world.driver.run == 1 and not world.driver.drain_asked
    assert world.recheck_at is not None and (world.recheck_at - world.now).total_seconds() <= 1
    world.candidates[0].silent = False
    world.settle()
    assert took_over_warm(world, 2)


def test_without_a_standby_it_takes_over_cold():
    world = running({"upgrade": {"strategy": "Rehearsed", "standby": {"enabled": False}}})
    becomes(world, "code-2")
    assert not took_over_warm(world, 2)
    assert world.seeds == {2: (1, None)}
    assert condition(world, "Rehearsed").status == "True"
    is_left_in_order(world)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_candidate_that_ends_while_the_old_run_runs_is_replaced(ending):
    world = waiting()
    world.candidate_ends(ending)
    world.pass_once()
    assert world.driver.run == 1 and not world.driver.drain_asked
    assert world.loud("another one takes its place")
    go_on(world)
    assert world.status.candidates == 2
    assert took_over_warm(world, 2)
    is_left_in_order(world)


def test_one_that_ends_with_the_drain_order_is_replaced_and_the_edit_can_still_be_taken_back():
    world = running()
    world.code = Code("code-2")
    while not world.driver.drain_asked:
        world.pass_once()
        world.rehearse()
    world.candidate_ends(Ending.KILLED)  # the driver has not heard of the order
    world.driver.drain_asked = False
    world.pass_once()
    assert world.status.operation.step == "Rehearsing"
    world.held_by_savepoint = True
    until(world, "Draining")
    world.code = Code("code-1")
    world.pass_once()
    assert world.status.operation is None, "it has touched nothing"
    world.settle()
    assert [driver.run for driver in world.drivers] == [1]


def test_it_is_replaced_a_few_times_and_then_the_upgrade_is_cold():
    world = waiting()
    for _ in range(3):
        until(world, "Draining")
        world.candidate_ends(Ending.STANDBY_EXPIRED)
        world.pass_once()
    go_on(world)
    assert world.status.candidates == 3
    assert not took_over_warm(world, 2)
    assert world.loud("which rehearsed well, takes over cold")
    assert condition(world, "Rehearsed").status == "True"
    is_left_in_order(world)


@pytest.mark.parametrize("ending", [*ENDINGS, Ending.INTERNAL_ERROR, Ending.UNKNOWN, Ending.DRAINED])
def test_a_candidate_may_end_at_any_step(ending):
    for ticks in range(TICKS):
        world = after(ticks)
        world.candidate_ends(ending)
        world.settle(200)
        assert world.pinned[world.status.run.number].code == "code-2", f"after {ticks} ticks"
        assert (world.status.run.number, world.status.last_stable.run) == (2, 2)
        assert world.status.restarts.total <= 1
        is_left_in_order(world)


@pytest.mark.parametrize("copied", [False, True])
def test_one_that_dies_with_the_order_is_followed_by_an_ordinary_attempt(copied):
    world = ordered(copied=copied)
    world.candidate_ends(Ending.KILLED)
    began = world.now
    world.settle()
    assert [(d.run, d.number) for d in world.drivers][-1] == (2, 2)
    assert world.seeds[2] == (1, None)  # a keeper makes sure
    assert world.loud("run 2 goes on, cold")
    assert world.status.run.attempt.started_at == began  # nobody writes: it is not put off
    is_left_in_order(world)


def test_a_version_that_fails_when_it_takes_over_is_rolled_back():
    world = running()
    world.code = Code("code-2")
    until(world, "Activating")
    world.driver_ends(Ending.QUERY_FAILED, "boom")
    world.settle(200)
    assert world.pinned[world.status.run.number].code == "code-1"
    assert condition(world, "RolledBack").status == "True"
    is_left_in_order(world)


@pytest.mark.parametrize("code", ["crash-after-2", "hang"])
def test_a_version_that_fails_later_is_rolled_back(code):
    world = running()
    becomes(world, code)
    assert took_over_warm(world, 2)
    assert world.pinned[world.status.run.number].code == "code-1"
    assert condition(world, "RolledBack").status == "True"
    is_left_in_order(world)


def test_a_batch_that_was_cut_is_repeated_by_the_new_version():
    world = waiting()
    world.stream.batch("run-1", size=3, until="sink")
    world.driver_ends(Ending.KILLED)
    go_on(world)
    assert took_over_warm(world, 2)
    is_left_in_order(world)


def test_after_a_run_on_trial_a_keeper_decides_about_a_batch_that_was_cut():
    world = running({"upgrade": {"strategy": "Rehearsed", "verifyWindow": "1h"}})
    world.code = Code("code-2")
    until(world, "Verifying")
    world.code, world.held_by_savepoint = Code("code-3"), True
    until(world, "Draining")
    world.stream.batch("run-2", size=3, until="sink")
    world.driver_ends(Ending.KILLED)
    go_on(world)
    assert [(d.run, d.number) for d in world.drivers][-2:] == [(3, 1), (3, 2)]
    assert world.loud("could not take over: PendingBatch")
    assert world.seeds[3] == (2, None)
    is_left_in_order(world)


def test_a_store_that_fails_is_tried_again_and_then_the_upgrade_is_cold():
    world = running()
    world.copy_problem = "503"
    world.code = Code("code-2")
    until(world, "Activating")
    for _ in range(5):
        tick(world)
    assert world.driver.run == 2 and not world.driver.drain_asked
    world.later(31)
    tick(world)
    assert world.driver is None or world.driver.drain_asked
    world.settle()
    assert [(d.run, d.number) for d in world.drivers][-1] == (2, 2)
    assert world.loud("could not take over: StoreUnavailable: 503")
    is_left_in_order(world)


def test_a_store_that_recovers_in_time_is_enough():
    world = running()
    world.copy_problem = "503"
    world.code = Code("code-2")
    until(world, "Activating")
    for _ in range(5):
        tick(world)
    world.copy_problem = None
    world.settle()
    assert [(d.run, d.number) for d in world.drivers][-1] == (2, 1)
    is_left_in_order(world)


@pytest.mark.parametrize("second", ["code-9", "code-1"])
def test_a_newer_edit_supersedes_at_any_step(second):
    for ticks in range(TICKS):
        world = after(ticks)
        becomes(world, second)
        assert world.pinned[world.status.run.number].code == second, f"after {ticks} ticks"
        assert world.status.last_stable.run == world.status.run.number
        is_left_in_order(world)


def test_a_newer_edit_while_one_waits_is_rehearsed_too():
    world = waiting()
    becomes(world, "crash")
    assert world.pinned[world.status.run.number].code == "code-1"
    assert condition(world, "Rehearsed").status == "False"
    assert len(world.drivers) == 1
    is_left_in_order(world)


@pytest.mark.parametrize("copied", [False, True])
def test_a_newer_edit_after_the_candidate_died_with_the_order_loses_nothing(copied):
    """Run 2 may be without its state: it is completed before run 3 is made from it."""
    world = ordered(copied=copied)
    world.candidate_ends(Ending.KILLED)
    becomes(world, "code-3")
    assert world.pinned[world.status.run.number].code == "code-3"
    assert world.seeds[2] == (1, None)
    is_left_in_order(world)


def test_suspended_at_any_step_nobody_is_left_and_it_goes_on_later():
    for ticks in range(TICKS):
        world = after(ticks)
        world.edit(suspend=True)
        world.settle()
        assert world.status.state == "Suspended", f"after {ticks} ticks"
        assert not [d for d in world.drivers if d.live]
        assert not [c for c in world.candidates if c.ended is None]
        world.edit(suspend=False)
        world.settle(200)
        assert world.pinned[world.status.run.number].code == "code-2"
        assert world.status.last_stable.run == world.status.run.number
        is_left_in_order(world)


def test_a_rollback_may_be_asked_for_at_any_step():
    for ticks in range(TICKS):
        world = running()
        becomes(world, "code-2")
        world.code = Code("code-3")
        for _ in range(ticks):
            tick(world)
        world.ask_rollback(RollbackRequest(run=world.status.run.number))
        left = world.status.run.number
        world.settle(200)
        assert world.status.run.number > left, f"after {ticks} ticks"
        assert world.pinned[world.status.run.number].code in ("code-1", "code-2")
        is_left_in_order(world)


@pytest.mark.parametrize("dies", [False, True])
def test_killed_after_any_step_it_ends_the_same(dies):
    """The operator, once in each step; the candidate as well, once the order is given."""
    unharmed = running()
    unharmed.steps_left = 10_000
    becomes(unharmed, "code-2")
    steps = 10_000 - unharmed.steps_left
    assert steps > 6
    for k in range(steps):
        world = running()
        world.code = Code("code-2")
        world.steps_left = k
        while True:
            try:
                world.settle(200)
                break
            except OperatorKilled:
                world.steps_left = None
                if dies and world.status.run.number == 2:
                    world.candidate_ends(Ending.KILLED)
        assert (world.status.state, world.status.run.number) == ("Running", 2), f"killed after step {k}"
        assert dies or world.status.run.attempt.number == 1
        is_left_in_order(world)


def test_an_epoch_is_used_once():
    for ticks in range(TICKS):
        world = after(ticks)
        world.candidate_ends(Ending.KILLED)
        world.settle(200)
        epochs = [d.epoch for d in world.drivers]
        assert epochs == sorted(set(epochs))


def test_a_program_that_starts_another_query_is_rehearsed_once_more():
    world = waiting()
    world.candidates[0].standby = False
    world.pass_once()
    assert world.status.operation.step == "Rehearsing"
    assert world.status.candidates == 1
    world.rehearsals_end = [Ended(ending=Ending.MEANING_CHANGED, message="another meaning")]
    world.settle()
    assert condition(world, "Rehearsed").reason == "MeaningChanged"
    assert len(world.drivers) == 1
