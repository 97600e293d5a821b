"""Which state files make up one version of one state store. Pure: listing and contents come in.

A batch N leaves version N+1 of each store: a changelog, and now and then a snapshot (`.zip`, which names the
`SSTs/` it is made of). A version is loaded from the newest snapshot at or below it and the changelogs since.

In format v2 every file carries the id of the task attempt that wrote it, and `commits/<batch>` says which
ids count. Files of attempts that lost (retried or speculative tasks, a killed driver) lie beside them: a
snapshot among those is no base to build on, so ids are followed and never guessed from names alone.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headrace_jobs.store.errors import CheckpointDamagedError

_VERSIONED = re.compile(
    r"^(?P<store>state/.+)/(?P<version>\d+)(?:_(?P<id>[0-9a-f-]{36}))?\.(?P<kind>changelog|delta|zip|snapshot)$"
)
# Written by the first batch of a driver: <batch>, or <batch>_<id>.
_OF_BATCH = re.compile(r"^state/.+/(?:_metadata/v\d+/|_stateSchema/[^/]+/)(\d+)(?:_[^/]*)?$")
_SHARED = re.compile(r"^(?P<store>state/.+)/(?P<kind>SSTs|logs)/[^/]+$")
CHECKSUM = ".crc"
_SNAPSHOTS = ("zip", "snapshot")

Ids = Callable[[int], frozenset[str] | None]
"""The ids that count in a version; None where its commit is not known any more."""


class Gone(Exception):
    """Something that is needed was not there: Spark purged it while we looked, or it never was."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True)
class StateFile:
    key: str
    version: int
    id: str | None
    is_snapshot: bool


@dataclass(frozen=True)
class Chain:
    """The files of one store that make up one version."""

    files: tuple[StateFile, ...]
    floor: int
    """The oldest version among them: commits from the batch before it on belong to the copy."""

    def snapshots(self) -> Iterable[str]:
        return (file.key for file in self.files if file.is_snapshot and file.key.endswith(".zip"))


def is_shared_file(key: str) -> bool:
    """Immutable parts of snapshots, named in the snapshots that use them."""
    return _SHARED.match(key) is not None


def is_versioned(key: str) -> bool:
    return _VERSIONED.match(key.removesuffix(CHECKSUM)) is not None


def batch_of_schema(key: str) -> int | None:
    """Of metadata and schemas of the state: the batch that wrote them; None where they are of none."""
    match = _OF_BATCH.match(key)
    return int(match[1]) if match else None


def version_of(key: str) -> int | None:
    """Of a file of the state, or its checksum; None for what belongs to no single version."""
    match = _VERSIONED.match(key.removesuffix(CHECKSUM))
    return int(match["version"]) if match else None


def is_state(key: str) -> bool:
    """Below `queries/`: files of the state, which nobody ever writes into again."""
    own = key.partition("/")[2]
    return is_versioned(own) or is_shared_file(own)


def stores_of(keys: Iterable[str]) -> dict[str, list[StateFile]]:
    """All versioned files by the store they belong to (`state/<operator>/<partition>[/<name>]`)."""
    found: dict[str, list[StateFile]] = {}
    for key in keys:
        match = _VERSIONED.match(key)
        if match:
            file = StateFile(key, int(match["version"]), match["id"], match["kind"] in _SNAPSHOTS)
            found.setdefault(match["store"], []).append(file)
    return found


def chain_of(store: str, files: Iterable[StateFile], version: int, ids: Ids) -> Chain:
    """The files to load `version` from. Raises Gone when one of them is missing."""
    by_version: dict[int, list[StateFile]] = {}
    for file in files:
        if file.version <= version:
            by_version.setdefault(file.version, []).append(file)
    chosen: list[StateFile] = []
    for number in range(version, 0, -1):
        counted = _counted(by_version.get(number, ()), number, ids)
        if counted is None:
            return _everything(store, by_version)
        snapshot = next((file for file in counted if file.is_snapshot), None)
        if snapshot is not None:
            return Chain((*chosen, snapshot), number)
        changes = [file for file in counted if not file.is_snapshot]
        if not changes:
            raise Gone(f"{store}: version {number}, of {version} to be copied")
        chosen += changes
    return Chain(tuple(chosen), 1)


def _counted(files: Iterable[StateFile], version: int, ids: Ids) -> list[StateFile] | None:
    """Without those of attempts that lost. None when nobody can say which those are."""
    if all(file.id is None for file in files):
        return list(files)
    counting = ids(version)
    return None if counting is None else [file for file in files if file.id in counting]


def _everything(store: str, by_version: Mapping[int, list[StateFile]]) -> Chain:
    """All that is not newer. More than needed, never less: the ids in the files themselves lead Spark on."""
    files = tuple(file for number in sorted(by_version) for file in by_version[number])
    if not files:
        raise Gone(f"{store}: all versions to be copied")
    return Chain(files, min(by_version))


def shared_files(store: str, snapshot: str, content: bytes) -> list[str]:
    """The keys of the immutable files that a snapshot is made of."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            # Reading compares each part with its checksum.
            parts = {name: archive.read(name) for name in archive.namelist()}
        metadata = json.loads(parts["metadata"].decode().split("\n", 1)[1])
        # A RocksDB without data has no list at all.
        return [
            *(f"{store}/SSTs/{one['dfsSstFileName']}" for one in metadata.get("sstFiles") or ()),
            *(f"{store}/logs/{one['dfsLogFileName']}" for one in metadata.get("logFiles") or ()),
        ]
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, IndexError, TypeError) as error:
        raise CheckpointDamagedError(
            f"{snapshot} is not a readable snapshot ({error}): the query itself could not start from it"
        ) from None


def with_checksums(keys: Iterable[str], listed: Mapping[str, object]) -> list[str]:
    """Each with its checksum, where Spark wrote one: both or neither."""
    return [one for key in keys for one in (key, key + CHECKSUM) if one in listed]
