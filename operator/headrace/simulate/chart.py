"""Small charts as SVG text: panels above each other over one time axis. No library draws here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT, TOP, GAP = 960, 74, 24, 64, 46
_Place = Callable[[float, float], tuple[float, float]]
_FONT = 'font-family="Helvetica, Arial, sans-serif"'


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


def draw(title: str, panels: Sequence[Panel], *, subtitle: str = "") -> str:
    height = TOP + sum(panel.height + GAP for panel in panels) + 10
    end = max((at for panel in panels for line in panel.lines for at, _ in line.points), default=1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 26, title, size=17, weight="bold"),
        _text(LEFT, 45, subtitle, size=12, color="#555555"),
    ]
    y = TOP
    for panel in panels:
        parts += _panel(panel, y, end)
        y += panel.height + GAP
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel, y: float, end: float) -> list[str]:
    values = [value for line in panel.lines for _, value in line.points]
    values += [panel.level[0]] if panel.level else []
    highest = panel.top or max(values, default=1.0) * 1.05 or 1.0
    ticks = nice_ticks(highest)
    highest = max(highest, ticks[-1])
    top, bottom = y + 22, y + panel.height

    def place(at: float, value: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * at / end
        return across, bottom - (bottom - top) * min(value, highest) / highest

    parts = [_text(LEFT, y + 12, panel.title, size=13, weight="bold"), *_legend(panel, y + 12)]
    for tick in ticks:
        _, height = place(0, tick)
        parts.append(f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="#e6e6e6"/>')
        parts.append(_text(LEFT - 8, height + 4, amount(tick), size=11, anchor="end", color="#555555"))
    for at, label in time_ticks(end):
        across, _ = place(at, 0)
        parts.append(f'<path d="M{across:.1f} {bottom}v4" stroke="#888888"/>')
        parts.append(_text(across, bottom + 17, label, size=11, anchor="middle", color="#555555"))
    parts += [_line(line, place, bottom) for line in panel.lines if line.points]
    if panel.level is not None:
        _, height = place(0, panel.level[0])
        parts.append(
            f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="#b00020" stroke-dasharray="6 4"/>'
        )
        parts.append(
            _text(WIDTH - RIGHT - 4, height - 5, panel.level[1], size=11, anchor="end", color="#b00020")
        )
    return parts


def _line(line: Line, place: _Place, bottom: float) -> str:
    points = [place(at, value) for at, value in thinned(line.points)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for across, height in points[1:]:
        path += f"H{across:.1f}V{height:.1f}" if line.steps else f"L{across:.1f} {height:.1f}"
    dash = ' stroke-dasharray="5 3"' if line.dashed else ""
    drawn = f'<path d="{path}" fill="none" stroke="{line.color}" stroke-width="{line.width}"{dash}/>'
    if not line.filled:
        return drawn
    area = f"{path}L{points[-1][0]:.1f} {bottom:.1f}L{points[0][0]:.1f} {bottom:.1f}Z"
    return f'<path d="{area}" fill="{line.color}" fill-opacity="0.18"/>{drawn}'


def _legend(panel: Panel, y: float) -> list[str]:
    parts, across = list[str](), float(WIDTH - RIGHT)
    for line in reversed([line for line in panel.lines if line.label]):
        across -= 7.0 * len(line.label)
        parts.append(_text(across, y, line.label, size=12))
        across -= 24
        dash = ' stroke-dasharray="5 3"' if line.dashed else ""
        parts.append(f'<path d="M{across:.1f} {y - 4}h18" stroke="{line.color}" stroke-width="3"{dash}/>')
        across -= 16
    return parts


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int,
    anchor: str = "start",
    color: str = "#222222",
    weight: str = "",
) -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" {_FONT} font-size="{size}" text-anchor="{anchor}" '
        f'fill="{color}"{bold}>{escape(text)}</text>'
    )


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
