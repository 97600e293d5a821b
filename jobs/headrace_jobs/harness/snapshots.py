"""Fresh snapshots of the state, just before an attempt ends for the next run to take over.

Who loads a state takes its newest snapshot and replays every batch since, one small file per batch and store.
With a trigger of a second that is most of the first batch of the next run, while nobody commits. So the
queries go on for two batches more: the first one notices that snapshots are wanted, the second makes them as
part of its commit. It is a matter of speed alone: what does not get there in time is replayed as ever.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from headrace_jobs.harness.control import Control

if TYPE_CHECKING:  # pyspark is imported while the JVM starts, not before
    from headrace_jobs.harness.managed import ManagedQuery, QueryRegistry

log = logging.getLogger("headrace")

_BATCHES = 2
# A slow query has few batches to replay, an idle one none that would come: neither holds a handover up.
_LONGEST_SECONDS = 5.0
_IDLE_SECONDS = 2.0
_LOOK_SECONDS = 0.05
# By default Spark makes no snapshot for fewer batches.
_WORTH_BATCHES = 10


def make_snapshots(
    registry: QueryRegistry, control: Control, *, timeout_seconds: float, hurry: threading.Event
) -> float:
    """Waits for snapshots of all queries for which they are worth it; how long that took."""
    began = time.monotonic()
    wanted = {query: batch + _BATCHES for query, batch in _worthwhile(registry.active())}
    if not wanted or not control.want_snapshots():
        return 0.0
    deadline = began + min(_LONGEST_SECONDS, timeout_seconds / 4)
    busy = began
    while wanted and not hurry.is_set() and time.monotonic() < deadline:
        if any(query.java.status().isTriggerActive() for query in wanted):
            busy = time.monotonic()
        elif time.monotonic() - busy > _IDLE_SECONDS:
            break
        hurry.wait(_LOOK_SECONDS)
        wanted = {query: batch for query, batch in wanted.items() if _goes_on(query, before=batch)}
    took = time.monotonic() - began
    log.info("snapshots of the state before the handover: %.1f s%s", took, _missed(wanted))
    return took


def _worthwhile(queries: list[ManagedQuery]) -> list[tuple[ManagedQuery, int]]:
    found = ((query, query.java.lastProgress()) for query in queries)
    return [
        (query, progress.batchId())
        for query, progress in found
        if progress is not None and progress.batchId() >= _WORTH_BATCHES and _has_state(progress)
    ]


def _has_state(progress: Any) -> bool:
    return bool(json.loads(progress.json())["stateOperators"])


def _goes_on(query: ManagedQuery, *, before: int) -> bool:
    return query.isActive and query.java.lastProgress().batchId() < before


def _missed(queries: dict[ManagedQuery, int]) -> str:
    return f"; not in time: {', '.join(query.query_name for query in queries)}" if queries else ""
