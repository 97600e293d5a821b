"""What Spark keeps to itself, and nowhere else tells."""

from __future__ import annotations

from typing import Any

from headrace_jobs.harness.offsets import LookFailed


def sources_of(execution: Any) -> Any:
    """In the order of the query's progress, which names each one once."""
    sources = execution.sources()
    return sources.distinct() if sources is not None else None


def source_at(execution: Any, index: int) -> Any:
    """Raises LookFailed: a query that has just been started anew by its name has made no plan yet."""
    sources = sources_of(execution)
    if sources is None:
        raise LookFailed("the query has just begun, and has not planned what it reads")
    return sources.apply(index)


def private_field(thing: Any, name: str) -> Any:
    found = thing.getClass().getDeclaredField(name)
    found.setAccessible(True)
    return found.get(thing)
