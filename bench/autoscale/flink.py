"""The rule of Flink's autoscaler (flink-kubernetes-operator), with its defaults.

The functions are checked against the vectors of the project's own tests (tests/unit/autoscale/test_peers.py).
Fed with a Spark job's numbers it is Flink's rule, not Flink.
"""

from __future__ import annotations

import math
from collections import deque

from headrace.simulate.parameters import Parameters
from headrace.simulate.scaler import View

TARGET_UTILISATION = 0.7
MAX_UTILISATION, MIN_UTILISATION = 1.0, 0.4
WINDOW_SECONDS = 900.0
STABILISE_SECONDS = 300.0
CATCH_UP_SECONDS = 1800.0
RESTART_BELIEF_SECONDS = 300.0
SCALE_DOWN_SECONDS = 3600.0
MAX_SCALE_DOWN = 0.6
# A lag of this many seconds is backlog processing: no band is applied then.
BACKLOG_SECONDS = 300.0


def _rounded(value: float) -> float:
    """As Java rounds."""
    return math.floor(value + 0.5)


def target_capacity(
    rate: float, *, utilisation: float, catch_up: float, restart: float = 0.0, lag_rate: float = 0.0
) -> float:
    utilisation = min(1.0, max(0.0, utilisation))
    if utilisation == 0:
        return math.inf
    restarting = 0.0 if not restart or not catch_up else rate * restart / catch_up
    return _rounded(lag_rate + restarting + rate / utilisation)


def thresholds(
    rate: float,
    *,
    lag_rate: float,
    catch_up: float,
    restart: float,
    highest: float,
    lowest: float,
    backlog: bool = False,
) -> tuple[float, float]:
    """Of the true processing rate: below the first is too little, above the second is too much."""
    if backlog:
        highest, lowest = 1.0, 0.0
    up = target_capacity(rate, utilisation=highest, catch_up=catch_up, lag_rate=lag_rate)
    down = target_capacity(rate, utilisation=lowest, catch_up=catch_up, restart=restart, lag_rate=lag_rate)
    return up, down


def new_parallelism(
    present: int,
    capacity: float,
    true_rate: float,
    *,
    max_down: float = MAX_SCALE_DOWN,
    max_up: float = 100_000.0,
    lowest: int = 1,
    highest: int = 200,
    max_parallelism: int = 720,
) -> int:
    factor = min(max(capacity / true_rate, 1 - max_down), 1 + max_up)
    upper = min(max_parallelism, max(present, highest))
    return min(max(min(present, lowest), math.ceil(factor * present)), upper)


def align(
    partitions: int,
    present: int,
    target: int,
    *,
    max_parallelism: int = 720,
    upper: int = 200,
    balanced: bool = True,
) -> int:
    """Up to the next number that spreads partitions or key groups evenly."""
    bound = min(partitions, max_parallelism, upper)
    end = bound if target > present else min(present, bound)
    for number in range(target, end + 1):
        if partitions % number == 0 or (balanced and partitions // number < partitions // target):
            return number
    return target


class Flink:
    def __init__(self, name: str, parameters: Parameters, *, in_place: bool) -> None:
        self.name = name
        self.restart_seconds = None if in_place else parameters.restart_seconds
        self._restart = 0.0 if in_place else RESTART_BELIEF_SECONDS
        self._p = parameters
        # (at, arrived by then, rows done by then, busy seconds by then, lag)
        self._window: deque[tuple[float, float, float, float, float]] = deque()
        self._done = self._busy = 0.0
        self._not_before = 0.0
        self._lower: deque[tuple[float, int]] = deque()

    def look(self, view: View) -> int:
        for batch in view.batches:
            self._done += batch.rows
            self._busy += batch.seconds
        if view.lag_rows is None or view.arrived_rows is None or view.at < self._not_before:
            return view.asked
        self._window.append((view.at, view.arrived_rows, self._done, self._busy, view.lag_rows))
        while len(self._window) > 2 and view.at - self._window[1][0] >= WINDOW_SECONDS:
            self._window.popleft()
        first, last = self._window[0], self._window[-1]
        if last[0] - first[0] < WINDOW_SECONDS or last[3] <= first[3]:
            return view.asked
        target = self._target(view, first, last)
        if target != view.asked:
            self._window.clear()
            self._lower.clear()
            self._not_before = view.at + STABILISE_SECONDS
        return target

    def _target(self, view: View, first: tuple[float, ...], last: tuple[float, ...]) -> int:
        rate = (last[1] - first[1]) / (last[0] - first[0])
        true_rate = max((last[2] - first[2]) / (last[3] - first[3]), 1e-9)
        lag_rate = last[4] / CATCH_UP_SECONDS
        up, down = thresholds(
            rate,
            lag_rate=lag_rate,
            catch_up=CATCH_UP_SECONDS,
            restart=self._restart,
            highest=MAX_UTILISATION,
            lowest=MIN_UTILISATION,
            backlog=last[4] > BACKLOG_SECONDS * rate,
        )
        present = view.asked * self._p.cores
        capacity = target_capacity(
            rate,
            utilisation=TARGET_UTILISATION,
            catch_up=CATCH_UP_SECONDS,
            restart=self._restart,
            lag_rate=lag_rate,
        )
        wanted = new_parallelism(present, capacity, true_rate, highest=self._p.max_executors * self._p.cores)
        wanted = align(self._p.partitions, present, wanted, upper=self._p.max_executors * self._p.cores)
        executors = math.ceil(wanted / self._p.cores)
        if true_rate < up and executors > view.asked:
            return executors
        # Down to the highest of an hour, once the rate was above the band for all of it.
        self._lower.append((view.at, executors if true_rate > down else view.asked))
        while view.at - self._lower[0][0] > SCALE_DOWN_SECONDS:
            self._lower.popleft()
        if view.at - self._lower[0][0] < SCALE_DOWN_SECONDS - 2 * self._p.look_seconds:
            return view.asked
        return min(view.asked, max(number for _, number in self._lower))
