"""What the policy remembers between two decisions. Small, frozen, and JSON: it outlives the operator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any

from headrace.core.autoscale.cost import Fit
from headrace.core.autoscale.observation import Batch
from headrace.core.lag import Flows, Moved, flows_from_json, flows_to_json

VERSION = 2
LONG_WINDOW_SECONDS = 300.0
SHORT_WINDOW_SECONDS = 60.0
# Points of the arrival curve are at least this far apart: looking more often does not make it larger.
POINT_SECONDS = 5.0
# A load grows if it has grown at this many looks in a row, by this part in all.
GROWTH_LOOKS, LEAST_GROWTH = 4, 0.2
# And by this many times what the rate is off by chance.
GROWTH_OF_NOISE = 6.0
# Until an executor was seen to join, it is believed to take this long.
STARTUP_PRIOR_SECONDS = 60.0
# Executors that have not come after so long, or after three times what is usual, are denied.
QUOTA_SECONDS = 300.0
# Of a time longer than this in which nobody looked (an upgrade, no operator) it is not known what was needed.
UNWATCHED_SECONDS = 60.0
# Of two clocks that are both right, one may be ahead by so much.
CLOCK_SECONDS = 60.0
# Queries that are not reported any more are remembered for so long, and so many of them.
ABSENT_SECONDS = 86_400.0
ABSENT_QUERIES = 32


@dataclass(frozen=True, kw_only=True)
class QueryMemory:
    flows: Flows = field(default_factory=Flows)
    # (seconds, rows that had arrived by then), over the long window.
    arrived: tuple[tuple[float, float], ...] = ()
    # The lag at the last few looks, for the time before there is a model.
    lags: tuple[int, ...] = ()
    fit: Fit = field(default_factory=Fit)
    # Offsets and rows of past batches: in compacted and transactional topics they differ.
    offsets_read: float = 0.0
    rows_read: float = 0.0
    # Rows of batches since the offsets were last known, which come with the next look. None if some of these
    # batches were missed: rows and offsets are compared of the same time, or not at all.
    rows_since_look: float | None = None
    # When the source would delete a row that was not read, at the last look, and of which partition.
    loss_at: tuple[float, str] | None = None
    # In how many seconds it would if nothing were read any more, at the last look.
    loss_if_stopped: tuple[float, str] | None = None
    # What the job is like, for whoever replays its load.
    trigger_seconds: float = 0.0
    partitions: int = 0
    min_partitions: int | None = None
    divisible: bool = False
    shuffle_partitions: int | None = None
    retention_seconds: float | None = None

    @property
    def rows_per_offset(self) -> float:
        if self.offsets_read <= 0 or self.rows_read <= 0 or not self.fit.ready:
            return 1.0
        ratio = self.rows_read / self.offsets_read
        # A file is many rows, and a Python source may count in milliseconds.
        return min(max(ratio, 1e-6), 1e9) if abs(ratio - 1) > 0.05 else 1.0

    def with_batches(self, batches: Sequence[Batch]) -> QueryMemory:
        """Counts the rows of batches that are new; to be told before the cost of these is learned."""
        if self.rows_since_look is None or not batches:
            return self
        # Also one in between, whose executors nobody counted.
        missed = batches[-1].number - self.fit.last_number != len(batches)
        rows = None if missed else self.rows_since_look + sum(batch.rows for batch in batches)
        return replace(self, rows_since_look=rows)

    def counting_anew(self) -> QueryMemory:
        """Another lineage, or one that was taken back. What a row costs is still known."""
        return replace(self, fit=replace(self.fit, last_number=-1), rows_since_look=None)

    def read_as(self, *, divisible: bool) -> QueryMemory:
        """Its tasks come from elsewhere than before: work was counted in another measure."""
        if divisible == self.divisible:
            return self
        return replace(self, divisible=divisible, fit=Fit(last_number=self.fit.last_number))

    def without_dates(self) -> QueryMemory:
        """What a row costs, and what the job is like: how it flows is measured anew."""
        return replace(self, flows=Flows(), arrived=(), lags=(), rows_since_look=None, loss_at=None)

    def looked(self, moved: Moved, lag: int | None, *, at: float) -> QueryMemory:
        if moved.reset:
            # Another topic under the old name: nothing of its flow is known, what a row costs still is.
            return QueryMemory(flows=moved.flows, fit=self.fit, rows_since_look=0.0)
        total = (self.arrived[-1][1] if self.arrived else 0.0) + moved.arrived
        # One point beyond the window, so that the window is always full.
        first = next((i for i, (then, _) in enumerate(self.arrived) if at - then <= LONG_WINDOW_SECONDS), 0)
        before = self.arrived[max(0, first - 1) :]
        if len(before) > 1 and at - before[-2][0] < POINT_SECONDS:
            before = before[:-1]
        arrived = (*before, (at, total))
        lags = self.lags if lag is None else (*self.lags[-3:], lag)
        seen = replace(self, flows=moved.flows, arrived=arrived, lags=lags, rows_since_look=0.0)
        if self.rows_since_look is None or not moved.read_is_whole:
            return seen
        return replace(
            seen,
            offsets_read=self.offsets_read * 0.98 + moved.read,
            rows_read=self.rows_read * 0.98 + self.rows_since_look,
        )

    def arrival(self, window_seconds: float) -> float | None:
        """Offsets per second over the window, or over what is known of it once that is half of a minute."""
        if len(self.arrived) < 2:
            return None
        at, total = self.arrived[-1]
        since = next(
            (point for point in reversed(self.arrived) if at - point[0] >= window_seconds), self.arrived[0]
        )
        elapsed = at - since[0]
        return (
            (total - since[1]) / elapsed if elapsed >= min(window_seconds, SHORT_WINDOW_SECONDS / 2) else None
        )

    @property
    def _rates(self) -> list[float]:
        """Offsets per second from look to look."""
        return [
            (after - before) / (then - since) for (since, before), (then, after) in pairwise(self.arrived)
        ]

    @property
    def noise(self) -> float:
        """How far a rate is off the line through its neighbours, as a rule: a slope is no noise."""
        rates = self._rates
        bends = [
            abs(one - 2 * two + three) for one, two, three in zip(rates, rates[1:], rates[2:], strict=False)
        ]
        # 1.48: the median of deviations as a standard one; 6: of three rates, with weights 1, 2 and 1.
        return 1.48 * median(bends) / math.sqrt(6) if bends else 0.0

    @property
    def growth(self) -> tuple[float, float]:
        """Offsets per second lately, and by how much more each second: 0 unless it grows steadily.

        Four steps up in a row, none of them small beside the others, and well beyond noise. A jump, which
        is over, is one large step, or two or three where looks fall into it.
        """
        rates = self._rates
        if len(rates) < GROWTH_LOOKS + 1:
            return (rates[-1] if rates else 0.0), 0.0
        oldest, newest = rates[-GROWTH_LOOKS - 1], rates[-1]
        steps = [after - before for before, after in pairwise(rates[-GROWTH_LOOKS - 1 :])]
        grown, seconds = newest - oldest, self.arrived[-1][0] - self.arrived[-GROWTH_LOOKS - 1][0]
        steady = min(steps) * 3 >= max(steps) > 0
        if not steady or grown < LEAST_GROWTH * oldest or grown < GROWTH_OF_NOISE * self.noise:
            return newest, 0.0
        return newest, grown / seconds

    def to_json(self) -> dict[str, Any]:
        return {
            "flows": flows_to_json(self.flows),
            "arrived": [[round(at, 1), round(rows)] for at, rows in self.arrived],
            "lags": list(self.lags),
            "fit": self.fit.to_json(),
            "offsetsRead": round(self.offsets_read),
            "rowsRead": round(self.rows_read),
            "rowsSinceLook": self.rows_since_look,
            "lossAt": None if self.loss_at is None else list(self.loss_at),
            "lossIfStopped": None if self.loss_if_stopped is None else list(self.loss_if_stopped),
            "triggerSeconds": self.trigger_seconds,
            "partitions": self.partitions,
            "minPartitions": self.min_partitions,
            "divisible": self.divisible,
            "shufflePartitions": self.shuffle_partitions,
            "retentionSeconds": self.retention_seconds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> QueryMemory:
        return cls(
            flows=flows_from_json(data["flows"]),
            arrived=tuple((at, rows) for at, rows in data["arrived"]),
            lags=tuple(data["lags"]),
            fit=Fit.from_json(data["fit"]),
            offsets_read=data["offsetsRead"],
            rows_read=data["rowsRead"],
            rows_since_look=data.get("rowsSinceLook"),
            loss_at=(loss[0], loss[1]) if (loss := data.get("lossAt")) else None,
            loss_if_stopped=(loss[0], loss[1]) if (loss := data.get("lossIfStopped")) else None,
            trigger_seconds=data["triggerSeconds"],
            partitions=data["partitions"],
            min_partitions=data.get("minPartitions"),
            divisible=data.get("divisible", False),
            shuffle_partitions=data["shufflePartitions"],
            retention_seconds=data["retentionSeconds"],
        )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A scale-up whose effect is still to be seen."""

    at: float
    before: int
    after: int
    capacity_before: float
    capacity_expected: float
    arrival: float


