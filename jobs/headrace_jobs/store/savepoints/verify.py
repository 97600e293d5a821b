"""How far a savepoint is known to be good, level by level.

    Objects   all objects are there, as the manifest has them
    State     and the logs and the state fit together: every store can be loaded, nothing newer is in it, and
              every file that Spark wrote a checksum for has the content that it had
    Restore   and a query has started from a copy of it: somebody who runs queries says so, with `record`

Spark itself can read the state, too: see `reading.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from headrace_jobs.store.checksums import crc32c, expected
from headrace_jobs.store.errors import CheckpointDamagedError, NotFoundError, SourceChangedError
from headrace_jobs.store.interface import Entry, Store
from headrace_jobs.store.savepoints.manifest import SavedQuery, read_manifest
from headrace_jobs.store.savepoints.objects import in_a_sentence, lying, object_problems, was_moved
from headrace_jobs.store.savepoints.selection import check_same
from headrace_jobs.store.savepoints.take import select_query
from headrace_jobs.store.statefiles import CHECKSUM, Gone

Level = Literal["None", "Objects", "State", "Restore"]
_VERIFIED = "verified.json"
# Each holds a piece of a file: a keeper has little memory.
_READ_THREADS = 8


@dataclass(frozen=True, kw_only=True)
class Verification:
    level: Level
    """The highest level it passed."""
    message: str
    at: str = ""
    problems: tuple[str, ...] = ()


def verify_savepoint(store: Store, savepoint: str, *, level: Level) -> Verification:
    """Checks up to `level` as far as that goes without Spark. Raises only when the store fails."""
    manifest = read_manifest(store, savepoint)
    root, found = f"{savepoint}/{manifest.data}/", lying(store, savepoint, manifest)
    moved = was_moved(store, savepoint, manifest)
    problems = object_problems(manifest, found, moved=moved)
    if problems:
        return _failed("None", problems)
    total = f"{len(manifest.objects)} objects, {manifest.size_bytes} bytes"
    note = "; it was moved, so sizes were compared and no etags" if moved else ""
    if level in ("None", "Objects"):
        return Verification(level="Objects", message=f"all there: {total}{note}")
    problems = state_problems(store, root, found, manifest.queries)
    if problems:
        return _failed("Objects", problems)
    return Verification(level="State", message=f"all there and fitting together: {total}{note}")


def state_problems(
    store: Store, root: str, found: Mapping[str, Entry], queries: Iterable[SavedQuery]
) -> list[str]:
    """What is wrong with the copy below `root`, beside its objects: by key, as the manifest has them."""
    fitting = [one for query in queries for one in _misfits(store, root, found, query)]
    return fitting or _altered(store, found)


def _misfits(store: Store, root: str, found: Mapping[str, Entry], query: SavedQuery) -> list[str]:
    queries = {key.removeprefix("queries/"): entry for key, entry in found.items()}
    try:
        selection = select_query(
            store, queries, query.name, f"{root}queries/", None if query.batch < 0 else query.batch
        )
        prefix = f"{query.name}/"
        check_same(selection, (key.removeprefix(prefix) for key in queries if key.startswith(prefix)))
    except Gone as gone:
        return [f"{gone.what} is missing"]
    except CheckpointDamagedError as damaged:
        return [str(damaged)]
    copied = (selection.lineage, selection.batch, selection.pending)
    told = (query.lineage, query.batch, query.pending)
    return [] if copied == told else [f"query {query.name} is at {copied}, the manifest says {told}"]


def _altered(store: Store, found: Mapping[str, Entry]) -> list[str]:
    """Files of the state that are not what Spark wrote, by its own checksums. Old formats have none."""

    def problem(key: str) -> str | None:
        try:
            wanted = expected(key, store.get(found[key].key))
            content = store.pieces(found[key.removesuffix(CHECKSUM)])
            if wanted is None or crc32c(content) == wanted:
                return None
        except (CheckpointDamagedError, SourceChangedError) as damaged:
            return str(damaged)
        return f"{key.removesuffix(CHECKSUM)} was altered: it does not fit its checksum"

    keys = [key for key in found if key.endswith(CHECKSUM) and key.removesuffix(CHECKSUM) in found]
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        return [one for one in pool.map(problem, keys) if one is not None]


def record(store: Store, savepoint: str, verification: Verification, *, now: datetime) -> Verification:
    """Beside the manifest, for whoever finds the savepoint when nothing else is left."""
    dated = Verification(**{**asdict(verification), "at": now.isoformat()})
    store.put(f"{savepoint}/{_VERIFIED}", json.dumps(asdict(dated)).encode())
    return dated


def recorded(store: Store, savepoint: str) -> Verification:
    try:
        told = json.loads(store.get(f"{savepoint}/{_VERIFIED}"))
        return Verification(**{**told, "problems": tuple(told["problems"])})
    except (NotFoundError, ValueError, TypeError, KeyError):
        return Verification(level="None", message="never checked")


def _failed(level: Level, problems: list[str]) -> Verification:
    return Verification(
        level=level,
        message=f"{in_a_sentence(problems)}. Do not restore it: use another savepoint",
        problems=tuple(problems),
    )
