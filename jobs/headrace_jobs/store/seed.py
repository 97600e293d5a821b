"""Seeding: a run begins with a copy of the queries of the run before it.

Everything Spark keeps is copied: both logs with a batch that is still pending (its rows may be in the sink
already, and only the same bounds make the replay recognisable), the state, and the sources' own logs.
The marker `_seed.json` is written last: a run without it was not seeded to the end and must not start.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from headrace_jobs.store.errors import NotFoundError, StoreError
from headrace_jobs.store.interface import Copy, Entry, Store
from headrace_jobs.store.runs import LastBatches, Run, last_batches, newest_claim, run_directory

_MARKER = "_seed.json"
# Operator metadata of transformWithState: the one file in a checkpoint that names other files by full path.
_NAMES_PATHS = re.compile(r"^[^/]+/state/[^/]+/_metadata/v2/\d+$")


class SeedError(StoreError):
    reason = "SeedFailed"


@dataclass(frozen=True)
class Seed:
    """What a run was seeded with."""

    from_run: str
    batches: dict[str, LastBatches]
    objects: int
    size_bytes: int
    rewritten: int


def is_seeded(store: Store, run: Run) -> bool:
    return _read_marker(store, run) is not None


def seed_run(store: Store, from_run: Run, to_run: Run) -> Seed:
    """Copies the queries of a stopped run. May be called again at any time: it goes on where it was."""
    done = _read_marker(store, to_run)
    if done is not None:
        if done.from_run != run_directory(from_run):
            raise SeedError(f"{run_directory(to_run)} was already seeded from {done.from_run}")
        return done
    claimed_by = newest_claim(store, to_run)
    if claimed_by is not None:
        raise SeedError(
            f"{run_directory(to_run)} is in use by attempt {claimed_by}: it can not be seeded any more"
        )

    source, target = (f"{run_directory(run)}/queries/" for run in (from_run, to_run))
    sources = list(store.list(source))
    rewritten = _mirror(store, sources, source, target)
    seed = Seed(
        from_run=run_directory(from_run),
        batches=_verified_batches(store, from_run, to_run),
        objects=len(sources),
        size_bytes=sum(entry.size for entry in sources),
        rewritten=rewritten,
    )
    store.put_if_absent(f"{run_directory(to_run)}/{_MARKER}", json.dumps(asdict(seed)).encode())
    return seed


def _mirror(store: Store, sources: list[Entry], source: str, target: str) -> int:
    """Makes the target equal to the source by copying what differs; returns how many files were rewritten."""
    existing = {entry.key: entry for entry in store.list(target)}
    rewritten = 0
    copies: list[Copy] = []
    for entry in sources:
        key = target + entry.key.removeprefix(source)
        if _NAMES_PATHS.match(entry.key.removeprefix(source)):
            content = store.get(entry.key)
            moved = _with_paths_moved(content, store.url, source, target)
            rewritten += moved != content
            store.put(key, moved)
        elif not _is_copy(existing.get(key), entry):
            copies.append(Copy(entry, key))
    store.copy_many(copies)
    wanted = {target + entry.key.removeprefix(source) for entry in sources}
    # Left by an earlier, broken-off seeding: the source has purged them since.
    store.delete_many(existing.keys() - wanted)
    return rewritten


def _is_copy(existing: Entry | None, source: Entry) -> bool:
    if existing is None or existing.size != source.size:
        return False
    # Encryption with KMS gives equal content different etags. A copy made strictly after the source was
    # last written is a copy of it; S3 lists whole seconds, so equal times prove nothing.
    return existing.etag == source.etag or existing.modified > source.modified


def _with_paths_moved(content: bytes, store_url: str, source: str, target: str) -> bytes:
    """Spark writes file:/x for file:///x and s3a:// for s3://, so the paths are matched without scheme."""
    parts = urlsplit(store_url)
    root = parts.netloc + parts.path
    text = content.decode()
    moved = text.replace(f"{root}/{source}", f"{root}/{target}")
    for path in _schema_paths(moved):
        if f"{root}/{target}" not in path:
            raise SeedError(
                f"the state schema {path} lies outside of the run: its checkpoint was moved by hand"
            )
    return moved.encode()


def _schema_paths(text: str) -> Iterable[str]:
    _version, _, body = text.partition("\n")
    found: list[str] = []

    def walk(value: Any) -> None:
        match value:
            case {"stateSchemaFilePaths": [*paths], **rest}:
                found.extend(map(str, paths))
                walk(list(rest.values()))
            case dict():
                walk(list(value.values()))
            case list():
                for item in value:
                    walk(item)
            case str() if value.startswith("{"):
                walk(json.loads(value))

    walk(json.loads(body))
    return found


def _verified_batches(store: Store, from_run: Run, to_run: Run) -> dict[str, LastBatches]:
    wanted, found = last_batches(store, from_run), last_batches(store, to_run)
    if wanted != found:
        raise SeedError(
            f"{run_directory(from_run)} changed while it was copied ({wanted} is not {found}): "
            "its driver must be stopped first"
        )
    return found


def _read_marker(store: Store, run: Run) -> Seed | None:
    try:
        fields = json.loads(store.get(posixpath.join(run_directory(run), _MARKER)))
    except NotFoundError:
        return None
    fields["batches"] = {name: LastBatches(*pair) for name, pair in fields["batches"].items()}
    return Seed(**fields)
