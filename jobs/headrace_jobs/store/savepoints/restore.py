"""Restoring: a run begins with the copy that a savepoint is.

Forward, with the same lineage: sinks know the batches they have, and a pending batch is recognised. As a
fork, with new query ids: batch numbers begin to mean something else, and sinks must see that. What Spark's
file sink has written is bound to its batch numbers, so it can do the first only.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from headrace_jobs.store.errors import (
    LineageError,
    NotFoundError,
    SavepointDamagedError,
    SourceChangedError,
)
from headrace_jobs.store.interface import Copy, Entry, Store
from headrace_jobs.store.mirror import Wanted, is_equal, mirror
from headrace_jobs.store.runs import LastBatches, Run, last_batches, run_directory
from headrace_jobs.store.savepoints.logs import read_lineage
from headrace_jobs.store.savepoints.manifest import Manifest, SavedQuery, read_manifest
from headrace_jobs.store.savepoints.objects import in_a_sentence, lying, object_problems, was_moved
from headrace_jobs.store.savepoints.take import check_tree
from headrace_jobs.store.savepoints.transfer import Pace, Tell, paced_copy
from headrace_jobs.store.seed import Seed, earlier_seed, write_marker
from headrace_jobs.store.statefiles import is_state
from headrace_jobs.store.statepaths import names_paths, with_paths_moved

Lineage = Literal["keep", "new"]
FILE_SINK = "FileSink["


def restore_savepoint(
    store: Store,
    *,
    savepoint: str,
    run: Run,
    lineage: Lineage,
    into: Store | None = None,
    pace: Pace | None = None,
    tell: Tell | None = None,
) -> Seed:
    """Seeds the run, which must not have begun. May be repeated at any time: it goes on where it was.

    `into` is the store of the run where that is another one; contents then pass through this process.
    """
    target = into or store
    place = f"{store.url}/{savepoint}" if into else savepoint
    done = earlier_seed(target, run, source=place)
    if done is not None:
        return done
    manifest = read_manifest(store, savepoint)
    check_lineage(store, savepoint, manifest, lineage)
    moving = _Moving(store, savepoint, manifest, target, run)
    root = f"{run_directory(run)}/queries/"

    def across(copy: Copy) -> None:
        _copy_between(store, target, copy)

    def copier(copies: Sequence[Copy]) -> None:
        paced_copy(target, copies, pace=pace, tell=tell, copy=across if into else None)

    sources = _sources(store, savepoint, manifest)
    try:
        wanted = [moving.wanted(key, entry, lineage) for key, entry in sources]
        # An earlier try, broken off, may have been from another savepoint.
        mirror(target, wanted, root, copier, same=is_equal)
        check_tree(target, root, wanted)
    except (NotFoundError, SourceChangedError) as error:
        raise SavepointDamagedError(
            f"{store.url}/{savepoint} cannot be restored ({error}): verify it, or use another savepoint"
        ) from None
    seed = Seed(
        from_run=place,
        batches=_batches(manifest, last_batches(target, run)),
        objects=len(wanted),
        size_bytes=sum(one.source.size for one in wanted),
        rewritten=sum(names_paths(key.removeprefix("queries/")) for key, _ in sources),
    )
    write_marker(target, run, seed)
    return seed


def check_lineage(store: Store, savepoint: str, manifest: Manifest, lineage: Lineage) -> None:
    for query in manifest.queries:
        if lineage == "new" and (query.sink or "").startswith(FILE_SINK):
            raise LineageError(
                f"query {query.name} writes files with Spark's file sink ({query.sink}), whose log is bound "
                "to the query's batch numbers: a fork would leave gaps in it, and fail at its next "
                "compaction. Restore it forward with the same lineage, or write with foreachBatch"
            )
        if lineage == "keep":
            newer = _gone_further(store, savepoint, manifest, query)
            if newer is not None:
                where, batch = newer
                raise LineageError(
                    f"query {query.name} went on to batch {batch} in {where}, the savepoint ends at batch "
                    f"{query.batch}: sinks would take the batches in between for those they have, and drop "
                    "them. Restore it as a fork, with a new lineage"
                )


def _gone_further(
    store: Store, savepoint: str, manifest: Manifest, query: SavedQuery
) -> tuple[str, int] | None:
    """Where the same lineage has begun batches that the savepoint does not know, as far as we can see."""
    if not f"/{savepoint}".endswith(f"/{manifest.path}"):
        return None  # it was moved away from its runs
    root = savepoint.removesuffix(manifest.path)
    for run in _runs_beside(store, root + manifest.run):
        try:
            own = read_lineage("metadata", store.get(f"{run}/queries/{query.name}/metadata"))
        except NotFoundError:
            continue
        newest = last_batches(store, run)[query.name].offsets
        if own == query.lineage and newest is not None and newest > query.newest_offsets:
            return run, newest
    return None


def _runs_beside(store: Store, run: str) -> Iterator[str]:
    home, _, _ = run.rpartition("/")
    for name in store.children(home):
        if name.startswith("run-") and name.endswith("/"):
            yield f"{home}/{name.rstrip('/')}".lstrip("/")


@dataclass(frozen=True)
class _Moving:
    """From where to where."""

    store: Store
    savepoint: str
    manifest: Manifest
    target: Store
    run: Run

    def wanted(self, key: str, source: Entry, lineage: Lineage) -> Wanted:
        where = f"{run_directory(self.run)}/{key}"
        own = key.removeprefix("queries/")
        content = None
        if names_paths(own):
            # It names the place where the savepoint was made, wherever that lies now.
            urls = f"{self.manifest.url}/{self.manifest.data}", f"{self.target.url}/{run_directory(self.run)}"
            content = with_paths_moved(_read(self.store, source), *urls)
        elif own.endswith("/metadata") and own.count("/") == 1:
            # Written either way: a try that was broken off may have left the other lineage's id.
            forked = json.dumps({"id": forked_id(f"{self.target.url}/{where}")}).encode()
            content = forked if lineage == "new" else _read(self.store, source)
        return Wanted(source, where, content, is_state(own))


def forked_id(url: str) -> str:
    """A new lineage, the same each time the same restore is repeated."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, url))


def _sources(store: Store, savepoint: str, manifest: Manifest) -> list[tuple[str, Entry]]:
    """The objects to copy, by the manifest's keys, after a look at each of them."""
    found = lying(store, savepoint, manifest)
    problems = object_problems(manifest, found, moved=was_moved(store, savepoint, manifest))
    if problems:
        raise SavepointDamagedError(
            f"{store.url}/{savepoint} cannot be restored: {in_a_sentence(problems)}. Use another savepoint"
        )
    return [(one.key, found[one.key]) for one in manifest.objects]


def _read(store: Store, entry: Entry) -> bytes:
    content = store.get(entry.key)
    if len(content) != entry.size:
        raise SourceChangedError(f"{store.url}/{entry.key}")
    return content


def _copy_between(source: Store, target: Store, copy: Copy) -> None:
    target.put(copy.target, _read(source, copy.source))


def _batches(manifest: Manifest, found: dict[str, LastBatches]) -> dict[str, LastBatches]:
    for query in manifest.queries:
        last = found.get(query.name)
        commits, offsets = (None if number < 0 else number for number in (query.batch, query.newest_offsets))
        if last != (offsets, commits):
            raise SavepointDamagedError(
                f"query {query.name} was restored to {last}, the savepoint has batch {query.batch}"
            )
    return found
