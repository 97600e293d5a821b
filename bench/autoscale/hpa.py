"""The HorizontalPodAutoscaler's rule, with KEDA's Kafka scaler or the CPU in front of it.

Defaults as in kubernetes and keda: sync 15 s, tolerance 0.1, up by the larger of 100 % and 4 pods per 15 s,
down to the highest recommendation of 300 s; `ceil(lag / lagThreshold)`, no more than partitions.
"""

from __future__ import annotations

import math
from collections import deque

from headrace.simulate.parameters import Parameters
from headrace.simulate.scaler import View

TOLERANCE = 0.1
DOWN_WINDOW_SECONDS = 300.0


class Hpa:
    """What the metric recommends becomes a number of pods."""

    restart_seconds: float | None = None

    def __init__(self, name: str, parameters: Parameters) -> None:
        self.name = name
        self._p = parameters
        self._recommended: deque[tuple[float, int]] = deque()

    def behaved(self, recommended: int, view: View) -> int:
        recommended = min(max(recommended, self._p.min_executors), self._p.max_executors)
        self._recommended.append((view.at, recommended))
        while view.at - self._recommended[0][0] > DOWN_WINDOW_SECONDS:
            self._recommended.popleft()
        stable = max(number for _, number in self._recommended)
        if stable < view.asked:
            return stable
        if recommended <= view.asked:
            return view.asked
        return min(recommended, max(2 * view.asked, view.asked + 4))


class Keda(Hpa):
    def __init__(self, name: str, parameters: Parameters, *, lag_threshold: float) -> None:
        super().__init__(name, parameters)
        self._threshold = lag_threshold

    def look(self, view: View) -> int:
        if view.lag_rows is None:
            return view.asked  # a metric that fails: no scaling
        lag = min(view.lag_rows, self._p.partitions * self._threshold)
        ratio = lag / (self._threshold * view.asked)
        keeps = abs(ratio - 1) <= TOLERANCE
        return self.behaved(view.asked if keeps else math.ceil(lag / self._threshold), view)


class CpuHpa(Hpa):
    def __init__(self, name: str, parameters: Parameters, *, target: float) -> None:
        super().__init__(name, parameters)
        self._target = target

    def look(self, view: View) -> int:
        ratio = view.cpu / self._target
        keeps = abs(ratio - 1) <= TOLERANCE
        return self.behaved(view.asked if keeps else math.ceil(view.ready * ratio), view)
