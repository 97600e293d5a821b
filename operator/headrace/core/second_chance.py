"""A version that was given up while the version before it fails, too: then the cause may lie elsewhere.

      rolled back, or refused ──▶ the old version fails by an error of its code ──▶ OldVersionFailsToo
                                                                                          │
                    judged anew, once ◀── forgotten ◀── the old version works, and is proven

A source that is away makes every version fail. Whoever was given up for it is judged anew when the old
version is well again, and not before: an outage is no reason to go to and fro between two versions.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headrace.api import Rejection, StreamJobStatus
from headrace.core.decision import Context, Decision
from headrace.core.model import AttemptPhase
from headrace.core.restarts import failed_without_progress

OLD_VERSION_FAILS_TOO = "OldVersionFailsToo"
# What cannot be the fault of anything but the version, or is somebody's wish.
_NO_DOUBT = ("Requested", "MeaningChanged", "Refused", "OutOfMemory", "LagGrew", OLD_VERSION_FAILS_TOO)
# Failures so far apart have nothing to do with each other.
_SAME_CAUSE = timedelta(minutes=30)


def with_doubt(context: Context) -> Context:
    rejected, run, operation = context.status.rejected, context.status.run, context.status.operation
    if rejected is None or run is None or rejected.reason in _NO_DOUBT:
        return context
    if operation is not None and not operation.on_trial:
        return context  # the old version is not there yet
    last = failed_without_progress(context.status)
    if last is None or last.run != run.number or run.revision == rejected.revision:
        return context
    if last.at is None or rejected.at is None or abs(last.at - rejected.at) > _SAME_CAUSE:
        return context
    message = (
        f"{rejected.message}. But run {run.number} fails, too ({last.message or last.reason}), so the cause "
        f"may lie elsewhere: it is tried again by itself when run {run.number} works"
    )
    doubted = rejected.model_copy(update={"reason": OLD_VERSION_FAILS_TOO, "message": message})
    return context.with_status(_with(context.status, doubted))


def without_doubted(context: Context) -> Context:
    """The old version works: what was given up is judged anew."""
    over = _runs(context) and _is_over(context.status)
    return context.with_status(_with(context.status, None)) if over else context


def look_again(context: Context, decision: Decision) -> Decision:
    """The pass that finds the old version well is followed by one that acts on it."""
    over = _runs(context) and _is_over(decision.status)
    return replace(decision, recheck_at=context.now) if over else decision


def _runs(context: Context) -> bool:
    return context.current is not None and context.current.phase is AttemptPhase.RUNNING


def _is_over(status: StreamJobStatus) -> bool:
    rejected, run, stable = status.rejected, status.run, status.last_stable
    if rejected is None or rejected.reason != OLD_VERSION_FAILS_TOO or run is None or stable is None:
        return False
    return stable.run == run.number and status.restarts.without_progress == 0 and status.operation is None


def _with(status: StreamJobStatus, rejected: Rejection | None) -> StreamJobStatus:
    return status.model_copy(update={"rejected": rejected})
