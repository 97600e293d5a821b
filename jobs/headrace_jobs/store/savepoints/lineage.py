"""Whether a run may go on with the lineage of what it is made from, or must be a fork.

Batch numbers mean something to a sink only within a lineage. Where the lineage has begun later batches
somewhere, a copy that went on with it would have its batches taken for those, and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from headrace_jobs.store.errors import LineageError
from headrace_jobs.store.interface import Store
from headrace_jobs.store.lineages import Reached, reached_in, remembered
from headrace_jobs.store.runs import told_sinks

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
    further = _further(origins, places) if wish in ("keep", "forward") else {}
    why = next(iter(further.values())).why if further else ""
    if wish == "keep" and why:
        raise LineageError(f"{why}. Restore it as a fork, with a new lineage")
    if not why and wish != "new":
        return "keep", ""
    for origin in origins:
        # A plain checkpoint does not know what its query writes to; a run that went on with it may.
        sink = origin.sink or (further[origin.name].sink if origin.name in further else None) or ""
        if sink.startswith(FILE_SINK):
            raise LineageError(
                f"query {origin.name} writes files with Spark's file sink ({sink}), whose log is "
                "bound to the query's batch numbers: a fork would leave gaps in it, and fail at its next "
                "compaction. Restore it forward with the same lineage, or write with foreachBatch"
                + (f". Forward is not possible: {why}" if why else "")
            )
    return "new", why


@dataclass(frozen=True)
class _Further:
    why: str
    sink: str | None


def _further(origins: list[Origin], places: list[Place]) -> dict[str, _Further]:
    """By query, where its lineage has begun a later batch: in a run that lies there, or lay there once."""
    found: dict[str, _Further] = {}
    for place in places:
        for reached in _all_reached(place, origins):
            origin = next((one for one in origins if one.lineage == reached.lineage), None)
            if origin is not None and reached.batch > origin.newest_offsets:
                found.setdefault(origin.name, _told(place.store, origin, reached))
    return found


def _all_reached(place: Place, origins: list[Origin]) -> Iterator[Reached]:
    for run in runs_below(place):
        yield from reached_in(place.store, run)
    for origin in origins:
        removed = remembered(place.store, place.directory, origin.lineage)
        if removed is not None:
            yield removed


def _told(store: Store, origin: Origin, reached: Reached) -> _Further:
    where = f"{reached.run}, which is removed since" if reached.removed else reached.run
    sink = reached.sink if reached.removed else told_sinks(store, reached.run).get(reached.query)
    why = (
        f"query {origin.name} went on to batch {reached.batch} in {where}, what is restored ends at "
        f"batch {origin.batch}: sinks would take the batches in between for those they have, and drop them"
    )
    return _Further(why, sink)


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
