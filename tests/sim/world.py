"""A world for the planner to act on: drivers, a store and an operator process, all of which can fail.

The operator here is the real loop in small: look, plan, write the status, act. It can be killed after any
write or act; its successor has nothing but the status and what it can see.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core.actions import Action, DrainAttempt, PinRun, RestoreRun, SeedRun, StartAttempt
from headrace.core.model import (
    AttemptPhase,
    Code,
    CodeProblem,
    EarlierLineage,
    Ended,
    Ending,
    Job,
    Observed,
    ObservedAttempt,
    ObservedSavepoint,
    PinnedRun,
    QueryReport,
)
from headrace.core.plan import plan
from headrace.core.start import awaited_savepoint

EPOCH_START = datetime(2026, 1, 1, tzinfo=UTC)


class OperatorKilled(Exception):
    pass


@dataclass
class Driver:
    run: int
    number: int
    epoch: int
    phase: AttemptPhase = AttemptPhase.STARTING
    ended: Ended | None = None
    drain_asked: bool = False

    @property
    def live(self) -> bool:
        return self.phase is not AttemptPhase.ENDED


@dataclass
class World:
    job: Job
    status: StreamJobStatus = field(default_factory=StreamJobStatus)
    code: Code | CodeProblem = field(default_factory=lambda: Code("code-1"))
    now: datetime = EPOCH_START
    drivers: list[Driver] = field(default_factory=list)
    pinned: dict[int, PinnedRun] = field(default_factory=dict)
    seeds: dict[int, tuple[int, str | None]] = field(default_factory=dict)  # to_run -> (from_run, from_uid)
    seed_problem: str | None = None
    # to_run -> (path, lineage, query)
    restored: dict[int, tuple[str, str, str | None]] = field(default_factory=dict)
    savepoints: dict[str, ObservedSavepoint] = field(default_factory=dict)
    earlier: EarlierLineage | None = None
    said: list[str] = field(default_factory=list)
    writes: int = 0
    # Let the operator do this many more writes and acts, then die.
    steps_left: int | None = None

    # ---- the operator -------------------------------------------------------------------------------

    def observe(self) -> Observed:
        return Observed(
            code=self.code,
            attempts=tuple(
                ObservedAttempt(
                    run=d.run,
                    number=d.number,
                    uid=f"uid-{d.run}-{d.number}",
                    phase=d.phase,
                    ended=d.ended,
                    queries=(QueryReport(name="q", active=d.live),),
                )
                for d in self.drivers
            ),
            pinned=dict(self.pinned),
            seeded_runs=frozenset(self.seeds) | frozenset(self.restored),
            seed_problem=self.seed_problem,
            earlier=self.earlier,
            savepoint=self.savepoints.get(awaited_savepoint(self.job, self.status) or ""),
        )

    def pass_once(self) -> bool:
        """One pass of the operator; answers whether it did anything."""
        made = plan(self.job, self.status, self.observe(), self.now)
        did = False
        if made.status != self.status:
            self._step()
            self.status = made.status
            self.writes += 1
            did = True
        self.said += [sentence.reason for sentence in made.says]
        for action in made.actions:
            self._step()
            did |= self._perform(action)
        return did

    def _step(self) -> None:
        if self.steps_left is None:
            return
        if self.steps_left == 0:
            raise OperatorKilled
        self.steps_left -= 1

    def _perform(self, action: Action) -> bool:
        match action:
            case PinRun():
                self.pinned[action.run] = PinnedRun(
                    revision=action.revision, code=self._code_digest(), spec=action.spec
                )
            case SeedRun():
                assert not [d for d in self.drivers if d.live], "state copied under a live writer"
                if self.seed_problem is None:
                    self.seeds[action.to_run] = (action.from_run, action.from_uid)
            case RestoreRun():
                begun = self.status.beginning
                assert begun is not None and begun.run == action.to_run, "copied what no status names"
                assert not [d for d in self.drivers if d.live], "state copied under a live writer"
                if self.seed_problem is None:
                    self.restored[action.to_run] = (action.path, action.lineage, action.query)
            case StartAttempt():
                return self._start(action)
            case DrainAttempt():
                for driver in self.drivers:
                    if (driver.run, driver.number) == (action.run, action.attempt) and not driver.drain_asked:
                        driver.drain_asked = True
                        return True
                return False
        return True

    def _code_digest(self) -> str:
        assert isinstance(self.code, Code), "code that cannot run was pinned"
        return self.code.digest

    def _start(self, action: StartAttempt) -> bool:
        if any((d.run, d.number) == (action.run, action.attempt) for d in self.drivers):
            return False  # a name is used once
        assert not [d for d in self.drivers if d.live], "a second writer was started"
        assert action.run in self.pinned, "a run was started that is not pinned"
        self.drivers.append(Driver(action.run, action.attempt, action.epoch))
        return True

    # ---- what befalls it ----------------------------------------------------------------------------

    @property
    def driver(self) -> Driver | None:
        return next((d for d in self.drivers if d.live), None)

    def driver_runs(self) -> None:
        if self.driver is not None and self.driver.phase is AttemptPhase.STARTING:
            self.driver.phase = AttemptPhase.RUNNING

    def driver_ends(
        self, ending: Ending, message: str = "", at: datetime | None = None, error_class: str | None = None
    ) -> None:
        if (driver := self.driver) is not None:
            driver.phase = AttemptPhase.ENDED
            driver.ended = Ended(ending=ending, message=message, at=at, error_class=error_class)

    def drains_finish(self) -> None:
        for driver in self.drivers:
            if driver.live and driver.drain_asked:
                driver.phase = AttemptPhase.ENDED
                driver.ended = Ended(ending=Ending.DRAINED)

    def edit(self, **changes: object) -> None:
        spec = StreamJobSpec.parse({**self.job.spec.model_dump(mode="json", exclude_unset=True), **changes})
        self.job = replace(self.job, spec=spec, generation=self.job.generation + 1)

    def detach(self, detaching: bool = True) -> None:
        self.job = replace(self.job, detaching=detaching)

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def settle(self, passes: int = 60) -> None:
        """Let everything that can happen by itself happen, until nothing is done any more."""
        for _ in range(passes):
            did = self.pass_once()
            before = [driver.phase for driver in self.drivers]
            self.drains_finish()
            self.driver_runs()
            moved = before != [driver.phase for driver in self.drivers]
            if not did and not moved:
                if self.status.restarts.next_at is not None and self.status.restarts.next_at > self.now:
                    self.now = self.status.restarts.next_at
                    continue
                return
        raise AssertionError(f"never settles: {self.status.state}")


def a_world(spec: dict | None = None) -> World:
    wanted = {"application": {"file": "job.py"}, **(spec or {})}
    job = Job(namespace="default", name="clicks", uid="uid", generation=1, spec=StreamJobSpec.parse(wanted))
    return World(job)
