"""Waiting for a job, with a line for every step on the way."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from headrace.cli.cluster import Cluster
from headrace.cli.jobs import LiveJob, job

_LOOK_AGAIN_SECONDS = 1.0


class Waited(StrEnum):
    DONE = "done"
    STALLED = "stalled"
    TOO_LONG = "too long"


def wait_for(
    cluster: Cluster,
    name: str,
    done: Callable[[LiveJob], bool],
    *,
    timeout_seconds: float,
    even_stalled: bool = False,
    tell: Callable[[str], None],
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> Waited:
    until, told = clock() + timeout_seconds, ""
    while True:
        found = job(cluster, name)
        # A condition of before the edit says nothing about it.
        if not found.unseen:
            if done(found):
                tell(f"  {found.status.state}")
                return Waited.DONE
            stalled = found.status.condition("Stalled")
            if stalled is not None and stalled.status == "True" and not even_stalled:
                tell(f"  {stalled.reason}: {stalled.message}")
                return Waited.STALLED
        if (step := _step(found)) != told:
            tell(f"  {step}")
            told = step
        if clock() > until:
            tell(f"  not done after {timeout_seconds:g} s; it goes on. See: kubectl streamjob status {name}")
            return Waited.TOO_LONG
        sleep(_LOOK_AGAIN_SECONDS)


def _step(found: LiveJob) -> str:
    ready, operation = found.status.condition("Ready"), found.status.operation
    state = f"{found.status.state}, {operation.step}" if operation is not None else found.status.state
    return f"{state or 'New'}: {ready.message}" if ready is not None and ready.message else state or "New"
