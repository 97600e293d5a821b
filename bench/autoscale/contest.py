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

OURS, ORACLE, STATIC = "headrace", "oracle", "static-peak"
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
    peak = next(
        (number for number, can in enumerate(sustained) if can >= 1.05 * scenario.peak), p.max_executors
    )
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


def contest(scenario: Scenario, seeds: list[int], *, only: tuple[str, ...] = ()) -> dict[str, Entry]:
    arrivals = {seed: scenario.arrivals(seed) for seed in seeds}
    results = {ORACLE: best_oracle(scenario, seeds, arrivals)}
    for name, make in scalers(scenario).items():
        if not only or name in only:
            results[name] = [scenario.play(make(), seed, arrivals=arrivals[seed]) for seed in seeds]
    return {name: entry(name, found, results[ORACLE]) for name, found in results.items()}


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
        if name not in (OURS, ORACLE) and theirs != mine and theirs[0] <= mine[0] and theirs[1] <= mine[1]:
            found.append(name)
    return found
