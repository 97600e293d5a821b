"""Which objects of a query's checkpoint make a savepoint at its last committed batch N.

    metadata                the lineage
    offsets/N-1, N          Spark asks for both; older ones as far back as the state's changelogs go
    offsets/N+1             a batch that has begun: its rows may be in the sink already, and only the same
                            bounds make its replay recognisable
    commits/…N              with the ids of the state files that count
    sources/                up to what the newest of those offsets has read
    state/                  version N+1 of every store, and nothing newer: a later restart would load it
    state/**/_metadata, _stateSchema   of batches up to N

So a savepoint is what a driver that was killed at this moment would have left, without what nobody needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace_jobs.store.errors import CheckpointDamagedError
from headrace_jobs.store.logs import (
    CommitEntry,
    OffsetsEntry,
    read_commit,
    read_lineage,
    read_offsets,
)
from headrace_jobs.store.statefiles import (
    Chain,
    Gone,
    batch_of_schema,
    chain_of,
    is_shared_file,
    is_versioned,
    shared_files,
    stores_of,
    with_checksums,
)

_LOG_ENTRY = re.compile(r"^(offsets|commits)/(\d+)$")
_SOURCE_ENTRY = re.compile(r"^sources/([^/]+)/(\d+)(\.compact)?$")
_PARTITION = re.compile(r"^state/(\d+)/(\d+)(?:/|$)")

ReadMany = Callable[[Iterable[str]], Mapping[str, bytes]]
"""Contents by key; raises Gone for what is not there any more."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A query at a committed batch. `batch` is -1 before the first commit."""

    lineage: str
    batch: int
    pending: bool
    keys: tuple[str, ...]
    watermark_ms: int | None
    offsets: Mapping[str, Any]
    provider: str | None
    partitions: int | None
    state_format: int | None


@dataclass
class _Checkpoint:
    """A listing, with contents read when they are asked for."""

    listed: frozenset[str]
    read_many: ReadMany
    _commits: dict[int, CommitEntry] = field(default_factory=dict)
    _offsets: dict[int, OffsetsEntry] = field(default_factory=dict)

    def read(self, key: str) -> bytes:
        if key not in self.listed:
            raise Gone(key)
        return self.read_many([key])[key]

    def offsets(self, batch: int) -> OffsetsEntry:
        if batch not in self._offsets:
            self._offsets[batch] = read_offsets(f"offsets/{batch}", self.read(f"offsets/{batch}"))
        return self._offsets[batch]

    def load_commits(self, batches: Iterable[int]) -> None:
        keys = {f"commits/{batch}": batch for batch in batches if f"commits/{batch}" in self.listed}
        for key, content in self.read_many(keys).items():
            self._commits[keys[key]] = read_commit(key, content)

    def commit(self, batch: int) -> CommitEntry:
        if batch not in self._commits:
            self._commits[batch] = read_commit(f"commits/{batch}", self.read(f"commits/{batch}"))
        return self._commits[batch]

    def state_ids(self, version: int) -> frozenset[str] | None:
        if f"commits/{version - 1}" not in self.listed:
            return None
        return self.commit(version - 1).state_ids


def select(listed: Iterable[str], committed: int | None, read_many: ReadMany) -> Selection:
    """Keys are relative to the query's checkpoint. Raises Gone: begin again from a newer batch."""
    checkpoint = _Checkpoint(frozenset(listed), read_many)
    lineage = read_lineage("metadata", checkpoint.read("metadata"))
    batch = -1 if committed is None else committed
    commit = checkpoint.commit(batch) if batch >= 0 else None
    reached = checkpoint.offsets(batch) if batch >= 0 else None
    pending = _is_pending(checkpoint, batch, reached)
    newest = batch + pending
    bounds = checkpoint.offsets(newest) if newest >= 0 else None

    chains = _chains(checkpoint, batch, commit)
    floor = min((chain.floor for chain in chains.values()), default=batch + 1)
    keys = {
        "metadata",
        *_logs(checkpoint.listed, since=floor - 1, batch=batch, newest=newest),
        *_sources(checkpoint.listed, bounds),
        *_state(checkpoint, chains),
        *_others(checkpoint.listed, batch),
    }
    return Selection(
        lineage=lineage,
        batch=batch,
        pending=pending,
        keys=tuple(sorted(keys)),
        watermark_ms=commit.watermark_ms if commit else None,
        offsets=reached.sources if reached else {},
        provider=bounds.provider if bounds and chains else None,
        partitions=_partition_count(chains) if chains else None,
        state_format=(1 if commit is None or commit.state_ids is None else 2) if chains else None,
    )


