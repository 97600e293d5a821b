"""A simulated run as a picture: what arrived, how many executors there were, how late the job was."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.simulate.chart import Line, Panel, draw
from headrace.simulate.drawing import Drawing
from headrace.simulate.run import Result
from headrace.simulate.scenario import Scenario

# The first is Headrace; distinguishable without colour vision, and the others stand back.
COLORS = ("#0b5fa5", "#e08e0b", "#6b6b6b", "#8a3ffc", "#2f9e6e")


def picture(title: str, scenario: Scenario, results: Sequence[Result], *, subtitle: str = "") -> Drawing:
    first = results[0]
    load = Line(
        label="", color="#444444", filled=True, points=[(one.at, one.rows_per_second) for one in first.points]
    )
    objective = scenario.parameters.objective_seconds
    return draw(
        title,
        [
            Panel(title="Rows per second", lines=[load], height=130),
            Panel(title="Executors asked for", lines=_lines(results, executors=True), height=200),
            Panel(
                title="Age of the oldest unread row, seconds (worst of each minute)",
                lines=_lines(results, executors=False),
                height=200,
                level=(objective, f"objective {objective:g} s"),
                top=_lag_top(results, objective),
            ),
        ],
        subtitle=subtitle,
    )


def _lines(results: Sequence[Result], *, executors: bool) -> list[Line]:
    """Headrace, the first, is drawn last: above the others."""
    lines: list[Line] = []
    for index, result in enumerate(results):
        points = [(one.at, float(one.asked)) for one in result.points] if executors else _worst(result)
        lines.append(
            Line(
                label=result.scaler,
                color=COLORS[index % len(COLORS)],
                points=points,
                steps=executors,
                dashed=executors and index > 1,
                width=2.2 if index == 0 else 1.2,
            )
        )
    return [*lines[1:], lines[0]]


def _worst(result: Result) -> list[tuple[float, float]]:
    """The saw-tooth between batches would be a band: the worst of each few looks is what counts."""
    size = max(4, len(result.points) // 400)
    groups = (result.points[start : start + size] for start in range(0, len(result.points), size))
    return [(group[0].at, max(one.lag_seconds for one in group)) for group in groups]


def _lag_top(results: Sequence[Result], objective: float) -> float:
    """Four objectives at most: what is later is late, by how much the table says."""
    highest = max(result.lag_max_seconds for result in results)
    return min(max(highest * 1.05, 1.2 * objective), 4 * objective)
