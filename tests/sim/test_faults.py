"""Killed anywhere, the operator's successor comes to the same end; and there are never two writers."""

import re
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.core.model import AttemptPhase, Code, CodeProblem, Ending, RollbackRequest
from tests.sim.world import OperatorKilled, a_world


def story(world):
    """A first run, an upgrade, a crash and a suspend: every kind of step there is."""
    world.settle()
    yield
    world.code = Code("code-2")
    world.settle()
    yield
    world.driver_ends(Ending.QUERY_FAILED)
    world.settle()
    yield
    world.edit(suspend=True)
    world.settle()
    yield


def outcome(world):
    run = world.status.run
    return (world.status.state, run.number, world.status.run.revision, world.seeds, sorted(world.pinned))


def test_killed_after_any_step_it_ends_the_same():
    unharmed = a_world()
    unharmed.steps_left = 10_000
    for _ in story(unharmed):
        pass
    steps = 10_000 - unharmed.steps_left
    assert steps > 12
    for k in range(steps):
        world = a_world()
        world.steps_left = k
        for _attempt in range(3):
            try:
                for _ in story(world):
                    pass
                break
            except OperatorKilled:
                world.steps_left = None
                world.edit(suspend=False)  # the story is told again from where the world is
        world.settle()
        assert outcome(world)[0] == outcome(unharmed)[0], f"killed after step {k}"
        assert [d for d in world.drivers if d.live] == []


