"""Restoring: a run begins with the copy that a savepoint is.

Forward, with the same lineage: sinks know the batches they have, and a pending batch is recognised. As a
fork, with new query ids: batch numbers begin to mean something else, and sinks must see that. What Spark's
file sink has written is bound to its batch numbers, so it can do the first only.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from headrace_jobs.store.errors import NotFoundError, SavepointDamagedError, SourceChangedError
from headrace_jobs.store.interface import Copy, Entry, Store
from headrace_jobs.store.mirror import Wanted, is_equal, mirror
from headrace_jobs.store.runs import LastBatches, Run, last_batches, run_directory, tell_sinks
from headrace_jobs.store.savepoints.between import copier_between
from headrace_jobs.store.savepoints.lineage import Lineage, Origin, Place, Wish, choose_lineage
from headrace_jobs.store.savepoints.manifest import Manifest, SavedQuery, read_manifest
from headrace_jobs.store.savepoints.objects import in_a_sentence, lying, object_problems, was_moved
from headrace_jobs.store.savepoints.pacing import Pace, paced
from headrace_jobs.store.savepoints.take import check_tree
from headrace_jobs.store.savepoints.transfer import Tell, paced_copy
from headrace_jobs.store.seed import Seed, earlier_seed, write_marker
from headrace_jobs.store.statefiles import is_state
from headrace_jobs.store.statepaths import names_paths, with_paths_moved

log = logging.getLogger("headrace")


def restore_savepoint(
    store: Store,
    *,
    savepoint: str,
    run: Run,
    lineage: Wish,
    job: str = "",
    into: Store | None = None,
    pace: Pace | None = None,
    tell: Tell | None = None,
    replace: bool = False,
) -> Seed:
    """Seeds the run, which must not have begun. May be repeated at any time: it goes on where it was.

    `into` is the store of the run where that is another one; contents then pass through this process.
    `job`, as <namespace>/<name>, is who wants it: for `auto`. `replace`: see `earlier_seed`.
    """
    store, into = paced(store, pace), paced(into, pace) if into is not None else None
    target = into or store
    place = f"{store.url}/{savepoint}" if into else savepoint
    done = earlier_seed(target, run, source=place, replace=replace)
    if done is not None:
        return done
    manifest = read_manifest(store, savepoint)
    chosen, why_new = choose_lineage(
        lineage,
        map(_origin, manifest.queries),
        _places(store, savepoint, manifest, target, run),
        same_job=manifest.job == job,
    )
    if why_new:
        log.warning("a new lineage: %s", why_new)
    moving = _Moving(store, savepoint, manifest, target, run)
    root = f"{run_directory(run)}/queries/"

    def copier(copies: Sequence[Copy]) -> None:
        across = copier_between(store, target) if into else None
        paced_copy(target, copies, pace=pace, tell=tell, copy=across)

    sources = _sources(store, savepoint, manifest)
    try:
        wanted = [moving.wanted(key, entry, chosen) for key, entry in sources]
        # An earlier try, broken off, may have been from another savepoint.
        mirror(target, wanted, root, copier, same=is_equal)
        check_tree(target, root, wanted)
    except (NotFoundError, SourceChangedError) as error:
        raise SavepointDamagedError(
            f"{store.url}/{savepoint} cannot be restored ({error}): verify it, or use another savepoint"
        ) from None
    tell_sinks(target, run, {query.name: query.sink for query in manifest.queries if query.sink is not None})
    seed = Seed(
        from_run=place,
        batches=_batches(manifest, last_batches(target, run)),
        objects=len(wanted),
        size_bytes=sum(one.source.size for one in wanted),
        rewritten=sum(names_paths(key.removeprefix("queries/")) for key, _ in sources),
        binding=True,
        lineage=chosen,
    )
    write_marker(target, run, seed)
    return seed


def _places(store: Store, savepoint: str, manifest: Manifest, target: Store, run: Run) -> list[Place]:
    """Where the lineage may have gone on, as far as we can see: beside its own runs, and beside this one."""
    places = [Place(target, job_directory(run_directory(run)))]
    if f"/{savepoint}".endswith(f"/{manifest.path}"):  # else it was moved away from its runs
        root = savepoint.removesuffix(manifest.path)
        places.append(Place(store, job_directory(root + manifest.run)))
    return places


def job_directory(run: str) -> str:
    """Of `<job>/<uid>/run-<n>`, or of `run-<n>` where there are no more names above it."""
    return "/".join(run.split("/")[:-2])


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
            content = with_paths_moved(read(self.store, source), *urls)
        elif own.endswith("/metadata") and own.count("/") == 1:
            # Written either way: a try that was broken off may have left the other lineage's id.
            content = forked(f"{self.target.url}/{where}") if lineage == "new" else read(self.store, source)
        return Wanted(source, where, content, is_state(own))


def forked(url: str) -> bytes:
    """`metadata` with a new lineage, the same each time the same restore is repeated."""
    return json.dumps({"id": str(uuid.uuid5(uuid.NAMESPACE_URL, url))}).encode()


def _sources(store: Store, savepoint: str, manifest: Manifest) -> list[tuple[str, Entry]]:
    """The objects to copy, by the manifest's keys, after a look at each of them."""
    found = lying(store, savepoint, manifest)
    problems = object_problems(manifest, found, moved=was_moved(store, savepoint, manifest))
    if problems:
        raise SavepointDamagedError(
            f"{store.url}/{savepoint} cannot be restored: {in_a_sentence(problems)}. Use another savepoint"
        )
    return [(one.key, found[one.key]) for one in manifest.objects]


def read(store: Store, entry: Entry) -> bytes:
    content = store.get(entry.key)
    if len(content) != entry.size:
        raise SourceChangedError(f"{store.url}/{entry.key}")
    return content


def _origin(query: SavedQuery) -> Origin:
    return Origin(
        name=query.name,
        lineage=query.lineage,
        batch=query.batch,
        newest_offsets=query.newest_offsets,
        sink=query.sink,
    )


def _batches(manifest: Manifest, found: dict[str, LastBatches]) -> dict[str, LastBatches]:
    for query in manifest.queries:
        last = found.get(query.name)
        commits, offsets = (None if number < 0 else number for number in (query.batch, query.newest_offsets))
        if last != (offsets, commits):
            raise SavepointDamagedError(
                f"query {query.name} was restored to {last}, the savepoint has batch {query.batch}"
            )
    return found
