"""What a test gets back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class StepResult:
    """What a query gave after one batch of input rows."""

    rows: list[Row]
    late_rows_dropped: int
    watermark: str | None


@dataclass(frozen=True)
class QueryResult:
    """All that a query gave, in the order in which it came.

    `steps[i]` belongs to the i-th batch of input rows, with what Spark adds when the watermark has moved.
    Timestamps are datetimes in UTC.
    """

    name: str
    output_mode: str
    steps: tuple[StepResult, ...]
    read_state: Callable[[dict[str, Any]], list[Row]]

    @property
    def rows(self) -> list[Row]:
        """All rows; in mode `complete`, where each step repeats the whole result, those of the last step."""
        if self.output_mode == "complete":
            return next((step.rows for step in reversed(self.steps) if step.rows), [])
        return [row for step in self.steps for row in step.rows]

    @property
    def late_rows_dropped(self) -> int:
        return sum(step.late_rows_dropped for step in self.steps)

    @property
    def watermark(self) -> str | None:
        """After the last batch; None if the query has none."""
        return self.steps[-1].watermark if self.steps else None

    def state(self, **options: Any) -> list[Row]:
        """The state that the query ended with: rows with `key` and `value`.

        Options are those of Spark's `statestore` source, e.g. `operatorId=1`, `storeName="…"`.
        """
        return self.read_state(options)


class JobResult(Mapping[str, QueryResult]):
    """The queries of a job, by name."""

    def __init__(self, queries: Mapping[str, QueryResult]) -> None:
        self._queries = dict(queries)

    def __getitem__(self, name: str) -> QueryResult:
        if name not in self._queries:
            raise KeyError(f"the job has no query {name!r}; it has: {', '.join(self._queries) or 'none'}")
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)