def _is_pending(checkpoint: _Checkpoint, batch: int, reached: OffsetsEntry | None) -> bool:
    """Half a repartition is no batch: no sink has seen it, and no driver could start from it."""
    if f"offsets/{batch + 1}" not in checkpoint.listed:
        return False
    return reached is None or not checkpoint.offsets(batch + 1).repartitions(reached)


def _logs(listed: frozenset[str], *, since: int, batch: int, newest: int) -> Iterable[str]:
    # Spark asks for the offsets before those of the last batch, too.
    required = [f"offsets/{number}" for number in (batch - 1, batch) if number >= 0]
    for key in required:
        if key not in listed:
            raise Gone(key)
    yield from required
    for key in listed:
        entry = _LOG_ENTRY.match(key)
        if entry and since <= int(entry[2]) <= (newest if entry[1] == "offsets" else batch):
            yield key


def _sources(listed: frozenset[str], bounds: OffsetsEntry | None) -> Iterable[str]:
    limits = bounds.log_limits() if bounds else {}
    found: dict[str, dict[int, bool]] = {name: {} for name in limits}
    for key in listed:
        if not key.startswith("sources/"):
            continue
        entry = _SOURCE_ENTRY.match(key)
        if entry is None or entry[1] not in limits:
            yield key
        elif int(entry[2]) <= limits[entry[1]]:
            yield key
            number = int(entry[2])
            found[entry[1]][number] = bool(entry[3]) or found[entry[1]].get(number, False)
    for name, limit in limits.items():
        _check_source_log(name, limit, found[name])


def _check_source_log(name: str, limit: int, compact_by_number: Mapping[int, bool]) -> None:
    """A compacted entry stands for all before it; from there to the limit each must be there."""
    for number in range(limit, -1, -1):
        if number not in compact_by_number:
            raise Gone(f"sources/{name}/{number}")
        if compact_by_number[number]:
            return


def _chains(checkpoint: _Checkpoint, batch: int, commit: CommitEntry | None) -> dict[str, Chain]:
    if commit is None:
        return {}
    version = batch + 1
    stores = {store: files for store, files in stores_of(checkpoint.listed).items() if _in_use(store, commit)}
    if commit.state_ids is not None:
        snapshots = [
            max((file.version for file in files if file.is_snapshot and file.version <= version), default=1)
            for files in stores.values()
        ]
        # Read ahead, in parallel: one by one they would take longer than the copy.
        checkpoint.load_commits(range(min(snapshots, default=version) - 1, version))
    chains = {store: chain_of(store, files, version, checkpoint.state_ids) for store, files in stores.items()}
    _check_partitions(chains, commit)
    return chains


def _in_use(store: str, commit: CommitEntry) -> bool:
    """After a repartition to fewer, the directories of the others stay, and no version is added to them."""
    match = _PARTITION.match(store)
    return not commit.partitions or match is None or int(match[2]) < commit.partitions.get(match[1], 0)


def _check_partitions(chains: Mapping[str, Chain], commit: CommitEntry) -> None:
    """A partition without any file would be taken for an empty one."""
    there = {(match[1], int(match[2])) for match in map(_PARTITION.match, chains) if match}
    # The old format does not say how many there are: then, at least none in between may be missing.
    counts = commit.partitions or {
        operator: 1 + max(number for one, number in there if one == operator) for operator, _ in there
    }
    for operator, count in counts.items():
        for number in range(count):
            if (operator, number) not in there:
                raise Gone(f"state/{operator}/{number}")


def _partition_count(chains: Mapping[str, Chain]) -> int:
    return 1 + max((int(match[2]) for match in map(_PARTITION.match, chains) if match), default=0)


def _state(checkpoint: _Checkpoint, chains: Mapping[str, Chain]) -> list[str]:
    store_of = {snapshot: store for store, chain in chains.items() for snapshot in chain.snapshots()}
    keys = [file.key for chain in chains.values() for file in chain.files]
    for snapshot, content in checkpoint.read_many(store_of).items():
        for key in shared_files(store_of[snapshot], snapshot, content):
            if key not in checkpoint.listed:
                raise Gone(key)
            keys.append(key)
    return with_checksums(keys, dict.fromkeys(checkpoint.listed))


def _others(listed: frozenset[str], batch: int) -> Iterable[str]:
    """Metadata and schemas of the state, and whatever else Spark may keep one day."""
    for key in listed:
        if key.startswith("sources/") or _LOG_ENTRY.match(key) or is_versioned(key) or is_shared_file(key):
            continue
        of_batch = batch_of_schema(key)
        if of_batch is None or of_batch <= batch:
            yield key


def check_same(selection: Selection, keys: Iterable[str]) -> None:
    """A savepoint holds what would be selected from it, and nothing beside it."""
    surplus = sorted(set(keys) - set(selection.keys))
    if surplus:
        raise CheckpointDamagedError(
            f"{surplus[0]} does not belong to batch {selection.batch}: a restart could load it"
        )
