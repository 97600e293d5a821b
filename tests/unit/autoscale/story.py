"""A job that behaves exactly as told, looked at every 15 seconds: what the policy says to it is the test."""

from dataclasses import dataclass, field, replace
from typing import Any

from headrace.core.autoscale import (
    Batch,
    Decision,
    Executors,
    Limits,
    Memory,
    Observation,
    Query,
    Reason,
    decide,
)
from headrace.core.lag import Offsets, Partition, UnknownLag

LOOK_SECONDS = 15.0
TRIGGER_SECONDS = 10.0


@dataclass
class Story:
    """By default: 24 even partitions, 2 cores per executor, 4 executors that do 1,000 rows/s each."""

    rows_per_second: float = 2000.0
    executors: int = 4
    per_executor: float = 1000.0
    fixed_seconds: float = 1.0
    partitions: int = 24
    shares: list[float] | None = None
    limits: Limits = field(default_factory=lambda: Limits(max=12))
    # Fields of the query, as the observation has them.
    query: dict[str, Any] = field(default_factory=dict)
    # Executors that are asked for come at once, unless somebody keeps them.
    granted: int = 1000
    # Capacity does not grow beyond this, whatever the executors do.
    sink_rows_per_second: float = 1e12
    unknown: str | None = None
    retention_seconds: float | None = None
    name: str = "clicks"

    now: float = 1000.0
    memory: Memory = field(default_factory=Memory)
    decisions: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ends = [0.0] * self.partitions
        self.committed = [0.0] * self.partitions
        self.earliest = [0.0] * self.partitions
        self.number = 0
        self.ready = self.executors
        self.pending_since: float | None = None
        self.batch_ends_at = self.now
        self.batch: tuple[list[float], Batch] | None = None

    def capacity(self) -> float:
        return min(self.ready * self.per_executor, self.sink_rows_per_second)

    def run(self, seconds: float, **changes: Any) -> Decision:
        """Time passes. Returns the last decision; `decisions` has those of this stretch."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.decisions = []
        until = self.now + seconds
        while self.now < until:
            self.now += LOOK_SECONDS
            self._arrive()
            finished = self._work()
            self.decisions.append(self._look(finished))
        return self.decisions[-1]

    def _arrive(self) -> None:
        shares = self.shares or [1 / len(self.ends)] * len(self.ends)
        for index, share in enumerate(shares):
            self.ends[index] += self.rows_per_second * LOOK_SECONDS * share

    def _work(self) -> list[Batch]:
        """Batches of everything there is, one after the other, as long as they end before now."""
        finished = []
        while True:
            if self.batch is None:
                rows = sum(self.ends) - sum(self.committed)
                if rows < 1:
                    self.batch_ends_at = self.now
                    return finished
                seconds = self.fixed_seconds + rows / self.capacity()
                batch = Batch(number=self.number, seconds=seconds, rows=round(rows), executors=self.ready)
                self.batch = (list(self.ends), batch)
                self.batch_ends_at = max(self.batch_ends_at, self.now - LOOK_SECONDS) + seconds
            if self.batch_ends_at > self.now:
                return finished
            self.committed, done = self.batch
            self.number, self.batch = self.number + 1, None
            finished.append(done)

    def _look(self, finished: list[Batch]) -> Decision:
        asked = self.executors
        self.ready = min(asked, self.granted)
        self.pending_since = None if self.ready == asked else self.pending_since or self.now
        observation = Observation(
            at=self.now,
            queries=(self.query_seen(finished),),
            executors=Executors(
                cores=2,
                asked=asked,
                ready=self.ready,
                pending_seconds=self.now - self.pending_since if self.pending_since else 0.0,
            ),
            limits=self.limits,
        )
        decision, self.memory = decide(observation, self.memory)
        self.executors = decision.target
        return decision

    def query_seen(self, finished: list[Batch]) -> Query:
        fields = {
            "name": self.name,
            "trigger_seconds": TRIGGER_SECONDS,
            "source": UnknownLag(self.unknown) if self.unknown else self.offsets(),
            "batches": tuple(finished),
            "retention_seconds": self.retention_seconds,
        }
        return Query(**{**fields, **self.query})

    def offsets(self) -> Offsets:
        return Offsets(
            {
                f"clicks/{index}": Partition(
                    end=round(end), committed=round(committed), earliest=round(earliest)
                )
                for index, (end, committed, earliest) in enumerate(
                    zip(self.ends, self.committed, self.earliest, strict=True)
                )
            }
        )

    @property
    def moves(self) -> list[tuple[int, int]]:
        return [(one.asked, one.target) for one in self.decisions if one.moves]

    @property
    def reasons(self) -> set[Reason]:
        return {one.reason for one in self.decisions}


def a_settled_job(**changes: Any) -> Story:
    """Long enough for a model and a full hold window, at a load that suits its executors."""
    story = Story(**changes)
    story.run(900)
    return story


def limits(**changes: Any) -> Limits:
    return replace(Limits(max=12), **changes)


def one_look(**query) -> Observation:
    fields = {"name": "q", "trigger_seconds": 10.0, "source": Offsets({}), **query}
    return Observation(
        at=0.0,
        queries=(Query(**fields),),
        executors=Executors(cores=2, asked=3, ready=3),
        limits=Limits(max=12),
    )
