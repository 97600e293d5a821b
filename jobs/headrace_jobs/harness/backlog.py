"""How many rows waited for each batch, over the life of an attempt. Pure.

The lag runs up and down with every batch, so that two looks at it compare nothing. When a batch is planned,
what waits is what came since the last plan, and what was left over from before: always the same point of the
saw-tooth. It stays the same for a query that keeps up, whatever its trigger, and grows for one that does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace_jobs.harness.offsets import numbers_in

# Half of them are left out when there are more: always spread over the whole life.
_MOST_POINTS = 32


@dataclass(frozen=True)
class Waited:
    """Every so many batches, oldest first."""

    rows: tuple[int, ...] = ()
    every: int = 1
    batches: int = 0

    def with_batch(self, rows: int | None) -> Waited:
        """One more; None where its sources do not tell what waited."""
        if rows is None:
            return self
        if self.batches % self.every:
            return Waited(self.rows, self.every, self.batches + 1)
        points, every = (*self.rows, rows), self.every
        if len(points) > _MOST_POINTS:
            points, every = points[::2], every * 2
        return Waited(points, every, self.batches + 1)


NOTHING_WAITED = Waited()


def waiting_rows(progress: dict[str, Any]) -> int | None:
    """When this batch was planned; None unless each source tells how far it reached then."""
    each = [_of_source(source) for source in progress["sources"]]
    known = [rows for rows in each if rows is not None]
    return sum(known) if each and len(known) == len(each) else None


def _of_source(source: dict[str, Any]) -> int | None:
    ends, read = (dict(numbers_in(source.get(name))) for name in ("latestOffset", "endOffset"))
    if not ends or ends.keys() - read.keys():
        return None
    return source.get("numInputRows", 0) + sum(max(0, end - read[part]) for part, end in ends.items())
