"""Into how many partitions the state of a query is split, and what a change of that leaves in its checkpoint.

The number is fixed in `offsets/`; a session's own setting is not asked. Spark changes it offline: a query
that is stopped at batch N gets a batch N+1 with the offsets of N and the other number, and a whole snapshot
of every store. No sink hears of that batch. Until its commit is there it is half done: no driver could start
from it, so whoever finds it removes it first. What was there before is not touched by it: nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace_jobs.store.interface import Store
from headrace_jobs.store.logs import OffsetsEntry, read_offsets
from headrace_jobs.store.runs import (
    LastBatches,
    Run,
    checkpoint_batches,
    query_names,
    run_directory,
    told_sinks,
)
from headrace_jobs.store.statefiles import batch_of_schema, version_of


@dataclass(frozen=True, kw_only=True)
class QueryState:
    """A query of a stopped run, as far as a repartition asks."""

    name: str
    last: LastBatches
    # Whether it keeps state at all.
    stateful: bool
    partitions: int | None
    # The last part of the class name, as in RocksDBStateStoreProvider.
    provider: str | None
    # What it writes to, as Spark describes it; None where nobody told.
    sink: str | None


def states_of(store: Store, run: Run) -> list[QueryState]:
    """Every query of the run that has begun."""
    sinks = told_sinks(store, run)
    found = (_state_of(store, run, query, sinks.get(query)) for query in query_names(store, run))
    return [state for state in found if state.last.offsets is not None]


def _state_of(store: Store, run: Run, query: str, sink: str | None) -> QueryState:
    checkpoint = f"{run_directory(run)}/queries/{query}"
    last = checkpoint_batches(store, checkpoint)
    newest = last.commits if last.commits is not None else last.offsets
    entry = _entry(store, checkpoint, newest) if newest is not None else None
    return QueryState(
        name=query,
        last=last,
        stateful=bool(store.children(f"{checkpoint}/state")),
        partitions=entry.partitions if entry is not None else None,
        provider=entry.provider if entry is not None else None,
        sink=sink,
    )


def undo_unfinished(store: Store, run: Run) -> list[str]:
    """Takes back what repartitions left half done in a run that nobody writes to; the queries it found so.

    May be repeated at any time. The log entry goes last: as long as it is there, all is done again.
    """
    undone: list[str] = []
    for query in query_names(store, run):
        checkpoint = f"{run_directory(run)}/queries/{query}"
        last = checkpoint_batches(store, checkpoint)
        if not is_unfinished(store, checkpoint, last):
            continue
        assert last.commits is not None  # else there would be nothing to compare with
        prefix = f"{checkpoint}/"
        keys = [entry.key for entry in store.list(prefix)]
        left = [key for key in keys if is_later(key.removeprefix(prefix), last.commits)]
        store.delete_many(left)
        store.delete_many([f"{checkpoint}/offsets/{last.offsets}"])
        undone.append(query)
    return undone


def is_unfinished(store: Store, checkpoint: str, last: LastBatches) -> bool:
    return last.pending and last.commits is not None and repartitions_at(store, checkpoint, last.commits + 1)


def repartitions_at(store: Store, checkpoint: str, batch: int) -> bool:
    """Whether this entry of the log only changes the number of partitions. Its predecessor must be there."""
    return _entry(store, checkpoint, batch).repartitions(_entry(store, checkpoint, batch - 1))


def is_later(key: str, batch: int) -> bool:
    """Whether a file of the state, below the checkpoint, was written by a batch after this one."""
    version, of_batch = version_of(key), batch_of_schema(key)
    return (version is not None and version > batch + 1) or (of_batch is not None and of_batch > batch)


def _entry(store: Store, checkpoint: str, batch: int) -> OffsetsEntry:
    key = f"{checkpoint}/offsets/{batch}"
    return read_offsets(key, store.get(key))
