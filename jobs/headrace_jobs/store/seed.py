"""Seeding: a run begins with a copy of the queries of the run before it.

Everything Spark keeps is copied: both logs with a batch that is still pending (its rows may be in the sink
already, and only the same bounds make the replay recognisable), the state, and the sources' own logs.
The marker `_seed.json` is written last: a run without it was not seeded to the end and must not start.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

from headrace_jobs.store.errors import NotFoundError, SeedError, SourceChangedError
from headrace_jobs.store.interface import Copy, Entry, Store
from headrace_jobs.store.mirror import Wanted, mirror
from headrace_jobs.store.partitions import undo_unfinished
from headrace_jobs.store.runs import (
    LastBatches,
    Run,
    batches_in,
    is_log,
    last_batches,
    newest_claim,
    query_names,
    run_directory,
    run_number,
    tell_sinks,
    told_sinks,
)
from headrace_jobs.store.statefiles import is_state
from headrace_jobs.store.statepaths import names_paths, with_paths_moved

_MARKER = "_seed.json"
_PINNED = "pinned.json"
_THREADS = 16
_ASIDE_THREADS = 4


@dataclass(frozen=True)
class Seed:
    """What a run was seeded with."""

    from_run: str
    batches: dict[str, LastBatches]
    objects: int
    size_bytes: int
    rewritten: int
    binding: bool = False
    """The job begins with this: a query that is not in it would begin from nothing, in silence."""
    lineage: str = "keep"
    ways: dict[str, str] = field(default_factory=dict[str, str])
    """By query, where there was something to decide: see rollback.py."""


def is_seeded(store: Store, run: Run) -> bool:
    return read_seed(store, run) is not None


def newest_run(store: Store, home: str) -> int | None:
    """The newest run in the directory of a lineage that has state to go on from.

    One that nobody has claimed and that was not seeded to the end was only prepared: what lies there was
    copied ahead for a candidate that never took over, and is less than the run before it has.
    """
    numbers = (run_number(name) for name in store.children(home))
    for number in sorted((number for number in numbers if number is not None), reverse=True):
        run = posixpath.join(home, run_directory(number))
        begun = newest_claim(store, run) is not None or is_seeded(store, run)
        if begun and query_names(store, run):
            return number
    return None


def seed_run(
    store: Store,
    from_run: Run,
    to_run: Run,
    *,
    code_of: Run | None = None,
    begins: bool = False,
    check: Callable[[dict[str, LastBatches]], None] | None = None,
) -> Seed:
    """Copies the queries of a stopped run. May be called again at any time: it goes on where it was.

    `code_of`: the run whose copies of the application's files are taken over, too. `begins`: the job begins
    with it; until a driver has begun, it may begin with something else instead. `check` may raise when it
    hears where the source has stopped; then nothing was copied.

    In a handover nobody writes meanwhile, so what does not wait for something else is asked for beside it.
    """
    source, target = (f"{run_directory(run)}/queries/" for run in (from_run, to_run))
    with ThreadPoolExecutor(_ASIDE_THREADS, "seed") as aside:
        listed, existing = (aside.submit(lambda at=at: list(store.list(at))) for at in (source, target))
        done = earlier_seed(store, to_run, source=run_directory(from_run), replace=begins)
        sources = listed.result()
        batches = batches_in(entry.key.removeprefix(source) for entry in sources)
        if check is not None:
            check(done.batches if done is not None else batches)
        if done is not None:
            return done
        # Its driver may have been ended in the middle of one.
        if any(last.pending for last in batches.values()) and undo_unfinished(store, from_run):
            sources = list(store.list(source))
        if not sources:
            _check_never_begun(store, from_run)
        sinks = aside.submit(lambda: tell_sinks(store, to_run, told_sinks(store, from_run)))
        code = aside.submit(copy_code, store, code_of, to_run)
        binding = aside.submit(lambda: begins or _still_binds(store, from_run))
        wanted = [_wanted(store, entry, source, target) for entry in sources]
        mirror(store, wanted, target, existing=existing.result())
        for other in (sinks, code):
            other.result()
        seed = Seed(
            from_run=run_directory(from_run),
            batches=_verified_batches(store, from_run, to_run, aside),
            objects=len(sources),
            size_bytes=sum(entry.size for entry in sources),
            rewritten=sum(one.content is not None for one in wanted),
            binding=binding.result(),
        )
    write_marker(store, to_run, seed)
    return seed


def _check_never_begun(store: Store, run: Run) -> None:
    """Where nothing lies there may have been nothing; or it lies elsewhere, and state would go in silence."""
    seed = read_seed(store, run)
    # A sink is noted when its query runs, and then its checkpoint has at least an identity.
    queries = {*told_sinks(store, run), *(seed.batches if seed is not None else ())}
    if queries:
        raise SeedError(
            f"{store.url}/{run_directory(run)} ran the queries {', '.join(sorted(queries))} and holds no "
            "checkpoint of any: it was removed, or moved. Put it back; upgrade.strategy: Stateless goes on "
            "without it"
        )


def _still_binds(store: Store, run: Run) -> bool:
    """What a run was to begin with binds the next one, too, as long as none of its queries has moved."""
    seed = read_seed(store, run)
    return seed is not None and seed.binding and last_batches(store, run) == seed.batches


def copy_ahead(
    store: Store,
    from_run: Run,
    to_run: Run,
    *,
    known: set[str] | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Copies from a run that still goes on, so that seeding has little left to do; how many files.

    Only files that never change once they are written (state, and the entries of the logs), only where there
    is none, and nothing is removed: a copier that wakes up late finds nothing that it could spoil. Who comes
    again brings `known`, where it is kept what is there, so that it is listed once. `go_on` ends it early.
    """
    if earlier_seed(store, to_run, source=run_directory(from_run)) is not None:
        return 0
    source, target = (f"{run_directory(run)}/queries/" for run in (from_run, to_run))
    there = known if known is not None else set()
    if not there:
        there |= {entry.key.removeprefix(target) for entry in store.list(target)}

    def copy(entry: Entry) -> str | None:
        # Spark has removed it meanwhile: then the seed does not want it either.
        with contextlib.suppress(NotFoundError, SourceChangedError):
            if go_on():
                key = entry.key.removeprefix(source)
                store.copy(Copy(entry, target + key, immutable=True))
                return key
        return None

    keys = ((entry.key.removeprefix(source), entry) for entry in store.list(source))
    with ThreadPoolExecutor(_THREADS) as pool:
        told = pool.map(copy, [entry for key, entry in keys if key not in there and _lasts(key)])
        copied = {key for key in told if key is not None}
    there |= copied
    return len(copied)


