"""A picture as a few kinds of shapes, whatever file it becomes: `svg` and `png` write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Stroke:
    """A line through points."""

    points: Points
    color: str
    width: float = 1.0
    # Drawn and left out, in turn; None: solid.
    dash: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Area:
    """What lies within a closed line."""

    points: Points
    color: str
    opacity: float


@dataclass(frozen=True, kw_only=True)
class Words:
    """Text; `y` is its base line."""

    x: float
    y: float
    text: str
    size: int
    color: str = "#222222"
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False


Shape = Stroke | Area | Words


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """On white. Later shapes lie above earlier ones, and words above all."""

    width: int
    height: int
    shapes: Sequence[Shape]
