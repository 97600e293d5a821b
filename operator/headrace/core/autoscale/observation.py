"""What the policy is told, and what it answers with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headrace.core.lag import Offsets, UnknownLag


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One finished micro-batch."""

    number: int
    seconds: float
    rows: int
    executors: int


@dataclass(frozen=True, kw_only=True)
class Query:
    """One streaming query at one moment."""

    name: str
    trigger_seconds: float
    source: Offsets | UnknownLag
    # When the source was looked at, by the clock of the observation; None: with it.
    looked_at: float | None = None
    # Whether the source is asked while batches run. Otherwise it was when the last one began.
    live: bool = True
    # The newest finished batches, in order. Those that were seen before are skipped by their number.
    batches: tuple[Batch, ...] = ()
    # Seconds since Spark last said anything of this query: a batch finished, or nothing to do.
    quiet_seconds: float = 0.0
    # Spark said that there was nothing to do.
    idle: bool = False
    # Seconds since the batch that runs now began; None between two batches. And what it took, in offsets.
    running_seconds: float | None = None
    running_rows: int | None = None
    # Tasks of a shuffle stage; for a stateful query its checkpoint has fixed them. None: no shuffle.
    shuffle_partitions: int | None = None
    # Partitions of the source, where it has more than it tells of one by one.
    partition_count: int | None = None
    # Files, and what a Python source reads, are divided into tasks by size: its partitions are no tasks.
    divisible: bool = False
    # Spark splits partitions of the source where there are fewer than this.
    min_partitions: int | None = None
    # The source's limit of offsets per batch, if it has one.
    max_rows_per_batch: int | None = None
    # Longest task over the median one in the shuffle stages; None where nobody measured it.
    task_skew: float | None = None
    # How long the source keeps a row; None if it deletes by size only, or not at all.
    retention_seconds: float | None = None
    # Whether it deletes by size, too; None where nobody may know.
    deletes_by_size: bool | None = None
    committed_batch: int | None = None
    # Why nobody could look for work in its sources while no driver runs; None if somebody could.
    no_lookout: str | None = None


@dataclass(frozen=True, kw_only=True)
class Executors:
    cores: int
    # What was last asked for, what has joined, and since when some of the rest are missing.
    asked: int
    ready: int
    pending_seconds: float = 0.0
    # What the platform says of those that do not start.
    why_pending: str | None = None

    @property
    def pending(self) -> int:
        return max(0, self.asked - self.ready)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """`spec.autoscaling`, as numbers."""

    min: int = 1
    max: int
    emergency_max: int | None = None
    lag_objective_seconds: float = 60.0
    # The blackout window that holds now, in the user's own words.
    blackout: str | None = None

    @property
    def lifted_max(self) -> int:
        return max(self.max, self.emergency_max or 0)


@dataclass(frozen=True, kw_only=True)
class Observation:
    at: float  # seconds, of any clock that does not jump
    queries: tuple[Query, ...]
    executors: Executors
    limits: Limits


class Reason(StrEnum):
    """Why the target is what it is. The status, the events, the metrics and the CLI all show this word."""

    # It moves.
    LAG_GROWS = "LagGrows"  # no model yet, and the lag grows
    ARRIVAL_EXCEEDS_CAPACITY = "ArrivalExceedsCapacity"
    BACKLOG = "Backlog"
    DATA_LOSS_NEAR = "DataLossNear"
    LESS_IS_ENOUGH = "LessIsEnough"
    OUT_OF_LIMITS = "OutOfLimits"  # the user's limits moved
    # It stays, and all is well.
    ENOUGH = "Enough"
    HOLDING_BEFORE_DOWN = "HoldingBeforeDown"
    WAITING_FOR_EXECUTORS = "WaitingForExecutors"
    LEARNING = "Learning"
    BLACKOUT = "Blackout"
    # It stays because it cannot be told, or because more would not help.
    LAG_UNKNOWN = "LagUnknown"
    SOURCE_RESET = "SourceReset"
    BATCH_STUCK = "BatchStuck"
    AT_MAXIMUM = "AtMaximum"
    PARTITION_BOUND = "PartitionBound"
    SKEW_BOUND = "SkewBound"
    RATE_LIMITED = "RateLimited"
    QUOTA_BOUND = "QuotaBound"
    SCALING_INEFFECTIVE = "ScalingIneffective"


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """What a decision was made of; None is unknown."""

    lag_rows: int | None = None
    lag_seconds: float | None = None
    arrival_rows_per_second: float | None = None
    need_rows_per_second: float | None = None
    capacity_rows_per_second: float | None = None
    capacity_at_max_rows_per_second: float | None = None
    # The fitted cost of a batch of the query that is furthest behind.
    batch_fixed_seconds: float | None = None
    batch_seconds_per_million_rows: float | None = None
    model_error: float | None = None
    # Rows per batch that would suit the executors, of that query; None where its source has a limit.
    suitable_batch_rows: int | None = None
    seconds_to_data_loss: float | None = None
    # The same if nothing were read any more.
    seconds_to_data_loss_if_stopped: float | None = None


@dataclass(frozen=True, kw_only=True)
class Decision:
    at: float
    asked: int
    target: int
    reason: Reason
    message: str
    numbers: Numbers
    # `max` is lifted, and nothing that stops the job should be begun.
    emergency: bool = False

    @property
    def moves(self) -> bool:
        return self.target != self.asked
