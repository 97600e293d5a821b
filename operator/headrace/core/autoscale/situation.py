"""What is known at one moment, and what follows from it by arithmetic: no decision is made here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.core.autoscale.cost import Fit, Stages, useful_executors
from headrace.core.autoscale.memory import (
    LONG_WINDOW_SECONDS,
    SHORT_WINDOW_SECONDS,
    Memory,
    QueryMemory,
)
from headrace.core.autoscale.observation import Limits, Numbers, Observation, Query
from headrace.core.lag import (
    Offsets,
    UnknownLag,
    follow,
    rows_behind,
    seconds_behind,
    time_to_data_loss,
)

# Backlog is worked off within this part of the objective, within these bounds.
CATCH_UP_OF_OBJECTIVE = 2 / 3
CATCH_UP_SECONDS = (40.0, 600.0)
# The part of capacity that the load may take: the higher one where the objective leaves room for a late
# reaction, the lower one where it does not. Room is enough where the load may outgrow the capacity by
# `ENOUGH_ROOM` for as long as executors take to start.
UTILISATION = (0.70, 0.94)
ENOUGH_ROOM = 0.3
# Beyond the target by this much, more executors are asked for.
UTILISATION_BAND = 0.06
# A batch may take this part of the objective.
BATCH_OF_OBJECTIVE = 0.25
# The rate since the last look counts if it is above that of the minute by this factor: a jump, not noise.
JUMP = 1.25
JUMP_WINDOW_SECONDS = 15.0
# How often somebody looks, and a batch, come on top of the start of an executor.
LOOK_SECONDS = 30.0
# A move down may bring the lag up to this part of the objective, while state is loaded.
AFFORDABLE = 0.8
# Time to data loss below which everything else steps back.
DATA_LOSS_GUARD_SECONDS = 3600.0
SKEW_LIMIT = 3.0


@dataclass(frozen=True, kw_only=True)
class QueryView:
    """One query, with what was learned of it."""

    seen: Query
    memory: QueryMemory
    at: float
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
        return (
            None if self.offsets_behind is None else round(self.offsets_behind * self.memory.rows_per_offset)
        )

    @cached_property
    def lag_seconds(self) -> float | None:
        if isinstance(self.seen.source, UnknownLag):
            return None
        offsets_per_second = self.memory.arrival(LONG_WINDOW_SECONDS)
        return seconds_behind(self.seen.source, rows_per_second=offsets_per_second, now=self.at)

    @cached_property
    def seconds_to_data_loss(self) -> tuple[float, str] | None:
        if isinstance(self.seen.source, UnknownLag):
            return None
        return time_to_data_loss(
            self.seen.source,
            self.memory.flows,
            now=self.at,
            retention_seconds=self.seen.retention_seconds,
        )

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
        highest = max(long, short, jump if jump > JUMP * short else 0.0)
        return highest * self.memory.rows_per_offset

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
        return self.steady_need(utilisation) + waiting / self.catch_up_seconds

    @cached_property
    def _capacities(self) -> dict[int, float]:
        return {}

    def capacity(self, executors: int) -> float:
        # Asked for every number by several questions of one decision.
        if executors not in self._capacities:
            self._capacities[executors] = self.fit.capacity(
                self.stages,
                executors,
                batch_seconds=self.batch_target_seconds,
                max_rows=self.seen.max_rows_per_batch,
            )
        return self._capacities[executors]

    @property
    def rate_limited(self) -> bool:
        """Its own limit of rows per batch keeps it back, not the executors."""
        limit = self.seen.max_rows_per_batch
        return limit is not None and (self.arrival_up or 0.0) > limit / self.batch_target_seconds

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
        expected = self.fit.batch_seconds(self.stages, self.fit.executors, self.seen.running_rows or 0)
        return running > 3 * max(expected, self.usual_batch_seconds)


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Everything that a question of the policy may ask about."""

    seen: Observation
    memory: Memory
    queries: tuple[QueryView, ...]

    @property
    def limits(self) -> Limits:
        return self.seen.limits

    @property
    def asked(self) -> int:
        return self.seen.executors.asked

    @cached_property
    def seconds_to_data_loss(self) -> tuple[float, str] | None:
        each = [one.seconds_to_data_loss for one in self.queries if one.seconds_to_data_loss is not None]
        return min(each, default=None)

    @cached_property
    def emergency(self) -> bool:
        left = self.seconds_to_data_loss
        if left is None:
            return False
        horizon = max((query.catch_up_seconds for query in self.queries), default=0.0)
        return left[0] < max(DATA_LOSS_GUARD_SECONDS, 2 * horizon)

    @cached_property
    def ceiling(self) -> int:
        """Lifted near a data loss, and until the backlog that led there is gone."""
        lifted = self.emergency or (self.asked > self.limits.max and self.backlog_seconds > 0)
        return self.limits.lifted_max if lifted else self.limits.max

    @cached_property
    def modelled(self) -> bool:
        return all(query.fit.ready and query.arrival is not None for query in self.queries)

    @cached_property
    def needs(self) -> tuple[float, ...]:
        """Of each query: rows per second for what arrives and what waits."""
        startup, ready = self.memory.startup_seconds, self.seen.executors.ready
        return tuple(
            query.need(query.utilisation(startup), ready=ready, startup_seconds=startup)
            for query in self.queries
        )

    @cached_property
    def steady_needs(self) -> tuple[float, ...]:
        startup = self.memory.startup_seconds
        return tuple(query.steady_need(query.utilisation(startup)) for query in self.queries)

    def load(self, executors: int, needs: tuple[float, ...] | None = None) -> float:
        """The needs of all queries as a part of what this many executors can do: 1 is full."""
        total = 0.0
        for query, need in zip(self.queries, self.needs if needs is None else needs, strict=True):
            capacity = query.capacity(executors)
            total += need / capacity if capacity > 0 else float(need > 0)
        return total

    def arrival_load(self, executors: int) -> float:
        """The same for what arrives alone: how busy this many would be."""
        each = ((query.arrival_up or 0.0, query.capacity(executors)) for query in self.queries)
        return sum(arrival / capacity for arrival, capacity in each if capacity > 0)

    @cached_property
    def useful(self) -> int:
        """More executors than this cannot help: too few tasks, or one partition that is too hot."""
        numbers = range(self.limits.min, self.ceiling + 1)
        # A need of zero would make everything useful: capacity is compared, weighted by nothing.
        each = [
            useful_executors({number: query.capacity(number) for number in numbers}) for query in self.queries
        ]
        return max(each, default=self.limits.min)

    @cached_property
    def wanted(self) -> int:
        """The smallest number that does what is needed, as far as more can help."""
        return self._smallest(self.needs)

    @cached_property
    def wanted_steadily(self) -> int:
        """The same for what arrives alone: what is still needed when the backlog is gone."""
        return self._smallest(self.steady_needs)

    def _smallest(self, needs: tuple[float, ...]) -> int:
        highest = min(self.ceiling, self.useful)
        for executors in range(self.limits.min, highest + 1):
            if self.load(executors, needs) <= 1:
                return executors
        return max(highest, self.limits.min)

    @property
    def utilisation_limit(self) -> float:
        """How busy the present executors may be before more are asked for."""
        each = [query.utilisation(self.memory.startup_seconds) for query in self.queries]
        return min(each, default=UTILISATION[0]) + UTILISATION_BAND

    @cached_property
    def backlog_seconds(self) -> float:
        """The largest backlog, as the time it took to arrive."""
        each = [
            query.excess_rows / query.arrival_up if query.arrival_up else min(query.excess_rows, 1.0) * 1e9
            for query in self.queries
        ]
        return max(each, default=0.0)

    def capacity(self, executors: int) -> float:
        return sum(query.capacity(executors) for query in self.queries)

    @property
    def measured_capacity(self) -> float:
        return sum(
            query.fit.measured_capacity(batch_seconds=query.batch_target_seconds) for query in self.queries
        )

    def can_afford(self, executors: int) -> bool:
        """Whether loading the state of those that leave would keep the objective."""
        for query in self.queries:
            reload = query.fit.reload_seconds(query.stages, before=self.asked, after=executors)
            rows = (query.arrival_up or 0.0) * query.seen.trigger_seconds
            batch = query.fit.batch_seconds(query.stages, executors, rows)
            if query.seen.trigger_seconds + 2 * batch + reload > AFFORDABLE * query.objective_seconds:
                return False
        return True

    @property
    def arrival(self) -> float:
        return sum(query.arrival_up or 0.0 for query in self.queries)

    @property
    def busiest(self) -> QueryView | None:
        """The query whose numbers explain the decision best."""
        if not self.queries:
            return None
        return max(self.queries, key=lambda query: query.lag_rows or 0)

    def numbers(self) -> Numbers:
        query = self.busiest
        if query is None:
            return Numbers()
        lags = [one.lag_rows for one in self.queries]
        ages = [one.lag_seconds for one in self.queries]
        left = self.seconds_to_data_loss
        known = Numbers(
            lag_rows=None if None in lags else sum(one for one in lags if one is not None),
            lag_seconds=None if None in ages else max(one for one in ages if one is not None),
            arrival_rows_per_second=_sum([one.arrival_up for one in self.queries]),
            seconds_to_data_loss=None if left is None else left[0],
        )
        if not self.modelled:
            return known
        return replace(
            known,
            need_rows_per_second=sum(self.needs),
            capacity_rows_per_second=sum(one.capacity(max(self.asked, 1)) for one in self.queries),
            capacity_at_max_rows_per_second=sum(one.capacity(self.ceiling) for one in self.queries),
            batch_fixed_seconds=query.fit.fixed,
            batch_seconds_per_million_rows=1e6 * query.fit.row_seconds(query.stages, max(self.asked, 1)),
            model_error=query.fit.error,
        )


