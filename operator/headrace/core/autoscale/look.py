"""One look at a job: what its driver reports, decided upon, with all that is to be remembered of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from headrace.api import StreamJobSpec
from headrace.core.autoscale.memory import Memory
from headrace.core.autoscale.observation import Decision, Executors, Limits, Observation
from headrace.core.autoscale.policy import decide
from headrace.core.autoscale.report import Reading, limits_of
from headrace.core.lag import Offsets, rows_lost


@dataclass(frozen=True, kw_only=True)
class Look:
    """What came of it."""

    decision: Decision
    memory: Memory
    # Rows that a source deleted since the last look, before they were read.
    lost: int


def look(
    spec: StreamJobSpec,
    reading: Reading,
    memory: Memory,
    *,
    asked: int,
    ready: int,
    pending_seconds: float,
    why_pending: str | None,
    now: datetime,
) -> Look:
    scaling = spec.autoscaling
    rules = scaling is not None and scaling.mode == "Auto"
    limits = (
        limits_of(scaling, now=now)
        if scaling is not None and scaling.mode != "Off"
        # Nobody decides: what can be done with these executors is still worth knowing.
        else Limits(
            min=asked,
            max=asked,
            lag_objective_seconds=scaling.lag_objective.seconds if scaling is not None else 60.0,
        )
    )
    seen = Observation(
        at=reading.at,
        queries=reading.queries,
        executors=Executors(
            cores=spec.executors.cores,
            asked=asked,
            ready=ready,
            pending_seconds=pending_seconds,
            why_pending=why_pending,
        ),
        limits=limits,
    )
    decision, after = decide(seen, memory)
    return Look(
        decision=decision,
        # What nobody does has no effect to wait for.
        memory=after if rules else _without_move(after, memory),
        lost=_lost(reading, memory),
    )


def _without_move(after: Memory, before: Memory) -> Memory:
    return replace(
        after,
        moved_at=before.moved_at,
        asked_at=None,
        trial=None,
        floor=before.floor,
        went_down_at=before.went_down_at,
    )


def _lost(reading: Reading, memory: Memory) -> int:
    known = memory.queries
    return sum(
        rows_lost(known[query.name].flows, query.source)
        for query in reading.queries
        if query.name in known and isinstance(query.source, Offsets)
    )


def to_entry(decision: Decision) -> dict[str, Any]:
    """A decision as the ring keeps it."""
    numbers = {
        name: float(f"{value:.4g}") for name, value in asdict(decision.numbers).items() if value is not None
    }
    return {
        "at": round(decision.at, 1),
        "asked": decision.asked,
        "target": decision.target,
        "reason": str(decision.reason),
        "message": decision.message,
        "emergency": decision.emergency,
        "numbers": numbers,
    }


def to_point(decision: Decision, *, ready: int) -> list[float | int | None]:
    """A look as the ring keeps it: seconds, rows per second, rows behind, seconds behind, asked, ready."""
    numbers: Mapping[str, Any] = asdict(decision.numbers)
    lag = numbers["lag_seconds"]
    arrival = numbers["arrival_rows_per_second"]
    return [
        round(decision.at),
        None if arrival is None else float(f"{arrival:.5g}"),
        numbers["lag_rows"],
        None if lag is None else round(lag, 1),
        decision.asked,
        ready,
    ]
