"""What is known at one moment, and what follows from it by arithmetic: no decision is made here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.core.autoscale.cost import useful_executors
from headrace.core.autoscale.memory import Memory, QueryMemory
from headrace.core.autoscale.observation import Limits, Numbers, Observation, Query
from headrace.core.autoscale.query import BATCH_OF_OBJECTIVE, UTILISATION, QueryView, stages_of
from headrace.core.lag import Offsets, follow, rows_behind
from headrace.core.lag_loss import loss_if_stopped, time_to_data_loss

# Beyond the target by this much, more executors are asked for.
UTILISATION_BAND = 0.06
# A move down may bring the lag up to this part of the objective, while state is loaded.
AFFORDABLE = 0.8
# Time to data loss below which everything else steps back.
DATA_LOSS_GUARD_SECONDS = 3600.0


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
    def working(self) -> tuple[QueryView, ...]:
        """Those that need something: one that has never had rows, and has none now, needs nothing."""
        return tuple(query for query in self.queries if query.fit.ready or not query.is_idle)

    @cached_property
    def modelled(self) -> bool:
        return bool(self.working) and all(
            query.fit.ready and query.arrival is not None for query in self.working
        )

    @cached_property
    def needs(self) -> tuple[float, ...]:
        """Of each query: rows per second for what arrives and what waits."""
        startup, ready = self.memory.startup_seconds, self.seen.executors.ready
        return tuple(
            query.need(query.utilisation(startup), ready=ready, startup_seconds=startup)
            for query in self.working
        )

    @cached_property
    def steady_needs(self) -> tuple[float, ...]:
        startup = self.memory.startup_seconds
        return tuple(query.steady_need(query.utilisation(startup)) for query in self.working)

    def load(self, executors: int, needs: tuple[float, ...] | None = None) -> float:
        """The needs of all queries as a part of what this many executors can do: 1 is full."""
        total = 0.0
        for query, need in zip(self.working, self.needs if needs is None else needs, strict=True):
            total += need / query.capacity(executors)
        return total

    def arrival_load(self, executors: int) -> float:
        """The same for what arrives alone, or soon will: how busy this many would be."""
        startup = self.memory.startup_seconds
        return sum(query.arrival_soon(startup) / query.capacity(executors) for query in self.working)

    @cached_property
    def useful(self) -> int:
        """More executors than this cannot help: too few tasks, or one partition that is too hot."""
        numbers = range(self.limits.min, self.ceiling + 1)
        # A need of zero would make everything useful: capacity is compared, weighted by nothing.
        each = [
            useful_executors({number: query.capacity(number) for number in numbers}) for query in self.working
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
        each = [query.utilisation(self.memory.startup_seconds) for query in self.working]
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
        """Rows per second of all queries, which share the executors, in the mix in which they arrive: with as
        much `load` is 1.
        """
        arrivals = [query.arrival_up or 0.0 for query in self.working]
        mix = arrivals if sum(arrivals) > 0 else [1.0] * len(arrivals)
        if len(mix) == 1:
            return self.working[0].capacity(executors)
        return sum(mix) / self.load(executors, tuple(mix)) if mix else 0.0

    def capacity_apart(self, executors: int) -> float:
        """Of each query as if it were alone, added up: to compare over time, whatever the mix is then."""
        return sum(query.capacity(executors) for query in self.working)

    @property
    def measured_capacity(self) -> float:
        """Of each query apart, too."""
        return sum(
            query.fit.measured_capacity(batch_seconds=query.batch_target_seconds) for query in self.working
        )

    def can_afford(self, executors: int) -> bool:
        """Whether loading the state of those that leave would keep the objective."""
        for query in self.working:
            arrival, trigger = query.arrival_up or 0.0, query.seen.trigger_seconds
            reload = query.fit.reload_seconds(query.stages, before=self.asked, after=executors)
            loading = reload + query.fit.batch_seconds(query.stages, executors, arrival * trigger)
            # What came while it loaded is the next batch.
            after = query.fit.batch_seconds(query.stages, executors, arrival * loading)
            if loading + max(trigger, after) > AFFORDABLE * query.objective_seconds:
                return False
        return True

    @property
    def arrival(self) -> float:
        return sum(query.arrival_up or 0.0 for query in self.queries)

    @property
    def arrival_soon(self) -> float:
        return sum(query.arrival_soon(self.memory.startup_seconds) for query in self.queries)

    @property
    def busiest(self) -> QueryView | None:
        """The query whose numbers explain the decision best."""
        if not self.queries:
            return None
        return max(self.working or self.queries, key=lambda query: query.lag_rows or 0)

    def numbers(self) -> Numbers:
        query = self.busiest
        if query is None:
            return Numbers()
        lags = [one.lag_rows for one in self.queries]
        ages = [one.lag_seconds for one in self.queries]
        left = self.seconds_to_data_loss
        # What arrived when somebody could look is not what arrives now.
        told = all(one.unknown is None for one in self.queries)
        stopped = [one.loss_if_stopped[0] for one in self.queries if one.loss_if_stopped is not None]
        known = Numbers(
            lag_rows=None if None in lags else sum(one for one in lags if one is not None),
            lag_seconds=None if None in ages else max(one for one in ages if one is not None),
            arrival_rows_per_second=_sum([one.arrival_up for one in self.queries]) if told else None,
            seconds_to_data_loss=None if left is None else left[0],
            seconds_to_data_loss_if_stopped=min(stopped, default=None),
        )
        if not self.modelled:
            return known
        return replace(
            known,
            need_rows_per_second=sum(self.needs) if told else None,
            capacity_rows_per_second=self.capacity(max(self.asked, 1)),
            capacity_at_max_rows_per_second=self.capacity(self.ceiling),
            batch_fixed_seconds=query.fit.fixed,
            batch_seconds_per_million_rows=1e6 * query.fit.row_seconds(query.stages, max(self.asked, 1)),
            model_error=query.fit.error,
            suitable_batch_rows=query.suitable_batch_rows(max(self.asked, 1)) if told else None,
        )


def learn(seen: Observation, memory: Memory) -> Situation:
    """Takes in what was seen since the last look."""
    memory = memory.as_of(seen.at)
    views = tuple(
        _learned(query, memory.queries.get(query.name, QueryMemory()), seen) for query in seen.queries
    )
    queries = {**memory.absent(at=seen.at), **{view.seen.name: view.memory for view in views}}
    started = memory.started(
        at=seen.at, pending=seen.executors.pending, pending_seconds=seen.executors.pending_seconds
    )
    return Situation(seen=seen, memory=replace(started, queries=queries), queries=views)


def _learned(query: Query, before: QueryMemory, seen: Observation) -> QueryView:
    reset, added, behind = (), (), None
    query = _as_last_told(query, before)
    before = before.read_as(divisible=query.divisible)
    if query.batches and query.batches[-1].number < before.fit.last_number:
        before = before.counting_anew()
    fresh = [batch for batch in query.batches if batch.number > before.fit.last_number]
    before = after = before.with_batches(fresh)
    at = seen.at if query.looked_at is None else query.looked_at
    if isinstance(query.source, Offsets):
        behind = rows_behind(query.source)
        if before.flows.at is None or at > before.flows.at:
            moved = follow(before.flows, query.source, at=at)
            after = before.looked(moved, behind, at=at)
            after = _with_losses(after, query, query.source, at)
            reset, added = moved.reset, moved.added
    stages = stages_of(query, after, seen.executors.cores)
    # Where batches follow at once, what a batch may take stands for the trigger.
    trigger = query.trigger_seconds or BATCH_OF_OBJECTIVE * seen.limits.lag_objective_seconds
    after = replace(
        after,
        fit=after.fit.learn(fresh, stages, trigger),
        trigger_seconds=query.trigger_seconds,
        partitions=query.partition_count or len(after.flows.partitions),
        min_partitions=query.min_partitions,
        divisible=query.divisible,
        shuffle_partitions=query.shuffle_partitions,
        retention_seconds=query.retention_seconds,
    )
    return QueryView(
        seen=query,
        memory=after,
        now=seen.at,
        at=at,
        unseen_seconds=0.0 if query.live else max(0.0, seen.at - at),
        objective_seconds=seen.limits.lag_objective_seconds,
        cores=seen.executors.cores,
        offsets_behind=behind,
        reset=reset,
        added=added,
    )


def _as_last_told(query: Query, before: QueryMemory) -> Query:
    """What only its source tells stays as it was while nobody can ask: batches that end are learned from."""
    if isinstance(query.source, Offsets):
        return query
    return replace(
        query,
        divisible=before.divisible,
        partition_count=before.partitions or None,
        min_partitions=before.min_partitions,
        retention_seconds=before.retention_seconds,
    )


def _with_losses(memory: QueryMemory, query: Query, source: Offsets, at: float) -> QueryMemory:
    """When rows that were not read would be deleted."""
    left, stopped = (
        measure(
            source,
            memory.flows,
            now=at,
            retention_seconds=query.retention_seconds,
            deletes_by_size=query.deletes_by_size,
        )
        for measure in (time_to_data_loss, loss_if_stopped)
    )
    return replace(
        memory,
        loss_at=None if left is None else (at + left[0], left[1]),
        loss_if_stopped=stopped,
    )


def _sum(each: list[float | None]) -> float | None:
    return None if None in each else sum(one for one in each if one is not None)
