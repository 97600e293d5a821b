"""Whether a job has work: from what its driver reports, look by look. Pure.

Nothing waits, nothing has come since the last look, and no batch has run: not even one without rows, which a
timer of the query may ask for. What cannot be told is work.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.autoscale.report import Reading
from headrace.core.lag import Offsets, rows_behind

Mark = tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class Quiet:
    """A job without work: since when, and where everything stood."""

    since: float
    mark: Mark


def still_quiet(before: Quiet | None, reading: Reading) -> Quiet | None:
    """None while there is work, or nobody can tell."""
    marks: list[tuple[object, ...]] = []
    for query in reading.queries:
        if not isinstance(query.source, Offsets) or rows_behind(query.source) != 0:
            return None
        if query.running_seconds is not None:
            return None
        ends = sorted((name, one.end) for name, one in query.source.partitions.items())
        marks.append((query.name, query.committed_batch, *ends))
    if not marks:
        return None
    mark = tuple(sorted(marks, key=str))
    # One that begins in the future was seen by a clock that has been put right.
    same = before is not None and before.mark == mark and before.since <= reading.at
    return before if same else Quiet(reading.at, mark)


def lookout_problem(reading: Reading) -> str | None:
    """Why nobody could look for work in the driver's place; None if somebody could."""
    for query in reading.queries:
        if query.no_lookout is not None:
            return f"{query.name}: {query.no_lookout}"
    return None
