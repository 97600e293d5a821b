"""One query at one moment: how much arrives, how much waits, what it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from headrace.core.autoscale.cost import Fit, Stages
from headrace.core.autoscale.memory import LONG_WINDOW_SECONDS, SHORT_WINDOW_SECONDS, QueryMemory
from headrace.core.autoscale.observation import Query
from headrace.core.lag import UnknownLag, seconds_behind

# Backlog is worked off within this part of the objective, within these bounds.
CATCH_UP_OF_OBJECTIVE = 2 / 3
CATCH_UP_SECONDS = (40.0, 600.0)
# The part of capacity that the load may take: the higher one where the objective leaves room for a late
# reaction, the lower one where it does not. Room is enough where the load may outgrow the capacity by
# `ENOUGH_ROOM` for as long as executors take to start.
UTILISATION = (0.70, 0.94)
ENOUGH_ROOM = 0.3
# A batch may take this part of the objective.
BATCH_OF_OBJECTIVE = 0.25
# The rate since the last look counts if it is above that of the minute by this factor: a jump, not noise.
JUMP = 1.25
JUMP_OF_NOISE = 3.0
JUMP_WINDOW_SECONDS = 15.0
# A load that grows is believed to grow to this many times what it is, and no further.
MOST_GROWTH = 2.0
# How often somebody looks, and a batch, come on top of the start of an executor.
LOOK_SECONDS = 30.0
# The longest task of a shuffle over the median one: beyond this, a key is too hot.
SKEW_LIMIT = 3.0


@dataclass(frozen=True, kw_only=True)
class QueryView:
    """One query, with what was learned of it."""

    seen: Query
    memory: QueryMemory
    # Now, when its sources were looked at, and how long nobody could look since.
    now: float
    at: float
    unseen_seconds: float = 0.0
    objective_seconds: float
    cores: int
    # None is unknown.
    offsets_behind: int | None
    reset: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def unknown(self) -> str | None:
        """Why the lag is not known, if so."""
        if isinstance(self.seen.source, UnknownLag):
            return self.seen.source.why
        if self.lag_rows is None:
            missing = [name for name, one in self.seen.source.partitions.items() if one.behind is None]
            return f"no offset is known of {', '.join(missing[:3]) or 'any partition'}"
        return None

    @cached_property
    def lag_rows(self) -> int | None:
        """With what has come since somebody looked, as far as it comes as it did."""
        if self.offsets_behind is None:
            return None
        unseen = self.unseen_seconds * (self.memory.arrival(LONG_WINDOW_SECONDS) or 0.0)
        return round((self.offsets_behind + unseen) * self.memory.rows_per_offset)

    @cached_property
    def lag_seconds(self) -> float | None:
        if isinstance(self.seen.source, UnknownLag):
            return None
        offsets_per_second = self.memory.arrival(LONG_WINDOW_SECONDS)
        then = seconds_behind(self.seen.source, rows_per_second=offsets_per_second, now=self.at)
        if then is None or (then == 0 and not offsets_per_second):
            return then
        return then + self.unseen_seconds

    @property
    def seconds_to_data_loss(self) -> tuple[float, str] | None:
        """And of which partition. While nobody can look: as it stood when somebody could."""
        if self.memory.loss_at is None:
            return None
        then, partition = self.memory.loss_at
        return max(0.0, then - self.now), partition

    @property
    def loss_if_stopped(self) -> tuple[float, str] | None:
        """While nobody can look: as it was when somebody could. It still keeps up, as far as is known."""
        return self.memory.loss_if_stopped

    @cached_property
    def arrival(self) -> float | None:
        """Rows per second over the long window."""
        rate = self.memory.arrival(LONG_WINDOW_SECONDS)
        return None if rate is None else rate * self.memory.rows_per_offset

    @cached_property
    def arrival_up(self) -> float | None:
        """The higher of the last minute and the last five: a rise counts at once, a fall later."""
        long = self.memory.arrival(LONG_WINDOW_SECONDS)
        short = self.memory.arrival(SHORT_WINDOW_SECONDS)
        if long is None or short is None:
            return self.arrival
        jump = self.memory.arrival(JUMP_WINDOW_SECONDS) or 0.0
        jumped = jump > max(JUMP * short, short + JUMP_OF_NOISE * self.memory.noise)
        highest = max(long, short, jump if jumped else 0.0)
        return highest * self.memory.rows_per_offset

    def arrival_soon(self, startup_seconds: float) -> float:
        """What will arrive when executors that are asked for now are there, if it goes on growing."""
        now = self.arrival_up or 0.0
        newest, slope = self.memory.growth
        if slope <= 0:
            return now
        coming = newest + slope * (startup_seconds + LOOK_SECONDS / 2)
        return max(now, min(coming, MOST_GROWTH * newest) * self.memory.rows_per_offset)

    @property
    def running_rows(self) -> float:
        """Of the batch that runs. Where nobody tells: all that waits, as far as it may take it."""
        if self.seen.running_rows is not None:
            return self.seen.running_rows * self.memory.rows_per_offset
        return min(self.lag_rows or 0, self.most_rows_per_batch)

    @property
    def most_rows_per_batch(self) -> float:
        """The source's own limit, which it counts in offsets."""
        limit = self.seen.max_rows_per_batch
        return math.inf if limit is None else limit * self.memory.rows_per_offset

    @property
    def hottest(self) -> tuple[str, float] | None:
        return self.memory.flows.hottest_share

    @cached_property
    def stages(self) -> Stages:
        return stages_of(self.seen, self.memory, self.cores)

    @property
    def fit(self) -> Fit:
        return self.memory.fit

    @property
    def batch_target_seconds(self) -> float:
        """Batches may take a quarter of the objective: two of them, and the wait for the trigger, fit in."""
        return max(self.seen.trigger_seconds, BATCH_OF_OBJECTIVE * self.objective_seconds)

    @property
    def usual_batch_seconds(self) -> float:
        """How long a batch takes while all is well: an overload's long batches are not usual."""
        return min(self.fit.recent_seconds, self.batch_target_seconds)

    @property
    def is_idle(self) -> bool:
        """Nothing waits, and nothing has come for the whole of the long window, as far as it is known."""
        return self.lag_rows == 0 and self.arrival == 0

    @property
    def batches_are_short(self) -> bool:
        return self.fit.recent_seconds <= self.batch_target_seconds

    @cached_property
    def excess_rows(self) -> float:
        """Backlog: what is more than the saw-tooth between two batches."""
        trigger, batch = self.seen.trigger_seconds, self.usual_batch_seconds
        saw_tooth = (self.arrival_up or 0.0) * 1.25 * (max(trigger, batch) + batch)
        return max(0.0, (self.lag_rows or 0) - saw_tooth)

    @property
    def catch_up_seconds(self) -> float:
        lowest, highest = CATCH_UP_SECONDS
        horizon = min(max(CATCH_UP_OF_OBJECTIVE * self.objective_seconds, lowest), highest)
        left = self.seconds_to_data_loss
        return horizon if left is None else max(1.0, min(horizon, 0.5 * left[0]))

    def utilisation(self, startup_seconds: float) -> float:
        """How much of the capacity may be used: it depends on what a late reaction would cost."""
        lowest, highest = UTILISATION
        spare = self.objective_seconds - self.seen.trigger_seconds - 2 * self.usual_batch_seconds
        room = spare / (startup_seconds + LOOK_SECONDS)
        return lowest + (highest - lowest) * min(max(room / ENOUGH_ROOM, 0.0), 1.0)

    def steady_need(self, utilisation: float) -> float:
        """Rows per second to be able to do, for what arrives."""
        return (self.arrival_up or 0.0) / utilisation

    def need(self, utilisation: float, *, ready: int, startup_seconds: float) -> float:
        """The same, with what waits, and what will wait until more executors are there."""
        short_by = max(0.0, (self.arrival_up or 0.0) - self.capacity(max(ready, 1)))
        waiting = self.excess_rows + short_by * startup_seconds
        return self.arrival_soon(startup_seconds) / utilisation + waiting / self.catch_up_seconds

    @cached_property
    def _capacities(self) -> dict[int, float]:
        return {}

    def capacity(self, executors: int) -> float:
        # Asked for every number by several questions of one decision.
        if executors not in self._capacities:
            limited = self._capacity_by_limit(executors)
            self._capacities[executors] = min(self._capacity_without_limit(executors), limited)
        return self._capacities[executors]

    def _capacity_without_limit(self, executors: int) -> float:
        return self.fit.capacity(self.stages, executors, batch_seconds=self.batch_target_seconds)

    def _capacity_by_limit(self, executors: int) -> float:
        """By the source's own limit of rows per batch: full batches, one after the other."""
        limit = self.most_rows_per_batch
        if math.isinf(limit):
            return limit
        batch = self.fit.batch_seconds(self.stages, executors, limit)
        return limit / max(self.seen.trigger_seconds, batch)

    def suitable_batch_rows(self, executors: int) -> int | None:
        """A limit for a source that has none: what they do in a batch that keeps the objective."""
        if self.seen.max_rows_per_batch is not None:
            return None
        return math.floor(self.capacity(executors) * self.batch_target_seconds)

    def rate_limited(self, executors: int, need: float) -> bool:
        """So many could do more, and more is needed, than its own limit of rows per batch lets them."""
        limited = self._capacity_by_limit(executors)
        return limited < min(need, self._capacity_without_limit(executors))

    @property
    def skewed(self) -> bool:
        return self.seen.task_skew is not None and self.seen.task_skew > SKEW_LIMIT

    @property
    def quiet_too_long(self) -> bool:
        return self.seen.quiet_seconds > max(3 * self.seen.trigger_seconds, 60.0) and not self.seen.idle

    @property
    def stuck(self) -> bool:
        """Nothing was heard for long, and the running batch takes more than three times what it should."""
        if not self.quiet_too_long:
            return False
        running = self.seen.running_seconds
        if running is None or not self.fit.ready:
            return running is None or running > 10 * max(60.0, self.seen.trigger_seconds)
        expected = self.fit.batch_seconds(self.stages, self.fit.executors, self.running_rows)
        return running > 3 * max(expected, self.usual_batch_seconds)


def stages_of(seen: Query, memory: QueryMemory, cores: int) -> Stages:
    """The tasks of a batch. A partition that Spark splits is no longer as hot."""
    if seen.divisible:
        return Stages(
            cores=cores, source_tasks=None, shuffle_tasks=seen.shuffle_partitions, hottest_share=0.0
        )
    told = max(1, len(memory.flows.partitions))
    partitions = max(told, seen.partition_count or 0)
    tasks = max(partitions, seen.min_partitions or 0)
    hottest = memory.flows.hottest_share
    return Stages(
        cores=cores,
        source_tasks=tasks,
        shuffle_tasks=seen.shuffle_partitions,
        hottest_share=0.0 if hottest is None else _of_one(hottest[1], partitions, told) * partitions / tasks,
    )


def _of_one(share: float, partitions: int, told: int) -> float:
    """The share of the hottest partition in a group: the others get what is usual, or as much as it does."""
    members = math.ceil(partitions / told)
    return max(share / members, share - (members - 1) / partitions)
