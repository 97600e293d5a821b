"""Finds batches that do not end. A query can hang for hours without any error: a lock in a sink, a socket
without a time limit, a source whose broker is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace_jobs.harness.view import PROCESSING, QueryView

# An idle query asks its sources again and again, and may look busy at every look; but it reports progress
# every ten seconds, which a query that hangs while it asks does not.
_IDLE_PROGRESS_SECONDS = 15.0


@dataclass(frozen=True)
class Stuck:
    query: str
    seconds: float
    doing: str

    @property
    def sentence(self) -> str:
        return f"query {self.query} has been at it for {self.seconds:.0f} s: {self.doing}"


def stuck_queries(
    views: Sequence[QueryView], *, now: float, last_look: float, timeout_seconds: float
) -> list[Stuck]:
    """`last_look` is when the views were last renewed: a JVM that does not answer at all is stuck, too."""
    silent = now - last_look
    found: list[Stuck] = []
    for view in views:
        if not view.active:
            continue
        limit = timeout_seconds + (0 if view.message == PROCESSING else _IDLE_PROGRESS_SECONDS)
        if view.busy_since is not None and now - view.busy_since > limit:
            found.append(Stuck(view.name, now - view.busy_since, _doing(view)))
        elif silent > timeout_seconds:
            found.append(Stuck(view.name, silent, "the JVM does not answer"))
    return found


def _doing(view: QueryView) -> str:
    if view.message != PROCESSING:
        return view.message
    after = view.committed_batch
    return "its first batch" if after is None else f"batch {after + 1}"