class AnyLife(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.world = a_world()
        self.epochs_seen = 0
        self.generation_seen = 0
        self.edits = 1

    @rule()
    def operator_passes(self):
        self.world.pass_once()

    @rule(steps=st.integers(0, 2))
    def operator_is_killed_in_a_pass(self, steps):
        self.world.steps_left = steps
        try:
            self.world.pass_once()
        except OperatorKilled:
            pass
        finally:
            self.world.steps_left = None

    @rule()
    def code_is_saved(self):
        self.edits += 1
        self.world.code = Code(f"code-{self.edits}")

    @rule(code=st.sampled_from(["crash", "crash-after-0", "crash-after-2", "never", "hang", "code-1"]))
    def code_of_a_kind_is_saved(self, code):
        self.world.code = Code(code)

    @rule(request=st.builds(RollbackRequest, run=st.integers(1, 6), to=st.none() | st.integers(1, 5)))
    def a_rollback_is_asked_for(self, request):
        self.world.ask_rollback(request)

    @rule(rollback=st.sampled_from(["Auto", "Manual"]))
    def the_policy_is_edited(self, rollback):
        self.world.edit(upgrade={"rollback": rollback})

    @precondition(lambda self: self.world.driver is not None)
    @rule(until=st.sampled_from(["offsets", "sink", "commit"]))
    def driver_makes_a_batch_or_a_part_of_it(self, until):
        driver = self.world.driver
        if driver.phase is AttemptPhase.RUNNING:
            self.world.stream.batch(f"run-{driver.run}", size=driver.run % 3 + 1, until=until)

    @rule(partitions=st.sampled_from([8, 16, 32]))
    def the_partitions_are_edited(self, partitions):
        self.world.edit(state={"partitions": partitions})

    @precondition(lambda self: self.world.driver is not None and self.world.driver.repartition)
    @rule()
    def driver_dies_in_the_middle_of_a_split(self):
        driver = self.world.driver
        if driver.phase is AttemptPhase.STARTING:
            run, wanted = f"run-{driver.run}", self.world.pinned[driver.run].spec.state.partitions
            self.world.stream.begin(run)
            self.world.stream.split(run, wanted, until="state")
            self.world.driver_ends(Ending.KILLED)

    @rule()
    def broken_code_is_saved(self):
        self.world.code = CodeProblem("job.py:1: oops")

    @rule(args=st.sampled_from([["a"], ["b"], []]))
    def manifest_is_edited(self, args):
        self.world.edit(application={"file": "job.py", "args": args})

    @rule(count=st.integers(1, 5))
    def executors_are_edited(self, count):
        self.world.edit(executors={"count": count})

    @rule(suspend=st.booleans())
    def suspend_is_set(self, suspend):
        self.world.edit(suspend=suspend)

    @rule(schedule=st.sampled_from([None, "*/5 * * * *", "30 2 * * *"]))
    def trigger_is_edited(self, schedule):
        mode = {"mode": "AvailableNow", "schedule": schedule} if schedule else {"mode": "Continuous"}
        self.world.edit(trigger=mode)

    @rule(detaching=st.booleans())
    def dev_stops_or_starts(self, detaching):
        self.world.detach(detaching)

    @precondition(lambda self: self.world.driver is not None)
    @rule()
    def driver_comes_up(self):
        self.world.driver_runs()

    @precondition(lambda self: self.world.driver is not None)
    @rule(ending=st.sampled_from(list(Ending)))
    def driver_ends(self, ending):
        self.world.driver_ends(ending, f"ended: {ending}")

    @rule()
    def drains_finish(self):
        self.world.drains_finish()

    @rule(problem=st.sampled_from([None, "disk full"]))
    def store_fails_or_recovers(self, problem):
        self.world.seed_problem = problem

    @rule(seconds=st.sampled_from([1, 30, 600]))
    def time_passes(self, seconds):
        self.world.later(seconds)

    @rule(seconds=st.sampled_from([-5, 5, -3600, 3600, -86_400, 86_400]))
    def the_clock_is_put_right_or_wrong(self, seconds):
        """Of the operator alone: nothing happens meanwhile."""
        self.world.later(seconds)

    @invariant()
    def at_most_one_writer(self):
        assert sum(d.live for d in self.world.drivers) <= 1

    @invariant()
    def every_attempt_has_an_epoch_of_its_own_and_they_grow(self):
        epochs = [d.epoch for d in self.world.drivers]
        assert epochs == sorted(set(epochs))

    @invariant()
    def a_later_run_began_from_its_predecessor(self):
        for driver in self.world.drivers:
            if driver.run == 1 or (driver.order is not None and not driver.copied):
                continue
            # By a keeper, or by a candidate that took over.
            seeded = self.world.seeds.get(driver.run, (self.world.copied.get(driver.run), None))
            assert seeded == (driver.run - 1, None)

    @invariant()
    def every_row_is_in_the_sink_once(self):
        assert self.world.stream.sink.lost() == []
        assert self.world.stream.sink.repeated() == 0

    @invariant()
    def what_was_rolled_back_is_what_is_said(self):
        status = self.world.status
        rolled_back = status.condition("RolledBack")
        assert (rolled_back is not None and rolled_back.status == "True") == (status.rejected is not None)

    @invariant()
    def a_start_is_due_only_where_nothing_runs(self):
        status = self.world.status
        if status.next_start_at is not None:
            assert status.run.attempt.state == "Ended"
            assert status.completed_at is not None

    @invariant()
    def conditions_are_well_formed(self):
        for condition in self.world.status.conditions:
            assert condition.status in ("True", "False", "Unknown")
            assert re.fullmatch(r"[A-Z][A-Za-z0-9_]*", condition.reason)
        types = [c.type for c in self.world.status.conditions]
        assert len(types) == len(set(types))

    @invariant()
    def observed_generation_never_goes_back(self):
        assert self.world.status.observed_generation >= self.generation_seen
        self.generation_seen = self.world.status.observed_generation

    def teardown(self):
        """Left in peace with good code, the job runs what was last wanted, and then nothing is written."""
        world = self.world
        world.seed_problem = None
        world.code = Code("the-last-code")
        world.detach(False)
        world.ask_rollback(None)
        world.edit(suspend=False)
        since = world.now
        world.settle(200)
        # Whatever the clock was when things began.
        assert world.now - since < timedelta(hours=12)
        assert world.status.state == "Running"
        assert world.status.last_stable.run == world.status.run.number
        assert world.status.observed_generation == world.job.generation
        assert world.pinned[world.status.run.number].revision == world.status.run.revision
        writes = world.writes
        for _ in range(5):
            assert not world.pass_once()
        assert world.writes == writes


AnyLife.TestCase.settings = settings(
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestAnyLife = AnyLife.TestCase


class WarmLife(AnyLife):
    """The same with rehearsals: candidates wait, take over, and die when they like."""

    @initialize()
    def begin(self):
        super().begin()
        self.world.edit(upgrade={"strategy": "Rehearsed"})
        self.world.settle()

    @rule()
    def candidate_goes_on(self):
        self.world.rehearse()

    @rule(ending=st.sampled_from(list(Ending)))
    def candidate_ends(self, ending):
        self.world.candidate_ends(ending)

    @rule(silent=st.booleans())
    def candidate_falls_silent(self, silent):
        for candidate in self.world.candidates:
            candidate.silent = silent

    @rule(edits=st.booleans(), ticks=st.integers(1, 12))
    def everything_goes_on_for_a_while(self, edits, ticks):
        """Else chance seldom comes as far as a handover."""
        if edits:
            self.code_is_saved()
        for _ in range(ticks):
            self.world.pass_once()
            self.world.drains_finish()
            self.world.driver_runs()
            self.world.driver_works()
            self.world.rehearse()

    @rule(problem=st.sampled_from([None, "503"]))
    def candidates_cannot_copy(self, problem):
        self.world.copy_problem = problem

    @rule(held=st.booleans())
    def a_savepoint_holds_upgrades(self, held):
        self.world.held_by_savepoint = held

    @invariant()
    def what_was_rolled_back_is_what_is_said(self):
        """Of what was refused, too."""
        status = self.world.status
        stands = status.rejected is not None and status.rejected.kind == "RolledBack"
        rolled_back = status.condition("RolledBack")
        assert (rolled_back is not None and rolled_back.status == "True") == stands

    def teardown(self):
        self.world.held_by_savepoint, self.world.copy_problem = False, None
        self.candidate_falls_silent(False)
        super().teardown()
        assert not [one for one in self.world.candidates if one.ended is None]


WarmLife.TestCase.settings = settings(AnyLife.TestCase.settings, max_examples=150)
TestWarmLife = WarmLife.TestCase


class LongWarmLife(WarmLife):
    pass


class LongLife(AnyLife):
    pass


LongLife.TestCase.settings = settings(
    max_examples=1500, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLongLife = pytest.mark.full(LongLife.TestCase)
LongWarmLife.TestCase.settings = settings(LongLife.TestCase.settings, max_examples=200)
TestLongWarmLife = pytest.mark.full(LongWarmLife.TestCase)
