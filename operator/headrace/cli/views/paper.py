"""What pages are printed on: colours on a terminal only, the same words elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import IO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from headrace.cli.views.words import seconds

# Where there is no terminal to measure: wide enough for a line of a log, and the same every time.
_PLAIN_WIDTH = 110
_WIDEST = 130
_LONGEST_LINE = 1000


def console(out: IO[str] | None = None) -> Console:
    """Rich honours NO_COLOR and leaves colours out where nobody sees them."""
    stream = out or sys.stdout
    measured = Console(file=stream, highlight=False)
    if not measured.is_terminal:
        return Console(file=stream, highlight=False, width=_PLAIN_WIDTH)
    return Console(file=stream, highlight=False, width=min(measured.width, _WIDEST))


def show(*parts: RenderableType, out: IO[str] | None = None, whole_lines: bool = False) -> None:
    """`whole_lines`: a file or a pipe gets lines as long as they are."""
    paper = console(out)
    if paper.is_terminal:
        paper.print(*parts, sep="\n")
        return
    paper.width = _LONGEST_LINE if whole_lines else paper.width
    with paper.capture() as page:
        paper.print(*parts, sep="\n")
    # Rich fills its columns up with blanks; a file or a pipe is better off without.
    for line in page.get().splitlines():
        paper.file.write(f"{line.rstrip()}\n")


def facts(
    rows: Sequence[tuple[str, RenderableType | None]], *, label_width: int = 12, indent: int = 2
) -> Table:
    """A column of labels and what they are about; those without a value are left out."""
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True, min_width=label_width)
    table.add_column(overflow="fold")
    for label, value in rows:
        if value is not None:
            table.add_row(" " * indent + label, value)
    return table


def columns(*headers: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for header in headers:
        table.add_column(header, justify="right" if header in right else "left", overflow="fold")
    return table


def ago(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    passed = (now - moment).total_seconds()
    return f"{age(passed)} ago" if passed >= 0 else f"in {age(-passed)}"


def age(passed: float) -> str:
    """As `kubectl` shows ages: 45s, 12m, 5h, 3d."""
    if passed < 120:
        return f"{int(passed)}s"
    if passed < 120 * 60:
        return f"{int(passed // 60)}m"
    if passed < 48 * 3600:
        return f"{int(passed // 3600)}h"
    return f"{int(passed // 86400)}d"


def lived(passed: float) -> str:
    return seconds(passed) if passed >= 100 else f"{int(passed)} s"


def next_command(message: str, command: str) -> Text:
    return Text.assemble(("  → ", "bold cyan"), f"{message}\n    ", (command, "bold"))
