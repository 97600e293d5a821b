"""In which formats a query's logs are written: what decides whether an older Spark can go on from them."""

from __future__ import annotations

from headrace_jobs.store.interface import Store
from headrace_jobs.store.logs import format_of
from headrace_jobs.store.runs import Run, last_batches_of, run_directory

Formats = dict[str, int]
"""By log, `offsets` and `commits`: the version of its newest entry."""


def formats_of(store: Store, run: Run, query: str) -> Formats:
    """Empty for a query that has not begun."""
    last = last_batches_of(store, run, query)
    newest = {"offsets": last.offsets, "commits": last.commits}
    root = f"{run_directory(run)}/queries/{query}"
    keys = {log: f"{root}/{log}/{batch}" for log, batch in newest.items() if batch is not None}
    return {log: format_of(key, store.get(key)) for log, key in keys.items()}


def newer(before: Formats, after: Formats) -> list[str]:
    """The logs that were written in a format that the writer of `before` may not know."""
    return [f"{log} v{after[log]}" for log in sorted(after) if after[log] > before.get(log, after[log])]
