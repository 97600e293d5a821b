"""What a record tells of the simulator's parameters: fitted so that a few odd batches change little. Pure."""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.soak_record import Batch, Record

# As the simulator has it: so many batches of an executor are cold.
COLD_BATCHES = 2
FEWEST_BATCHES = 12
# A batch that is longer than expected by this many times the usual spread is a mishap of its own.
_HICCUP_SPREADS = 6.0
# What a normal distribution's median distance from its middle is multiplied by to give its sigma.
_SIGMA_OF_MEDIAN = 1.4826


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A batch, and who ran it."""

    batch: Batch
    executors: int
    # The part of them that had hardly worked before.
    cold: float
    # Since the batch before: how many came, how many went, of how many.
    came: int
    went: int
    before: int

    @property
    def settled(self) -> bool:
        return not (self.cold or self.came or self.went)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A value, and of how many events it was made; `value` is None where they were too few."""

    value: float | None
    events: int


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The cost of a batch: a fixed part, and a part per row that the cores share, less and less well."""

    fixed_seconds: float
    core_seconds_per_row: float
    contention: float
    # Of the settled batches, half are further off than this, as a part of what they took.
    median_error: float
    batches: int
    hiccup_probability: Measured
    hiccup_seconds: Measured
    commit_median_seconds: Measured
    commit_sigma: Measured
    startup_median_seconds: Measured
    startup_sigma: Measured
    warm_up_slowdown: Measured
    reload_seconds: Measured

    def work_seconds(self, rows: float, executors: int, busiest: float) -> float:
        return rows * busiest * self.core_seconds_per_row * (1 + self.contention * (executors - 1))


def fit(record: Record) -> Fit:
    ran = ran_by(record)
    settled = [one for one in ran if one.settled]
    if len(settled) < FEWEST_BATCHES:
        raise SystemExit(f"only {len(settled)} batches on settled executors were seen: nothing can be fitted")
    fixed, per_row, contention = _cost(record, settled)
    commits = [one.seconds for one in record.commits if one.seconds > 0]
    starts = startups(record)
    found = Fit(
        fixed_seconds=fixed,
        core_seconds_per_row=per_row,
        contention=contention,
        median_error=0.0,
        batches=len(settled),
        hiccup_probability=_NOTHING,
        hiccup_seconds=_NOTHING,
        commit_median_seconds=_median(commits, fewest=10),
        commit_sigma=_log_sigma(commits, fewest=10),
        startup_median_seconds=_median(starts, fewest=3),
        startup_sigma=_log_sigma(starts, fewest=5),
        warm_up_slowdown=_NOTHING,
        reload_seconds=_NOTHING,
    )
    return _with_oddities(record, found, ran)


_NOTHING = Measured(value=None, events=0)


# ---- who ran a batch


def ran_by(record: Record) -> list[Ran]:
    """Batches with rows, in order. Those during which executors came or went are left out."""
    found, worked, before = list[Ran](), dict[str, int](), frozenset[str]()
    for batch, there in zip(_with_rows(record), _executors_of(record), strict=True):
        if there is None or not there:
            continue
        cold = sum(worked.get(name, 0) < COLD_BATCHES for name in there) / len(there)
        found.append(
            Ran(
                batch=batch,
                executors=len(there),
                cold=cold,
                came=len(there - before),
                went=len(before - there),
                before=len(before),
            )
        )
        for name in there:
            worked[name] = worked.get(name, 0) + 1
        before = there
    return found


def _with_rows(record: Record) -> list[Batch]:
    return sorted(one for one in record.batches if one.rows > 0)


def _executors_of(record: Record) -> list[frozenset[str] | None]:
    """By name, for each batch with rows; None where they were not the same all the time."""
    if record.executors:
        return [_booked(record, one) for one in _with_rows(record)]
    # Only the number at its end is known: those of the batch before must have been as many.
    numbers = [one.executors for one in _with_rows(record)]
    return [
        frozenset(map(str, range(now))) if now == before else None
        for before, now in zip([0, *numbers], numbers, strict=False)
    ]


def _booked(record: Record, batch: Batch) -> frozenset[str] | None:
    began, ended = batch.began, batch.began + batch.seconds
    moments = [
        moment for one in record.executors for moment in (one.added, one.removed) if moment is not None
    ]
    if any(began < moment < ended for moment in moments):
        return None
    return frozenset(
        one.name
        for one in record.executors
        if one.added <= began and (one.removed is None or one.removed >= ended)
    )


# ---- what it cost


def busiest_core(shares: Sequence[float], slots: int) -> float:
    """The part of the work that the busiest core has: tasks in order, each where it can begin first."""
    free = [0.0] * slots
    for share in shares:
        heapq.heapreplace(free, free[0] + share)
    return max(free)


def _cost(record: Record, settled: Sequence[Ran]) -> tuple[float, float, float]:
    """Fixed seconds, core seconds per row, contention."""
    seconds = [one.batch.seconds for one in settled]
    shared = [_shared(record, one) for one in settled]
    more = [x * (one.executors - 1) for x, one in zip(shared, settled, strict=True)]
    if len({one.executors for one in settled}) > 1:
        fixed, per_row, rest = robust([[1.0] * len(seconds), shared, more], seconds)
        if per_row > 0 and rest > 0 and fixed > 0:
            return fixed, per_row, rest / per_row
    fixed, per_row = robust([[1.0] * len(seconds), shared], seconds)
    return max(fixed, 0.05), max(per_row, 1e-9), 0.0


def _shared(record: Record, one: Ran) -> float:
    return one.batch.rows * busiest_core(record.shares, one.executors * record.cores)


def robust(columns: Sequence[Sequence[float]], wanted: Sequence[float]) -> list[float]:
    """The factors of the columns whose sum comes near to what is wanted, in most rows.

    Least squares in rounds: rows that were far off count less in the next one, and in the end not at all.
    """
    weights = [1.0] * len(wanted)
    factors = [0.0] * len(columns)
    for turn in range(30):
        factors = _weighted(columns, wanted, weights)
        off = [
            want - sum(factor * value for factor, value in zip(factors, row, strict=True))
            for want, row in zip(wanted, zip(*columns, strict=True), strict=True)
        ]
        spread = max(_SIGMA_OF_MEDIAN * statistics.median(abs(one) for one in off), 1e-6)
        weights = [_gentle(one / spread) if turn < 10 else _strict(one / spread) for one in off]
    return factors


def _gentle(off: float) -> float:
    """Huber's: no row is left out while the middle is not yet found."""
    return min(1.0, 1.345 / abs(off)) if off else 1.0


