"""What Spark keeps to itself, and nowhere else tells."""

from __future__ import annotations

from typing import Any


def sources_of(execution: Any) -> Any:
    """In the order of the query's progress, which names each one once."""
    sources = execution.sources()
    return sources.distinct() if sources is not None else None


def private_field(thing: Any, name: str) -> Any:
    found = thing.getClass().getDeclaredField(name)
    found.setAccessible(True)
    return found.get(thing)
