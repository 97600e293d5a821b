"""The drivers and candidates of a simulated world at work, whoever has started them.

What a driver does is in the name of its code: `crash` (at its start), `crash-after-2` (batches), `never`
(starts), `hang` (in its first batch), `other-state` (writes state that only such code can read). All else
works.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from headrace.api import StreamJobStatus
from headrace.core.actions import ActivateCandidate
from headrace.core.model import AttemptPhase, Ended, Ending, Job, PinnedRun, Problem
from headrace_jobs.store import seed_run
from tests.sim.drivers import REHEARSALS, Driver, Rehearser
from tests.sim.stream import INCOMPATIBLE, Stream

# As many as a driver makes before a test goes on.
_BATCHES = 3
_AWAY = Ended(ending=Ending.QUERY_FAILED, error_class="TimeoutException", message="no broker answers")


@dataclass
class Workloads:
    job: Job
    status: StreamJobStatus = field(default_factory=StreamJobStatus)
    drivers: list[Driver] = field(default_factory=list)
    candidates: list[Rehearser] = field(default_factory=list)
    # No node has room for a candidate beside the driver.
    full: bool = False
    # How the next candidates end, instead of what their code does.
    rehearsals_end: list[Ended] = field(default_factory=list)
    pinned: dict[int, PinnedRun] = field(default_factory=dict)
    # Runs that a candidate has copied the state for: the operator does not see that.
    copied: dict[int, int] = field(default_factory=dict)  # to_run -> from_run
    # Why candidates cannot copy.
    copy_problem: str | None = None
    stream: Stream = field(default_factory=Stream)
    # No driver can read its sources: queries fail, whatever the code.
    sources_away: bool = False

    @property
    def driver(self) -> Driver | None:
        return next((d for d in self.drivers if d.live), None)

    def driver_runs(self) -> None:
        """It comes up, or does what its code does instead."""
        driver = self.driver
        if driver is None or driver.phase is not AttemptPhase.STARTING:
            return
        code, run = self.pinned[driver.run].code, f"run-{driver.run}"
        if code.startswith("never") or (driver.order and not self._take_over(driver, driver.order)):
            return
        self.stream.begin(run)
        wanted = self.pinned[driver.run].spec.state.partitions
        if driver.repartition and not self.stream.split(run, wanted):
            self.driver_ends(Ending.REFUSED, "a batch has begun", error_class="CannotRepartition")
        elif self.sources_away:
            driver.phase, driver.ended = AttemptPhase.ENDED, _AWAY
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

    def _take_over(self, driver: Driver, order: ActivateCandidate) -> bool:
        """It copies what is new of the state; whether it has, and is about to begin."""
        if driver.refusal:
            return False
        if driver.copied:
            return True
        source = self.status.run.attempt.activation.from_run
        last = self.stream.last(f"run-{source}")
        if self.copy_problem is not None:
            driver.refusal = f"StoreUnavailable: {self.copy_problem}"
        elif last.pending and not order.accept_pending:
            driver.refusal = "PendingBatch: batch 4 of query q has begun and not ended"
        else:
            seed_run(self.stream.store, f"run-{source}", f"run-{driver.run}")
            self.copied[driver.run], driver.copied = source, True
        return False

    def rehearse(self) -> bool:
        """One step of a candidate that lives; whether it did anything."""
        candidate = next((c for c in self.candidates if c.ended is None and not c.standby), None)
        if candidate is None:
            return False
        code = self.pinned[candidate.run].code
        if self.full or code.startswith("never"):
            reason = "Unschedulable" if self.full else "ImagePullBackOff"
            candidate.waiting = Problem(reason, "0/3 nodes" if self.full else "no such image")
            return False
        if not candidate.running:
            candidate.running = True
        elif self.sources_away:
            candidate.ended = _AWAY
        elif self.rehearsals_end:
            candidate.ended = self.rehearsals_end.pop(0)
        elif code in REHEARSALS or candidate.repartition or not self.job.spec.upgrade.standby.enabled:
            candidate.ended = REHEARSALS.get(code, Ended(ending=Ending.REHEARSED))
        else:
            candidate.standby = True
        return True

    def candidate_ends(self, ending: Ending) -> None:
        """Whoever waits, or is about to take over."""
        for candidate in self.candidates:
            candidate.ended = candidate.ended or Ended(ending=ending)
        for driver in self.drivers:
            if driver.live and driver.order is not None and driver.phase is AttemptPhase.STARTING:
                self.driver_ends(ending)


def _size(code: str) -> int:
    """Rows in a batch: each version makes batches of its own."""
    return 1 + sum(code.encode()) % 7


def _state_format(code: str) -> str:
    return "other" if code.startswith("other-state") else "usual"
