"""The simulator's prediction of a soak beside what happened. Pure: a record in, numbers out."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from bench.soak_fit import Fit, Measured, ran_by
from bench.soak_record import Record, Sample

from headrace.simulate.parameters import DEFAULT, Parameters
from headrace.simulate.run import Point, Result
from headrace.simulate.scenario import Scenario
from headrace.simulate.traces import Trace

SEEDS = tuple(range(1, 10))
# With fewer batches on a number of executors, how long they took says little of that number.
FEWEST_OF_A_NUMBER = 5


def scenario(record: Record, fitted: Fit | None) -> Scenario:
    """The soak in the simulator: with its parameters as they stand, or with what was fitted.

    What is known of this job and this cluster beforehand is the same in both.
    """
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
        # Rows are dear to read, all the same, and cheap from there on; what is counted by key stays small.
        read_part=record.read_part,
        task_sigma=0.0,
        state_cost=0.0,
        sink_of_peak=1e6,
        # The producer keeps to its plan.
        second_sigma=0.0,
        minute_sigma=0.0,
        # Two nodes that are there: none is ever made.
        new_node_probability=0.0,
    )
    cost = record.seconds_per_row
    if fitted is not None:
        parameters, cost = _with_fit(parameters, fitted), fitted.core_seconds_per_row
    return Scenario(trace=_trace(record), parameters=parameters, row_cost=cost, shares=record.shares)


def _trace(record: Record) -> Trace:
    """Each rate in the middle of its step; the first and the last one hold to the ends of the day."""
    middles = [(index + 0.5) * record.step_seconds for index in range(len(record.rates))]
    moments = (0.0, *middles, record.seconds)
    return Trace("soak", moments, (record.rates[0], *record.rates, record.rates[-1]))


def _with_fit(parameters: Parameters, fitted: Fit) -> Parameters:
    return replace(
        parameters,
        **{one.name: one.found for one in platform_constants(parameters, fitted) if one.found is not None},
        # Contention as it was measured holds all that more executors cost.
        contention=fitted.contention,
        coherence=0.0,
    )


@dataclass(frozen=True, kw_only=True)
class Constant:
    """One that stands in headrace/simulate/parameters.py, and what the soak says of it."""

    name: str
    stands: float
    # None: it was not seen often enough.
    found: float | None
    of: str


def platform_constants(parameters: Parameters, fitted: Fit) -> list[Constant]:
    """Those that say something of Spark and of the cluster, and not of this one job."""
    commit, sigma = fitted.commit_median_seconds.value, fitted.commit_sigma.value
    usual_commit = commit if commit is not None else parameters.commit_median_seconds
    tasks = (parameters.partitions + parameters.shuffle_partitions) * parameters.task_launch_seconds
    planning = Measured(value=max(0.0, fitted.fixed_seconds - tasks - usual_commit), events=fitted.batches)
    found = {
        "planning_seconds": (planning, "settled batches, less the commit and the launch of tasks"),
        "commit_median_seconds": (fitted.commit_median_seconds, "commits"),
        "commit_sigma": (Measured(value=sigma, events=fitted.commit_sigma.events), "commits"),
        "hiccup_probability": (_if_often(fitted.hiccup_probability), f"hiccups in {fitted.batches} batches"),
        "hiccup_seconds": (_if_often(fitted.hiccup_seconds), "hiccups"),
        "startup_median_seconds": (fitted.startup_median_seconds, "starts"),
        "startup_sigma": (fitted.startup_sigma, "starts"),
        "warm_up_slowdown": (fitted.warm_up_slowdown, "second batches of new executors"),
        "reload_seconds": (fitted.reload_seconds, "first batches after executors came or went"),
    }
    return [
        Constant(name=name, stands=getattr(parameters, name), found=one.value, of=f"{one.events} {what}")
        for name, (one, what) in found.items()
    ]


def _if_often(seen: Measured) -> Measured:
    """A rare thing that was seen once says little of how rare it is."""
    return seen if seen.events >= 3 else replace(seen, value=None)


def table_of_constants(found: Sequence[Constant]) -> str:
    lines = ["operator/headrace/simulate/parameters.py:"]
    for one in found:
        to = f"{one.stands:g} -> {one.found:.3g}" if one.found is not None else f"{one.stands:g} stays"
        lines.append(f"    {one.name:24} {to:20} ({one.of})")
    return "\n".join(lines)


# ---- what happened


def real_result(record: Record) -> Result:
    """What happened, in the form of what was simulated."""
    zero, seconds = record.zero(), record.seconds
    samples = [one for one in record.samples if 0 <= one.at - zero <= seconds]
    if len(samples) < 2:
        raise SystemExit(f"only {len(samples)} looks at the job were recorded: nothing can be compared")
    lags = _lags(samples)
    asked, hours = [one.asked for one in samples], seconds / 3600
    return Result(
        scaler="cluster",
        hours=hours,
        executor_hours=_pod_seconds(samples, zero, seconds) / 3600,
        over_objective_pct=_over(lags, record.objective_seconds),
        lag_p50_seconds=part(lags, 0.5),
        lag_p99_seconds=part(lags, 0.99),
        lag_max_seconds=lags[-1],
        actions_per_hour=sum(a != b for a, b in pairwise(asked)) / hours,
        data_loss_events=0,
        recovery_seconds=None,
        points=tuple(
            _point(record, one, zero, one.lag_seconds) for one in samples if one.lag_seconds is not None
        ),
    )


def _lags(samples: Sequence[Sample]) -> list[float]:
    """In order of size. A look that finds no newer one than the look before it does not count twice."""
    found = {
        one.lag_at: one.lag_seconds
        for one in samples
        if one.lag_at is not None and one.lag_seconds is not None
    }
    if not found:
        raise SystemExit("the lag was never known: nothing can be compared")
    return sorted(found.values())


def _pod_seconds(samples: Sequence[Sample], zero: float, seconds: float) -> float:
    moments = [zero, *(one.at for one in samples[1:]), zero + seconds]
    return sum(one.pods * (after - at) for one, (at, after) in zip(samples, pairwise(moments), strict=True))


def _point(record: Record, one: Sample, zero: float, lag_seconds: float) -> Point:
    at = one.at - zero
    step = min(int(at / record.step_seconds), len(record.rates) - 1)
    return Point(
        at=at,
        rows_per_second=record.rates[step],
        lag_seconds=lag_seconds,
        asked=one.asked,
        ready=one.ready or 0,
    )


# ---- how far off


def predicted(record: Record, fitted: Fit | None) -> list[Result]:
    world = scenario(record, fitted)
    return [world.play(world.headrace(), seed) for seed in SEEDS]


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Of a prediction: what most of its seeds say against what happened."""

    # Of the number of executors that is worst: how much longer or shorter its batches were, in the middle.
    batch_pct: float
    executor_hours_pct: float
    # How far the number of executors is off, on average over time.
    executors: float
    lag_p50_seconds: float
    lag_p95_seconds: float
    lag_max_seconds: float
    over_objective_points: float


