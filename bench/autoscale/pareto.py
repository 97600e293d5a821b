"""Cost against lateness, one small panel for each trace: to the left and below is better."""

from __future__ import annotations

import math
from html import escape

from bench.autoscale.contest import OURS, Entry

SIZE, GAP, LEFT, TOP = 250, 70, 64, 84
COLUMNS = 3
COLORS = {
    OURS: "#0b5fa5",
    "oracle": "#222222",
    "keda": "#e0b00b",
    "keda-tuned": "#e06a0b",
    "hpa-cpu": "#b0006d",
    "hpa-cpu-tuned": "#e39ac9",
    "flink": "#8a8a8a",
    "flink-live": "#8a3ffc",
    "static-peak": "#2f9e6e",
}
_FONT = 'font-family="Helvetica, Arial, sans-serif"'
COSTS = (0.5, 1, 1.2, 1.5, 2, 3, 5, 10)
# Lateness by its root, so that little differences near zero can be seen.
LATES = (0, 0.5, 2, 5, 10, 25, 50, 100)


def pareto_picture(contests: dict[str, dict[str, Entry]]) -> str:
    rows = math.ceil(len(contests) / COLUMNS)
    columns = min(COLUMNS, len(contests))
    width, height = LEFT + columns * (SIZE + GAP), TOP + rows * (SIZE + GAP) + 10
    width = max(width, 760)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(24, 28, "Cost against lateness: left and below is better", 17, bold=True),
    ]
    across = 24.0
    for name, color in COLORS.items():
        parts += [_dot(across + 5, 50, color, name == OURS), _text(across + 16, 54, name, 12)]
        across += 34 + 7 * len(name)
    for index, (trace, entries) in enumerate(contests.items()):
        x, y = LEFT + index % COLUMNS * (SIZE + GAP), TOP + index // COLUMNS * (SIZE + GAP)
        parts += _panel(trace, entries, x, y)
    return "\n".join([*parts, "</svg>\n"])


def _panel(trace: str, entries: dict[str, Entry], x: float, y: float) -> list[str]:
    def right(cost: float) -> float:
        low, high = math.log(COSTS[0]), math.log(COSTS[-1])
        return x + SIZE * (min(max(math.log(cost), low), high) - low) / (high - low)

    latest = max(5.0, *(one.over_objective_pct.mean for one in entries.values()))

    def up(late: float) -> float:
        return y + SIZE - (SIZE - 24) * math.sqrt(late / latest)

    parts = [_text(x, y + 10, trace, 13, bold=True)]
    for cost in COSTS:
        parts.append(f'<path d="M{right(cost):.1f} {y + 20}V{y + SIZE}" stroke="#ececec"/>')
        parts.append(_text(right(cost), y + SIZE + 16, f"{cost:g}", 10, anchor="middle"))
    for late in [one for one in LATES if one <= latest]:
        parts.append(f'<path d="M{x} {up(late):.1f}H{x + SIZE}" stroke="#ececec"/>')
        if late != 0.5:
            parts.append(_text(x - 6, up(late) + 4, f"{late:g} %", 10, anchor="end"))
    parts.append(_text(x + SIZE / 2, y + SIZE + 32, "cost / oracle", 11, anchor="middle"))
    shown = [one for one in entries.values() if one.scaler in COLORS]
    drawn = sorted(shown, key=lambda one: one.scaler == OURS)
    parts += [
        _dot(
            right(one.cost_over_oracle.mean),
            up(one.over_objective_pct.mean),
            COLORS[one.scaler],
            one.scaler == OURS,
        )
        for one in drawn
    ]
    return parts


def _dot(x: float, y: float, color: str, ours: bool) -> str:
    radius = 7 if ours else 5
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}" stroke="#ffffff"/>'


def _text(x: float, y: float, text: str, size: int, *, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" {_FONT} font-size="{size}" text-anchor="{anchor}" '
        f'fill="#222222"{weight}>{escape(text)}</text>'
    )
