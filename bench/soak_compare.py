"""What a soak on the cluster shows of the simulator: fitted parameters, its prediction beside what happened.

Pure: a record in, numbers out. bench/soak.py makes the record.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

from headrace.simulate.parameters import DEFAULT, Parameters
from headrace.simulate.run import Point, Result
from headrace.simulate.scenario import Scenario
from headrace.simulate.traces import Trace

SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look at the real job. None is unknown."""

    at: float
    rows_per_second: float | None
    lag_seconds: float | None
    asked: int
    ready: int


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
    # What the job's code takes for a row, by design.
    seconds_per_row: float
    samples: tuple[Sample, ...]
    # Number, seconds, rows, executors.
    batches: tuple[tuple[int, float, int, int], ...]
    exact: bool
    same_driver: bool
    decisions: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        return cls(
            **{
                **data,
                "rates": tuple(data["rates"]),
                "samples": tuple(Sample(**one) for one in data["samples"]),
                "batches": tuple((one[0], one[1], one[2], one[3]) for one in data["batches"]),
                "decisions": tuple(data["decisions"]),
            }
        )


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The cost of a batch: a fixed part, and a part per row that the cores share."""

    fixed_seconds: float
    core_seconds_per_row: float
    # Of the batches, half are further off than this, as a part of what they took.
    median_error: float
    startup_median_seconds: float | None
    batches: int


def fit(record: Record) -> Fit:
    """Least squares over all batches with rows."""
    seen = [
        (rows / (executors * record.cores), seconds)
        for _, seconds, rows, executors in record.batches
        if rows > 0 and executors > 0
    ]
    if len(seen) < 3:
        raise SystemExit(f"only {len(seen)} batches were seen: nothing can be fitted")
    mean_x = statistics.fmean(x for x, _ in seen)
    mean_y = statistics.fmean(y for _, y in seen)
    spread = sum((x - mean_x) ** 2 for x, _ in seen)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in seen) / spread if spread else 0.0
    fixed = max(0.05, mean_y - slope * mean_x)
    errors = [abs(fixed + slope * x - y) / max(y, 0.1) for x, y in seen]
    starts = startups(record.samples)
    return Fit(
        fixed_seconds=fixed,
        core_seconds_per_row=max(1e-9, slope),
        median_error=statistics.median(errors),
        startup_median_seconds=statistics.median(starts) if starts else None,
        batches=len(seen),
    )


def startups(samples: Sequence[Sample]) -> list[float]:
    """From a higher number that is asked for to as many that are ready."""
    found: list[float] = []
    for before, after in pairwise(samples):
        if after.asked <= before.asked:
            continue
        there = (one.at for one in samples if one.at >= after.at and one.ready >= after.asked)
        if (at := next(there, None)) is not None:
            found.append(at - before.at)
    return found


def scenario(record: Record, fitted: Fit | None) -> Scenario:
    """The soak in the simulator: with its parameters as they stand, or with what was fitted."""
    moments = tuple(index * record.step_seconds for index in range(len(record.rates)))
    parameters = replace(
        DEFAULT,
        partitions=record.partitions,
        shuffle_partitions=record.shuffle_partitions,
        cores=record.cores,
        trigger_seconds=record.trigger_seconds,
        min_executors=1,
        max_executors=record.max_executors,
        initial_executors=1,
        objective_seconds=record.objective_seconds,
        # The topic is made for this: nothing is deleted meanwhile.
        retention_seconds=7 * 24 * 3600.0,
        # Rows are cheap to make and dear to read: the sink is not the limit.
        sink_of_peak=1e6,
    )
    cost = record.seconds_per_row
    if fitted is not None:
        parameters, cost = _with_fit(parameters, fitted), fitted.core_seconds_per_row
    trace = Trace("soak", moments, record.rates)
    return Scenario(trace=trace, parameters=parameters, row_cost=cost)


def _with_fit(parameters: Parameters, fitted: Fit) -> Parameters:
    tasks = (parameters.partitions + parameters.shuffle_partitions) * parameters.task_launch_seconds
    rest = max(0.0, fitted.fixed_seconds - tasks - parameters.commit_median_seconds)
    starts = fitted.startup_median_seconds or parameters.startup_median_seconds
    return replace(
        parameters,
        planning_seconds=rest,
        startup_median_seconds=starts,
        # Two nodes that are there: none is ever made.
        new_node_probability=0.0,
    )


def real_result(record: Record) -> Result:
    """What happened, in the form of what was simulated."""
    lags = sorted(one.lag_seconds for one in record.samples if one.lag_seconds is not None)
    hours = (record.samples[-1].at - record.samples[0].at) / 3600
    asked = [one.asked for one in record.samples]
    return Result(
        scaler="cluster",
        hours=hours,
        executor_hours=statistics.fmean(asked) * hours,
        over_objective_pct=100 * statistics.fmean(lag > record.objective_seconds for lag in lags),
        lag_p50_seconds=_part(lags, 0.5),
        lag_p99_seconds=_part(lags, 0.99),
        lag_max_seconds=lags[-1],
        actions_per_hour=sum(a != b for a, b in pairwise(asked)) / hours,
        data_loss_events=0,
        recovery_seconds=None,
        points=tuple(
            Point(
                at=one.at,
                rows_per_second=one.rows_per_second or 0.0,
                lag_seconds=one.lag_seconds or 0.0,
                asked=one.asked,
                ready=one.ready,
            )
            for one in record.samples
        ),
    )


def predicted(record: Record, fitted: Fit | None) -> list[Result]:
    world = scenario(record, fitted)
    return [world.play(world.headrace(), seed) for seed in SEEDS]


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Of a prediction, over its seeds."""

    executor_hours_pct: float
    # How far the number of executors is off, on average over time.
    executors: float
    lag_p50_seconds: float
    lag_max_seconds: float


def errors(real: Result, guesses: Sequence[Result]) -> Errors:
    return Errors(
        executor_hours_pct=100
        * statistics.fmean(abs(one.executor_hours - real.executor_hours) for one in guesses)
        / real.executor_hours,
        executors=statistics.fmean(_apart(real, one) for one in guesses),
        lag_p50_seconds=statistics.fmean(abs(one.lag_p50_seconds - real.lag_p50_seconds) for one in guesses),
        lag_max_seconds=statistics.fmean(abs(one.lag_max_seconds - real.lag_max_seconds) for one in guesses),
    )


def _apart(real: Result, guess: Result) -> float:
    """By the clock: at each real look the guess that was made last."""
    apart: list[int] = []
    for point in real.points:
        before = [one.asked for one in guess.points if one.at <= point.at]
        apart.append(abs(point.asked - (before[-1] if before else 1)))
    return statistics.fmean(apart)


def _part(values: Sequence[float], part: float) -> float:
    return values[min(len(values) - 1, int(part * len(values)))]
