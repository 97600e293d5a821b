"""Load over time: from a file, or made up from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

SHORTEST_SECONDS = 600
# Every second is simulated: a month takes minutes.
LONGEST_SECONDS = 31 * 86_400
# Beyond this numbers are no rows.
HIGHEST_RATE = 1e12
_EXPECTED = "two columns, seconds and rows per second"


class BadTrace(Exception):
    """The file cannot be read as a trace; says the line and what is expected."""


@dataclass(frozen=True)
class Trace:
    """Rows per second at moments, in order; straight lines between them."""

    name: str
    seconds: tuple[float, ...]
    rates: tuple[float, ...]

    @property
    def length_seconds(self) -> float:
        return self.seconds[-1] - self.seconds[0]

    def by_second(self) -> list[float]:
        """The rate of every second."""
        start, out, index = self.seconds[0], list[float](), 0
        last = len(self.seconds) - 1
        for second in range(math.ceil(self.length_seconds)):
            now = start + second
            while index < last and self.seconds[index + 1] <= now:
                index += 1
            if index == last:
                out.append(self.rates[-1])
                continue
            left, right = self.seconds[index], self.seconds[index + 1]
            part = (now - left) / (right - left)
            out.append(self.rates[index] + part * (self.rates[index + 1] - self.rates[index]))
        return out

    def peak_minute(self) -> float:
        """The highest mean of any minute."""
        rates, width = self.by_second(), 60
        if len(rates) <= width:
            return sum(rates) / max(len(rates), 1)
        total = best = sum(rates[:width])
        for index in range(width, len(rates)):
            total += rates[index] - rates[index - width]
            best = max(best, total)
        return best / width

    def cut(self, start: float, seconds: float) -> Trace:
        """A stretch of it, counted from its beginning."""
        first = self.seconds[0] + start
        kept = [
            (at - first, rate)
            for at, rate in zip(self.seconds, self.rates, strict=True)
            if 0 <= at - first <= seconds
        ]
        return _trace(self.name, kept)

    def expanded(self, floor_kept: float) -> Trace:
        """With only this part of its lowest value left: for traces published with a raised floor."""
        floor = min(self.rates) * (1 - floor_kept)
        return Trace(self.name, self.seconds, tuple(rate - floor for rate in self.rates))


def read_trace(path: Path) -> Trace:
    """Two columns, seconds (or a date and time) and rows per second; a header may stand above."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadTrace(f"{path}: is no text: a trace is a CSV file, {_EXPECTED}") from None
    points: list[tuple[float, float]] = []
    delimiter = next((mark for mark in (",", "|", ";", "\t") if lines and mark in lines[0]), ",")
    for number, line in enumerate(lines, start=1):
        cells = [cell.strip().strip('"') for cell in line.split(delimiter)]
        if not "".join(cells) or line.startswith("#"):
            continue
        if not points and _moment(cells[0]) is None:
            if any(_moment(cell) is not None for cell in cells):
                raise BadTrace(f"{path}:{number}: expected {_EXPECTED}, found {line!r}")
            continue  # the header
        point = _point(cells)
        if point is None:
            raise BadTrace(f"{path}:{number}: expected {_EXPECTED}, found {line!r}")
        if not 0 <= point[1] <= HIGHEST_RATE:
            raise BadTrace(
                f"{path}:{number}: rows per second must be a number from 0 to {HIGHEST_RATE:.0e}, "
                f"found {cells[1]!r}"
            )
        if points and point[0] <= points[-1][0]:
            raise BadTrace(
                f"{path}:{number}: the seconds must rise, found {cells[0]!r} after an equal or later one: "
                "sort the lines"
            )
        points.append(point)
    _check(path, points)
    return _trace(path.stem, points)


def short_enough(trace: Trace) -> Trace:
    """Refuses what would be simulated for hours."""
    if trace.length_seconds > LONGEST_SECONDS:
        raise BadTrace(
            f"{trace.name}: the trace is {trace.length_seconds / 86_400:,.0f} days long, and "
            f"{LONGEST_SECONDS // 86_400} are the most: cut it, or divide the first column by 1000 "
            "if it is in milliseconds"
        )
    return trace


def _check(path: Path, points: Sequence[tuple[float, float]]) -> None:
    """What only the whole file can tell."""
    seconds = points[-1][0] - points[0][0] if points else 0.0
    if len(points) < 2 or seconds < SHORTEST_SECONDS:
        found = f"{len(points)} line{'' if len(points) == 1 else 's'} of numbers, {seconds:g} seconds"
        raise BadTrace(
            f"{path}: a trace needs at least two lines and ten minutes: {_EXPECTED}; found {found}"
        )
    highest = max(rate for _, rate in points)
    if highest == 0:
        raise BadTrace(f"{path}: all rates are 0")
    if highest < 1:
        raise BadTrace(f"{path}: the highest rate is {highest:g} rows per second, and at least 1 is needed")


def _point(cells: Sequence[str]) -> tuple[float, float] | None:
    at = _moment(cells[0])
    try:
        return None if at is None else (at, float(cells[1]))
    except (ValueError, IndexError):
        return None


def _moment(text: str) -> float | None:
    """Seconds; a date without a zone counts as UTC, where no hour is missing or comes twice."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return seconds if math.isfinite(seconds) else None


def _trace(name: str, points: Sequence[tuple[float, float]]) -> Trace:
    return Trace(name, tuple(at for at, _ in points), tuple(rate for _, rate in points))


SHAPES = ("day", "ramp", "step", "bursts", "quiet")


def made_up(shape: str, seed: int, *, hours: float = 4.0, peak: float = 10_000.0) -> Trace:
    """A trace of that shape; the seed moves where things happen and how high they go."""
    chance = random.Random(f"{shape}-{seed}")  # noqa: S311 - a simulation
    length = hours * 3600
    base, phase = chance.uniform(0.15, 0.35), chance.uniform(0, 2 * math.pi)
    moments = sorted(chance.uniform(0.15, 0.85) * length for _ in range(3))
    bursts = [(chance.uniform(0, length), chance.uniform(120, 900), chance.uniform(0.3, 1)) for _ in range(8)]

    def level(at: float) -> float:
        match shape:
            case "day":  # a whole day's wave within the length
                return base + (1 - base) * (0.5 - 0.5 * math.cos(2 * math.pi * at / length + phase)) ** 1.5
            case "ramp":
                return base + (1 - base) * max(0.0, 1 - abs(at - moments[1]) / (0.3 * length))
            case "step":
                return (base, 0.6, 1.0, 0.4)[sum(at >= moment for moment in moments)]
            case "bursts":
                each = (height for start, width, height in bursts if start <= at < start + width)
                return min(1.0, base + max(each, default=0.0) * (1 - base))
            case _:
                return 0.02 if at < moments[0] or at > moments[2] else base

    points = [(float(at), peak * level(at)) for at in range(0, int(length) + 1, 30)]
    return _trace(f"{shape}-{seed}", points)
