"""Small charts: panels above each other over one time axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.simulate.drawing import Area, Drawing, Shape, Stroke, Words

WIDTH, LEFT, RIGHT, TOP, GAP = 960, 74, 24, 64, 46
_Place = Callable[[float, float], tuple[float, float]]
_GREY, _RED = "#555555", "#b00020"
_DASH = (5.0, 3.0)


@dataclass(frozen=True, kw_only=True)
class Line:
    label: str
    color: str
    points: Sequence[tuple[float, float]]
    # Holds its value until the next point, as a number of executors does.
    steps: bool = False
    filled: bool = False
    dashed: bool = False
    width: float = 1.6


@dataclass(frozen=True, kw_only=True)
class Panel:
    title: str
    lines: Sequence[Line]
    height: int = 170
    # A level to compare with, and its name.
    level: tuple[float, str] | None = None
    # Above this it is cut off: one long outage must not flatten the rest.
    top: float | None = None


def draw(title: str, panels: Sequence[Panel], *, subtitle: str = "") -> Drawing:
    height = TOP + sum(panel.height + GAP for panel in panels) + 10
    end = max((at for panel in panels for line in panel.lines for at, _ in line.points), default=1.0)
    shapes: list[Shape] = [Words(x=LEFT, y=26, text=title, size=17, bold=True)]
    if subtitle:
        shapes.append(Words(x=LEFT, y=45, text=subtitle, size=12, color=_GREY))
    y = TOP
    for panel in panels:
        shapes += _panel(panel, y, end)
        y += panel.height + GAP
    return Drawing(width=WIDTH, height=height, shapes=shapes)


def _panel(panel: Panel, y: float, end: float) -> list[Shape]:
    values = [value for line in panel.lines for _, value in line.points]
    values += [panel.level[0]] if panel.level else []
    highest = panel.top or max(values, default=1.0) * 1.05 or 1.0
    ticks = nice_ticks(highest)
    highest = max(highest, ticks[-1])
    top, bottom = y + 22, y + panel.height

    def place(at: float, value: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * at / end
        return across, bottom - (bottom - top) * min(value, highest) / highest

    shapes: list[Shape] = [Words(x=LEFT, y=y + 12, text=panel.title, size=13, bold=True)]
    shapes += _legend(panel, y + 12)
    for tick in ticks:
        _, height = place(0, tick)
        shapes.append(_across(height, "#e6e6e6"))
        shapes.append(Words(x=LEFT - 8, y=height + 4, text=amount(tick), size=11, anchor="end", color=_GREY))
    for at, label in time_ticks(end):
        across, _ = place(at, 0)
        shapes.append(Stroke(points=[(across, bottom), (across, bottom + 4)], color="#888888"))
        shapes.append(Words(x=across, y=bottom + 17, text=label, size=11, anchor="middle", color=_GREY))
    for line in panel.lines:
        shapes += _line(line, place, bottom) if line.points else []
    if panel.level is not None:
        level, name = panel.level
        _, height = place(0, level)
        shapes.append(_across(height, _RED, dash=(6.0, 4.0)))
        shapes.append(Words(x=WIDTH - RIGHT - 4, y=height - 5, text=name, size=11, anchor="end", color=_RED))
    return shapes


def _across(height: float, color: str, dash: tuple[float, float] | None = None) -> Stroke:
    return Stroke(points=[(LEFT, height), (WIDTH - RIGHT, height)], color=color, dash=dash)


def _line(line: Line, place: _Place, bottom: float) -> list[Shape]:
    points = [place(at, value) for at, value in thinned(line.points)]
    if line.steps:
        corners = [((after[0], before[1]), after) for before, after in pairwise(points)]
        points = [points[0], *(point for corner in corners for point in corner)]
    drawn = Stroke(points=points, color=line.color, width=line.width, dash=_DASH if line.dashed else None)
    if not line.filled:
        return [drawn]
    below = [(points[-1][0], bottom), (points[0][0], bottom)]
    return [Area(points=[*points, *below], color=line.color, opacity=0.18), drawn]


def _legend(panel: Panel, y: float) -> list[Shape]:
    shapes, across = list[Shape](), float(WIDTH - RIGHT)
    for line in reversed([line for line in panel.lines if line.label]):
        across -= 7.0 * len(line.label)
        shapes.append(Words(x=across, y=y, text=line.label, size=12))
        across -= 24
        dash = _DASH if line.dashed else None
        shapes.append(
            Stroke(points=[(across, y - 4), (across + 18, y - 4)], color=line.color, width=3, dash=dash)
        )
        across -= 16
    return shapes


def thinned(points: Sequence[tuple[float, float]], most: int = 1600) -> list[tuple[float, float]]:
    """Fewer points, with the peaks kept: of each group the lowest and the highest."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(2 * len(points) / most)
    kept: list[tuple[float, float]] = []
    for start in range(0, len(points), size):
        group = points[start : start + size]
        extremes = {min(group, key=lambda one: one[1]), max(group, key=lambda one: one[1])}
        kept += sorted(extremes)
    return kept


def nice_ticks(highest: float, about: int = 4) -> list[float]:
    rough = highest / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    return [index * step for index in range(math.floor(highest / step + 1e-9) + 1)]


def time_ticks(end: float) -> list[tuple[float, str]]:
    steps = (60, 300, 600, 900, 1800, 3600, 2 * 3600, 4 * 3600, 6 * 3600, 12 * 3600, 86400)
    step = next((one for one in steps if end / one <= 12), 7 * 86400)
    if step < 3600:
        return [(at, f"{at // 3600}:{at % 3600 // 60:02}") for at in range(0, int(end) + 1, step)]
    return [(at, f"{at // 3600} h") for at in range(0, int(end) + 1, step)]


def amount(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
