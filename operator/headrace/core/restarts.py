"""Whether and when another attempt follows one that ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from headrace.api import Restart, Restarts, StreamJobStatus, Termination
from headrace.core.model import Ended, Ending, QueryReport

# Endings after which nothing changes by trying again: only an edit helps, or nothing is left to do.
HELD = (Ending.COMPLETED, Ending.REFUSED)

# The error classes of refusals that spec.startFrom answers: an earlier lineage lies in the store; what the
# job was to start from does not fit its queries.
EARLIER_LINEAGE = "EarlierLineage"
START_REFUSED = "StartRefused"

# Endings by an error of the user's code, or of what it works with: a table that is missing, a bad record.
_OF_THE_CODE = (Ending.APPLICATION_ERROR, Ending.QUERY_FAILED)
# So many of these without a batch between them are not taken for bad luck any more.
FAILURES_UNTIL_STALLED = 5

_NOT_IN_A_REASON = re.compile(r"[^A-Za-z0-9_]")

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
    # An attempt that lived long was healthy: its failure is the first, not the next in a row.
    in_a_row = 1 if _lived_long(status, policy, now=now) else status.restarts.in_a_row + 1
    restarts = Restarts(
        total=status.restarts.total + 1,
        in_a_row=in_a_row,
        without_progress=status.restarts.without_progress + 1,
        next_at=now + wait_before_next(policy, in_a_row),
    )
    if _is_stalled(restarts, termination):
        longest = timedelta(seconds=policy.backoff.max.seconds)
        restarts = restarts.model_copy(update={"next_at": now + longest})
    return {"last_termination": termination, "restarts": restarts}


def failed_without_progress(status: StreamJobStatus) -> Termination | None:
    """How the last attempt ended, where that was an error of the code and nothing was committed since."""
    last = status.last_termination
    failed = last is not None and last.reason in _OF_THE_CODE and status.restarts.without_progress > 0
    return last if failed else None


def failing(status: StreamJobStatus) -> Termination | None:
    """How the last attempts ended, where the code has failed too often without a batch in between.

    It is tried on, since the cause may lie elsewhere and go away (docs/adr/0013).
    """
    last = status.last_termination
    return last if last is not None and _is_stalled(status.restarts, last) else None


def _is_stalled(restarts: Restarts, last: Termination) -> bool:
    return last.reason in _OF_THE_CODE and restarts.without_progress >= FAILURES_UNTIL_STALLED


def with_progress(
    status: StreamJobStatus, queries: Sequence[QueryReport], policy: Restart, *, now: datetime
) -> StreamJobStatus:
    """Of a driver that runs: it has committed a batch of every query since it started, or has lived long
    enough, perhaps without anything to read."""
    restarts = status.restarts
    if restarts.without_progress == 0 or not queries:
        return status
    committed = all(query.committed_batch is not None for query in queries)
    if not committed and not _lived_long(status, policy, now=now):
        return status
    return status.model_copy(update={"restarts": restarts.model_copy(update={"without_progress": 0})})


def reason_of(error_class: str | None, ending: str) -> str:
    """Spark's error class as a word that a condition may have."""
    word = _NOT_IN_A_REASON.sub("_", error_class or "").strip("_")
    return word if word[:1].isalpha() else ending


def _lived_long(status: StreamJobStatus, policy: Restart, *, now: datetime) -> bool:
    started = status.run.attempt.started_at if status.run is not None and status.run.attempt else None
    return started is not None and (now - started).total_seconds() >= policy.stable_after.seconds


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
