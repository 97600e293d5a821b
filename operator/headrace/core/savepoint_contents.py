"""What a keeper tells of a savepoint -> what its status says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from headrace.api import SavedQuery, StreamSavepointStatus

# As many as the status has room for.
_MOST_QUERIES = 64
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def with_contents(status: StreamSavepointStatus, told: Mapping[str, Any] | None) -> StreamSavepointStatus:
    """A keeper of another version may tell less: what it does not tell is not known."""
    if not told:
        return status
    named = told.get("queries", ())
    queries = tuple(_query(one) for one in named[:_MOST_QUERIES])
    more = int(told.get("more_queries") or 0) + len(named) - len(queries)
    bare = tuple(str(one) for one in told.get("offsets_left_out") or ())[:_MOST_QUERIES]
    size, run = told.get("bytes"), str(told.get("run", ""))
    number = run.rpartition("run-")[2]
    return status.model_copy(
        update={
            "queries": queries,
            "more_queries": more or None,
            "offsets_left_out": bare,
            "batch": queries[0].batch if len(queries) == 1 and not more else None,
            "objects": told.get("objects"),
            "bytes": size,
            "size": size_text(size) if isinstance(size, int) else None,
            "spark_version": told.get("spark_version"),
            "revision": status.revision or told.get("spec_digest"),
            "run": status.run or (int(number) if number.isdecimal() else None),
            "source": status.source or run or None,
        }
    )


def in_words(status: StreamSavepointStatus) -> str:
    batches = ", ".join(f"{one.name} at batch {one.batch}" for one in status.queries)
    if status.more_queries is not None:
        batches += f", and {status.more_queries} more queries that its manifest names"
    size = f"{status.objects} objects, {status.size}" if status.size is not None else ""
    return "; ".join(part for part in (batches, size) if part) or "its contents were not told"


def place_of(path: str) -> tuple[str, str]:
    """The store of a job, and the savepoint in it; of one that was moved, the directory that it lies in."""
    store, found, directory = path.rpartition("/_savepoints/")
    if found:
        return store, f"_savepoints/{directory}"
    store, _, directory = path.rpartition("/")
    return store, directory


def size_text(size: int) -> str:
    """`1.2Gi`: one decimal below ten."""
    number, unit = float(size), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    text = f"{number:.1f}" if unit > 0 and number < 10 else f"{number:.0f}"
    return f"{text}{_UNITS[unit]}"


def _query(told: Mapping[str, Any]) -> SavedQuery:
    watermark = told.get("watermark_ms")
    offsets = cast(Mapping[str, Any], told.get("offsets") or {})
    return SavedQuery(
        name=str(told["name"]),
        lineage=str(told["lineage"]),
        batch=int(told["batch"]),
        pending=bool(told.get("pending")),
        watermark=datetime.fromtimestamp(watermark / 1000, UTC) if watermark else None,
        offsets={str(source): offset for source, offset in offsets.items()},
        partitions=told.get("partitions"),
        state_format=told.get("state_format"),
    )
