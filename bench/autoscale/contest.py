"""All scalers on one scenario, over several seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from bench.autoscale.flink import Flink
from bench.autoscale.hpa import CpuHpa, Keda
from bench.autoscale.oracle import best_oracle

from headrace.simulate.run import Result
from headrace.simulate.scaler import Fixed, Scaler
from headrace.simulate.scenario import Scenario

OURS, ORACLE, STATIC, LEAST = "headrace", "oracle", "static-peak", "static-least"
# Who knows what nobody does before the end: measures, not peers.
HINDSIGHT = (ORACLE, LEAST)
# Who is late for less than this keeps the objective.
KEEPS_PCT = 0.5
# Two-sided 95 % of Student's distribution, by degrees of freedom.
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}
TUNED_LAG_SECONDS = 15.0
# Kubernetes' own default; and one that suits micro-batches, whose cores never work all the time.
CPU_TARGET, TUNED_CPU_TARGET = 0.8, 0.5


@dataclass(frozen=True)
class Spread:
    mean: float
    half_width: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        if len(values) < 2:
            return cls(values[0], 0.0)
        t = _STUDENT.get(len(values) - 1, 2.0)
        return cls(statistics.fmean(values), t * statistics.stdev(values) / math.sqrt(len(values)))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One scaler on one scenario."""

    scaler: str
    results: list[Result]
    cost_over_oracle: Spread
    executor_hours: Spread
    over_objective_pct: Spread
    lag_p99_seconds: Spread
    actions_per_hour: Spread
    data_loss_events: int
    recovery_seconds: float | None


def scalers(scenario: Scenario) -> dict[str, Callable[[], Scaler]]:
    """Who takes part. What is tuned is tuned with what only the simulator knows."""
    p, sustained = scenario.parameters, scenario.sustained
    middle = p.max_executors // 2
    threshold = TUNED_LAG_SECONDS * sustained[middle] / middle
    peak = peak_number(scenario)
    return {
        OURS: scenario.headrace,
        "keda": lambda: Keda("keda", p, lag_threshold=10),
        "keda-tuned": lambda: Keda("keda-tuned", p, lag_threshold=threshold),
        "hpa-cpu": lambda: CpuHpa("hpa-cpu", p, target=CPU_TARGET),
        "hpa-cpu-tuned": lambda: CpuHpa("hpa-cpu-tuned", p, target=TUNED_CPU_TARGET),
        "flink": lambda: Flink("flink", p, in_place=False),
        "flink-live": lambda: Flink("flink-live", p, in_place=True),
        STATIC: lambda: Fixed(peak, STATIC),
    }


def peak_number(scenario: Scenario) -> int:
    """Who is sized for the peak has a little more than it needs."""
    enough = (number for number, can in enumerate(scenario.sustained) if can >= 1.05 * scenario.peak)
    return next(enough, scenario.parameters.max_executors)


def contest(scenario: Scenario, seeds: list[int], *, only: tuple[str, ...] = ()) -> dict[str, Entry]:
    arrivals = {seed: scenario.arrivals(seed) for seed in seeds}
    results = {ORACLE: best_oracle(scenario, seeds, arrivals)}
    for name, make in scalers(scenario).items():
        if not only or name in only:
            results[name] = [scenario.play(make(), seed, arrivals=arrivals[seed]) for seed in seeds]
    if not only:
        p = scenario.parameters
        results[LEAST] = least_fixed(
            lambda number: [
                scenario.play(Fixed(number, LEAST), seed, arrivals=arrivals[seed]) for seed in seeds
            ],
            start=peak_number(scenario),
            numbers=range(p.min_executors, p.max_executors + 1),
        )
    return {name: entry(name, found, results[ORACLE]) for name, found in results.items()}


def least_fixed(play: Callable[[int], list[Result]], *, start: int, numbers: range) -> list[Result]:
    """Of the smallest fixed number that keeps the objective, as far as a peer has to; or of the highest."""

    def keeps(results: list[Result]) -> bool:
        return statistics.fmean(one.over_objective_pct for one in results) <= KEEPS_PCT

    number, found = start, play(start)
    if not keeps(found):
        while number + 1 in numbers and not keeps(found):
            number += 1
            found = play(number)
        return found
    while number - 1 in numbers and keeps(fewer := play(number - 1)):
        number, found = number - 1, fewer
    return found


def entry(name: str, results: list[Result], oracle: list[Result]) -> Entry:
    ratios = [ours.executor_hours / best.executor_hours for ours, best in zip(results, oracle, strict=True)]
    recoveries = [one.recovery_seconds for one in results if one.recovery_seconds is not None]
    return Entry(
        scaler=name,
        results=results,
        cost_over_oracle=Spread.of(ratios),
        executor_hours=Spread.of([one.executor_hours for one in results]),
        over_objective_pct=Spread.of([one.over_objective_pct for one in results]),
        lag_p99_seconds=Spread.of([one.lag_p99_seconds for one in results]),
        actions_per_hour=Spread.of([one.actions_per_hour for one in results]),
        data_loss_events=sum(one.data_loss_events for one in results),
        recovery_seconds=max(recoveries) if recoveries else None,
    )


def dominating(entries: dict[str, Entry]) -> list[str]:
    """Peers that are cheaper and no later, or earlier and no dearer."""
    ours = entries[OURS]
    mine = (ours.cost_over_oracle.mean, ours.over_objective_pct.mean)
    found = []
    for name, peer in entries.items():
        theirs = (peer.cost_over_oracle.mean, peer.over_objective_pct.mean)
        if (
            name not in (OURS, *HINDSIGHT)
            and theirs != mine
            and theirs[0] <= mine[0]
            and theirs[1] <= mine[1]
        ):
            found.append(name)
    return found


def calmer(entries: dict[str, Entry], *, at_any_cost: bool = False) -> list[str]:
    """Peers that keep the objective, act less often, and still follow the load.

    One that costs as much as a fixed number that keeps the objective does not: that number never acts, and
    nobody can act less often than that.
    """
    ours, least = entries[OURS], entries[LEAST]
    return [
        name
        for name, one in entries.items()
        if name not in (OURS, STATIC, *HINDSIGHT)
        and one.over_objective_pct.mean <= KEEPS_PCT
        and one.actions_per_hour.mean < ours.actions_per_hour.mean
        and (at_any_cost or one.executor_hours.mean < least.executor_hours.mean)
    ]
