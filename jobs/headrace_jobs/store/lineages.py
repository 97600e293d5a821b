"""How far a lineage has gone in runs that are removed: what a sink that knows batches does not forget.

    <job>/_lineages/<query id>/<batch>   the newest batch that had begun, when the run was removed

Whoever restores an older savepoint later must know it, or the sink takes its new batches for those it has.
Each removal adds an entry and none is ever changed, so that two at once cannot undo each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from headrace_jobs.store.errors import CheckpointDamagedError, NotFoundError
from headrace_jobs.store.interface import Store
from headrace_jobs.store.logs import read_lineage
from headrace_jobs.store.runs import last_batches_of, query_names, told_sinks

LINEAGES = "_lineages"
"""Beside the lineages of a job, and kept when its runs are removed."""


@dataclass(frozen=True, kw_only=True)
class Reached:
    """A query of a run, as far as it has begun batches."""

    query: str
    lineage: str
    batch: int
    run: str
    sink: str | None = None
    """What it wrote to, of a removed run; one that lies there still is asked itself."""
    removed: bool = False


def reached_in(store: Store, run: str) -> Iterator[Reached]:
    """Every query of the run that has begun a batch. One whose id cannot be read has no lineage to tell."""
    for query in query_names(store, run):
        lineage = _lineage_of(store, run, query)
        batch = last_batches_of(store, run, query).offsets if lineage is not None else None
        if lineage is not None and batch is not None:
            yield Reached(query=query, lineage=lineage, batch=batch, run=run)


def remember(store: Store, job: str, reached: Reached) -> None:
    """`job` is the directory that holds the lineages of the job. May be repeated at any time."""
    sink = told_sinks(store, reached.run).get(reached.query)
    body = json.dumps({**asdict(reached), "sink": sink, "removed": True}).encode()
    store.put_if_absent(_key(job, reached.lineage, str(reached.batch)), body)


def remembered(store: Store, job: str, lineage: str) -> Reached | None:
    """The furthest that removed runs of the job have gone with the lineage."""
    batches = [int(name) for name in store.children(_key(job, lineage)) if name.isdecimal()]
    if not batches:
        return None
    return Reached(**json.loads(store.get(_key(job, lineage, str(max(batches))))))


def _key(job: str, *parts: str) -> str:
    return "/".join((job, LINEAGES, *parts)).lstrip("/")


def _lineage_of(store: Store, run: str, query: str) -> str | None:
    try:
        return read_lineage("metadata", store.get(f"{run}/queries/{query}/metadata"))
    except (NotFoundError, CheckpointDamagedError):
        return None
