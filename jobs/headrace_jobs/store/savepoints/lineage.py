"""Whether a run may go on with the lineage of what it is made from, or must be a fork.

Batch numbers mean something to a sink only within a lineage. Where the lineage has begun later batches
somewhere, a copy that went on with it would have its batches taken for those, and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from headrace_jobs.store.errors import CheckpointDamagedError, LineageError, NotFoundError
from headrace_jobs.store.interface import Store
from headrace_jobs.store.logs import read_lineage
from headrace_jobs.store.runs import last_batches

Lineage = Literal["keep", "new"]
Wish = Literal["keep", "new", "forward", "auto"]
"""`forward`: keep it where that is safe, else a new one. `auto`: that for the same job, else a new one."""

FILE_SINK = "FileSink["


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A query as it is in what is copied."""

    name: str
    lineage: str
    batch: int
    newest_offsets: int
    sink: str | None = None


@dataclass(frozen=True)
class Place:
    """A directory that holds lineages, `<uid>/run-<n>` or `run-<n>`, in which a lineage may have gone on."""

    store: Store
    directory: str


def choose_lineage(
    wish: Wish, origins: Iterable[Origin], places: Iterable[Place], *, same_job: bool
) -> tuple[Lineage, str]:
    """Which it is, and why not the old one. Raises LineageError where it can be neither."""
    origins, places = list(origins), list(places)
    if wish == "auto":
        wish = "forward" if same_job else "new"
    further = _first_further(origins, places) if wish in ("keep", "forward") else ""
    if wish == "keep" and further:
        raise LineageError(f"{further}. Restore it as a fork, with a new lineage")
    if not further and wish != "new":
        return "keep", ""
    for origin in origins:
        if (origin.sink or "").startswith(FILE_SINK):
            raise LineageError(
                f"query {origin.name} writes files with Spark's file sink ({origin.sink}), whose log is "
                "bound to the query's batch numbers: a fork would leave gaps in it, and fail at its next "
                "compaction. Restore it forward with the same lineage, or write with foreachBatch"
                + (f". Forward is not possible: {further}" if further else "")
            )
    return "new", further


def _first_further(origins: list[Origin], places: list[Place]) -> str:
    for origin in origins:
        for place in places:
            for run in runs_below(place):
                batch = _begun_beyond(place.store, run, origin)
                if batch is not None:
                    return (
                        f"query {origin.name} went on to batch {batch} in {run}, what is restored ends at "
                        f"batch {origin.batch}: sinks would take the batches in between for those they "
                        "have, and drop them"
                    )
    return ""


def _begun_beyond(store: Store, run: str, origin: Origin) -> int | None:
    try:
        own = read_lineage("metadata", store.get(f"{run}/queries/{origin.name}/metadata"))
    except (NotFoundError, CheckpointDamagedError):
        return None
    if own != origin.lineage:
        return None
    newest = last_batches(store, run)[origin.name].offsets
    return newest if newest is not None and newest > origin.newest_offsets else None


def runs_below(place: Place) -> Iterator[str]:
    """Every run of every lineage: the same batch numbers may have been gone on with under another uid."""
    for name in _directories(place.store, place.directory):
        path = f"{place.directory}/{name}".lstrip("/")
        if name.startswith("run-"):
            yield path
        elif not name.startswith("_"):
            runs = (one for one in _directories(place.store, path) if one.startswith("run-"))
            yield from (f"{path}/{run}" for run in runs)


def _directories(store: Store, path: str) -> Iterator[str]:
    return (name.rstrip("/") for name in store.children(path) if name.endswith("/"))
