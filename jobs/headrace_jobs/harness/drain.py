"""Drain: every query ends between two batches.

The JVM's file manager refuses to begin a batch from now on. A query in the middle of a batch is left alone
until the batch is committed; a query whose newest batch is committed cannot begin another one, so it can
be stopped safely (an idle query would never notice the drain by itself).
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace_jobs.harness.control import NO_BATCH, Batches, Control, StoreUnavailable

if TYPE_CHECKING:  # pyspark is imported while the JVM starts, not before
    from headrace_jobs.harness.managed import ManagedQuery, QueryRegistry

log = logging.getLogger("headrace")

_SHORTEST_POLL_SECONDS = 0.03
_STOP_SECONDS = 5.0


@dataclass(frozen=True)
class DrainResult:
    """`cut` are the queries that did not reach the end of their batch, with why."""

    batches: dict[str, Batches] = field(default_factory=dict)
    cut: dict[str, str] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        return not self.cut


def drain(
    registry: QueryRegistry,
    control: Control,
    *,
    timeout_seconds: float,
    hurry: threading.Event,
    leave_out: frozenset[str] = frozenset(),
) -> DrainResult:
    """Ends all queries at a batch boundary, or says which did not get there in time.

    `hurry` gives up at once; queries in `leave_out` are beyond help and not waited for.
    """
    deadline = time.monotonic() + timeout_seconds
    registry.draining.set()
    control.drain(timeout_seconds)
    stopped: list[ManagedQuery] = []
    waiting = _waiting(registry, stopped, leave_out)
    while waiting and not hurry.is_set() and time.monotonic() < deadline:
        asked = time.monotonic()
        for query in _at_boundary(waiting, control):
            _stop_in_background(query)
            stopped.append(query)
        waiting = _waiting(registry, stopped, leave_out)
        # On S3 a look costs requests and time: wait at least as long as it took.
        registry.wait_until_ended(waiting, max(_SHORTEST_POLL_SECONDS, time.monotonic() - asked))
        waiting = [query for query in waiting if query.isActive]
    registry.wait_until_ended(stopped, 0 if hurry.is_set() else _STOP_SECONDS)
    try:
        batches = control.batches()
    except StoreUnavailable as error:
        # What has failed before is the news; that nobody can look any more is only said beside it.
        unknown = "whether the last batch of query {} was committed is not known"
        return DrainResult(cut={name: f"{unknown.format(name)}: {error}" for name in _names(registry)})
    return DrainResult(
        batches, _cut(registry, batches, hurried=hurry.is_set(), timeout_seconds=timeout_seconds)
    )


def _waiting(
    registry: QueryRegistry, stopped: list[ManagedQuery], leave_out: frozenset[str]
) -> list[ManagedQuery]:
    return [q for q in registry.active() if q not in stopped and q.query_name not in leave_out]


def _at_boundary(waiting: list[ManagedQuery], control: Control) -> list[ManagedQuery]:
    """A query is stopped only where this was seen: while the store does not answer, none is."""
    try:
        batches = control.batches()
    except StoreUnavailable as error:
        log.warning("the drain cannot see how far the queries are, and looks again: %s", error)
        return []
    return [query for query in waiting if batches.get(query.query_name, NO_BATCH).at_boundary]


def _names(registry: QueryRegistry) -> list[str]:
    return [query.query_name for query in registry.all()]


def _stop_in_background(query: ManagedQuery) -> None:
    """Spark's stop() waits for the stream thread, and one query must not hold up the others."""
    threading.Thread(target=query.cut, name=f"headrace-stop-{query.query_name}", daemon=True).start()


def _cut(
    registry: QueryRegistry, batches: dict[str, Batches], *, hurried: bool, timeout_seconds: float
) -> dict[str, str]:
    why = "was told to stop at once" if hurried else f"did not finish within {timeout_seconds:.0f} s"
    cut: dict[str, str] = {}
    for query in registry.all():
        found = batches.get(query.query_name, NO_BATCH)
        if not found.at_boundary:
            what = f"batch {found.offsets} of query {query.query_name}"
            cut[query.query_name] = f"{what} {why}; the next attempt repeats it"
    return cut
