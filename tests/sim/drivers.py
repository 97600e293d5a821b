"""The drivers of a simulated world: attempts, and candidates, which may become attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.core.actions import ActivateCandidate
from headrace.core.model import AttemptPhase, Ended, Ending, ObservedActivation, Problem
from tests.sim.stream import INCOMPATIBLE

# What a rehearsal finds in code of a kind; of all else it finds nothing.
REHEARSALS = {
    "crash": Ended(ending=Ending.APPLICATION_ERROR, message="ModuleNotFoundError: No module 'oops'"),
    "crash-after-0": Ended(ending=Ending.QUERY_FAILED, error_class="KeyError", message="KeyError: 'price'"),
    "other-meaning": Ended(ending=Ending.MEANING_CHANGED, message="query q: sum(a) became max(a)"),
    "unfit": Ended(ending=Ending.QUERY_FAILED, error_class=INCOMPATIBLE, message="an aggregate was added"),
    "no-rights": Ended(
        ending=Ending.QUERY_FAILED,
        error_class="org.apache.kafka.common.errors.TopicAuthorizationException",
        message="Not authorized to access topics: [payments]",
    ),
    "slow": Ended(ending=Ending.REHEARSAL_TIMEOUT, message="not through within 10m"),
}


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
    # The order by which a candidate takes over as this attempt, and what became of it.
    order: ActivateCandidate | None = None
    copied: bool = False
    refusal: str = ""

    @property
    def live(self) -> bool:
        return self.phase is not AttemptPhase.ENDED

    @property
    def told(self) -> ObservedActivation | None:
        """What its agent says of the order."""
        if self.order is None:
            return None
        state = "Failed" if self.refusal else "Starting" if self.copied else "Copying"
        return ObservedActivation(state=state, message=self.refusal)


@dataclass
class Rehearser:
    """A candidate."""

    run: int
    number: int
    running: bool = False
    standby: bool = False
    repartition: bool = False
    notes: tuple[str, ...] = ()
    silent: bool = False
    ended: Ended | None = None
    waiting: Problem | None = None
    _waiting_since: datetime | None = None

    def waits_for(self, now: datetime) -> timedelta:
        """From the first look on."""
        self._waiting_since = (self._waiting_since or now) if self.waiting is not None else None
        return now - (self._waiting_since or now)
