"""Another number of state partitions: what it means for an upgrade.

Spark fixes the number in the checkpoint and ignores another setting, so the state itself must be split anew,
offline. The driver of the new run does that, on its own copy, before its queries start
(headrace_jobs/harness/repartition.py): what run n left is not touched, and what is cut off in the middle is
undone and done again by the next attempt. So each attempt of the run is told, for as long as the run lives;
where the number is right already, nothing is done.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.api import Operation, StreamJobSpec, StreamJobStatus
from headrace.core.decision import Context
from headrace.core.model import ObservedAttempt, Problem, SeededQuery

REPARTITIONING = "Repartitioning"
# The harness's word for a state that cannot be split as it is.
CANNOT_REPARTITION = "CannotRepartition"


def decided(context: Context, operation: Operation) -> Operation:
    """The upgrade, with whether its state is to be split."""
    return operation.model_copy(update={"repartition": _is_wanted(context, operation)})


def hands_over_cold(operation: Operation) -> bool:
    """A candidate cannot take over warm: the state is split between the end of the old run and its start."""
    return operation.repartition


def _is_wanted(context: Context, operation: Operation) -> bool:
    """Whether anything that the new run may begin with is split otherwise than its spec says."""
    if operation.kind != "Upgrade" or operation.without_state:
        return False
    if is_unsure(context.status):
        return True
    pinned, wanted = context.observed.pinned, context.job.spec.state.partitions
    sources = (operation.state_run or operation.from_run, operation.handover)
    known = [pinned[number] for number in sources if number is not None and number in pinned]
    return any(run.spec.state.partitions != wanted for run in known)


def is_unsure(status: StreamJobStatus) -> bool:
    """The spec of the run does not tell how its state is split: it may have ended before, or been left so."""
    run, stable = status.run, status.last_stable
    if run is None:
        return False
    proven = stable is not None and stable.run == run.number
    return run.state_partitions is not None or (run.repartition and not proven)


def changes(old: StreamJobSpec, new: StreamJobSpec, status: StreamJobStatus) -> bool:
    """The same for an edit that nobody has applied yet."""
    if new.upgrade.strategy == "Stateless":
        return False
    return old.state.partitions != new.state.partitions or is_unsure(status)


def left_as_it_is(context: Context, operation: Operation, queries: Iterable[SeededQuery]) -> int | None:
    """Into how many the state of a run is split that goes back to an earlier version; None: as its spec says.

    Nothing is split on the way back: that takes time when there is none, and the old code reads any number.
    """
    if operation.kind != "Rollback":
        return None
    ways = {query.how for query in queries}
    at_handover = operation.handover is not None and bool(ways) and "Forward" not in ways
    source = operation.handover if at_handover else operation.state_run or operation.from_run
    has, wants = _partitions(context, source), _partitions(context, operation.to_run)
    return has if has != wants else None


def _partitions(context: Context, number: int | None) -> int | None:
    run = context.status.run
    if run is not None and run.number == number and run.state_partitions is not None:
        return run.state_partitions
    pinned = context.observed.pinned.get(number) if number is not None else None
    return pinned.spec.state.partitions if pinned is not None else None


def given_up(context: Context) -> StreamJobStatus | None:
    """The status in which the run goes on with the number that its state has; None: it failed otherwise.

    For a run with nothing to go back to, or not by itself: its code may be fine, and a job that is down helps
    nobody.
    """
    run, last = context.status.run, context.status.last_termination
    if run is None or not run.repartition or last is None or last.error_class != CANNOT_REPARTITION:
        return None
    has = _partitions(context, run.number - 1) or _partitions(context, run.number)
    kept = run.model_copy(update={"repartition": False, "state_partitions": has})
    return context.status.model_copy(update={"run": kept})


def beside_a_restore(context: Context) -> Problem | None:
    """A savepoint often holds a batch that has begun, and such a state cannot be split."""
    run = context.status.run
    pinned = context.observed.pinned.get(run.number) if run is not None else None
    if pinned is None or pinned.spec.state.partitions == context.job.spec.state.partitions:
        return None
    return Problem(
        "StateChange",
        "spec.state.partitions cannot change together with a restore: put it back, and change it when the "
        "job runs again",
    )


def is_under_way(seen: ObservedAttempt) -> bool:
    """It takes as long as the state is large: no reason to give the run up."""
    return seen.waiting is not None and seen.waiting.reason == REPARTITIONING