def _lasts(key: str) -> bool:
    return is_state(key) or is_log(key)


def earlier_seed(store: Store, to_run: Run, *, source: str, replace: bool = False) -> Seed | None:
    """What the run was seeded with, if it was. Raises when it cannot be seeded from this source any more.

    With `replace`, another seed goes as long as nobody has begun with it: it was a mistake, corrected since.
    """
    done = read_seed(store, to_run)
    if done is not None and _is_same_run(done.from_run, source, beside=run_directory(to_run)):
        return done
    if done is not None and not replace:
        raise SeedError(f"{run_directory(to_run)} was already seeded from {done.from_run}")
    claimed_by = newest_claim(store, to_run)
    if claimed_by is not None:
        raise SeedError(
            f"{run_directory(to_run)} is in use by attempt {claimed_by}: it can not be seeded any more"
        )
    if done is not None:
        store.delete_many([posixpath.join(run_directory(to_run), _MARKER)])
    return None


def _is_same_run(one: str, other: str, *, beside: str) -> bool:
    """A keeper sees all lineages of the job, and calls a run `<uid>/run-3`; a driver sees its own only, and
    calls it `run-3`. Without a place, a run lies beside the one that it was copied into."""
    here = posixpath.dirname(beside)
    placed = (name if "/" in name else posixpath.join(here, name) for name in (one, other))
    return len(set(placed)) == 1


def copy_code(store: Store, from_run: Run | None, to_run: Run) -> None:
    """A version that comes back is the same byte by byte, also where its files were replaced since."""
    if from_run is None:
        return
    source, target = (f"{run_directory(run)}/_code/" for run in (from_run, to_run))
    # The file that says what is what comes last: without it, everything is fetched anew.
    entries = sorted(store.list(source), key=lambda entry: entry.key == source + _PINNED)
    for entry in entries:
        store.copy(Copy(entry, target + entry.key.removeprefix(source)))


def write_marker(store: Store, to_run: Run, seed: Seed) -> None:
    """Last of all: from now on the run may start."""
    store.put_if_absent(f"{run_directory(to_run)}/{_MARKER}", json.dumps(asdict(seed)).encode())


def _wanted(store: Store, entry: Entry, source: str, target: str) -> Wanted:
    key = entry.key.removeprefix(source)
    if not names_paths(key):
        return Wanted(entry, target + key, immutable=is_state(key))
    urls = (f"{store.url}/{place}".rstrip("/") for place in (source, target))
    return Wanted(entry, target + key, content=with_paths_moved(store.get(entry.key), *urls))


def _verified_batches(store: Store, from_run: Run, to_run: Run, aside: Executor) -> dict[str, LastBatches]:
    wanted, found = aside.map(lambda run: last_batches(store, run), (from_run, to_run))
    if wanted != found:
        raise SeedError(
            f"{run_directory(from_run)} changed while it was copied ({wanted} is not {found}): "
            "its driver must be stopped first"
        )
    return found


def read_seed(store: Store, run: Run) -> Seed | None:
    """What the run was seeded with; None where it was not, or not to the end."""
    try:
        fields = json.loads(store.get(posixpath.join(run_directory(run), _MARKER)))
    except NotFoundError:
        return None
    fields["batches"] = {name: LastBatches(*pair) for name, pair in fields["batches"].items()}
    return Seed(**fields)
