"""The savepoints that lie in a store, also where no object of any cluster tells of them; and their removal.

A savepoint is removed in an order that never leaves one that looks whole: its manifest is replaced by a
tombstone first. The tombstone also stops a copier that is still under way, since both want the same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace_jobs.store.errors import NotFoundError, SavepointError
from headrace_jobs.store.interface import Entry, Store
from headrace_jobs.store.savepoints.claims import open_claims
from headrace_jobs.store.savepoints.manifest import (
    CLAIMS,
    MANIFEST,
    Manifest,
    decode,
    find_manifest,
    finished_copy,
    has_manifest,
    tombstone,
)

SAVEPOINTS = "_savepoints"
"""The directory of a job's savepoints, beside its lineages: <location>/<namespace>/<name>/_savepoints/."""

# From the root of a location: namespace and name.
_DEEPEST = 2


@dataclass(frozen=True, kw_only=True)
class Found:
    """A directory of a savepoint. Without a manifest it is unfinished or damaged: `problem` says which."""

    path: str
    manifest: Manifest | None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Orphan:
    """Objects that belong to no savepoint and never will."""

    path: str
    why: str
    objects: int
    size_bytes: int
    unfinished: bool = False
    """Somebody might still be at work on it, against all likelihood."""


def list_savepoints(store: Store, directory: str = SAVEPOINTS) -> list[Found]:
    """Those in one directory, in the order of their names."""
    names = (name.rstrip("/") for name in store.children(directory) if name.endswith("/"))
    paths = (f"{directory}/{name}".lstrip("/") for name in names)
    return [found for path in paths if (found := _found(store, path)) is not None]


def find_savepoints(store: Store, *, below: str = "", depth: int = _DEEPEST) -> Iterator[Found]:
    """All below a directory, which may be that of a job, of a namespace, or a whole location."""
    names = [name.rstrip("/") for name in store.children(below) if name.endswith("/")]
    if SAVEPOINTS in names:
        yield from list_savepoints(store, f"{below}/{SAVEPOINTS}".lstrip("/"))
    if depth > 0:
        for name in names:
            if name != SAVEPOINTS:
                yield from find_savepoints(store, below=f"{below}/{name}".lstrip("/"), depth=depth - 1)


def _found(store: Store, path: str) -> Found | None:
    """None for what is left of a removed one: it is no savepoint, and nothing is to be done about it."""
    try:
        manifest = find_manifest(store, path)
    except SavepointError as error:
        return Found(path=path, manifest=None, problem=str(error))
    if manifest is None and has_manifest(store, path):
        return None
    return Found(path=path, manifest=manifest, problem="" if manifest else "it was never finished")


def delete_savepoint(store: Store, savepoint: str, *, why: str) -> None:
    """May be repeated at any time; a savepoint that is not there is fine.

    The tombstone stays as long as a copier may come back: for the collector, who knows when none can.
    """
    finished_by = _finished_by(store, savepoint)
    others = [number for number in open_claims(store, savepoint) if f"data-{number}" != finished_by]
    store.put(f"{savepoint}/{MANIFEST}", tombstone(why, finished_by=finished_by))
    _delete_all_but_tombstone(store, savepoint)
    if not others:
        store.delete_tree(savepoint)


def _finished_by(store: Store, savepoint: str) -> str | None:
    """The directory of the copy that was made to the end; its copier has nothing left to do."""
    try:
        return finished_copy(store.get(f"{savepoint}/{MANIFEST}"))
    except NotFoundError:
        return None


def orphans(
    store: Store, *, older_than: timedelta, now: datetime, directory: str = SAVEPOINTS
) -> list[Orphan]:
    """What `collect` would remove: copies whose last claim is older, and what removed savepoints left.

    The limit must be longer than any copy may take.
    """
    limit = now.timestamp() - older_than.total_seconds()
    names = (name.rstrip("/") for name in store.children(directory) if name.endswith("/"))
    return [
        orphan for name in names for orphan in _orphans_of(store, f"{directory}/{name}".lstrip("/"), limit)
    ]


def _orphans_of(store: Store, savepoint: str, limit: float) -> Iterator[Orphan]:
    entries = list(store.list(f"{savepoint}/"))
    manifest = next((entry for entry in entries if entry.key == f"{savepoint}/{MANIFEST}"), None)
    claims = [entry for entry in entries if entry.key.startswith(f"{savepoint}/{CLAIMS}/")]
    # Copies on a directory keep the times of what they were copied from: only claims tell when.
    marks = claims or entries
    if manifest is None:
        if max((entry.modified for entry in marks), default=0.0) < limit:
            yield _orphan(savepoint, "it was never finished", entries, unfinished=True)
        return
    try:
        kept = decode(manifest.key, store.get(manifest.key))
    except SavepointError:
        return  # damaged, but somebody's: only a person may remove it
    except NotFoundError:
        return
    if kept is None:
        if manifest.modified < limit:
            yield _orphan(savepoint, "it was removed", entries)
        return
    for data in sorted({entry.key.removeprefix(f"{savepoint}/").split("/")[0] for entry in entries}):
        claim = f"{savepoint}/{CLAIMS}/{data.removeprefix('data-')}"
        made = next((entry.modified for entry in claims if entry.key == claim), 0.0)
        if data.startswith("data-") and data != kept.data and made < limit:
            own = [entry for entry in entries if entry.key.startswith(f"{savepoint}/{data}/")]
            yield _orphan(f"{savepoint}/{data}", "another copy of it was faster", own)


def _orphan(path: str, why: str, entries: list[Entry], *, unfinished: bool = False) -> Orphan:
    size_bytes = sum(entry.size for entry in entries)
    return Orphan(path=path, why=why, objects=len(entries), size_bytes=size_bytes, unfinished=unfinished)


def collect(
    store: Store, *, older_than: timedelta, now: datetime, directory: str = SAVEPOINTS
) -> list[Orphan]:
    """Removes the orphans and says what it removed."""
    removed: list[Orphan] = []
    for orphan in orphans(store, older_than=older_than, now=now, directory=directory):
        if not orphan.unfinished:
            store.delete_tree(orphan.path)
        # Whoever still copies wants to write the same name. One of us is told no.
        elif store.put_if_absent(f"{orphan.path}/{MANIFEST}", tombstone("collected")):
            _delete_all_but_tombstone(store, orphan.path)
        else:
            continue
        removed.append(orphan)
    return removed


def _delete_all_but_tombstone(store: Store, savepoint: str) -> None:
    for name in store.children(savepoint):
        if name.endswith("/") and name != f"{CLAIMS}/":
            store.delete_tree(f"{savepoint}/{name.rstrip('/')}")
        elif name not in (MANIFEST, f"{CLAIMS}/"):
            store.delete_many([f"{savepoint}/{name}"])
