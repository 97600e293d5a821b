"""Whether a version falls behind: judged by the rows that waited for each of its batches.

What waits in the sources runs up and down with every batch, by as much as arrives between two of them. So
what is compared is always of one moment, the plan of a batch (jobs, harness/backlog.py):

    first third       middle third      last third
    its top     ── half as much more ──▶ median     and a thousand rows
                  its median ── more ──▶ median     it still grows: a load that rose, and stays, is no growth

What the run before it usually had waiting is no growth either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from headrace.core.model import QueryReport

_GROWTH, _GROWTH_ROWS = 1.5, 1000
_STILL_GROWS = 1.2
# Fewer batches than these prove nothing.
_FEW = 6
# Of the old run: its own catching up at the start is not usual.
_USUAL = 0.9


@dataclass(frozen=True, kw_only=True)
class Growth:
    query: str
    before: int
    now: int
    # It looks so, and there are too few batches to tell.
    proven: bool

    @property
    def message(self) -> str:
        return f"the rows that wait for a batch of {self.query} grew from {self.before} to {self.now}"


def usual(queries: Sequence[QueryReport]) -> int | None:
    """What waits for a batch on most days, of all queries together; None where nobody knows."""
    known = [
        sorted(query.waited)[int(_USUAL * (len(query.waited) - 1))]
        for query in queries
        if len(query.waited) >= _FEW
    ]
    return sum(known) if known else None


def growth(queries: Sequence[QueryReport], usual_before: int | None) -> Growth | None:
    """Of the first query that falls behind, or may."""
    found = (_of_query(query, usual_before or 0) for query in queries)
    return next((one for one in found if one is not None), None)


def _of_query(query: QueryReport, usual_before: int) -> Growth | None:
    rows = query.waited
    if len(rows) < 2:
        return None
    third = len(rows) // 3 if len(rows) >= _FEW else 0
    first, last = (rows[:third], rows[-third:]) if third else (rows[:-1], rows[-1:])
    before, now = max(*first, usual_before), round(median(last))
    if now <= before * _GROWTH or now - before <= _GROWTH_ROWS:
        return None
    if third and now <= median(rows[third:-third]) * _STILL_GROWS:
        return None
    return Growth(query=query.name, before=before, now=now, proven=third > 0)