def _strict(off: float) -> float:
    """Tukey's."""
    return (1 - (off / 4.685) ** 2) ** 2 if abs(off) < 4.685 else 0.0


def _weighted(
    columns: Sequence[Sequence[float]], wanted: Sequence[float], weights: Sequence[float]
) -> list[float]:
    def product(left: Sequence[float], right: Sequence[float]) -> float:
        return sum(w * a * b for w, a, b in zip(weights, left, right, strict=True))

    rows = [[*(product(left, right) for right in columns), product(left, wanted)] for left in columns]
    for index, pivot in enumerate(rows):
        scale = pivot[index] or 1e-12
        pivot[:] = [value / scale for value in pivot]
        for other in rows:
            if other is not pivot:
                factor = other[index]
                other[:] = [a - factor * b for a, b in zip(other, pivot, strict=True)]
    return [row[-1] for row in rows]


# ---- what is not as usual


def startups(record: Record) -> list[float]:
    """From the decision for more executors to each one's entry in Spark's books."""
    numbers = [1, *(move.target for move in record.moves)]
    ups = [move.at for move, before in zip(record.moves, numbers, strict=False) if move.target > before]
    added = [one.added for one in record.executors]
    wishes = [(at, max((up for up in ups if up <= at), default=None)) for at in added]
    return [at - wish for at, wish in wishes if wish is not None]


def _with_oddities(record: Record, found: Fit, ran: Sequence[Ran]) -> Fit:
    def usual(one: Ran) -> float:
        return found.work_seconds(
            one.batch.rows, one.executors, busiest_core(record.shares, one.executors * record.cores)
        )

    settled = [one for one in ran if one.settled]
    off = [one.batch.seconds - found.fixed_seconds - usual(one) for one in settled]
    spread = _SIGMA_OF_MEDIAN * statistics.median(map(abs, off))
    hiccups = [one for one in off if one > max(_HICCUP_SPREADS * spread, 0.5)]
    # The second batch after they came: the first one also loads state.
    second = [one for one in ran if not (one.came or one.went) and one.cold * usual(one) > 0.5]
    slowdowns = [
        1 + ((one.batch.seconds - found.fixed_seconds) / usual(one) - 1) / one.cold for one in second
    ]
    warm_up = _median([max(1.0, one) for one in slowdowns], fewest=3)
    cold = (warm_up.value or 1.0) - 1
    reloads = [
        max(0.0, one.batch.seconds - found.fixed_seconds - usual(one) * (1 + one.cold * cold))
        * one.executors
        * record.cores
        / _moved(record, one)
        for one in ran
        if one.before and (one.came or one.went)
    ]
    errors = [abs(miss) / one.batch.seconds for miss, one in zip(off, settled, strict=True)]
    return replace(
        found,
        median_error=statistics.median(errors),
        hiccup_probability=Measured(value=len(hiccups) / len(settled), events=len(hiccups)),
        hiccup_seconds=Measured(value=statistics.fmean(hiccups) if hiccups else None, events=len(hiccups)),
        warm_up_slowdown=warm_up,
        reload_seconds=_median(reloads, fewest=3),
    )


def _moved(record: Record, one: Ran) -> int:
    """State partitions that another executor has to load, as the simulator reckons."""
    part = one.went / one.before + 0.5 * one.came / one.executors
    return max(1, math.ceil(record.shuffle_partitions * part))


def _median(values: Sequence[float], *, fewest: int) -> Measured:
    enough = len(values) >= fewest
    return Measured(value=statistics.median(values) if enough else None, events=len(values))


def _log_sigma(values: Sequence[float], *, fewest: int) -> Measured:
    if len(values) < fewest:
        return Measured(value=None, events=len(values))
    logs = [math.log(max(one, 1e-3)) for one in values]
    middle = statistics.median(logs)
    spread = _SIGMA_OF_MEDIAN * statistics.median(abs(one - middle) for one in logs)
    return Measured(value=spread, events=len(values))
