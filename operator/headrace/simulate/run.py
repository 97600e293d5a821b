"""A scaler on a trace: simulated from look to look, batch by batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import quantiles

from headrace.core.autoscale import Batch
from headrace.core.lag import Offsets, Partition
from headrace.simulate.arrivals import Arrivals, Partitions, with_hot, with_more
from headrace.simulate.batches import BatchCost
from headrace.simulate.faults import Fault, Kind
from headrace.simulate.parameters import Parameters
from headrace.simulate.pool import Pool
from headrace.simulate.scaler import Scaler, View


@dataclass(frozen=True, kw_only=True)
class Point:
    """One look, for the plot."""

    at: float
    rows_per_second: float
    lag_seconds: float
    asked: int
    ready: int


@dataclass(frozen=True, kw_only=True)
class Result:
    scaler: str
    hours: float
    executor_hours: float
    over_objective_pct: float
    lag_p50_seconds: float
    lag_p99_seconds: float
    lag_max_seconds: float
    actions_per_hour: float
    data_loss_events: int
    # From the end of the last fault until the lag was within the objective; None without a fault.
    recovery_seconds: float | None
    points: tuple[Point, ...] = field(repr=False)


@dataclass
class Running:
    """The batch that runs."""

    started: float
    ends: float
    reads_to: float
    batch: Batch
    core_seconds: float


class Simulation:
    def __init__(
        self,
        arrivals: Arrivals,
        cost: BatchCost,
        scaler: Scaler,
        parameters: Parameters,
        *,
        seed: int,
        faults: Sequence[Fault] = (),
    ) -> None:
        self._p, self._arrivals, self._cost, self._scaler = parameters, arrivals, cost, scaler
        self._faults = tuple(faults)
        self._pool = Pool(parameters, seed)
        self._spread = Partitions(cost.shares)
        self._even = list(cost.shares)
        self._hot = False
        self._committed = self._earliest = 0.0
        self._running: Running | None = None
        self._next_start = 0.0
        self._last_heard = 0.0
        self._last_read_at = 0.0
        self._reload = 0.0
        self._number = 0
        self._fresh: list[Batch] = []
        self._recent: deque[Running] = deque(maxlen=64)
        self._lost = self._losing = False
        self._loss_events = 0
        self._down_until = 0.0
        self._stalls = {fault for fault in self._faults if fault.kind is Kind.STALL}
        self._losses = {fault for fault in self._faults if fault.kind is Kind.LOSS}
        self._growths = {fault for fault in self._faults if fault.kind is Kind.GROWTH}
        # Time over the objective, and where it has been counted to.
        self._over = 0.0
        self._over_to = 0.0
        self._points: list[Point] = []

    def run(self) -> Result:
        p = self._p
        now = p.look_seconds
        while now <= self._arrivals.seconds:
            self._advance(now)
            self._happen(now)
            self._look(now)
            now += p.look_seconds
        return self._result()

    # The job.

    def _advance(self, until: float) -> None:
        while True:
            if self._running is not None:
                if self._running.ends > until:
                    return
                self._finish(self._running)
            if self._next_start > until:
                return
            if not self._start(self._next_start):
                self._next_start += self._p.trigger_seconds if self._next_start >= self._down_until else 1.0

    def _start(self, now: float) -> bool:
        rows = self._arrivals.by(now) - self._committed
        if now < self._down_until or self._amount(Kind.OUTAGE, now) is not None:
            return False
        self._reload += self._pool.boundary(now)
        executors, cold = self._pool.work(now)
        if rows < 1:
            # Spark says that there is nothing to do.
            self._last_heard = now
        if rows < 1 or executors == 0:
            return False
        sink = self._amount(Kind.SINK, now) or 1.0
        self._cost.shares = self._spread.shares
        passed = now - self._last_read_at
        took = self._cost.took(rows, executors=executors, cold=cold, sink=sink, passed=passed)
        seconds = took.seconds + self._reload + self._stalled(now)
        batch = Batch(number=self._number, seconds=seconds, rows=round(rows), executors=executors)
        self._running = Running(now, now + seconds, self._committed + rows, batch, took.core_seconds)
        self._number, self._reload, self._last_read_at = self._number + 1, 0.0, now
        return True

    def _stalled(self, now: float) -> float:
        for fault in [one for one in self._stalls if one.holds(now)]:
            self._stalls.discard(fault)
            return fault.at + fault.seconds - now
        return 0.0

    def _finish(self, running: Running) -> None:
        self._count_over(running.ends)
        self._committed = running.reads_to
        self._recent.append(running)
        self._fresh.append(running.batch)
        self._last_heard = running.ends
        self._next_start = max(running.ends, running.started + self._p.trigger_seconds)
        self._running = None

    # The world.

    def _amount(self, kind: Kind, now: float) -> float | None:
        return next((fault.amount for fault in self._faults if fault.kind is kind and fault.holds(now)), None)

    def _happen(self, now: float) -> None:
        hot = self._amount(Kind.HOT, now)
        if (hot is not None) != self._hot:
            self._hot = hot is not None
            shares = self._even if hot is None else with_hot(self._even, hot)
            self._spread.change(shares, self._arrivals.by(now))
        for fault in [one for one in self._growths if one.holds(now)]:
            self._growths.discard(fault)
            self._even = with_more(self._even, int(fault.amount))
            self._spread.change(self._even, self._arrivals.by(now))
        for fault in [one for one in self._losses if one.holds(now)]:
            self._losses.discard(fault)
            self._pool.lose(int(fault.amount), now, slower=self._slower(now))
            if self._running is not None:
                # Its tasks are done again by those that are left.
                self._running.ends = now + self._running.batch.seconds * 1.5
        oldest_kept = self._arrivals.by(max(0.0, now - self._p.retention_seconds))
        losing = oldest_kept > self._committed
        self._loss_events += losing and not self._losing
        self._losing = losing
        self._earliest = oldest_kept

    def _slower(self, now: float) -> float:
        return self._amount(Kind.SLOW_START, now) or 1.0

    def _look(self, now: float) -> None:
        self._count_over(now)
        age = self._age(now)
        target = self._scaler.look(self._view(now))
        target = min(max(target, self._p.min_executors), self._p.max_executors)
        restart = self._scaler.restart_seconds
        moves = target != self._pool.asked
        admitted = self._amount(Kind.DENIED, now)
        self._pool.ask(
            target, now, admitted=float("inf") if admitted is None else admitted, slower=self._slower(now)
        )
        if moves and restart is not None:
            # What the batch had done is lost with it.
            self._running, self._next_start = None, now + restart
            self._down_until = now + restart
            self._pool.all_ready(now)
        rate = self._arrivals.rates[min(int(now), self._arrivals.seconds - 1)]
        self._points.append(
            Point(at=now, rows_per_second=rate, lag_seconds=age, asked=target, ready=self._pool.ready(now))
        )

    def _view(self, now: float) -> View:
        blind = self._amount(Kind.BLIND, now) is not None
        fresh, running = tuple(self._fresh), self._running
        if not blind:
            self._fresh = []
        arrived, pool = self._arrivals.by(now), self._pool
        cpu, busy = self._worked(now)
        return View(
            at=now,
            asked=pool.asked,
            ready=pool.ready(now),
            pending_seconds=now - pool.pending_since if pool.pending_since is not None else 0.0,
            batches=() if blind else fresh,
            lag_rows=None if blind else arrived - self._committed,
            arrived_rows=None if blind else arrived,
            cpu=cpu,
            busy=busy,
            quiet_seconds=now - self._last_heard,
            idle=running is None and now >= self._down_until and self._amount(Kind.OUTAGE, now) is None,
            running_seconds=None if running is None else now - running.started,
            running_rows=None if running is None else running.batch.rows,
            offsets=lambda: self._offsets(now),
        )

    def _offsets(self, now: float) -> Offsets:
        ends = self._spread.offsets(self._arrivals.by(now))
        read = self._spread.offsets(self._committed)
        kept = self._spread.offsets(min(self._earliest, self._committed))
        unread = self._arrivals.moment_of(self._committed)
        return Offsets(
            {
                name: Partition(
                    end=int(end),
                    # Nobody has read from a partition that is newer than the last batch.
                    committed=int(read[index]) if index < len(read) else None,
                    earliest=int(kept[index]) if index < len(kept) else 0,
                    unread_since=unread,
                )
                for index, (name, end) in enumerate(zip(_names(len(ends)), ends, strict=True))
            }
        )

    def _worked(self, now: float) -> tuple[float, float]:
        """Of the last minute: the part of the cores, and the part of the time."""
        since, cores, busy = now - 60.0, 0.0, 0.0
        for one in (*self._recent, *([self._running] if self._running is not None else ())):
            overlap = min(one.ends, now) - max(one.started, since)
            if overlap > 0:
                busy += overlap
                cores += one.core_seconds * overlap / (one.ends - one.started)
        present = max(self._pool.ready(now), 1) * self._p.cores
        return min(cores / (60.0 * present), 1.0), min(busy / 60.0, 1.0)

    # The account.

    def _age(self, now: float) -> float:
        """Of the oldest row that was not read."""
        return max(0.0, now - self._arrivals.moment_of(self._committed))

    def _count_over(self, now: float) -> None:
        late_from = self._arrivals.moment_of(self._committed) + self._p.objective_seconds
        self._over += max(0.0, now - max(self._over_to, late_from))
        self._over_to = max(self._over_to, now)

    def _result(self) -> Result:
        lags = [point.lag_seconds for point in self._points]
        cuts = quantiles(lags, n=100, method="inclusive")
        hours = self._arrivals.seconds / 3600
        return Result(
            scaler=self._scaler.name,
            hours=hours,
            executor_hours=self._pool.pod_seconds / 3600,
            over_objective_pct=100 * self._over / self._arrivals.seconds,
            lag_p50_seconds=cuts[49],
            lag_p99_seconds=cuts[98],
            lag_max_seconds=max(lags),
            actions_per_hour=self._pool.actions / hours,
            data_loss_events=self._loss_events,
            recovery_seconds=self._recovery(),
            points=tuple(self._points),
        )

    def _recovery(self) -> float | None:
        if not self._faults:
            return None
        end = max(fault.at + fault.seconds for fault in self._faults)
        late = [
            point.at
            for point in self._points
            if point.at >= end and point.lag_seconds > self._p.objective_seconds and point.at < end + 7200
        ]
        return max(late) - end if late else 0.0


_NAMES: dict[int, tuple[str, ...]] = {}


def _names(count: int) -> tuple[str, ...]:
    return _NAMES.setdefault(count, tuple(f"rows/{index}" for index in range(count)))
