"""Ends the attempt: waits for the first cause, winds the queries down, writes the last word, exits.

Runs on a thread of its own, because the main thread belongs to the user's code and may never come back.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from headrace_jobs.harness.assignment import Assignment
from headrace_jobs.harness.control import NO_BATCH, Batches, Control, StoreUnavailable
from headrace_jobs.harness.drain import DrainResult, drain
from headrace_jobs.harness.driver_jvm import DriverJvm
from headrace_jobs.harness.endings import (
    ApplicationEnded,
    DrainRequested,
    Ending,
    Event,
    QueryEnded,
    ending_for,
    query_failed,
)
from headrace_jobs.harness.failure import UserCode
from headrace_jobs.harness.kept_log import store_log, within
from headrace_jobs.harness.scratch import Scratch
from headrace_jobs.harness.snapshots import make_snapshots
from headrace_jobs.harness.tail import LogKeeper
from headrace_jobs.harness.termination import Reason, Termination, write_json

if TYPE_CHECKING:  # pyspark is imported while the JVM starts, not before
    from headrace_jobs.harness.managed import QueryRegistry
    from headrace_jobs.harness.rehearsal import Rehearsal

log = logging.getLogger("headrace")

# What comes after awaitTermination() in a script (closing a connection, say) still runs; a script that
# loops for ever is not waited for.
_SCRIPT_GRACE_SECONDS = 1.0
_SPARK_STOP_SECONDS = 10.0
_HURRY_SECONDS = 5.0
_WIND_DOWN_SECONDS = 30.0
_FORK_SECONDS = 5.0


@dataclass
class Parts:
    """What there is to wind down; filled in as the driver starts up, so that an early end finds less."""

    jvm: DriverJvm | None = None
    registry: QueryRegistry | None = None
    control: Control | None = None
    stop_spark: Callable[[], None] | None = None
    own: UserCode = field(default_factory=UserCode)
    scratch: Scratch | None = None
    log_keeper: LogKeeper | None = None
    event_log: bool = False
    rehearsal: Rehearsal | None = None


class Conductor:
    def __init__(self, assignment: Assignment, *, parts: Parts) -> None:
        self._assignment = assignment
        self._uid = assignment.run_file.uid
        self._parts = parts
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._hurry = threading.Event()
        self._exiting = threading.Lock()
        self._ending: Ending | None = None
        self._application_ended = threading.Event()
        self._drain_asked = threading.Event()

    @property
    def phase(self) -> str | None:
        """None while nothing ends."""
        return "Draining" if self._ending is not None or self.draining else None

    @property
    def draining(self) -> bool:
        return self._drain_asked.is_set()

    @property
    def application_finished(self) -> bool:
        return self._application_ended.is_set()

    def tell(self, event: Event) -> None:
        """From any thread, also from a signal's."""
        match event:
            case ApplicationEnded():
                self._application_ended.set()
            case DrainRequested():
                self._drain_asked.set()
        self._events.put(event)

    def hurry(self) -> None:
        """Whatever is being drained is not waited for any longer."""
        self._hurry.set()
        self._exit_at_the_latest(_HURRY_SECONDS)

    def run(self) -> NoReturn:
        try:
            ending = self._await_ending()
            self._ending = ending
            log.info("%s: %s", ending.reason.label, ending.message)
            self._exit_at_the_latest((ending.drain_seconds or 0) + _WIND_DOWN_SECONDS)
            termination = self._wind_down(ending)
        except BaseException as error:
            log.exception("the harness itself failed")
            jvm = self._parts.jvm
            how = jvm.how_it_ended() if jvm else None
            message = f"the driver's JVM {how}" if how else f"{type(error).__name__}: {error}"
            termination = Termination(self._uid, Reason.INTERNAL_ERROR, message, clean=False)
        self._exit(termination)

    def _await_ending(self) -> Ending:
        while True:
            event = self._events.get()
            if isinstance(event, QueryEnded):
                log.info("query %s ended", event.name)
            registry = self._parts.registry
            ending = ending_for(
                event,
                application_ended=self._application_ended.is_set(),
                active=len(registry.active()) if registry else 0,
                own=self._parts.own,
                rehearsing=self._assignment.rehearsing,
            )
            if ending is not None:
                return ending

    def _wind_down(self, ending: Ending) -> Termination:
        if ending.reason is Reason.BATCH_STUCK:
            self._print_stacks()
        result = self._drain(ending)
        ending = self._with_late_failure(ending)
        if ending.reason is Reason.FENCED:
            self._hurry.set()  # a fenced driver has no business here any more
        if self._assignment.rehearsing:
            self._hurry.set()  # what a script does at its end is for the day it writes
        if self._parts.registry is not None and not self._hurry.is_set():
            self._application_ended.wait(_SCRIPT_GRACE_SECONDS)
        if ending.reason is Reason.COMPLETED or self._must_close_event_log(ending):
            self._stop_spark()
        sentences = [ending.message, *result.cut.values()]
        return Termination(
            self._uid,
            ending.reason,
            ". ".join(sentence.rstrip(".") for sentence in sentences),
            ending.failure,
            clean=result.clean,
            queries=self._query_ends(self._last_batches(ending, result)),
            rehearsal=self._rehearsal_result(ending.reason),
        )

    def _rehearsal_result(self, reason: Reason) -> dict[str, Any] | None:
        rehearsal = self._parts.rehearsal
        if rehearsal is None or not self._assignment.rehearsing:
            return None
        passed = rehearsal.phase != "Rehearsing" or reason is Reason.REHEARSED
        return rehearsal.result("Passed" if passed else "Failed")

    def _exit_at_the_latest(self, seconds: float) -> None:
        """A JVM or a store that does not answer must not keep a driver that was told to end."""
        ending = self._ending or Ending(Reason.DRAINED, "told to stop at once")
        message = f"{ending.message}. The JVM did not answer, and was ended"
        forced = Termination(self._uid, ending.reason, message, ending.failure, clean=False)
        timer = threading.Timer(seconds, self._exit, args=[forced])
        timer.daemon = True
        timer.start()

    def _drain(self, ending: Ending) -> DrainResult:
        parts = self._parts
        if self._assignment.rehearsing:
            return DrainResult()  # nothing of it is kept
        if ending.drain_seconds is None or parts.registry is None or parts.control is None:
            return DrainResult()
        took = 0.0
        if ending.snapshots_first:
            took = make_snapshots(
                parts.registry, parts.control, timeout_seconds=ending.drain_seconds, hurry=self._hurry
            )
        return drain(
            parts.registry,
            parts.control,
            timeout_seconds=ending.drain_seconds - took,
            hurry=self._hurry,
            leave_out=ending.leave_out,
        )

    def _with_late_failure(self, ending: Ending) -> Ending:
        """A query that fails in its last batch was not drained, whoever asked for the drain."""
        registry = self._parts.registry
        if ending.reason is not Reason.DRAINED or registry is None:
            return ending
        for query in registry.all():
            end = query.end
            if end is not None and end.failure is not None:
                failed = query_failed(query.query_name, end.failure, end)
                return replace(failed, message=f"{failed.message} (while it was drained)")
        return ending

    def _last_batches(self, ending: Ending, result: DrainResult) -> dict[str, Batches]:
        control = self._parts.control
        if result.batches or control is None or ending.reason not in (Reason.COMPLETED, Reason.FENCED):
            return result.batches
        try:
            return control.batches()
        except StoreUnavailable as error:
            log.warning("the last batches are not told: %s", error)
            return {}

    def _query_ends(self, batches: dict[str, Batches]) -> dict[str, dict[str, Any]]:
        registry = self._parts.registry
        ends: dict[str, dict[str, Any]] = {}
        for query in registry.all() if registry else []:
            committed = batches.get(query.query_name, NO_BATCH).commits
            ends[query.query_name] = {
                "batch": committed if committed >= 0 else None,
                "id": query.lineage,
                "runId": query.run_id,
            }
        return ends

    def _print_stacks(self) -> None:
        log.error("the stacks of all threads follow: Python's, then the JVM's")
        faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
        if self._parts.jvm is not None:
            self._parts.jvm.print_stacks()

    def _must_close_event_log(self, ending: Ending) -> bool:
        """On S3 its last file is there when it is closed, and not before. Never under a query that runs."""
        registry = self._parts.registry
        if not self._parts.event_log or registry is None or self._hurry.is_set():
            return False
        return ending.reason is not Reason.FENCED and not registry.active()

    def _stop_spark(self) -> None:
        """The orderly way, for its event log's sake; nothing is lost if it takes too long."""
        stop = self._parts.stop_spark
        if stop is not None:
            thread = threading.Thread(target=stop, daemon=True)
            thread.start()
            thread.join(_SPARK_STOP_SECONDS)

    def _exit(self, termination: Termination) -> NoReturn:
        if not self._exiting.acquire(blocking=False):
            # Another thread is at it; what breaks here is its doing.
            threading.Event().wait()
        parts = self._parts
        log.info("the driver ends: %s", termination.reason.label)
        # Whoever is in the middle of a call to the JVM would now tell the log about it at length.
        logging.disable()
        threading.excepthook = lambda _: None
        # First the JVM: whoever reads the message may rely on nothing being written any more.
        if parts.jvm is not None:
            parts.jvm.halt()
        self._write_last_words(termination)
        self._keep_log(termination)
        if parts.rehearsal is not None and self._assignment.rehearsing:
            within(_FORK_SECONDS, parts.rehearsal.clean_up)
        if parts.scratch is not None:
            parts.scratch.remove()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        # Not sys.exit: threads of the user's code, or of py4j, could hold the process for ever.
        os._exit(termination.reason.exit_code)

    def _write_last_words(self, termination: Termination) -> None:
        try:
            write_json(self._assignment.run_file.termination_message_path, termination.to_json())
        except OSError as error:
            sys.stderr.write(f"headrace: the termination message could not be written: {error}\n")

    def _keep_log(self, termination: Termination) -> None:
        """After the last words, which are worth more; said again when the log is where they say."""
        if self._parts.log_keeper is None:
            return
        content = self._parts.log_keeper.finish()
        if termination.reason.is_failure and content:
            log_file = store_log(self._assignment.run_file, content)
            if log_file is not None:
                self._write_last_words(replace(termination, log_file=log_file))
