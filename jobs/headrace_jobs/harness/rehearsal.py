"""A candidate's rehearsal: each query is forked, muted and replayed; then the candidate waits, or ends.

Rehearsing ──all queries through──▶ Standby ──POST /v1/activate──▶ Activating ──▶ (an attempt like any other)
    │                                  │ ▲──── not at a boundary ─────┘
    ├─ a query or the script fails: told by the conductor, as ever
    ├─ MeaningChanged, RehearsalTimeout, Rehearsed
    └──────────────────────────────────┴─ StandbyExpired
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from headrace_jobs.harness.ahead import CopyAhead
from headrace_jobs.harness.assignment import Assignment
from headrace_jobs.harness.checkpoint_control import CheckpointControl
from headrace_jobs.harness.conf import spark_url
from headrace_jobs.harness.control import Fenced, StoreUnavailable
from headrace_jobs.harness.endings import ApplicationEnded, Event, RehearsalOver
from headrace_jobs.harness.managed import ManagedQuery, Part, QueryRegistry
from headrace_jobs.harness.meaning_notes import Meanings, minor, note_when_proven, queries_at_work
from headrace_jobs.harness.muting import Muted, Readers, check_sink
from headrace_jobs.harness.repartition import CannotRepartition, Repartition, to_split
from headrace_jobs.harness.replay import QueryReplay
from headrace_jobs.harness.runfile import Rehearsal as Terms
from headrace_jobs.harness.spark_line import way_back
from headrace_jobs.harness.termination import Reason
from headrace_jobs.harness.writer import Start, tell_tasks
from headrace_jobs.store import Store, StoreError
from headrace_jobs.store.formats import formats_of
from headrace_jobs.store.partitions import states_of
from headrace_jobs.store.rehearsals import Fork, discard_fork, fork_query, lay_down, sweep_rehearsals

log = logging.getLogger("headrace")

# A script that neither waits nor ends may still start a query: it gets this long after the last one.
_QUIET_SECONDS = 5.0
_LOOK_SECONDS = 0.5
_MEANING_CHANGED = (
    "Spark accepts it, but the state so far means something else: change it back, or say"
    " upgrade.stateCompatible: true"
)


class OtherSources(Exception):
    """Ends the script of a candidate whose rehearsal is over: nothing recorded is of what it reads."""


@dataclass
class Rehearsal:
    """One candidate, until it is activated. `tell` reaches the conductor."""

    assignment: Assignment
    registry: QueryRegistry
    control: CheckpointControl
    session: Any
    store: Store
    readers: Readers
    meanings: Meanings
    tell: Callable[[Event], None]
    application_finished: Callable[[], bool]
    # The fork is split, too, when its batches are replayed: it is the only way to know that it can be.
    repartition: Repartition | None = None
    clock: Callable[[], float] = time.monotonic
    phase: str = "Rehearsing"
    _replays: dict[str, QueryReplay] = field(default_factory=dict)
    _differences: list[str] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _compared: bool = False
    _began: float = 0.0
    _seconds: float = 0.0
    _last_start: float = 0.0
    _launching: int = 0
    _expected: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def terms(self) -> Terms:
        terms = self.assignment.run_file.rehearsal
        assert terms is not None
        return terms

    @property
    def directory(self) -> str:
        """Of the fork; also after the activation."""
        return f"rehearsal-{self._number}"

    @property
    def fetched(self) -> str:
        """Where the keeper has put the files of the program, if it has fetched any."""
        return f"{self.directory}/candidate-{self._candidate}"

    def __post_init__(self) -> None:
        self._number = self.assignment.run_file.run
        self._candidate = self.assignment.run_file.attempt

    def begin(self) -> None:
        """Before the user's code runs. Raises CannotRepartition."""
        self._began = self.clock()
        if self.repartition is not None:
            self._check_partitions(self.repartition)
        with contextlib.suppress(StoreError):
            sweep_rehearsals(self.store, before=self._number)
            self._expected = set(queries_at_work(self.store, self.terms.from_run))
        self._begin_watching()

    def _check_partitions(self, repartition: Repartition) -> None:
        try:
            states = states_of(self.store, self.terms.from_run)
        except StoreError as error:
            raise StoreUnavailable(str(error)) from error
        to_split(states, repartition.partitions, spark_version=self.session.version, at_rest=False)

    def _begin_watching(self) -> None:
        self._began = self._last_start = self.clock()
        threading.Thread(target=self._watch, name="headrace-rehearsal", daemon=True).start()

    def takes(self) -> bool:
        """Whether a query that is started now is part of the rehearsal: a script may start one at any time.

        In standby the rehearsal begins again with it; while the candidate is being activated it waits.
        """
        while self.phase == "Activating":
            self.registry.wait_for_change(_LOOK_SECONDS)
        if self.assignment.rehearsing and self.leave_standby("Rehearsing"):
            self._begin_watching()
        return self.assignment.rehearsing

    def launch(self, start: Start) -> ManagedQuery:
        """A query of the user's code, on its fork. Raises in the user's own line what is wrong with it."""
        with self._being_launched():
            return self._launch(start)

    @contextlib.contextmanager
    def _being_launched(self) -> Iterator[None]:
        """A fork of much state takes its time: until its query runs, the rehearsal is not through."""
        self._launching += 1
        try:
            yield
        finally:
            self._last_start = self.clock()
            self._launching -= 1

    def _launch(self, start: Start) -> ManagedQuery:
        check_sink(self.session, start)
        self.meanings.note(start)
        # What was recorded is of the old sources: Spark may fail on it, in words that do not name them.
        others = self._other_sources(start.name)
        fork = self._fork(start.name, batches=0 if others else self.terms.batches)
        muted = Muted(start, self.terms.call_foreach_batch)
        replay = QueryReplay(
            fork,
            asked=self.terms.batches,
            lay_down=lambda batch: self._lay_down(start.name, batch),
            start=lambda: self._start_muted(muted, fork),
            clock=self.clock,
        )
        self._replays[start.name] = replay
        self._notes += [note for note in [muted.note(), _note_on(fork)] if note]
        return self.registry.adopt(start.name, replay.begin(), start.state.scope, Part(replay, start.begin))

    def keep_meanings(self) -> None:
        """After the activation: from its first batch on, each state is of this version's meaning."""
        for query in self.registry.active():
            meaning = self.meanings.of(query.query_name)
            if meaning is not None:
                note_when_proven(lambda: self.store, self.assignment.run_file.run, query, meaning)

    def result(self, outcome: str | None = None) -> dict[str, Any]:
        """What the status and the last words say."""
        return {
            "outcome": outcome or ("Running" if self.phase == "Rehearsing" else "Passed"),
            "fromRun": self.terms.from_run,
            "seconds": round(self._seconds or self.clock() - self._began, 2),
            "compared": self._compared,
            "queries": {name: replay.to_json() for name, replay in self._replays.items()},
            "differences": list(self._differences),
            "notes": list(self._notes),
        }

    def clean_up(self) -> None:
        """Throws the fork away. What cannot be removed now goes with the next rehearsal, or with the job."""
        with contextlib.suppress(StoreError):
            discard_fork(self.store, self.directory)

    def _other_sources(self, query: str) -> bool:
        try:
            found = self.meanings.other_sources(self.store, self.terms.from_run, query)
        except StoreError as error:
            raise StoreUnavailable(str(error)) from error
        if found and not self.terms.state_compatible:
            self._differences = found
            self._tell_other_meaning()
            raise OtherSources(found[0])
        return bool(found)

    def _tell_other_meaning(self) -> None:
        message = f"{'; '.join(self._differences)}. {_MEANING_CHANGED}"
        self.tell(RehearsalOver(Reason.MEANING_CHANGED, message))

    def _fork(self, query: str, *, batches: int) -> Fork:
        # A source that removes what was read has nothing left to repeat.
        batches = 0 if self.readers.clean_up else batches
        try:
            return fork_query(
                self.store,
                from_run=self.terms.from_run,
                rehearsal=self.directory,
                query=query,
                batches=batches,
            )
        except StoreError as error:
            raise StoreUnavailable(str(error)) from error

    def _lay_down(self, query: str, batch: int) -> None:
        try:
            lay_down(self.store, rehearsal=self.directory, query=query, batch=batch)
        except StoreError as error:
            raise StoreUnavailable(str(error)) from error

    def _start_muted(self, muted: Muted, fork: Fork) -> Any:
        triggers = self.session._jvm.org.apache.spark.sql.streaming.Trigger
        checkpoint = spark_url(self.assignment.run_file.checkpoint_of(fork.query))
        if fork.planned:
            # Exactly one batch, the pending one: none is planned, so no source is told to forget anything.
            trigger = triggers.Once()
        else:
            trigger = triggers.AvailableNow()
            self.control.end_after(checkpoint, 0)
        tell_tasks(self.session, self.assignment)
        return muted.writer(checkpoint, trigger).start()

    # ── the end of the rehearsal ──────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        while not self._through():
            if self.clock() - self._began > self.terms.time_limit_seconds:
                if self._replays and self._nothing_runs():
                    break  # whatever the script still does
                if self._only_new_queries_left():
                    break
                self._time_is_over()
                return
            self.registry.wait_for_change(_LOOK_SECONDS)
        self._seconds = self.clock() - self._began
        self._judge()

    def _through(self) -> bool:
        """All that was started is, and nothing more is to come, as far as one can tell from outside."""
        if not self._nothing_runs():
            return False
        if self.application_finished() or (self.registry.awaited and self._replays):
            return True
        # A script with a loop of its own neither waits nor ends. One that has not yet started what the
        # incumbent runs is still at work.
        started = bool(self._replays) and self._expected <= self._replays.keys()
        return started and self.clock() - self._last_start > _QUIET_SECONDS

    def _nothing_runs(self) -> bool:
        return self._launching == 0 and not any(
            query.isActive and not query.resting for query in self.registry.all()
        )

    def _only_new_queries_left(self) -> bool:
        left = [query for query in self.registry.all() if query.isActive and not query.resting]
        new = [query for query in left if self._replays[query.query_name].fork.is_new]
        if not left or len(new) < len(left):
            return False
        for query in new:
            self._notes.append(
                f"query {query.query_name} is new: its first batch was still running, without a fault,"
                " when the time was over"
            )
            query.java.stop()
        while not self._through():
            self.registry.wait_for_change(_LOOK_SECONDS)
        return True

    def _time_is_over(self) -> None:
        limit = f"{self.terms.time_limit_seconds:.0f} s (upgrade.rehearsal.timeLimit)"
        left = {name: replay for name, replay in self._replays.items() if not replay.done}
        what = "; ".join(f"query {name} was {replay.doing()}" for name, replay in left.items())
        message = f"the rehearsal was not through after {limit}: {what or 'the script starts no query'}"
        self.tell(RehearsalOver(Reason.REHEARSAL_TIMEOUT, message))

    def _judge(self) -> None:
        ends = [query.end for query in self.registry.all() if query.end is not None]
        if any(end.failure is not None or end.jvm_lost for end in ends):
            return  # the conductor knows
        try:
            self._compare()
        except StoreError as error:
            self.tell(RehearsalOver(Reason.STORE_UNAVAILABLE, str(error)))
            return
        if self._differences and not self.terms.state_compatible:
            self._tell_other_meaning()
            return
        if self.repartition is not None and not self._splits(self.repartition):
            return
        log.info("the rehearsal has passed: %s", ", ".join(self._replays) or "it starts no query")
        for note in self._notes:
            log.info("noted in the rehearsal: %s", note)
        # What is to be split takes over cold: its state is another one than that which was rehearsed.
        cold = self.terms.standby_seconds is None or self.repartition is not None
        if cold or not self.registry.resting():
            message = "; ".join(["the rehearsal has passed", *self._notes])
            self.tell(RehearsalOver(Reason.REHEARSED, message))
            return
        assert self.terms.standby_seconds is not None
        self._stand_by(self.terms.standby_seconds)

    def _splits(self, repartition: Repartition) -> bool:
        """Whether Spark can split this very state; how long that takes is worth knowing before the gap."""
        try:
            repartition.run()
        except (CannotRepartition, Fenced, StoreUnavailable) as error:
            self.tell(ApplicationEnded(error))
            return False
        self._notes += repartition.notes()
        return True

    def _compare(self) -> None:
        known = queries_at_work(self.store, self.terms.from_run)
        comparison = self.meanings.compare(self.store, self.terms.from_run, known)
        self._compared = comparison.complete
        self._differences = comparison.differences
        self._notes += comparison.notes
        told = self._look_back(comparison.spark_before)
        self._notes += [told] if told is not None else []

    def _look_back(self, spark_before: set[str]) -> str | None:
        """What another Spark has written into the forks tells whether the one before could read it."""
        if not spark_before:
            return None  # nobody noted it
        now = minor(self.session.version)
        if spark_before == {now}:
            return None
        known = [name for name, replay in self._replays.items() if not replay.fork.is_new]
        places = (self.terms.from_run, self.directory)
        formats = {name: tuple(formats_of(self.store, place, name) for place in places) for name in known}
        return way_back(spark_before, now, {name: (old, new) for name, (old, new) in formats.items()})

    # ── standby ───────────────────────────────────────────────────────────────────────────────────────────

    def _stand_by(self, seconds: float) -> None:
        self.clean_up()
        ahead = CopyAhead(
            self.store,
            self.terms.from_run,
            self._number,
            go_on=lambda: self.phase in ("Rehearsing", "Standby"),
            clock=self.clock,
        )
        ahead.catch_up()
        with self._lock:
            self.phase = "Standby"
        log.info("waits for the handover")
        deadline = self.clock() + seconds
        while self.phase == "Standby":
            if self.clock() > deadline and self.leave_standby("Expired"):
                self.tell(RehearsalOver(Reason.STANDBY_EXPIRED, f"nobody came within {seconds:.0f} s"))
                return
            ahead.copy_if_due()
            self.registry.wait_for_change(_LOOK_SECONDS)

    def leave_standby(self, phase: str) -> bool:
        """False when it has left already: of two who want something else, one gets it."""
        with self._lock:
            if self.phase != "Standby":
                return False
            self.phase = phase
            return True

    def back_to_standby(self) -> None:
        """An activation came to nothing, and nothing was claimed."""
        seconds = self.terms.standby_seconds
        assert seconds is not None
        threading.Thread(target=self._stand_by, args=(seconds,), name="headrace-standby", daemon=True).start()


def _note_on(fork: Fork) -> str | None:
    if fork.is_new:
        return f"query {fork.query} is new: it begins from nothing"
    if fork.empty:
        why = fork.fewer or "what was recorded is not there any more, or is of other sources"
        return f"query {fork.query}: no past batch could be repeated, functions saw no rows ({why})"
    return None