def stages_of(seen: Query, memory: QueryMemory, cores: int) -> Stages:
    """The tasks of a batch. A partition that Spark splits is no longer as hot."""
    partitions = max(1, len(memory.flows.partitions))
    tasks = max(partitions, seen.min_partitions or 0)
    hottest = memory.flows.hottest_share
    return Stages(
        cores=cores,
        source_tasks=tasks,
        shuffle_tasks=seen.shuffle_partitions,
        hottest_share=0.0 if hottest is None else hottest[1] * partitions / tasks,
    )


def learn(seen: Observation, memory: Memory) -> Situation:
    """Takes in what was seen since the last look."""
    views = tuple(
        _learned(query, memory.queries.get(query.name, QueryMemory()), seen) for query in seen.queries
    )
    queries = {view.seen.name: view.memory for view in views}
    return Situation(seen=seen, memory=_startup(seen, replace(memory, queries=queries)), queries=views)


def _learned(query: Query, before: QueryMemory, seen: Observation) -> QueryView:
    after, reset, added, behind = before, (), (), None
    fresh = [batch for batch in query.batches if batch.number > before.fit.last_number]
    if isinstance(query.source, Offsets):
        moved = follow(before.flows, query.source, at=seen.at)
        rows = sum(batch.rows for batch in fresh)
        behind = rows_behind(query.source)
        after = before.looked(moved, behind, rows, at=seen.at)
        reset, added = moved.reset, moved.added
    stages = stages_of(query, after, seen.executors.cores)
    after = replace(after, fit=after.fit.learn(fresh, stages, query.trigger_seconds))
    return QueryView(
        seen=query,
        memory=after,
        at=seen.at,
        objective_seconds=seen.limits.lag_objective_seconds,
        cores=seen.executors.cores,
        offsets_behind=behind,
        reset=reset,
        added=added,
    )


def _startup(seen: Observation, memory: Memory) -> Memory:
    """How long executors take to join, once those that were asked for are there."""
    if memory.asked_at is None or seen.executors.pending:
        return memory
    took = max(1.0, seen.at - memory.asked_at)
    return replace(memory, asked_at=None, startup_seconds=0.7 * memory.startup_seconds + 0.3 * took)


def _sum(each: list[float | None]) -> float | None:
    return None if None in each else sum(one for one in each if one is not None)