def errors(record: Record, world: Scenario, guesses: Sequence[Result]) -> Errors:
    real, objective = real_result(record), record.objective_seconds
    lags = [sorted(point.lag_seconds for point in one.points) for one in guesses]
    real_95 = part(sorted(point.lag_seconds for point in real.points), 0.95)

    def off(guessed: Iterable[float], happened: float) -> float:
        return abs(statistics.median(guessed) - happened)

    hours = off((one.executor_hours for one in guesses), real.executor_hours)
    return Errors(
        batch_pct=batch_error_pct(record, world),
        executor_hours_pct=100 * hours / real.executor_hours,
        executors=statistics.median(_apart(real, one) for one in guesses),
        lag_p50_seconds=off((one.lag_p50_seconds for one in guesses), real.lag_p50_seconds),
        lag_p95_seconds=off((part(each, 0.95) for each in lags), real_95),
        lag_max_seconds=off((one.lag_max_seconds for one in guesses), real.lag_max_seconds),
        over_objective_points=off((_over(each, objective) for each in lags), real.over_objective_pct),
    )


def batch_error_pct(record: Record, world: Scenario) -> float:
    """Batch by batch, as many rows on as many executors: sees a wrong cost that a policy makes up for."""
    cost, off = world.cost(seed=0), dict[int, list[float]]()
    for one in ran_by(record):
        if one.settled:
            guess = cost.usual_seconds(one.batch.rows, one.executors, looks=1)
            off.setdefault(one.executors, []).append(guess / one.batch.seconds - 1)
    return 100 * max(
        (abs(statistics.median(each)) for each in off.values() if len(each) >= FEWEST_OF_A_NUMBER),
        default=0.0,
    )


def _apart(real: Result, guess: Result) -> float:
    """By the clock: at each real look the guess that was made last."""
    apart: list[int] = []
    for point in real.points:
        before = [one.asked for one in guess.points if one.at <= point.at]
        apart.append(abs(point.asked - (before[-1] if before else 1)))
    return statistics.fmean(apart)


def _over(lags: Sequence[float], objective: float) -> float:
    return 100 * statistics.fmean(lag > objective for lag in lags)


def part(values: Sequence[float], part: float) -> float:
    """Of values in order, the one below which that part lies."""
    return values[min(len(values) - 1, int(part * len(values)))]