@dataclass(frozen=True, kw_only=True)
class Block:
    """Executors did not help: no more of them until then, or until the job becomes faster by itself."""

    until: float
    executors: int
    capacity: float
    gained: float  # of the gain that was expected
    # How many there were before: up to as many, nothing speaks against them.
    before: int = 0


@dataclass(frozen=True, kw_only=True)
class Floor:
    """Fewer than these were tried for such an arrival, and were too few."""

    executors: int
    arrival: float
    until: float


@dataclass(frozen=True, kw_only=True)
class Memory:
    queries: Mapping[str, QueryMemory] = field(default_factory=dict[str, QueryMemory])
    # (seconds, executors needed), falling: the first is the most that the hold window has seen.
    needed: tuple[tuple[float, int], ...] = ()
    # Since when every look could tell what is needed; None while blind.
    watched_since: float | None = None
    moved_at: float | None = None
    startup_seconds: float = STARTUP_PRIOR_SECONDS
    # When the executors that are still missing were asked for.
    asked_at: float | None = None
    trial: Trial | None = None
    block: Block | None = None
    went_down_at: float | None = None
    floor: Floor | None = None

    @property
    def patience_seconds(self) -> float:
        """Who waits longer than this for executors waits for room, and not for their start."""
        return max(QUOTA_SECONDS, 3 * self.startup_seconds)

    def started(self, *, at: float, pending: int, pending_seconds: float) -> Memory:
        """How long executors take to join, once those that were asked for are there."""
        if self.asked_at is None:
            return self
        took = at - self.asked_at
        if max(took, pending_seconds) > self.patience_seconds:
            return replace(self, asked_at=None)
        if pending:
            return self
        learned = 0.7 * self.startup_seconds + 0.3 * max(1.0, took)
        return replace(self, asked_at=None, startup_seconds=learned)

    def as_of(self, at: float) -> Memory:
        """What was seen by a clock that was ahead, and has been put right, is yet to come: who waited for it
        would be deaf for as long. Of such a memory only what has no date is left.
        """
        dated = [query.flows.at for query in self.queries.values()]
        dated += [self.moved_at, *(then for then, _ in self.needed[-1:])]
        if all(then is None or then <= at + CLOCK_SECONDS for then in dated):
            return self
        queries = {name: query.without_dates() for name, query in self.queries.items()}
        return Memory(queries=queries, startup_seconds=self.startup_seconds)

    def with_new_driver(self) -> Memory:
        """The executors of the last one are gone: those of this one start with it."""
        return replace(self, asked_at=None)

    def absent(self, *, at: float) -> dict[str, QueryMemory]:
        """What is worth keeping of queries that may come back: code may start one anew by its old name."""
        recent = {
            name: query
            for name, query in self.queries.items()
            if query.flows.at is not None and at - query.flows.at < ABSENT_SECONDS
        }
        newest = sorted(recent, key=lambda name: -(recent[name].flows.at or 0.0))[:ABSENT_QUERIES]
        return {name: recent[name] for name in newest}

    def needing(self, executors: int, *, at: float, hold_seconds: float) -> Memory:
        recent = [point for point in self.needed if at - point[0] <= hold_seconds and point[1] > executors]
        unwatched = bool(self.needed) and at - self.needed[-1][0] > UNWATCHED_SECONDS
        since = at if self.watched_since is None or unwatched else self.watched_since
        return replace(self, needed=(*recent, (at, executors)), watched_since=since)

    def blind(self) -> Memory:
        """What was needed is not known any more, nor what came of the last move; a row's cost still is."""
        return replace(self, needed=(), watched_since=None, trial=None)

    def most_needed(self, *, at: float, seconds: float) -> int:
        """The most that was needed within that time."""
        return max((executors for then, executors in self.needed if at - then <= seconds), default=0)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "queries": {name: query.to_json() for name, query in self.queries.items()},
            "needed": [[round(at, 1), executors] for at, executors in self.needed],
            "watchedSince": self.watched_since,
            "movedAt": self.moved_at,
            "startupSeconds": round(self.startup_seconds, 1),
            "askedAt": self.asked_at,
            "trial": vars(self.trial) if self.trial else None,
            "block": vars(self.block) if self.block else None,
            "wentDownAt": self.went_down_at,
            "floor": vars(self.floor) if self.floor else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Memory:
        """A memory of another version is forgotten: a few minutes of learning, and no wrong decision."""
        if data.get("version") != VERSION:
            return cls()
        return cls(
            queries={name: QueryMemory.from_json(query) for name, query in data["queries"].items()},
            needed=tuple((at, executors) for at, executors in data["needed"]),
            watched_since=data["watchedSince"],
            moved_at=data["movedAt"],
            startup_seconds=data["startupSeconds"],
            asked_at=data["askedAt"],
            trial=Trial(**data["trial"]) if data["trial"] else None,
            block=Block(**data["block"]) if data["block"] else None,
            went_down_at=data["wentDownAt"],
            floor=Floor(**data["floor"]) if data["floor"] else None,
        )
