"""Numbers and moments as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NOTHING = "·"


def count(value: float | None) -> str:
    """1234567 -> 1.23M; small numbers whole."""
    if value is None:
        return NOTHING
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scale = 1e3 if suffix == "k" else size
            return f"{value / scale:.3g}{suffix}"
    return f"{value:,.0f}"


def seconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    if value < 10:
        return f"{value:.2f} s"
    if value < 100:
        return f"{value:.0f} s"
    minutes, rest = divmod(int(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m" if hours else f"{minutes} m {rest:02d} s"


def lag(report: dict[str, Any] | None) -> str:
    """Unknown is never zero."""
    if not report or not report.get("known"):
        return "unknown"
    if report.get("files") is not None:
        files = report["files"]
        return f"{count(files)} file{'' if files == 1 else 's'}"
    return f"{count(report.get('rows'))} rows"


def clock_time(moment: str | None) -> str:
    """The time of day of an event-time watermark, in UTC as Spark reports it."""
    if not moment or moment.startswith("1970-01-01T00:00:00"):
        return NOTHING
    parsed = datetime.fromisoformat(moment).astimezone(UTC)
    return parsed.strftime("%H:%M:%S")


def here(path: Path) -> str:
    """A path as one would type it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
