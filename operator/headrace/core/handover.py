"""Where the state of a new run comes from, and how that is told."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.api import Operation
from headrace.core.actions import SeedRun
from headrace.core.model import SeededQuery

NO_STATE = "none"
_TOLD = 3


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
        return NO_STATE
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
