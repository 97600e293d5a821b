"""What a batch takes in the simulated world: tasks on cores, contention, state, a sink.

Not the policy's model.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.simulate.parameters import Parameters

_TABLE = 1024


@dataclass(frozen=True, kw_only=True)
class Took:
    seconds: float
    core_seconds: float


class BatchCost:
    """One job's batches. The same seed has the same luck."""

    def __init__(self, parameters: Parameters, core_seconds_per_row: float, peak: float, seed: int) -> None:
        self._p = parameters
        self._per_row = core_seconds_per_row
        self._sink_rows_per_second = parameters.sink_of_peak * peak
        self._peak = peak
        self._chance = random.Random(f"batches-{seed}")  # noqa: S311 - a simulation
        sigma = parameters.task_sigma
        self._luck = [math.exp(self._chance.gauss(-sigma * sigma / 2, sigma)) for _ in range(_TABLE)]
        self.shares = _shares(parameters.partitions, parameters.partition_sigma, self._chance)
        self._shuffle = _shares(parameters.shuffle_partitions, parameters.shuffle_sigma, self._chance)
        self._state = 0.5

    def took(
        self, rows: float, *, executors: int, cold: float = 0.0, sink: float = 1.0, passed: float = 0.0
    ) -> Took:
        """With that part of the executors cold, and the sink that many times slower."""
        p, chance = self._p, self._chance
        if passed > 0:
            load = min(rows / passed / self._peak, 1.5)
            self._state += (load - self._state) * (1 - math.exp(-passed / p.state_seconds))
        work = rows * self._per_row * self._overhead(executors) * (1 + cold * (p.warm_up_slowdown - 1))
        slots = executors * p.cores
        read, read_work = self._stage(work * p.read_part, self.shares, slots)
        state = 1 + p.state_cost * self._state
        shuffle, shuffle_work = self._stage(work * (1 - p.read_part) * state, self._shuffle, slots)
        commit = p.commit_median_seconds * math.exp(chance.gauss(0, p.commit_sigma))
        hiccup = p.hiccup_seconds * chance.expovariate(1) if chance.random() < p.hiccup_probability else 0.0
        shared = read + shuffle + rows * sink / self._sink_rows_per_second
        return Took(seconds=self._fixed() + commit + hiccup + shared, core_seconds=read_work + shuffle_work)

    def _fixed(self) -> float:
        tasks = self._p.partitions + self._p.shuffle_partitions
        return self._p.planning_seconds + tasks * self._p.task_launch_seconds

    def _overhead(self, executors: int) -> float:
        more = executors - 1
        return 1 + self._p.contention * more + self._p.coherence * executors * more

    def _stage(self, work: float, shares: Sequence[float], slots: int) -> tuple[float, float]:
        """Tasks in order, each on the core that is free first."""
        at, luck = self._chance.randrange(_TABLE), self._luck
        free, total = [0.0] * slots, 0.0
        for index, share in enumerate(shares):
            task = work * share * luck[(at + index) % _TABLE]
            total += task
            heapq.heapreplace(free, free[0] + task)
        return max(free), total

    def usual_seconds(self, rows: float, executors: int, *, looks: int = 8) -> float:
        """The mean of a few, without hiccups: what somebody who knows this world would expect."""
        calm = replace(self._p, hiccup_probability=0.0)
        other = BatchCost(calm, self._per_row, self._peak, seed=0)
        other.shares = self.shares
        other._state = 1.0
        return sum(other.took(rows, executors=executors).seconds for _ in range(looks)) / looks

    def sustained(self, executors: int, *, batch_seconds: float) -> float:
        """The most rows per second with batches of at most that length."""
        low, high = 0.0, 100 * self._peak
        for _ in range(24):
            middle = (low + high) / 2
            fits = self.usual_seconds(middle * batch_seconds, executors) <= batch_seconds
            low, high = (middle, high) if fits else (low, middle)
        return low


def _shares(count: int, sigma: float, chance: random.Random) -> list[float]:
    sizes = [math.exp(chance.gauss(0, sigma)) for _ in range(count)]
    total = sum(sizes)
    return [size / total for size in sizes]


def fitted_row_cost(parameters: Parameters, peak: float, *, batch_seconds: float) -> float:
    """Core seconds per row with which `peak` takes the wanted part of the largest number of executors."""
    low, high = 1e-12, 1e3 / peak
    for _ in range(40):
        middle = math.sqrt(low * high)
        cost = BatchCost(parameters, middle, peak, seed=0)
        rows = peak / parameters.peak_of_max * batch_seconds
        fits = cost.usual_seconds(rows, parameters.max_executors, looks=4) <= batch_seconds
        low, high = (middle, high) if fits else (low, middle)
    return low
