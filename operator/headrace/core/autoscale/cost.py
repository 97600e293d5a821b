"""What a batch costs: a fixed part, and a part per row that executors share.

    seconds = fixed + per_row * rows * share(executors)

Spark's own `processedRowsPerSecond` is no capacity: with small batches it measures the fixed part. `share` is
the part of the rows that the busiest core works off: a stage runs in waves of tasks, and no stage is faster
than its hottest partition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.core.autoscale.observation import Batch

MIN_BATCHES = 8
# Long batches tell more: of those that took so long together, fewer will do. A job that begins with a backlog
# has few batches, and needs a model soon.
MIN_LONG_BATCHES, LONG_SECONDS = 3, 120.0
# Of one batch's weight half is left after this many further ones.
HALF_LIFE_BATCHES = 40
# A batch that took longer than this times the expected is taken as this much: pauses are not the cost, but
# a cost that stays high is learned within a few batches.
SURPRISE = 1.6
# Where rows are expected to be less than this part of a batch, its length tells nothing of what a row costs.
TELLING_PART = 0.25
# Rows are believed to be at least this part of a batch: below it nobody could see them, and a quiet night
# would make the capacity look endless.
LEAST_PART = 0.1
# The fixed part is believed to be this part of a trigger until batches of different sizes tell.
FIXED_PRIOR_OF_TRIGGER = 0.1
FIXED_PRIOR_BATCHES = 2.0
# How far the last batches rule over the sums of many.
TRUST_IN_PRESENT = 0.75
# However short batches should be, this part of them is for rows.
LEAST_WITHIN = 0.1
# How much of a step the waves are: 1 for tasks of equal size.
WAVES = 0.25
# Twice the executors do not do twice the work. Learned capacity is that of the present number; towards more
# executors the model takes this exponent, towards fewer it takes 1: careful in both directions.
SCALING_EXPONENT = 0.85


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Where the tasks come from."""

    cores: int
    # None: the source is divided into as many as there are cores, as far as anybody knows.
    source_tasks: int | None
    shuffle_tasks: int | None
    # The share of the source's hottest partition.
    hottest_share: float

    @property
    def fewest_tasks(self) -> tuple[int, str]:
        """Of the stage that is divided least, and what they are called."""
        each = ((self.source_tasks, "partitions"), (self.shuffle_tasks, "shuffle partitions"))
        return min(((tasks, kind) for tasks, kind in each if tasks is not None), default=(0, "partitions"))

    def share(self, executors: int) -> float:
        """Of the rows, the part that the busiest core has to do."""
        read = max(_of_busiest_core(self.source_tasks, executors * self.cores), self.hottest_share)
        if self.shuffle_tasks is None:
            return read
        return (read + _of_busiest_core(self.shuffle_tasks, executors * self.cores)) / 2


