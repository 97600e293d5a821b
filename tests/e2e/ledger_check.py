"""Is what a job wrote exactly what it should have written? Told from the records and the rows alone.

Shares no code with the job (examples/exactly-once): the windows are counted again, in plain Python.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

WIDTH_MS = 5_000
DELAY_MS = 10_000


class Window(NamedTuple):
    begins_ms: int
    key: str


class Content(NamedTuple):
    n: int
    total: int


@dataclass(frozen=True)
class Row:
    """A line of the table that the job writes to."""

    window: Window
    content: Content


@dataclass(frozen=True)
class Noted:
    """A line of the ledger."""

    lineage: str
    batch: int
    epoch: int
    written_at: float


@dataclass(frozen=True)
class Verdict:
    problems: tuple[str, ...]
    lost_or_repeated: int
    """Records that are missing in closed windows, or counted in them more than once."""

    records: int
    windows: int

    def __bool__(self) -> bool:
        return not self.problems


def judge(records: Iterable[dict[str, Any]], rows: Iterable[Row], ledger: Iterable[Noted]) -> Verdict:
    numbers = {record["i"]: record for record in records}
    rows = tuple(rows)
    expected, written = _closed_windows(numbers.values()), Counter(row.window for row in rows)
    problems = [*_gaps_of_the_producer(numbers), *_gaps_of_the_ledger(ledger)]
    problems += [f"{window} is not there" for window in sorted(expected.keys() - written.keys())]
    problems += [f"{window} was not closed yet" for window in sorted(written.keys() - expected.keys())]
    problems += [f"{window} is there {count} times" for window, count in written.items() if count > 1]
    problems += [
        f"{row.window} holds {row.content}, not {expected[row.window]}"
        for row in rows
        if row.window in expected and row.content != expected[row.window]
    ]
    counted: Counter[Window] = Counter()
    for row in rows:
        counted[row.window] += row.content.n
    wrong = sum(
        abs(counted[window] - (expected[window].n if window in expected else 0))
        for window in expected.keys() | counted.keys()
    )
    return Verdict(tuple(problems), wrong, len(numbers), len(expected))


def _closed_windows(records: Iterable[dict[str, Any]]) -> dict[Window, Content]:
    """Those that end before the watermark that the last record makes."""
    found: dict[Window, Content] = {}
    newest = 0
    for record in records:
        window = Window(record["at_ms"] // WIDTH_MS * WIDTH_MS, record["key"])
        before = found.get(window, Content(0, 0))
        found[window] = Content(before.n + 1, before.total + record["i"])
        newest = max(newest, record["at_ms"])
    return {
        window: content
        for window, content in found.items()
        if window.begins_ms + WIDTH_MS <= newest - DELAY_MS
    }


def _gaps_of_the_producer(numbers: dict[int, Any]) -> list[str]:
    missing = set(range(len(numbers))) - numbers.keys()
    return [f"the topic lacks {len(missing)} numbers, {min(missing)} first"] if missing else []


def _gaps_of_the_ledger(ledger: Iterable[Noted]) -> list[str]:
    """Batch numbers of a lineage follow each other; epochs never go back."""
    problems: list[str] = []
    noted = sorted(ledger, key=lambda one: one.written_at)
    for lineage in {one.lineage for one in noted}:
        batches = [one.batch for one in noted if one.lineage == lineage]
        if batches != list(range(batches[0], batches[0] + len(batches))):
            problems.append(f"the batches of {lineage} do not follow each other: {batches}")
    epochs = [one.epoch for one in noted]
    if epochs != sorted(epochs):
        problems.append(f"an older driver wrote after a newer one: {epochs}")
    return problems
