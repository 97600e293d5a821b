"""The fork that a candidate rehearses on: a query of the incumbent as it was K batches ago.

rehearsal-<n>/queries/<name>/       the checkpoint at batch N-K, under a lineage of its own
rehearsal-<n>/_planned/<name>/<b>   what batches N-K+1 … N read, to be laid down one after the other

Spark repeats one pending batch after a start, the newest, and with several it fails (it wants the state
before the newest one). So the recorded entries wait beside the fork: each is laid down when the one before
it is committed, and Spark repeats it with exactly the input it had. A batch that is repeated is not planned:
nothing is acknowledged to a source, and nothing is cleaned up there.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

from headrace_jobs.store.errors import CheckpointDamagedError, NotFoundError, SourceChangedError, StoreError
from headrace_jobs.store.interface import Entry, Store
from headrace_jobs.store.logs import read_offsets
from headrace_jobs.store.mirror import Wanted, mirror
from headrace_jobs.store.partitions import repartitions_at
from headrace_jobs.store.runs import LastBatches, Run, last_batches_of, run_directory
from headrace_jobs.store.savepoints.restore import forked
from headrace_jobs.store.savepoints.take import check_tree, select_query
from headrace_jobs.store.statefiles import Gone, is_state
from headrace_jobs.store.statepaths import names_paths, with_paths_moved

log = logging.getLogger("headrace")

_REHEARSAL = re.compile(r"^rehearsal-(\d+)$")
_LATER = re.compile(r"^(?:offsets|commits)/(\d+)$")
_TRIES = 5


@dataclass(frozen=True, kw_only=True)
class Fork:
    """One query, ready to be rehearsed."""

    query: str
    base: int
    """The batch it stands at; -1: before the first."""
    planned: tuple[int, ...]
    """The batches to lay down, in this order."""
    empty: bool = False
    """The one planned batch reads nothing: there is no past batch that could be repeated."""
    is_new: bool = False
    """The incumbent has no such query, or it has not begun a batch: nothing was copied."""
    fewer: str | None = None
    """Why fewer batches are repeated than were asked for."""


def rehearsal_directory(run: int) -> str:
    return f"rehearsal-{run}"


def fork_query(store: Store, *, from_run: Run, rehearsal: str, query: str, batches: int) -> Fork:
    """Copies the query as it was `batches` batches ago, from a run that may go on meanwhile.

    Whatever an earlier try has left there is replaced. Raises StoreError.
    """
    _check_name(rehearsal)
    before: tuple[LastBatches, str] | None = None
    for _ in range(_TRIES):
        last = last_batches_of(store, from_run, query)
        if last.offsets is None or (last.commits is None and batches == 0):
            store.delete_tree(f"{rehearsal}/queries/{query}")
            return Fork(query=query, base=-1, planned=(), is_new=True)
        try:
            return _Forking(store, run_directory(from_run), rehearsal, query).fork(last, batches)
        except (Gone, SourceChangedError, NotFoundError) as error:
            if (last, str(error)) == before:
                raise CheckpointDamagedError(
                    f"the checkpoint of query {query} in {store.url}/{run_directory(from_run)} lacks {error}"
                ) from None
            before = (last, str(error))
            log.info(
                "the clean-up of the running query %s was faster than its fork (%s): again", query, error
            )
    raise StoreError(
        f"Spark's own clean-up removed files of query {query} faster than they could be copied, "
        f"{_TRIES} times: raise spark.sql.streaming.minBatchesToRetain"
    )


def lay_down(store: Store, *, rehearsal: str, query: str, batch: int) -> None:
    """Makes a planned batch the pending one. The batch before it must be committed."""
    _check_name(rehearsal)
    content = store.get(f"{rehearsal}/_planned/{query}/{batch}")
    store.put(f"{rehearsal}/queries/{query}/offsets/{batch}", content)


def discard_fork(store: Store, rehearsal: str) -> None:
    """Removes the copies; claims and logs of the rehearsal stay until it goes as a whole."""
    _check_name(rehearsal)
    for part in ("queries", "_planned"):
        store.delete_tree(f"{rehearsal}/{part}")


def sweep_rehearsals(store: Store, *, before: int) -> list[str]:
    """Removes what rehearsals of earlier runs have left; never anything but rehearsals."""
    names = (name.rstrip("/") for name in store.children("") if name.endswith("/"))
    found = [name for name in names if (match := _REHEARSAL.match(name)) and int(match[1]) < before]
    for name in found:
        store.delete_tree(name)
    return found


def _check_name(rehearsal: str) -> None:
    """The last gate before anything is removed or overwritten."""
    if not _REHEARSAL.match(rehearsal):
        raise ValueError(f"{rehearsal!r} is not a rehearsal")


@dataclass(frozen=True)
class _Forking:
    store: Store
    run: str
    rehearsal: str
    query: str

    @property
    def source(self) -> str:
        return f"{self.run}/queries/"

    @property
    def target(self) -> str:
        return f"{self.rehearsal}/queries/"

    def fork(self, last: LastBatches, batches: int) -> Fork:
        committed = -1 if last.commits is None else last.commits
        # A query that has begun its first batch and not committed it can repeat that one.
        newest = max(committed, 0)
        prefix = self.source + self.query + "/"
        listed = {
            entry.key.removeprefix(self.source): entry
            for entry in self.store.list(prefix)
            if _number_of_log(entry.key.removeprefix(prefix)) <= newest
        }
        own = {key.removeprefix(f"{self.query}/") for key in listed}
        wanted_base = max(newest - batches, -1)
        missing = split = None
        for batch in range(newest, max(wanted_base, 0), -1):
            if {f"offsets/{batch - 1}", f"offsets/{batch}"} <= own and self._splits(batch):
                # No batch, and what came before it is split otherwise: there is no way to repeat across it.
                wanted_base = split = batch
                break
        for base in range(wanted_base, newest + 1):
            if base < newest or committed >= 0:
                try:
                    keys = self._keys(listed, own, base, newest)
                except Gone as gone:
                    missing = missing or gone.what
                    continue
                fewer = _why_fewer(newest - base, newest, batches, missing, split)
                return self._copied(listed, keys, base, newest, fewer)
        raise Gone(missing or f"{self.query}/offsets/{newest}")

    def _keys(self, listed: Mapping[str, Entry], own: set[str], base: int, newest: int) -> list[str]:
        """What the fork at `base` needs, and what repeating the batches up to `newest` needs beside it."""
        for batch in range(base + 1, newest + 1):
            if f"offsets/{batch}" not in own:
                raise Gone(f"offsets/{batch}")
        then = {
            key: entry
            for key, entry in listed.items()
            if _number_of_log(key.removeprefix(f"{self.query}/")) <= base
        }
        committed = base if base >= 0 else None
        selection = select_query(self.store, then, self.query, self.source, committed)
        return [*selection.keys, *self._source_entries(own, base, newest)]

    def _source_entries(self, own: set[str], base: int, newest: int) -> list[str]:
        """The entries of file sources that the batches to be repeated read: each by itself, since a
        compacted log no longer says which of its files are old."""
        reached = self._log_limits(base) if base >= 0 else {}
        keys: list[str] = []
        for source, limit in self._log_limits(newest).items():
            for number in range(reached.get(source, -1) + 1, limit + 1):
                found = [key for key in _source_keys(source, number) if key in own]
                if not found:
                    raise Gone(f"sources/{source}/{number}")
                keys += found
        return keys

    def _splits(self, batch: int) -> bool:
        return repartitions_at(self.store, f"{self.source}{self.query}", batch)

    def _log_limits(self, batch: int) -> dict[str, int]:
        key = f"offsets/{batch}"
        return read_offsets(key, self._get(key)).log_limits()

    def _get(self, key: str) -> bytes:
        return self.store.get(f"{self.source}{self.query}/{key}")

    def _copied(
        self,
        listed: Mapping[str, Entry],
        keys: list[str],
        base: int,
        newest: int,
        fewer: str | None,
    ) -> Fork:
        empty = base == newest
        plans = (
            {newest + 1: self._get(f"offsets/{newest}")}
            if empty
            else {batch: self._get(f"offsets/{batch}") for batch in range(base + 1, newest + 1)}
        )
        wanted = [self._wanted(listed[f"{self.query}/{key}"]) for key in sorted(set(keys))]
        tree = f"{self.target}{self.query}/"
        mirror(self.store, wanted, tree)
        check_tree(self.store, tree, wanted)
        self.store.delete_tree(f"{self.rehearsal}/_planned/{self.query}")
        for batch, content in plans.items():
            self.store.put(f"{self.rehearsal}/_planned/{self.query}/{batch}", content)
        return Fork(
            query=self.query,
            base=base,
            planned=tuple(plans),
            empty=empty,
            fewer=fewer,
        )

    def _wanted(self, entry: Entry) -> Wanted:
        key = entry.key.removeprefix(self.source)
        target = self.target + key
        content = None
        if key == f"{self.query}/metadata":
            content = forked(f"{self.store.url}/{target}")
        elif names_paths(key):
            urls = (f"{self.store.url}/{tree}".rstrip("/") for tree in (self.source, self.target))
            content = with_paths_moved(self.store.get(entry.key), *urls)
        return Wanted(entry, target, content, is_state(key))


def _number_of_log(key: str) -> int:
    """Of an entry in offsets/ or commits/; -1 for anything else."""
    entry = _LATER.match(key)
    return int(entry[1]) if entry else -1


def _source_keys(source: str, number: int) -> tuple[str, str]:
    return f"sources/{source}/{number}", f"sources/{source}/{number}.compact"


def _why_fewer(repeated: int, newest: int, asked: int, missing: str | None, split: int | None) -> str | None:
    if repeated >= asked:
        return None
    if missing is None and split is not None:
        return f"its state was split into another number of partitions in batch {split}"
    if missing is None:
        return f"the query has begun {newest + 1} so far" if asked else "none was asked for"
    return f"what came before is purged already ({missing})"
