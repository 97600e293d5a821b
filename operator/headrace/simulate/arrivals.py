"""What has arrived by any moment, and when a row arrived."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Sequence

from headrace.simulate.parameters import Parameters
from headrace.simulate.traces import Trace


class Arrivals:
    """The trace with noise, added up by the second."""

    def __init__(self, trace: Trace, parameters: Parameters, seed: int) -> None:
        chance = random.Random(f"arrivals-{seed}")  # noqa: S311 - a simulation
        self.rates = trace.by_second()
        self.total = [0.0]
        slow, keep = 0.0, math.exp(-1 / 60)
        shock = parameters.minute_sigma * math.sqrt(1 - keep * keep)
        for rate in self.rates:
            slow = keep * slow + chance.gauss(0, shock)
            self.total.append(
                self.total[-1] + rate * math.exp(slow + chance.gauss(0, parameters.second_sigma))
            )

    @property
    def seconds(self) -> int:
        return len(self.rates)

    def by(self, now: float) -> float:
        index = min(int(now), self.seconds - 1)
        before, after = self.total[index], self.total[index + 1]
        return before + (after - before) * min(now - index, 1.0)

    def moment_of(self, row: float) -> float:
        """When the first row after that many arrived."""
        index = bisect_right(self.total, row)
        if index > self.seconds:
            return float(self.seconds)
        before, after = self.total[index - 1], self.total[index]
        return index - 1 + (row - before) / (after - before)


class Partitions:
    """How what arrives spreads over partitions, also when that changes."""

    def __init__(self, shares: Sequence[float]) -> None:
        # From how many rows on, what each partition had by then, and how it goes on.
        self._since = [0.0]
        self._spreads = [([0.0] * len(shares), list(shares))]

    @property
    def shares(self) -> list[float]:
        return self._spreads[-1][1]

    def change(self, shares: Sequence[float], total: float) -> None:
        """From now on; there may be more of them."""
        before = self.offsets(total)
        base = [*before, *([0.0] * (len(shares) - len(before)))]
        self._since.append(total)
        self._spreads.append((base, list(shares)))

    def offsets(self, total: float) -> list[float]:
        """Of each partition there was, when so many rows had come in all: each by the shares of its time."""
        index = max(0, bisect_right(self._since, total) - 1)
        more = total - self._since[index]
        return [base + more * share for base, share in zip(*self._spreads[index], strict=True)]


def with_more(shares: Sequence[float], more: int) -> list[float]:
    """New partitions that get as much as others do."""
    all_of_them = [*shares, *(shares[index % len(shares)] for index in range(more))]
    total = sum(all_of_them)
    return [share / total for share in all_of_them]


def with_hot(shares: Sequence[float], part: float) -> list[float]:
    """One partition gets that part, the others what is left."""
    rest = sum(shares[1:])
    return [part, *(share * (1 - part) / rest for share in shares[1:])]
