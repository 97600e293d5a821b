"""What a soak on the cluster has seen, as it was told; moments are seconds since the epoch."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look at the real job. None is unknown."""

    at: float
    asked: int
    # As the driver counts them: those that have registered.
    ready: int | None
    # Executor pods that there are, also those that start or end: what is paid for.
    pods: int
    # The lag, at the moment at which the driver's agent read it; and all that had ever come by then.
    lag_at: float | None = None
    lag_seconds: float | None = None
    arrived_rows: int | None = None


class Batch(NamedTuple):
    number: int
    began: float
    seconds: float
    rows: int
    # At its end.
    executors: int


class Move(NamedTuple):
    """The autoscaler changed the target."""

    at: float
    target: int


class Executor(NamedTuple):
    """One executor in Spark's own books."""

    name: str
    added: float
    removed: float | None
    failed_tasks: int
    completed_tasks: int


class Commit(NamedTuple):
    """What a batch waited for the checkpoint."""

    batch: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Record:
    """All that was seen, and what was asked for."""

    # Rows per second that were produced, each for so long.
    rates: tuple[float, ...]
    step_seconds: float
    max_executors: int
    cores: int
    partitions: int
    shuffle_partitions: int
    trigger_seconds: float
    objective_seconds: float
    # What the job's code takes for a row, by design, and which part of that is in the stage that reads.
    seconds_per_row: float
    read_part: float
    # When the producer was started: its first row comes some seconds later.
    began: float
    # What lay in the topic before the day.
    rows_before: int
    samples: tuple[Sample, ...] = ()
    batches: tuple[Batch, ...] = ()
    moves: tuple[Move, ...] = ()
    executors: tuple[Executor, ...] = ()
    commits: tuple[Commit, ...] = ()
    # Of each partition, in the end.
    partition_rows: tuple[int, ...] = ()
    # The day went to its end.
    complete: bool = False
    # None: nobody has looked.
    exact: bool | None = None
    same_driver: bool | None = None
    decisions: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        rows = {"batches": Batch, "moves": Move, "executors": Executor, "commits": Commit}
        return cls(
            **{
                **data,
                **{name: tuple(kind(*one) for one in data[name]) for name, kind in rows.items()},
                "rates": tuple(data["rates"]),
                "samples": tuple(Sample(**one) for one in data["samples"]),
                "partition_rows": tuple(data["partition_rows"]),
                "decisions": tuple(data["decisions"]),
            }
        )

    @property
    def seconds(self) -> float:
        """How long the day was to be."""
        return len(self.rates) * self.step_seconds

    @property
    def shares(self) -> tuple[float, ...]:
        """Of the partitions, in what came."""
        total = sum(self.partition_rows)
        if not total:
            return tuple(1 / self.partitions for _ in range(self.partitions))
        return tuple(rows / total for rows in self.partition_rows)

    def zero(self) -> float:
        """When the first row of the day came: by what had arrived, compared with what was planned."""
        sums = [0.0, *accumulate(rate * self.step_seconds for rate in self.rates)]
        late = [
            one.lag_at - self.began - due
            for one in self.samples
            if one.lag_at is not None
            and one.arrived_rows is not None
            and (due := _due(sums, one.arrived_rows - self.rows_before, self.step_seconds)) is not None
        ]
        return self.began + (statistics.median(late) if late else 0.0)


def _due(sums: list[float], rows: float, step: float) -> float | None:
    """By the plan, the second of the day by which so many rows have come; None outside of it."""
    if not 0 < rows < sums[-1]:
        return None
    index = bisect_left(sums, rows)
    before, after = sums[index - 1], sums[index]
    return step * (index - 1 + (rows - before) / (after - before))
