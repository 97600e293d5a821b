"""What an agent or a keeper tells, read with care: it comes out of containers in which users' code runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from headrace.core.model import AttemptPhase, ObservedActivation, Problem, QueryReport, SeededQuery
from headrace.core.repartition import REPARTITIONING

STANDBY = "Standby"
# Of a candidate, before it is an attempt that works.
CANDIDATE_PHASES = ("Rehearsing", STANDBY, "Activating")
_VERSION = re.compile(r"\d+\.\d+[A-Za-z0-9.+_-]{0,40}")


def query_report(told: Mapping[str, Any]) -> QueryReport:
    """One query of an agent's status."""
    lag = told.get("lag")
    rows = cast(Mapping[str, Any], lag).get("rows") if isinstance(lag, Mapping) else None
    waited = told.get("waitedRows")
    return QueryReport(
        name=told["name"],
        active=told["active"],
        committed_batch=told.get("committedBatch"),
        stuck=bool(told.get("stuck")),
        busy=told.get("batchStartedAt") is not None,
        looked=told.get("lastProgressAt") is not None,
        lag_rows=rows if isinstance(rows, int) else None,
        waited=tuple(one for one in cast(list[Any], waited) if isinstance(one, int))
        if isinstance(waited, list)
        else (),
        batch_seconds=(_number(told.get("batchDurationMs")) or 0) / 1000 or None,
        arrival=_number(told.get("inputRowsPerSecond")),
        capacity=_number(told.get("processedRowsPerSecond")),
        sink=sink if isinstance(sink := told.get("sink"), str) else None,
    )


def _number(told: Any) -> float | None:
    return float(told) if isinstance(told, int | float) else None


def spark_version(told: Mapping[str, Any] | None) -> str | None:
    version = (told or {}).get("sparkVersion")
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else None


def rehearsal_notes(told: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What a candidate could not check, and what else is good to know of it: it passed all the same."""
    section = (told or {}).get("rehearsal")
    found = cast(Mapping[str, Any], section).get("notes") if isinstance(section, Mapping) else None
    notes = cast(list[Any], found) if isinstance(found, list) else []
    return tuple(note for note in notes if isinstance(note, str))


def starting_report(told: Mapping[str, Any] | None) -> Problem | None:
    """What a driver is at before its queries start, where that may take long."""
    section = (told or {}).get("repartition")
    doing = cast(Mapping[str, Any], section).get("doing") if isinstance(section, Mapping) else None
    return Problem(REPARTITIONING, doing) if isinstance(doing, str) else None


def phase_of(told: Mapping[str, Any]) -> AttemptPhase:
    """Of a driver that lives; a candidate that takes over is one that starts."""
    phase = told["phase"]
    if phase in CANDIDATE_PHASES:
        return AttemptPhase.STARTING
    # Only the end of its process is the end.
    return AttemptPhase.DRAINING if phase == AttemptPhase.ENDED else AttemptPhase(phase)


def activation_of(told: Mapping[str, Any]) -> ObservedActivation | None:
    """What a candidate says of the order to take over; None where it has not got any."""
    found = told.get("activation")
    if not isinstance(found, Mapping):
        return None
    activation = cast(Mapping[str, Any], found)
    parts = activation.get("seconds")
    seconds = cast(Mapping[str, Any], parts if isinstance(parts, Mapping) else {})
    return ObservedActivation(
        state=str(activation.get("state")),
        message=str(activation.get("message") or ""),
        seconds={name: float(one) for name, one in seconds.items() if isinstance(one, int | float)},
    )


def seeded_queries(told: Mapping[str, Any]) -> tuple[SeededQuery, ...]:
    """What a seed says of its queries; empty where there was nothing to decide."""
    ways, batches = told.get("ways"), told.get("batches")
    if not isinstance(ways, Mapping) or not isinstance(batches, Mapping):
        return ()
    found = cast(Mapping[str, Any], batches)
    return tuple(
        SeededQuery(name=name, how=str(how), batch=_committed(found.get(name)))
        for name, how in sorted(cast(Mapping[str, Any], ways).items())
    )


def _committed(last: Any) -> int | None:
    match last:
        case [_, int() as commits]:
            return commits
        case _:
            return None