def _of_busiest_core(tasks: int | None, slots: int) -> float:
    """Whole waves for equal tasks; they are never quite equal, and cores that are free first take more."""
    if tasks is None:
        return 1 / slots
    return (WAVES * math.ceil(tasks / slots) + (1 - WAVES) * max(1.0, tasks / slots)) / tasks


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Least squares over past batches with old ones forgotten: five sums, whatever the history."""

    batches: int = 0
    last_number: int = -1
    weight: float = 0.0
    work: float = 0.0
    seconds: float = 0.0
    work_work: float = 0.0
    work_seconds: float = 0.0
    # What came out.
    fixed: float = 0.0
    per_row: float = 0.0
    error: float = 0.25
    recent_seconds: float = 0.0
    # The executors of the newest batch, how many batches they have done, and what a row took them lately.
    executors: int = 1
    batches_here: int = 0
    per_row_here: float = 0.0
    # The plain mean since their number changed: without what was expected of them.
    per_row_since: float = 0.0
    # What a row takes at the least, with the executors of the newest batch.
    row_floor: float = 0.0
    # Core seconds that a scale-down costs if everything moves: what its first batch took too long.
    reload: float = 0.0

    @property
    def ready(self) -> bool:
        long = self.batches >= MIN_LONG_BATCHES and self.seconds >= LONG_SECONDS
        return (self.batches >= MIN_BATCHES or long) and max(self.per_row, self.row_floor) > 0

    def learn(self, batches: Iterable[Batch], stages: Stages, trigger_seconds: float) -> Fit:
        fit = self
        for batch in batches:
            if batch.number > fit.last_number:
                fit = fit._with(batch, stages, trigger_seconds)
        return fit

    def _with(self, batch: Batch, stages: Stages, trigger_seconds: float) -> Fit:
        recent = batch.seconds if not self.batches else 0.7 * self.recent_seconds + 0.3 * batch.seconds
        seen = replace(self, last_number=batch.number, recent_seconds=recent)
        if batch.rows <= 0 or batch.executors <= 0:
            # A batch without rows has no cost per row: what was learned stays.
            return seen
        work = batch.rows * stages.share(batch.executors)
        expected = self.fixed + self.per_row * work
        surprising = self.ready and batch.seconds > SURPRISE * expected
        seconds = SURPRISE * expected if surprising else batch.seconds
        seen = replace(seen, row_floor=LEAST_PART * seconds / batch.rows)
        if self._says_nothing_of_rows(batch, stages):
            reload = self._reloading(batch, stages)
            return replace(seen, reload=reload)._there(batch.executors, stages)
        keep = 0.5 ** (1 / HALF_LIFE_BATCHES)
        error = abs(seconds - expected) / expected if self.ready else self.error
        return (
            replace(
                seen,
                batches=self.batches + 1,
                weight=self.weight * keep + 1,
                work=self.work * keep + work,
                seconds=self.seconds * keep + seconds,
                work_work=self.work_work * keep + work * work,
                work_seconds=self.work_seconds * keep + work * seconds,
                error=0.95 * self.error + 0.05 * min(1.0, error),
                reload=self._reloading(batch, stages),
            )
            ._here(batch.executors, (seconds - self.fixed) / batch.rows, stages)
            ._solved(trigger_seconds)
        )

    def _says_nothing_of_rows(self, batch: Batch, stages: Stages) -> bool:
        """A small batch that took what it should. One that took longer is news, whatever its size."""
        if not self.ready:
            return False
        rows = batch.rows * self.row_seconds(stages, batch.executors)
        return rows < TELLING_PART * (self.fixed + rows) and batch.seconds <= SURPRISE * (self.fixed + rows)

    def _reloading(self, batch: Batch, stages: Stages) -> float:
        """State of executors that left is loaded by those that stay."""
        left = self.executors - batch.executors
        if not self.ready or left <= 0:
            return self.reload
        too_long = max(0.0, batch.seconds - self.batch_seconds(stages, batch.executors, batch.rows))
        everything = too_long * batch.executors * stages.cores * self.executors / left
        return max(everything, 0.5 * (self.reload + everything))

    def reload_seconds(self, stages: Stages, *, before: int, after: int) -> float:
        """What going down will cost the next batch."""
        return self.reload * (before - after) / before / (after * stages.cores)

    def _here(self, executors: int, per_row: float, stages: Stages) -> Fit:
        """The cost of a row with the present executors, which the sums know only after many batches."""
        if self.batches <= 1:
            return replace(self, executors=executors, batches_here=1, per_row_here=max(per_row, 0.0))
        if executors != self.executors:
            return self._there(executors, stages)
        gain = 1.0 if self.per_row_here <= 0 else 0.35 if self.batches_here < 3 else 0.2
        here = self.per_row_here + gain * (max(per_row, 0.0) - self.per_row_here)
        since = self.per_row_since + (max(per_row, 0.0) - self.per_row_since) / (self.batches_here + 1)
        return replace(self, batches_here=self.batches_here + 1, per_row_here=here, per_row_since=since)

    def _there(self, executors: int, stages: Stages) -> Fit:
        """One more batch, of which only is known who did it."""
        if executors == self.executors:
            return replace(self, batches_here=self.batches_here + 1)
        # The first batch after a change loads state and code: it says nothing of the next ones.
        was = self.modelled_row_seconds(stages, self.executors)
        expected = self.modelled_row_seconds(stages, executors) / was * self.per_row_here if was > 0 else 0.0
        return replace(self, executors=executors, batches_here=0, per_row_here=expected, per_row_since=0.0)

    def _solved(self, trigger_seconds: float) -> Fit:
        """The fixed part leans on its prior, as far as equal batches leave it open."""
        prior = max(FIXED_PRIOR_OF_TRIGGER * trigger_seconds, 0.2)
        weight = self.weight + FIXED_PRIOR_BATCHES
        seconds = self.seconds + FIXED_PRIOR_BATCHES * prior
        spread = self.work_work * weight - self.work * self.work
        slope = (self.work_seconds * weight - self.work * seconds) / spread if spread > 0 else 0.0
        fixed = (seconds - slope * self.work) / weight
        highest = max(0.9 * trigger_seconds, 0.5)
        fixed = min(max(fixed, 0.05), highest)
        per_row = (self.work_seconds - fixed * self.work) / self.work_work if self.work_work > 0 else 0.0
        return replace(self, fixed=fixed, per_row=max(per_row, 0.0))

    def row_seconds(self, stages: Stages, executors: int) -> float:
        """What a row takes with that many."""
        floor = self.row_floor * stages.share(executors) / stages.share(self.executors)
        return max(self.modelled_row_seconds(stages, executors), floor)

    def modelled_row_seconds(self, stages: Stages, executors: int) -> float:
        """From the sums, corrected by what the present ones really do."""
        loss = (executors / self.executors) ** (1 - SCALING_EXPONENT) if executors > self.executors else 1.0
        return self.per_row * stages.share(executors) * loss * self._correction(stages)

    def _correction(self, stages: Stages) -> float:
        modelled = self.per_row * stages.share(self.executors)
        if self.per_row_here <= 0 or modelled <= 0:
            return 1.0
        return (self.per_row_here / modelled) ** TRUST_IN_PRESENT

    def batch_seconds(self, stages: Stages, executors: int, rows: float) -> float:
        return self.fixed + rows * self.row_seconds(stages, executors)

    def capacity(self, stages: Stages, executors: int, *, batch_seconds: float) -> float:
        """Rows per second in batches of that length."""
        return self._within(batch_seconds) / self.row_seconds(stages, executors)

    def _within(self, batch_seconds: float) -> float:
        """The part of such a batch that is left for rows."""
        return max(1 - self.fixed / batch_seconds, LEAST_WITHIN)

    def measured_capacity(self, *, batch_seconds: float) -> float:
        """What the present executors did since there are as many, without any model of their number."""
        per_row = max(self.per_row_since or self.per_row_here, self.row_floor)
        return self._within(batch_seconds) / per_row if per_row > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        return {name: _rounded(value) for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Fit:
        return cls(**data)


def useful_executors(capacities: Mapping[int, float]) -> int:
    """The smallest number that has, within 2 %, the most capacity there is to have."""
    most = max(capacities.values())
    return min(number for number, capacity in capacities.items() if capacity >= 0.98 * most)


def _rounded(value: float) -> float:
    return float(f"{value:.9g}") if isinstance(value, float) else value
