"""The oracle: knows the trace's future and what any number of executors can really do.

Executors start no faster for it. Several of its kind are tried on each trace, with more or less reserve, and
the cheapest of those that are late the least is the one that everybody is compared with.
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
RESERVES = (1.0, 1.06, 1.12, 1.2, 1.35)
# How far ahead it asks, and how long a dip must last to be worth going down for.
LEADS = (60, 120)
DIPS = (0, 300)
# It knows what loading state costs, and goes down in steps that keep the objective.
DOWN_SECONDS = 60.0
RELOADS_OF_OBJECTIVE = (0.3, 0.65)
# As good as nothing: one late batch in a day.
LATE_PCT = 0.02


@dataclass(frozen=True)
class Foresight:
    reserve: float
    lead_seconds: int
    dip_seconds: int
    reload_of_objective: float


class Oracle:
    name = "oracle"
    restart_seconds: float | None = None

    def __init__(self, scenario: Scenario, foresight: Foresight) -> None:
        self._sustained = scenario.sustained
        self._reserve = foresight.reserve
        self._p = scenario.parameters
        self._longest_reload = foresight.reload_of_objective * self._p.objective_seconds
        self._down_at = 0.0
        smooth = _mean_ahead(scenario.trace.by_second(), SMOOTH_SECONDS)
        ahead = foresight.lead_seconds + foresight.dip_seconds + int(scenario.parameters.look_seconds)
        self._coming = _max_ahead(smooth, ahead)

    def look(self, view: View) -> int:
        at = min(int(view.at), len(self._coming) - 1)
        rate = self._coming[at]
        waiting = 0.0 if view.lag_rows is None else max(0.0, view.lag_rows - 45 * rate)
        need = self._reserve * rate + waiting / CATCH_UP_SECONDS
        fitting = (number for number, can in enumerate(self._sustained) if number and can >= need)
        target = next(fitting, len(self._sustained) - 1)
        if target >= view.asked:
            return target
        if view.at - self._down_at < DOWN_SECONDS:
            return view.asked
        while self._reload_seconds(view.asked, target) > self._longest_reload:
            target += 1
        self._down_at = view.at
        return target

    def _reload_seconds(self, before: int, after: int) -> float:
        moved = self._p.shuffle_partitions * (before - after) / before
        return moved * self._p.reload_seconds / (after * self._p.cores)


def best_oracle(scenario: Scenario, seeds: list[int], arrivals: dict[int, Arrivals]) -> list[Result]:
    """The results of the best one, for each seed. It is chosen by the first."""

    def played(foresight: Foresight, seed: int) -> Result:
        return scenario.play(Oracle(scenario, foresight), seed, arrivals=arrivals[seed])

    tried: list[tuple[tuple[float, float], Foresight]] = []
    for lead, dip, reload in itertools.product(LEADS, DIPS, RELOADS_OF_OBJECTIVE):
        for reserve in RESERVES:
            foresight = Foresight(reserve, lead, dip, reload)
            found = played(foresight, seeds[0])
            late = 0.0 if found.over_objective_pct <= LATE_PCT else found.over_objective_pct
            tried.append(((late, found.executor_hours), foresight))
            if not late:
                break  # more reserve only costs more
    best = min(tried, key=lambda one: one[0])[1]
    return [played(best, seed) for seed in seeds]


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
