"""What `spec.startFrom` says, in the words that the status, the keeper and the driver need."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any, cast

from headrace.api import StartFrom, StreamJobStatus
from headrace.core.model import Job, Problem
from headrace.core.restarts import found_earlier_lineage, refused_its_start


def start_in_words(start: StartFrom) -> str:
    """For the status: two starts with the same words are the same start."""
    if start.offsets is not None:
        canonical = json.dumps(start.offsets, sort_keys=True)
        return f"offsets {hashlib.sha256(canonical.encode()).hexdigest()[:12]}"
    if start.path is not None:
        return f"path {start.path}" + (f", query {start.query}" if start.query is not None else "")
    for word, value in (("savepoint", start.savepoint), ("timestamp", start.timestamp)):
        if value is not None:
            return f"{word} {value}"
    return "latest" if start.latest else "none"


def starts_without_state(start: StartFrom | None) -> bool:
    """On purpose, whatever lies in the store."""
    return start is not None and not (start.latest or start.savepoint or start.path)


def start_problem(start: StartFrom | None) -> Problem | None:
    """What a schema cannot see, found before anything starts."""
    if start is None:
        return None
    if start.timestamp is not None:
        try:
            datetime.fromisoformat(start.timestamp)
        except ValueError as error:
            return Problem(
                "StartInvalid", f"spec.startFrom.timestamp: {start.timestamp} is no time ({error})"
            )
    for query, text in (start.offsets or {}).items():
        if (wrong := _wrong_offsets(text)) is not None:
            example = '{"clicks":{"0":4711,"1":-2}}'
            return Problem(
                "StartInvalid",
                f"spec.startFrom.offsets.{query}: {wrong}. Write topic, partition and offset as in {example}"
                "; -2 is the earliest, -1 the latest",
            )
    return None


def _wrong_offsets(text: str) -> str | None:
    try:
        topics: Any = json.loads(text)
    except ValueError as error:
        return f"it is not JSON ({error})"
    if not isinstance(topics, dict) or not topics:
        return "it names no topic"
    for topic, partitions in cast(dict[str, Any], topics).items():
        if not isinstance(partitions, dict) or not partitions:
            return f"topic {topic} has no partitions"
        for partition, offset in cast(dict[str, Any], partitions).items():
            is_number = isinstance(offset, int) and not isinstance(offset, bool) and offset >= -2
            if not partition.isdecimal() or not is_number:
                return f"partition {partition} of topic {topic} has the offset {offset!r}"
    return None


def driver_start(start: StartFrom | None, *, started_from: str | None) -> dict[str, Any] | None:
    """For run.json: where sources begin in queries that have no checkpoint yet.

    Only what the job has begun with: said later, it is of no matter.
    """
    if start is None or (start.timestamp is None and start.offsets is None):
        return None
    if start_in_words(start) != started_from:
        return None
    at = datetime.fromisoformat(start.timestamp) if start.timestamp is not None else None
    return {
        "timestampMillis": round(at.timestamp() * 1000) if at is not None else None,
        "offsets": {query: json.loads(text) for query, text in start.offsets.items()}
        if start.offsets is not None
        else None,
    }


def restored_name(wanted: str) -> str:
    """`nightly@2026-01-31T08:00:00Z` -> nightly: what follows only makes it another request."""
    return wanted.partition("@")[0]


def awaited_savepoint(job: Job, status: StreamJobStatus) -> str | None:
    """The name of the savepoint that the job is about to start from; None where nothing is about to."""
    start = job.spec.start_from
    if job.restore is not None and job.restore != status.restored and status.run is not None:
        return restored_name(job.restore)
    if start is None or start.savepoint is None:
        return None
    begins = status.run is None or found_earlier_lineage(status) or refused_its_start(status)
    return start.savepoint if begins else None
