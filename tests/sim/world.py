"""A world for the planner to act on: drivers, a store and an operator process, all of which can fail.

The operator here is the real loop in small: look, plan, write the status, act. It can be killed after any
write or act; its successor has nothing but the status and what it can see.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.api import StreamJobSpec
from headrace.core import verification
from headrace.core.actions import (
    Action,
    ActivateCandidate,
    DrainAttempt,
    PinRun,
    RestoreRun,
    SeedRun,
    StartAttempt,
    StartCandidate,
    StopCandidate,
    TakeSavepoint,
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
from tests.sim.drivers import Driver, Rehearser
from tests.sim.workloads import Workloads

EPOCH_START = datetime(2026, 1, 1, tzinfo=UTC)


class OperatorKilled(Exception):
    pass


@dataclass
class World(Workloads):
    code: Code | CodeProblem = field(default_factory=lambda: Code("code-1"))
    now: datetime = EPOCH_START
    # A savepoint before the upgrade, as the spec asks for it, does not come to an end.
    held_by_savepoint: bool = False
    seeds: dict[int, tuple[int, str | None]] = field(default_factory=dict)  # to_run -> (from_run, from_uid)
    # to_run -> the run whose files came along with its state; None: they are fetched when it begins.
    files_of: dict[int, int | None] = field(default_factory=dict)
    seeded_queries: dict[int, tuple[SeededQuery, ...]] = field(default_factory=dict)
    seed_problem: str | None = None
    # to_run -> (path, lineage, query)
    restored: dict[int, tuple[str, str, str | None]] = field(default_factory=dict)
    savepoints: dict[str, ObservedSavepoint] = field(default_factory=dict)
    earlier: EarlierLineage | None = None
    # That of the image that drivers start with.
    spark_version: str = "4.2.1"
    # What waited for the batches of each run, if anybody knew.
    waited: dict[int, tuple[int, ...]] = field(default_factory=dict)
    # What agents tell of batches, rates and sinks.
    figures: dict[str, Any] = field(default_factory=dict)
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
            attempts=(
                *(
                    ObservedAttempt(
                        run=d.run,
                        number=d.number,
                        uid=f"uid-{d.run}-{d.number}" if d.order is None else d.order.uid,
                        phase=d.phase,
                        ended=d.ended,
                        queries=(self._report(d),),
                        waiting=d.waiting,
                        activation=d.told,
                        spark_version=d.spark_version if d.phase is AttemptPhase.RUNNING else None,
                    )
                    for d in self.drivers
                ),
                *self._named_as_attempt(),
            ),
            candidates=tuple(
                ObservedCandidate(
                    run=c.run,
                    number=c.number,
                    uid=f"c{c.number}",
                    ended=c.ended,
                    running=c.running,
                    standby=None if c.silent or not c.running else c.standby,
                    notes=c.notes,
                    waiting=c.waiting,
                    waiting_for=c.waits_for(self.now),
                )
                for c in self.candidates
                if c is not self._named()
            ),
            pinned=dict(self.pinned),
            seeded_runs=frozenset(self.seeds) | frozenset(self.restored),
            seeded_queries=dict(self.seeded_queries),
            seed_problem=self.seed_problem,
            earlier=self.earlier,
            savepoints=() if self.held_by_savepoint else None,
            savepoint=self.savepoints.get(awaited_savepoint(self.job, self.status) or ""),
        )

    def _named(self) -> Rehearser | None:
        """The candidate that the status names as the attempt, and that has not heard of it."""
        run = self.status.run
        activation = run.attempt.activation if run is not None and run.attempt is not None else None
        if activation is None:
            return None
        return next((c for c in self.candidates if c.number == activation.candidate), None)

    def _named_as_attempt(self) -> list[ObservedAttempt]:
        named, run = self._named(), self.status.run
        if named is None or run is None or run.attempt is None:
            return []
        phase = AttemptPhase.STARTING if named.ended is None else AttemptPhase.ENDED
        return [
            ObservedAttempt(
                run=run.number,
                number=run.attempt.number,
                uid=f"c{named.number}",
                phase=phase,
                ended=named.ended,
            )
        ]

    def _report(self, driver: Driver) -> QueryReport:
        return QueryReport(
            name="q",
            active=driver.live,
            # As an agent tells it: what this driver has committed itself.
            committed_batch=self.stream.last(f"run-{driver.run}").commits if driver.batches else None,
            busy=driver.hangs,
            looked=driver.batches > 0 or not driver.hangs,
            stuck=driver.stuck,
            waited=self.waited.get(driver.run, ()),
            **self.figures,
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
                self.pinned[action.run] = PinnedRun(
                    revision=action.revision, code=code, spec=action.spec, path=f"uid/run-{action.run}"
                )
            case SeedRun() | RestoreRun():
                assert not [d for d in self.drivers if d.live], "state copied under a live writer"
                if self.seed_problem is None:
                    self._seed(action)
            case StartAttempt():
                return self._start(action)
            case StartCandidate():
                return self._start_candidate(action)
            case ActivateCandidate():
                return self._activate(action)
            case TakeSavepoint():
                return False  # it is under way
            case StopCandidate():
                assert self._named() is None or self._named().number != action.number, "a writer is killed"
                self.candidates = [c for c in self.candidates if c.number != action.number]
            case DrainAttempt():
                return self._drain(action)
        return True

    def _drain(self, action: DrainAttempt) -> bool:
        named, run = self._named(), self.status.run
        if named is not None and (run.number, run.attempt.number) == (action.run, action.attempt):
            did, named.ended = named.ended is None, named.ended or Ended(ending=Ending.DRAINED)
            return did
        for driver in self.drivers:
            if (driver.run, driver.number) == (action.run, action.attempt) and not driver.drain_asked:
                driver.drain_asked = True
                return True
        return False

    def _seed(self, action: SeedRun | RestoreRun) -> None:
        if isinstance(action, RestoreRun):
            begun = self.status.beginning
            assert begun is not None and begun.run == action.to_run, "copied what no status names"
            self.restored[action.to_run] = (action.path, action.lineage, action.query)
            return
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
        self.files_of.setdefault(action.to_run, action.code_of)
        self.seeded_queries[action.to_run] = seeded_queries(asdict(done))

    def _code_digest(self) -> str:
        assert isinstance(self.code, Code), "code that cannot run was pinned"
        return self.code.digest

    def _start_candidate(self, action: StartCandidate) -> bool:
        if any(c.number == action.number for c in self.candidates):
            return False
        assert action.run in self.pinned, "a run was rehearsed that is not pinned"
        assert not any(c.ended is None for c in self.candidates), "two candidates at once"
        self.candidates.append(Rehearser(action.run, action.number, repartition=action.repartition))
        return True

    def _activate(self, action: ActivateCandidate) -> bool:
        """From here on it is a driver: the order has reached it."""
        run = self.status.run
        named = run.attempt.activation if run is not None and run.attempt is not None else None
        assert named is not None and named.candidate == action.number, "ordered what no status names"
        assert not [d for d in self.drivers if d.live and d.order != action], "a second writer was activated"
        again = next((d for d in self.drivers if d.order == action), None)
        if again is not None:
            did, again.refusal = bool(again.refusal), ""
            return did
        candidate = next((c for c in self.candidates if c.number == action.number), None)
        if candidate is None or candidate.ended is not None or not candidate.standby or candidate.silent:
            return False
        self.candidates.remove(candidate)
        self.drivers.append(Driver(action.run, action.attempt, action.epoch, order=action))
        return True

    def _start(self, action: StartAttempt) -> bool:
        if any((d.run, d.number) == (action.run, action.attempt) for d in self.drivers):
            return False  # a name is used once
        assert not [d for d in self.drivers if d.live], "a second writer was started"
        assert not [c for c in [self._named()] if c and not c.ended], "a second writer was started"
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
            before = [(driver.phase, driver.copied) for driver in self.drivers]
            self.drains_finish()
            self.driver_runs()
            worked = self.driver_works() or self.rehearse()
            moved = before != [(driver.phase, driver.copied) for driver in self.drivers]
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


def a_world(spec: dict | None = None) -> World:
    wanted = {"application": {"file": "job.py"}, **(spec or {})}
    # Rehearsals have tests of their own.
    wanted["upgrade"] = {"strategy": "Cold", **wanted.get("upgrade", {})}
    job = Job(namespace="default", name="clicks", uid="uid", generation=1, spec=StreamJobSpec.parse(wanted))
    return World(job)
