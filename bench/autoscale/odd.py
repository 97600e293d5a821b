"""Loads that nobody would choose, seeded: to see where the autoscaler breaks.

Heights are parts of the peak. Edges are as steep as a second, unless a name says otherwise.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from headrace.simulate.traces import Trace

PEAK = 10_000.0
Level = Callable[[float], float]


@dataclass(frozen=True)
class Odd:
    hours: float
    step_seconds: int
    # Of the seed's chance and the length in seconds: the part of the peak at any moment.
    make: Callable[[random.Random, float], Level]


def _square(period_minutes: float, low: float) -> Callable[[random.Random, float], Level]:
    def make(chance: random.Random, _length: float) -> Level:
        period = 60 * period_minutes * chance.uniform(0.9, 1.1)
        phase = chance.uniform(0, period)
        return lambda at: 1.0 if (at + phase) % period >= period / 2 else low

    return make


def _saw_tooth(chance: random.Random, _length: float) -> Level:
    """Rises for most of an hour, then falls to nearly nothing at once."""
    period = 3600 * chance.uniform(0.7, 1.0)
    return lambda at: 0.1 + 0.9 * (at % period) / period


def _saw_tooth_back(chance: random.Random, _length: float) -> Level:
    """Jumps up at once, and takes most of an hour to fall."""
    period = 3600 * chance.uniform(0.7, 1.0)
    phase = chance.uniform(0.2, 0.5) * period
    return lambda at: 1.0 - 0.9 * ((at + phase) % period) / period


def _minute_bursts(chance: random.Random, length: float) -> Level:
    """One minute each, some ten minutes apart, at twice to three times what is usual."""
    base, starts, at = 0.35, list[tuple[float, float]](), 600.0
    while at < length:
        starts.append((at, chance.uniform(0.7, 1.0)))
        at += chance.uniform(400, 900)
    return lambda now: max((height for start, height in starts if start <= now < start + 60), default=base)


def _idle_then_20x(chance: random.Random, length: float) -> Level:
    """Two hours of next to nothing, then twenty times as much within five minutes, and it stays."""
    begin = chance.uniform(0.4, 0.55) * length
    return lambda at: 0.05 + 0.95 * min(max((at - begin) / 300, 0.0), 1.0)


def _idle_then_20x_at_once(chance: random.Random, length: float) -> Level:
    begin = chance.uniform(0.4, 0.55) * length
    return lambda at: 0.05 if at < begin else 1.0


def _slow_growth(chance: random.Random, length: float) -> Level:
    low = chance.uniform(0.08, 0.15)
    return lambda at: low * (1 / low) ** (at / length)


def _slow_decline(chance: random.Random, length: float) -> Level:
    low = chance.uniform(0.08, 0.15)
    return lambda at: low ** (at / length)


def _noise(sigma: float) -> Callable[[random.Random, float], Level]:
    def make(chance: random.Random, length: float) -> Level:
        """A quiet wave with noise of every second of its own."""
        each = [math.exp(chance.gauss(-sigma * sigma / 2, sigma)) for _ in range(int(length) + 2)]
        return lambda at: (0.4 + 0.15 * math.sin(2 * math.pi * at / length)) * each[int(at)]

    return make


def _gaps(chance: random.Random, length: float) -> Level:
    """Nothing at all for some minutes, now and then, as if the producer were away; then what is usual."""
    gaps = [(chance.uniform(0.05, 0.95) * length, chance.uniform(120, 900)) for _ in range(5)]
    wave = chance.uniform(0, 2 * math.pi)

    def level(at: float) -> float:
        if any(start <= at < start + width for start, width in gaps):
            return 0.0
        return 0.7 + 0.3 * math.sin(2 * math.pi * at / length + wave)

    return level


def _replayed_gaps(chance: random.Random, length: float) -> Level:
    """The producer is away for some minutes, and then sends within as many what it has kept."""
    gaps = [((index + chance.uniform(0.3, 0.7)) * length / 4, chance.uniform(120, 400)) for index in range(4)]

    def level(at: float) -> float:
        for start, width in gaps:
            if start <= at < start + width:
                return 0.0
            if start + width <= at < start + 2 * width:
                return 0.9
        return 0.45

    return level


def _steps_up(chance: random.Random, length: float) -> Level:
    """A half more every twenty minutes or so, at once."""
    moments, at = list[float](), 1200.0
    while at < length:
        moments.append(at)
        at += chance.uniform(900, 1500)
    ratio = 1 / 1.3 ** len(moments)
    return lambda now: ratio * 1.3 ** sum(now >= moment for moment in moments)


def _flash_crowd(chance: random.Random, length: float) -> Level:
    """Four times as much within two minutes, which goes away over half an hour."""
    begins = [chance.uniform(0.15, 0.4) * length, chance.uniform(0.55, 0.8) * length]

    def level(at: float) -> float:
        top = 0.22
        for begin in begins:
            if begin <= at:
                rise = min((at - begin) / 120, 1.0)
                top = max(top, 0.22 + 0.78 * rise * math.exp(-max(at - begin - 120, 0.0) / 900))
        return top

    return level


def _two_waves(chance: random.Random, length: float) -> Level:
    """A day and its hourly job on top: a third more for ten minutes after every full hour."""
    phase = chance.uniform(0, 2 * math.pi)

    def level(at: float) -> float:
        wave = 0.45 - 0.25 * math.cos(2 * math.pi * at / length + phase)
        return min(1.0, wave * (1.35 if at % 3600 < 600 else 1.0))

    return level


ODD: dict[str, Odd] = {
    "square-10min": Odd(4, 1, _square(10, 0.3)),
    "square-40min": Odd(5, 1, _square(40, 0.2)),
    "square-2h": Odd(6, 1, _square(120, 0.2)),
    "saw-tooth": Odd(5, 10, _saw_tooth),
    "saw-tooth-back": Odd(5, 10, _saw_tooth_back),
    "minute-bursts": Odd(4, 1, _minute_bursts),
    "idle-then-20x": Odd(5, 10, _idle_then_20x),
    "idle-then-20x-at-once": Odd(5, 1, _idle_then_20x_at_once),
    "slow-growth": Odd(24, 60, _slow_growth),
    "slow-decline": Odd(24, 60, _slow_decline),
    "noise": Odd(3, 1, _noise(0.3)),
    "wild-noise": Odd(3, 1, _noise(0.8)),
    "gaps": Odd(5, 1, _gaps),
    "replayed-gaps": Odd(5, 1, _replayed_gaps),
    "steps-up": Odd(5, 1, _steps_up),
    "flash-crowd": Odd(5, 10, _flash_crowd),
    "two-waves": Odd(12, 30, _two_waves),
}


def odd_trace(name: str, seed: int) -> Trace:
    odd = ODD[name]
    length = odd.hours * 3600
    level = odd.make(random.Random(f"{name}-{seed}"), length)
    moments = range(0, int(length) + 1, odd.step_seconds)
    return Trace(
        f"{name}-{seed}", tuple(float(at) for at in moments), tuple(PEAK * level(at) for at in moments)
    )


def odd_traces(seeds: range) -> list[Trace]:
    return [odd_trace(name, seed) for name in ODD for seed in seeds]
