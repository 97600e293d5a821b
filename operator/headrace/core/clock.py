"""Times in a status that lie ahead of the clock.

The clock of an operator may have been wrong when it wrote them, and been put right since; or the operator
that goes on runs on another node. Taken as they are, what is measured from them would not come to an end
before the clock has come that far: a day later, say. So they count from now, at the latest.

The other way round, a clock that leaps forward cuts short what is measured so: a wait, a look at a new run,
the time that a new run has to start. Nothing is lost by it; at worst an edit is taken back and has to be made
again. What would do harm is measured otherwise (`Memory.clock`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from pydantic import BaseModel

from headrace.api import Restart, Restarts, StreamJobStatus
from headrace.core.restarts import wait_before_next

Part = TypeVar("Part", bound=BaseModel)

# Clocks are never quite the same: so little is waited for.
_TOLERATED = timedelta(minutes=1)


def without_future(status: StreamJobStatus, policy: Restart, *, now: datetime) -> StreamJobStatus:
    """The status in which all that is measured from has begun by now; the same, where it has."""
    run, operation, sleep = status.run, status.operation, status.sleep
    if run is not None and run.attempt is not None:
        run = _with(run, attempt=_begun(run.attempt, now, "started_at"))
    if operation is not None and operation.candidate is not None:
        operation = _with(operation, candidate=_begun(operation.candidate, now, "started_at"))
    return _with(
        status,
        run=_begun(run, now, "started_at") if run is not None else None,
        # Not `started_at`: the name of its savepoint is made of it.
        operation=_begun(operation, now, "step_at") if operation is not None else None,
        sleep=_begun(sleep, now, "since", "lookout_at") if sleep is not None else None,
        executors=_begun(status.executors, now, "decided_at"),
        restarts=_in_time(status.restarts, policy, now),
    )


def _begun(part: Part, now: datetime, *names: str) -> Part:
    ahead = [name for name in names if _is_ahead(getattr(part, name), now)]
    return _with(part, **dict.fromkeys(ahead, now))


def _in_time(restarts: Restarts, policy: Restart, now: datetime) -> Restarts:
    """No attempt is further away than the longest wait."""
    longest = timedelta(seconds=policy.backoff.max.seconds)
    if restarts.next_at is None or not _is_ahead(restarts.next_at - longest, now):
        return restarts
    return _with(restarts, next_at=now + wait_before_next(policy, max(1, restarts.in_a_row)))


def _is_ahead(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment > now + _TOLERATED


def _with(part: Part, **changes: object) -> Part:
    """Itself where nothing changes: most passes find nothing to do."""
    news = {name: value for name, value in changes.items() if getattr(part, name) is not value}
    return part.model_copy(update=news) if news else part
