"""The oracle: knows the trace's future and what any number of executors can really do.

Executors start no faster for it. Several of its kind are tried on each trace, with more or less reserve, and the
cheapest of those that are late the least is the one that everybody is compared with.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

from headrace.simulate.arrivals import Arrivals
from headrace.simulate.run import Result
from headrace.simulate.scaler import View
from headrace.simulate.scenario import Scenario

SMOOTH_SECONDS = 20
CATCH_UP_SECONDS = 120.0
RESERVES = (1.0, 1.04, 1.08, 1.12, 1.18, 1.25, 1.4)
# How far ahead it asks, and how long a dip must last to be worth going down for.
LEADS = (60, 120)
DIPS = (0, 120, 300)
# As good as nothing: one late batch in a day.
LATE_PCT = 0.02


@dataclass(frozen=True)
class Foresight:
    reserve: float
    lead_seconds: int
    dip_seconds: int


class Oracle:
    name = "oracle"
    restart_seconds = None

    def __init__(self, scenario: Scenario, foresight: Foresight) -> None:
        self._sustained = scenario.sustained
        self._reserve = foresight.reserve
        smooth = _mean_ahead(scenario.trace.by_second(), SMOOTH_SECONDS)
        ahead = foresight.lead_seconds + foresight.dip_seconds + int(scenario.parameters.look_seconds)
        self._coming = _max_ahead(smooth, ahead)

    def look(self, view: View) -> int:
        at = min(int(view.at), len(self._coming) - 1)
        rate = self._coming[at]
        waiting = 0.0 if view.lag_rows is None else max(0.0, view.lag_rows - 45 * rate)
        need = self._reserve * rate + waiting / CATCH_UP_SECONDS
        fitting = (number for number, can in enumerate(self._sustained) if number and can >= need)
        return next(fitting, len(self._sustained) - 1)


def best_oracle(scenario: Scenario, seeds: list[int], arrivals: dict[int, Arrivals]) -> list[Result]:
    """The results of the best one, for each seed."""
    best: list[Result] | None = None
    for lead, dip in itertools.product(LEADS, DIPS):
        for reserve in RESERVES:
            foresight = Foresight(reserve, lead, dip)
            found = [
                scenario.play(Oracle(scenario, foresight), seed, arrivals=arrivals[seed]) for seed in seeds
            ]
            if best is None or _rank(found) < _rank(best):
                best = found
            if _late(found) <= LATE_PCT:
                break  # more reserve only costs more
    assert best is not None
    return best


def _late(results: list[Result]) -> float:
    return sum(one.over_objective_pct for one in results) / len(results)


def _rank(results: list[Result]) -> tuple[float, float]:
    late = _late(results)
    return (0.0 if late <= LATE_PCT else late, sum(one.executor_hours for one in results))


def _mean_ahead(rates: list[float], width: int) -> list[float]:
    total = list(itertools.accumulate(rates, initial=0.0))
    last = len(rates)
    return [(total[min(at + width, last)] - total[at]) / (min(at + width, last) - at) for at in range(last)]


def _max_ahead(rates: list[float], width: int) -> list[float]:
    """The highest of the next `width` seconds, for every second."""
    out, queue = [0.0] * len(rates), deque[int]()
    for at in range(len(rates) - 1, -1, -1):
        while queue and rates[queue[-1]] <= rates[at]:
            queue.pop()
        queue.append(at)
        while queue[0] > at + width:
            queue.popleft()
        out[at] = rates[queue[0]]
    return out
