"""Whether and when another attempt follows one that ended."""

from __future__ import annotations

from datetime import datetime, timedelta

from headrace.api import Restart, Restarts, StreamJobStatus, Termination
from headrace.core.model import Ended, Ending

# Endings after which nothing changes by trying again: only an edit helps, or nothing is left to do.
HELD = (Ending.COMPLETED, Ending.REFUSED)

# The error classes of refusals that spec.startFrom answers: an earlier lineage lies in the store; what the
# job was to start from does not fit its queries.
EARLIER_LINEAGE = "EarlierLineage"
START_REFUSED = "StartRefused"

# Endings that are no failure.
PEACEFUL = (Ending.COMPLETED, Ending.DRAINED)


def record_ending(
    status: StreamJobStatus, ended: Ended, policy: Restart, *, now: datetime
) -> dict[str, Restarts | Termination]:
    """The fields of the status that an ending changes."""
    run = status.run
    assert run is not None and run.attempt is not None
    termination = Termination(
        run=run.number,
        attempt=run.attempt.number,
        reason=ended.ending.value,
        message=ended.message,
        error_class=ended.error_class,
        exit_code=ended.exit_code,
        user_frame=ended.user_frame,
        at=ended.at or now,
        log_file=ended.log_file,
        candidate=run.attempt.activation.candidate if run.attempt.activation is not None else None,
    )
    if ended.ending in PEACEFUL:
        return {"last_termination": termination, **without_failures(status)}
    started = run.attempt.started_at
    # An attempt that lived long was healthy: its failure is the first, not the next in a row.
    stable = started is not None and (now - started).total_seconds() >= policy.stable_after.seconds
    in_a_row = 1 if stable else status.restarts.in_a_row + 1
    restarts = Restarts(
        total=status.restarts.total + 1, in_a_row=in_a_row, next_at=now + wait_before_next(policy, in_a_row)
    )
    return {"last_termination": termination, "restarts": restarts}


def wait_before_next(policy: Restart, in_a_row: int) -> timedelta:
    """Doubling, from the smallest wait to the largest."""
    smallest, largest = policy.backoff.min.seconds, policy.backoff.max.seconds
    # 2**20 seconds is far beyond any limit, and keeps the power small.
    return timedelta(seconds=min(largest, smallest * 2 ** min(in_a_row - 1, 20)))


def without_failures(status: StreamJobStatus) -> dict[str, Restarts]:
    return {"restarts": Restarts(total=status.restarts.total)}


def found_earlier_lineage(status: StreamJobStatus) -> bool:
    """Whether the newest attempt ended because an earlier lineage of the job lies in the store."""
    last = status.last_termination
    return hold_reason(status) is Ending.REFUSED and last is not None and last.error_class == EARLIER_LINEAGE


def refused_its_start(status: StreamJobStatus) -> bool:
    """Whether the newest attempt ended, before it began a query, because of what it was to start from."""
    last = status.last_termination
    return hold_reason(status) is Ending.REFUSED and last is not None and last.error_class == START_REFUSED


def hold_reason(status: StreamJobStatus) -> Ending | None:
    """Why no further attempt of this run is made by itself, if so."""
    last, run = status.last_termination, status.run
    if run is None or run.attempt is None or run.attempt.state != "Ended" or last is None:
        return None
    ours = (last.run, last.attempt) == (run.number, run.attempt.number)
    return Ending(last.reason) if ours and last.reason in HELD else None
