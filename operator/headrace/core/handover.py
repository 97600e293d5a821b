"""Where the state of a new run comes from, and how that is told."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.api import Operation
from headrace.core.actions import SeedRun
from headrace.core.decision import Context
from headrace.core.model import SeededQuery

_NO_STATE = "none"
_TOLD = 3


def left_behind(context: Context, operation: Operation) -> int | None:
    """The run whose state is not gone on from: since the new run begins without it, or one on trial did."""
    run = context.status.run
    if operation.kind != "Upgrade" or run is None:
        return None
    on_trial = operation.back_to is not None and operation.back_to != run.number
    if on_trial and run.left is not None:
        return run.left
    return run.number if operation.without_state else None


def next_to_copy_for(operation: Operation) -> int:
    """The run to copy the state for where a rollback takes the place of an upgrade, or gives way to one.

    A copy that has begun brings the files of one version, or leaves them to be fetched: for the other, it is
    made once more, for a run of its own. Two runs never begin in one path.
    """
    return operation.to_run + 1 if operation.step == "Seeding" else operation.to_run


def seed_of(operation: Operation) -> SeedRun:
    return SeedRun(
        from_run=operation.state_run or operation.from_run,
        to_run=operation.to_run,
        handover=operation.handover,
        rewind=operation.rewind,
        code_of=operation.version_of,
    )


def seeded_from(operation: Operation, queries: Iterable[SeededQuery]) -> str:
    """As `status.run` names it: the run whose path was copied."""
    if operation.without_state:
        return _NO_STATE
    ways = {query.how for query in queries}
    if operation.handover is not None and ways and "Forward" not in ways:
        return f"run-{operation.handover}"
    return f"run-{operation.state_run or operation.from_run}"


def story(operation: Operation, queries: Iterable[SeededQuery]) -> str:
    """What each query goes on from, in a sentence; empty where the keeper had nothing to decide."""
    told = [_sentence(operation, query) for query in queries]
    more = len(told) - _TOLD
    return "; ".join(told[:_TOLD]) + (f"; and {more} more" if more > 0 else "")


def _sentence(operation: Operation, query: SeededQuery) -> str:
    batch = f"batch {query.batch}" if query.batch is not None else "its first batch"
    handover, candidate = operation.handover, operation.state_run or operation.from_run
    match query.how:
        case "Handover":
            return f"{query.name} goes on from {batch}, the last of run {handover}"
        case "Carried":
            return (
                f"{query.name} goes on from {batch}, the last of run {handover}, and replays the one that "
                f"run {candidate} began, within the same bounds"
            )
        case "Rewound":
            return (
                f"{query.name} goes back to {batch}, the last of run {handover}, under a new lineage: what "
                f"run {candidate} wrote since is made again, and sinks without keys may have it twice"
            )
        case _:
            return f"{query.name} goes on from {batch}, the last of run {candidate}"
