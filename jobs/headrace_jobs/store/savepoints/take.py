"""Taking a savepoint: from a running query without a pause, from a stopped one, from a crashed one.

What is committed is read first and everything else is listed after it, so all that batch N needs exists by
then. Spark's own clean-up may remove some of it before it is copied: then everything begins again from a
newer N. No step trusts the one before it: the copy is listed again before the manifest is written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from headrace_jobs.store.errors import (
    CheckpointDamagedError,
    NotFoundError,
    NothingToSaveError,
    SavepointError,
    SourceChangedError,
)
from headrace_jobs.store.interface import Entry, Store
from headrace_jobs.store.mirror import Wanted, mirror
from headrace_jobs.store.runs import Run, last_batches, run_directory, spark_version_of, told_sinks
from headrace_jobs.store.savepoints.making import Making, make_savepoint
from headrace_jobs.store.savepoints.manifest import About, Manifest, SavedQuery, saved
from headrace_jobs.store.savepoints.pacing import Pace, paced
from headrace_jobs.store.savepoints.selection import Selection, select
from headrace_jobs.store.savepoints.transfer import Tell, paced_copy
from headrace_jobs.store.statefiles import Gone, is_state
from headrace_jobs.store.statepaths import names_paths, with_paths_moved

log = logging.getLogger("headrace")

_READ_THREADS = 16
DEFAULT_TRIES = 5


@dataclass(frozen=True)
class _Copied:
    selections: Mapping[str, Selection]
    entries: Iterable[Entry]


def take_savepoint(
    store: Store,
    *,
    run: Run,
    savepoint: str,
    about: About,
    now: datetime,
    pace: Pace | None = None,
    tell: Tell | None = None,
    tries: int = DEFAULT_TRIES,
) -> Manifest:
    """Copies the run's queries to `savepoint`. Repeated by the same owner, it answers with what there is."""

    def copy(making: Making) -> Manifest:
        copied = _copy_until_whole(making, run, pace, tell, tries)
        return _manifest(making, run, about, now, copied)

    return make_savepoint(paced(store, pace), savepoint, about.owner, copy)


def _copy_until_whole(making: Making, run: Run, pace: Pace | None, tell: Tell | None, tries: int) -> _Copied:
    before: tuple[object, str] | None = None
    for _ in range(tries):
        committed = {name: last.commits for name, last in last_batches(making.store, run).items()}
        if not committed:
            raise NothingToSaveError(
                f"there is nothing to save at {making.store.url}/{run_directory(run)}: no query of the job "
                "has begun there. Start the job first"
            )
        try:
            return _copy(making, run, committed, pace, tell)
        except (Gone, SourceChangedError, NotFoundError) as error:
            lost = (committed, str(error))
            if lost == before:
                # Nothing moved and the same is missing: no race, it is not there.
                raise CheckpointDamagedError(
                    f"the checkpoint at {making.store.url}/{run_directory(run)} lacks {error}: "
                    "the query itself could not start from it"
                ) from None
            before = lost
            log.info("the clean-up of a running query was faster than the savepoint (%s): again", error)
    raise SavepointError(
        f"Spark's own clean-up removed files faster than they could be copied, {tries} times: raise "
        "spark.sql.streaming.minBatchesToRetain, or allow a higher copy rate"
    )


def _copy(
    making: Making, run: Run, committed: Mapping[str, int | None], pace: Pace | None, tell: Tell | None
) -> _Copied:
    store, source = making.store, f"{run_directory(run)}/queries/"
    target = f"{making.root}queries/"
    listed = {entry.key.removeprefix(source): entry for entry in store.list(source)}
    selections = {name: select_query(store, listed, name, source, batch) for name, batch in committed.items()}
    urls = tuple(f"{store.url}/{tree}".rstrip("/") for tree in (source, target))
    wanted = []
    for name, selection in selections.items():
        for key in (f"{name}/{one}" for one in selection.keys):
            moved = None
            if names_paths(key):
                moved = with_paths_moved(store.get(source + key), *urls)
            wanted.append(Wanted(listed[key], target + key, moved, is_state(key)))
    mirror(store, wanted, target, lambda copies: paced_copy(store, copies, pace=pace, tell=tell))
    return _Copied(selections, check_tree(store, target, wanted))


def select_query(
    store: Store, listed: Mapping[str, Entry], query: str, root: str, committed: int | None
) -> Selection:
    """`listed` and `root` are of all queries together."""
    prefix = f"{query}/"

    def read(key: str) -> tuple[str, bytes]:
        try:
            return key, store.get(f"{root}{prefix}{key}")
        except NotFoundError:
            raise Gone(f"{prefix}{key}") from None

    def read_many(keys: Iterable[str]) -> dict[str, bytes]:
        with ThreadPoolExecutor(_READ_THREADS) as pool:
            return dict(pool.map(read, keys))

    own = [key.removeprefix(prefix) for key in listed if key.startswith(prefix)]
    try:
        return select(own, committed, read_many)
    except Gone as gone:
        raise Gone(gone.what if gone.what.startswith(prefix) else prefix + gone.what) from None
    except CheckpointDamagedError as damaged:
        raise CheckpointDamagedError(f"query {query}: {damaged}") from None


def check_tree(store: Store, target: str, wanted: Iterable[Wanted]) -> list[Entry]:
    """What lies there now is what was wanted, object by object, or it raises as if the source had changed."""
    sizes = {one.target: one.source.size if one.content is None else len(one.content) for one in wanted}
    found = list(store.list(target))
    there = {entry.key: entry.size for entry in found}
    for key, size in sizes.items():
        if key not in there:
            raise NotFoundError(f"{store.url}/{key}")
        if there[key] != size:
            raise SourceChangedError(f"{store.url}/{key}")
    surplus = there.keys() - sizes.keys()
    if surplus:
        raise SourceChangedError(f"{store.url}/{min(surplus)}")
    return found


def _manifest(making: Making, run: Run, about: About, now: datetime, copied: _Copied) -> Manifest:
    sinks = {**told_sinks(making.store, run), **about.sinks}
    queries = tuple(
        SavedQuery(
            name=name,
            lineage=one.lineage,
            batch=one.batch,
            pending=one.pending,
            watermark_ms=one.watermark_ms,
            offsets=dict(one.offsets),
            provider=one.provider,
            partitions=one.partitions,
            state_format=one.state_format,
            sink=sinks.get(name),
        )
        for name, one in sorted(copied.selections.items())
    )
    return Manifest(
        owner=about.owner,
        job=about.job,
        cause=about.cause,
        run=run_directory(run),
        path=making.savepoint,
        url=making.url,
        data=making.data,
        taken_at=now.isoformat(),
        spec_digest=about.spec_digest,
        spark_version=spark_version_of(making.store, run) or about.spark_version,
        queries=queries,
        objects=tuple(saved(entry, making.root) for entry in copied.entries),
    )
