"""A world for the planner to act on: drivers, a store and an operator process, all of which can fail.

The operator here is the real loop in small: look, plan, write the status, act. It can be killed after any
write or act; its successor has nothing but the status and what it can see.

What a driver does is in the name of its code: `crash` (at its start), `crash-after-2` (batches), `never`
(starts), `hang` (in its first batch), `other-state` (writes state that only such code can read). All else
works.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core import verification
from headrace.core.actions import (
    Action,
    DrainAttempt,
    PinRun,
    RestoreRun,
    SeedRun,
    StartAttempt,
    StartCandidate,
    StopCandidate,
)
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
    ObservedCandidate,
    ObservedSavepoint,
    PinnedRun,
    Problem,
    QueryReport,
    RollbackRequest,
    SeededQuery,
)
from headrace.core.plan import plan
from headrace.core.reports import seeded_queries
from headrace.core.start import awaited_savepoint
from headrace_jobs.store import seed_after_trial, seed_run
from tests.sim.stream import INCOMPATIBLE, Stream

# What a rehearsal finds in code of a kind; of all else it finds nothing.
REHEARSALS = {
    "crash": Ended(ending=Ending.APPLICATION_ERROR, message="ModuleNotFoundError: No module 'oops'"),
    "crash-after-0": Ended(ending=Ending.QUERY_FAILED, error_class="KeyError", message="KeyError: 'price'"),
    "other-meaning": Ended(ending=Ending.MEANING_CHANGED, message="query q: sum(a) became max(a)"),
    "unfit": Ended(ending=Ending.QUERY_FAILED, error_class=INCOMPATIBLE, message="an aggregate was added"),
    "slow": Ended(ending=Ending.REHEARSAL_TIMEOUT, message="not through within 10m"),
}
# As many as a driver makes before a test goes on.
_BATCHES = 3
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
    batches: int = 0
    hangs: bool = False
    stuck: bool = False
    # Its state is to be split before its query starts.
    repartition: bool = False
    waiting: Problem | None = None
    spark_version: str = "4.2.1"

    @property
    def live(self) -> bool:
        return self.phase is not AttemptPhase.ENDED


@dataclass
class Rehearser:
    """A candidate."""

    run: int
    number: int
    running: bool = False
    ended: Ended | None = None
    waiting: Problem | None = None


@dataclass
class World:
    job: Job
    status: StreamJobStatus = field(default_factory=StreamJobStatus)
    code: Code | CodeProblem = field(default_factory=lambda: Code("code-1"))
    now: datetime = EPOCH_START
    drivers: list[Driver] = field(default_factory=list)
    candidates: list[Rehearser] = field(default_factory=list)
    # No node has room for a candidate beside the driver.
    full: bool = False
    # How the next candidates end, instead of what their code does.
    rehearsals_end: list[Ended] = field(default_factory=list)
    pinned: dict[int, PinnedRun] = field(default_factory=dict)
    seeds: dict[int, tuple[int, str | None]] = field(default_factory=dict)  # to_run -> (from_run, from_uid)
    seeded_queries: dict[int, tuple[SeededQuery, ...]] = field(default_factory=dict)
    seed_problem: str | None = None
    # to_run -> (path, lineage, query)
    restored: dict[int, tuple[str, str, str | None]] = field(default_factory=dict)
    savepoints: dict[str, ObservedSavepoint] = field(default_factory=dict)
    earlier: EarlierLineage | None = None
    stream: Stream = field(default_factory=Stream)
    # That of the image that drivers start with.
    spark_version: str = "4.2.1"
    # What waits in the sources, if anybody knew.
    backlog: int | None = None
    recheck_at: datetime | None = None
    said: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
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
                    queries=(self._report(d),),
                    waiting=d.waiting,
                    spark_version=d.spark_version if d.phase is AttemptPhase.RUNNING else None,
                )
                for d in self.drivers
            ),
            candidates=tuple(
                ObservedCandidate(
                    run=c.run,
                    number=c.number,
                    uid=f"c{c.number}",
                    ended=c.ended,
                    running=c.running,
                    waiting=c.waiting,
                )
                for c in self.candidates
            ),
            pinned=dict(self.pinned),
            seeded_runs=frozenset(self.seeds) | frozenset(self.restored),
            seeded_queries=dict(self.seeded_queries),
            seed_problem=self.seed_problem,
            earlier=self.earlier,
            savepoint=self.savepoints.get(awaited_savepoint(self.job, self.status) or ""),
        )

    def _report(self, driver: Driver) -> QueryReport:
        return QueryReport(
            name="q",
            active=driver.live,
            committed_batch=None if driver.hangs else self.stream.last(f"run-{driver.run}").commits,
            busy=driver.hangs,
            stuck=driver.stuck,
            lag_rows=self.backlog,
        )

    def pass_once(self) -> bool:
        """One pass of the operator; answers whether it did anything."""
        made = plan(self.job, self.status, self.observe(), self.now)
        self.recheck_at = made.recheck_at
        did = False
        if made.status != self.status:
            self._step()
            self.status = made.status
            self.writes += 1
            did = True
        self.said += [sentence.reason for sentence in made.says]
        self.sentences += [sentence.message for sentence in made.says]
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
                code = self._code_digest() if action.like is None else self.pinned[action.like].code
                self.pinned[action.run] = PinnedRun(revision=action.revision, code=code, spec=action.spec)
            case SeedRun():
                assert not [d for d in self.drivers if d.live], "state copied under a live writer"
                if self.seed_problem is None:
                    self._seed(action)
            case RestoreRun():
                begun = self.status.beginning
                assert begun is not None and begun.run == action.to_run, "copied what no status names"
                assert not [d for d in self.drivers if d.live], "state copied under a live writer"
                if self.seed_problem is None:
                    self.restored[action.to_run] = (action.path, action.lineage, action.query)
            case StartAttempt():
                return self._start(action)
            case StartCandidate():
                return self._start_candidate(action)
            case StopCandidate():
                self.candidates = [c for c in self.candidates if c.number != action.number]
            case DrainAttempt():
                for driver in self.drivers:
                    if (driver.run, driver.number) == (action.run, action.attempt) and not driver.drain_asked:
                        driver.drain_asked = True
                        return True
                return False
        return True

    def _seed(self, action: SeedRun) -> None:
        store, source, target = self.stream.store, f"run-{action.from_run}", f"run-{action.to_run}"
        if action.handover is None or action.from_uid is not None:
            done = seed_run(store, source, target)
        else:
            done = seed_after_trial(
                store,
                incumbent=f"run-{action.handover}",
                candidate=source,
                to_run=target,
                rewind=action.rewind,
            )
        self.seeds[action.to_run] = (action.from_run, action.from_uid)
        self.seeded_queries[action.to_run] = seeded_queries(asdict(done))

    def _code_digest(self) -> str:
        assert isinstance(self.code, Code), "code that cannot run was pinned"
        return self.code.digest

    def _start_candidate(self, action: StartCandidate) -> bool:
        if any(c.number == action.number for c in self.candidates):
            return False
        assert action.run in self.pinned, "a run was rehearsed that is not pinned"
        assert not any(c.ended is None for c in self.candidates), "two candidates at once"
        self.candidates.append(Rehearser(action.run, action.number))
        return True

    def rehearse(self) -> bool:
        """One step of a candidate that lives; whether it did anything."""
        candidate = next((c for c in self.candidates if c.ended is None), None)
        if candidate is None:
            return False
        code = self.pinned[candidate.run].code
        if self.full or code.startswith("never"):
            reason = "Unschedulable" if self.full else "ImagePullBackOff"
            candidate.waiting = Problem(reason, "0/3 nodes" if self.full else "no such image")
            return False
        if not candidate.running:
            candidate.running = True
        elif self.rehearsals_end:
            candidate.ended = self.rehearsals_end.pop(0)
        else:
            candidate.ended = REHEARSALS.get(code, Ended(ending=Ending.REHEARSED))
        return True

    def _start(self, action: StartAttempt) -> bool:
        if any((d.run, d.number) == (action.run, action.attempt) for d in self.drivers):
            return False  # a name is used once
        assert not [d for d in self.drivers if d.live], "a second writer was started"
        assert action.run in self.pinned, "a run was started that is not pinned"
        driver = Driver(
            action.run,
            action.attempt,
            action.epoch,
            repartition=action.repartition,
            spark_version=self.spark_version,
        )
        self.drivers.append(driver)
        return True

    # ---- what befalls it ----------------------------------------------------------------------------

    @property
    def driver(self) -> Driver | None:
        return next((d for d in self.drivers if d.live), None)

    def driver_runs(self) -> None:
        """It comes up, or does what its code does instead."""
        driver = self.driver
        if driver is None or driver.phase is not AttemptPhase.STARTING:
            return
        code, run = self.pinned[driver.run].code, f"run-{driver.run}"
        if code.startswith("never"):
            return
        self.stream.begin(run)
        wanted = self.pinned[driver.run].spec.state.partitions
        if driver.repartition and not self.stream.split(run, wanted):
            self.driver_ends(Ending.REFUSED, "a batch has begun", error_class="CannotRepartition")
        elif code == "crash":
            self.driver_ends(Ending.APPLICATION_ERROR, "ModuleNotFoundError: No module named 'oops'")
        elif not self.stream.can_read(run, _state_format(code)):
            self.driver_ends(Ending.QUERY_FAILED, "the state does not fit", error_class=INCOMPATIBLE)
        else:
            driver.phase = AttemptPhase.RUNNING

    def driver_works(self) -> bool:
        """One batch of the driver that runs; whether it did anything."""
        driver = self.driver
        if driver is None or driver.phase is not AttemptPhase.RUNNING or driver.hangs:
            return False
        code, run = self.pinned[driver.run].code, f"run-{driver.run}"
        wanted = self.pinned[driver.run].spec.state.partitions
        crashes_after = int(code.removeprefix("crash-after-")) if code.startswith("crash-after-") else None
        if code.startswith("hang"):
            self.stream.batch(run, size=_size(code), until="offsets", partitions=wanted)
            driver.hangs = True
        elif driver.batches == crashes_after:
            self.stream.batch(run, size=_size(code), until="sink", partitions=wanted)
            self.driver_ends(Ending.QUERY_FAILED, "KeyError: 'price'")
        elif driver.batches < _BATCHES:
            kind = _state_format(code)
            self.stream.batch(run, size=_size(code), state_format=kind, partitions=wanted)
            driver.batches += 1
        else:
            return False
        return True

    def driver_ends(
        self,
        ending: Ending,
        message: str = "",
        at: datetime | None = None,
        error_class: str | None = None,
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
        before = self.job.spec.model_dump(mode="json", exclude_unset=True)
        if "upgrade" in changes:
            changes["upgrade"] = {**before["upgrade"], **changes["upgrade"]}
        spec = StreamJobSpec.parse({**before, **changes})
        self.job = replace(self.job, spec=spec, generation=self.job.generation + 1)

    def ask_rollback(self, request: RollbackRequest | Problem | None) -> None:
        self.job = replace(self.job, rollback=request)

    def loud(self, words: str) -> bool:
        return any(words in sentence for sentence in self.sentences)

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
            worked = self.driver_works() or self.rehearse()
            moved = before != [driver.phase for driver in self.drivers]
            if not did and not moved and not worked and not self._time_passes():
                return
        raise AssertionError(f"never settles: {self.status.state}")

    def _time_passes(self) -> bool:
        """Until something is due that the operator waits for."""
        if self.driver is not None and self.driver.hangs and not self.driver.stuck:
            self.later(1800)
            self.driver.stuck = True
            return True
        due = self.status.restarts.next_at
        if due is None and self.status.operation is not None and self.status.operation.candidate is not None:
            due = self.recheck_at
        if due is None and not verification.is_stable(self.status) and self.driver is not None:
            due = self.recheck_at
        if due is None or due <= self.now:
            return False
        self.now = due
        return True


def _size(code: str) -> int:
    """Rows in a batch: each version makes batches of its own."""
    return 1 + sum(code.encode()) % 7


def _state_format(code: str) -> str:
    return "other" if code.startswith("other-state") else "usual"


def a_world(spec: dict | None = None) -> World:
    wanted = {"application": {"file": "job.py"}, **(spec or {})}
    # Rehearsals have tests of their own.
    wanted["upgrade"] = {"strategy": "Cold", **wanted.get("upgrade", {})}
    job = Job(namespace="default", name="clicks", uid="uid", generation=1, spec=StreamJobSpec.parse(wanted))
    return World(job)
