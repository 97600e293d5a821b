"""Adopting: a run begins with a copy of a checkpoint that nobody made a savepoint of.

Two kinds are known by what lies in them. A run of Headrace has `queries/`, with a checkpoint for each. A
plain Spark checkpoint of one query has `metadata`, `offsets/` and `commits/` of its own; it does not know the
name of its query. Either is read, never written to, and what is copied is what a savepoint would hold: so
what Spark itself could not start from is refused here. Whoever writes there must have stopped: a lineage that
two go on with loses batches in its sinks.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace_jobs.store.errors import (
    CheckpointDamagedError,
    NotFoundError,
    SavepointError,
    SeedError,
    SourceChangedError,
)
from headrace_jobs.store.interface import Copy, Entry, Store
from headrace_jobs.store.logs import ROCKSDB, read_offsets
from headrace_jobs.store.mirror import Wanted, is_equal, mirror
from headrace_jobs.store.runs import (
    LastBatches,
    Run,
    checkpoint_batches,
    last_batches,
    run_directory,
    tell_sinks,
    told_sinks,
)
from headrace_jobs.store.savepoints.between import copier_between
from headrace_jobs.store.savepoints.lineage import Lineage, Origin, Place, Wish, choose_lineage
from headrace_jobs.store.savepoints.pacing import Pace, paced
from headrace_jobs.store.savepoints.restore import forked, job_directory, read
from headrace_jobs.store.savepoints.selection import Selection
from headrace_jobs.store.savepoints.take import check_tree, select_query
from headrace_jobs.store.savepoints.transfer import Tell, paced_copy
from headrace_jobs.store.seed import Seed, earlier_seed, write_marker
from headrace_jobs.store.statefiles import Gone, is_state
from headrace_jobs.store.statepaths import names_paths, with_paths_moved

log = logging.getLogger("headrace")

_GOOD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_JOB_RUN = re.compile(r"(?:^|/)([^/]+/[^/]+)/[^/]+/run-\d+$")


@dataclass(frozen=True)
class _Found:
    """A checkpoint to adopt: `root` holds a directory per query, `names` says what each is called here."""

    root: str
    names: Mapping[str, str]
    run: str | None = None
    """The run that it is, where Headrace wrote it."""


def adopt_checkpoint(
    store: Store,
    *,
    checkpoint: str,
    run: Run,
    lineage: Wish,
    job: str = "",
    query: str | None = None,
    into: Store | None = None,
    pace: Pace | None = None,
    tell: Tell | None = None,
    replace: bool = False,
) -> Seed:
    """Seeds the run, which must not have begun. `query` names the query of a plain checkpoint.

    The rest is as with `restore_savepoint`. A plain checkpoint keeps its lineage: it is moved, not forked;
    adopted once more, when the job has gone on with it already, it gets a new one.
    """
    store, into = paced(store, pace), paced(into, pace) if into is not None else None
    target = into or store
    place = f"{store.url}/{checkpoint}" if into else checkpoint
    done = earlier_seed(target, run, source=place, replace=replace)
    if done is not None:
        return done
    found = _look(store, checkpoint, query)
    before = {name: checkpoint_batches(store, found.root + name) for name in found.names}
    listed = {
        entry.key.removeprefix(found.root): entry
        for name in found.names
        for entry in store.list(f"{found.root}{name}/")
        # Hadoop's checksums of local files, which would not fit what is rewritten.
        if not posixpath.basename(entry.key).startswith(".")
    }
    selections = {name: _select(store, listed, name, found.root, before[name]) for name in found.names}
    for name, selection in selections.items():
        _check_state(store, listed, name, found.root, selection)
    origins = _origins(store, found, selections)
    chosen, why_new = choose_lineage(
        lineage if found.run is not None else "forward",
        origins,
        [Place(target, job_directory(run_directory(run)))]
        + ([Place(store, job_directory(found.run))] if found.run is not None else []),
        same_job=found.run is not None
        and (belongs := _JOB_RUN.search(place)) is not None
        and belongs[1] == job,
    )
    if why_new:
        log.warning("a new lineage: %s", why_new)
    copying = _Copying(store, found, target, run, chosen)
    wanted = [
        copying.wanted(name, key, listed[f"{name}/{key}"])
        for name, selection in selections.items()
        for key in selection.keys
    ]

    def copier(copies: Sequence[Copy]) -> None:
        across = copier_between(store, target) if into else None
        paced_copy(target, copies, pace=pace, tell=tell, copy=across)

    try:
        mirror(target, wanted, copying.root, copier, same=is_equal)
        check_tree(target, copying.root, wanted)
    except (NotFoundError, SourceChangedError) as error:
        raise _still_written(store, checkpoint, str(error)) from None
    _check_unmoved(store, checkpoint, found, before)
    tell_sinks(target, run, {one.name: one.sink for one in origins if one.sink is not None})
    seed = Seed(
        from_run=place,
        batches=last_batches(target, run),
        objects=len(wanted),
        size_bytes=sum(one.source.size for one in wanted),
        rewritten=sum(one.content is not None for one in wanted),
        binding=True,
        lineage=chosen,
    )
    write_marker(target, run, seed)
    return seed


def _look(store: Store, checkpoint: str, query: str | None) -> _Found:
    there = set(store.children(checkpoint))
    where = f"{store.url}/{checkpoint}"
    if "queries/" in there:
        if query is not None:
            raise SavepointError(
                f"{where} is a run of Headrace, whose queries have names: remove spec.startFrom.query"
            )
        names = [name.rstrip("/") for name in store.children(f"{checkpoint}/queries") if name.endswith("/")]
        return _Found(f"{checkpoint}/queries/", {name: name for name in names}, run=checkpoint)
    if {"metadata", "offsets/"} <= there:
        directory, name = posixpath.split(checkpoint)
        wanted = query or name
        if not _GOOD_NAME.fullmatch(wanted):
            raise SavepointError(
                f"{where} is a Spark checkpoint of one query, and '{wanted}' is no name for a query: say "
                "spec.startFrom.query, the name that the query has in the job"
            )
        return _Found(f"{directory}/".lstrip("/"), {name: wanted})
    inside = f"it holds {', '.join(sorted(there)[:5])}" if there else "there is nothing"
    raise SavepointError(
        f"{where} is neither a savepoint nor a checkpoint ({inside}). Name a directory with manifest.json, a "
        "run of Headrace (with queries/), or the checkpoint of one query (with metadata, offsets/, commits/)"
    )


def _select(store: Store, listed: Mapping[str, Entry], name: str, root: str, last: LastBatches) -> Selection:
    if last.commits is not None and (last.offsets is None or last.offsets < last.commits):
        raise CheckpointDamagedError(
            f"{store.url}/{root}{name}: batch {last.commits} is committed, and its offsets are not there: "
            "the query itself could not start from it"
        )
    try:
        return select_query(store, listed, name, root, last.commits)
    except Gone as gone:
        raise CheckpointDamagedError(
            f"{store.url}/{root}{gone.what} is missing: Spark itself could not start from it. A query with "
            "asynchronous progress tracking leaves such gaps, and cannot be adopted"
        ) from None


def _check_state(
    store: Store, listed: Mapping[str, Entry], name: str, root: str, selection: Selection
) -> None:
    """How a query keeps its state is fixed when it begins. Under the settings of our jobs, one that keeps
    it otherwise does start, and every attempt fails in its first batch."""
    newest = selection.batch + selection.pending
    if newest < 0 or not any(key.startswith(f"{name}/state/") for key in listed):
        return
    key = f"{root}{name}/offsets/{newest}"
    provider = read_offsets(key, store.get(key)).provider
    if provider in (None, ROCKSDB) and selection.state_format != 1:
        return
    kept = f"with {provider}" if provider not in (None, ROCKSDB) else "in format v1"
    raise SavepointError(
        f"{store.url}/{root}{name} keeps its state {kept}; the jobs of Headrace keep theirs with {ROCKSDB} "
        "in format v2, and Spark cannot change that of a query that has begun. Let the query build its state "
        "anew: spec.startFrom {timestamp: …} or {offsets: …}, as far back as the state reaches"
    )


def _origins(store: Store, found: _Found, selections: Mapping[str, Selection]) -> list[Origin]:
    sinks = told_sinks(store, found.run) if found.run is not None else {}
    return [
        Origin(
            name=found.names[name],
            lineage=one.lineage,
            batch=one.batch,
            newest_offsets=one.batch + one.pending,
            sink=sinks.get(name),
        )
        for name, one in selections.items()
    ]


def _check_unmoved(store: Store, checkpoint: str, found: _Found, before: Mapping[str, LastBatches]) -> None:
    for name, last in before.items():
        now = checkpoint_batches(store, found.root + name)
        if now != last:
            raise _still_written(store, checkpoint, f"query {name} went from {last} to {now}")


def _still_written(store: Store, checkpoint: str, what: str) -> SeedError:
    return SeedError(
        f"{store.url}/{checkpoint} is still written to ({what}): stop the query that writes there, or take a "
        "savepoint of it and start from that"
    )


@dataclass(frozen=True)
class _Copying:
    store: Store
    found: _Found
    target: Store
    run: Run
    lineage: Lineage

    @property
    def root(self) -> str:
        return f"{run_directory(self.run)}/queries/"

    def wanted(self, name: str, key: str, source: Entry) -> Wanted:
        """`name` is that of the directory it comes from; `key` is relative to it."""
        home = f"{self.root}{self.found.names[name]}"
        own = f"{name}/{key}"
        content = None
        if names_paths(own):
            urls = f"{self.store.url}/{self.found.root}{name}", f"{self.target.url}/{home}"
            content = with_paths_moved(read(self.store, source), *urls)
        elif key == "metadata":
            # Written either way: a try that was broken off may have left the other lineage's id.
            where = f"{self.target.url}/{home}/{key}"
            content = forked(where) if self.lineage == "new" else read(self.store, source)
        return Wanted(source, f"{home}/{key}", content, is_state(own))
