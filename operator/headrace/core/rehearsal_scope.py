"""What a rehearsal of an edit finds before anything is touched, and what it does not."""

from __future__ import annotations

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core.edit_steps import rehearsed

_FINDS = (
    "an image that cannot be pulled or does not start",
    "imports, arguments and errors of the program outside of queries",
    "a plan that Spark refuses; sources that cannot be read",
    "state that does not fit: other keys, types, aggregates or stateful operators",
    "state that Spark accepts, but that means something else (a sum that becomes a max)",
    "other topics, directories or tables than those that the offsets so far are of",
    "errors of UDFs and parsing on the replayed rows; memory that does not suffice for them",
)
_MISSES = (
    "missing rights or errors at the sinks: they are muted",
    "rows that are rarer than the replayed ones; load beyond them; what only shows after hours",
    "other values of constants and tables that your functions use",
)


def rehearsal_of(new: StreamJobSpec, status: StreamJobStatus) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is found before anything is touched, and what is not."""
    policy = new.upgrade
    if policy.strategy != "Rehearsed":
        return (), (f"anything: upgrade.strategy is {policy.strategy}, nothing is rehearsed",)
    if not rehearsed(new, status):
        return (), ("anything: no version runs that a rehearsal would protect, so there is none",)
    if policy.rehearsal.call_foreach_batch:
        return (*_FINDS, "errors inside foreachBatch, as far as your code runs while rehearsing"), _MISSES
    return _FINDS, ("errors inside foreachBatch: its frame is computed and thrown away", *_MISSES)
