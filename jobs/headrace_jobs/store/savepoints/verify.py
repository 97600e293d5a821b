"""How far a savepoint is known to be good, level by level.

    Objects   all objects are there, as the manifest has them
    State     and the logs and the state fit together: every store can be loaded, nothing newer is in it
    Restore   and a query has started from a copy of it: somebody who runs queries says so, with `record`

Spark itself can read the state, too: see `reading.py`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from headrace_jobs.store.errors import CheckpointDamagedError, NotFoundError
from headrace_jobs.store.interface import Entry, Store
from headrace_jobs.store.savepoints.manifest import SavedQuery, read_manifest
from headrace_jobs.store.savepoints.objects import in_a_sentence, lying, object_problems, was_moved
from headrace_jobs.store.savepoints.selection import check_same
from headrace_jobs.store.savepoints.take import select_query
from headrace_jobs.store.statefiles import Gone

Level = Literal["None", "Objects", "State", "Restore"]
_VERIFIED = "verified.json"


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
    problems = [one for query in manifest.queries for one in _state_problems(store, root, found, query)]
    if problems:
        return _failed("Objects", problems)
    return Verification(level="State", message=f"all there and fitting together: {total}{note}")


def _state_problems(store: Store, root: str, found: dict[str, Entry], query: SavedQuery) -> list[str]:
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
