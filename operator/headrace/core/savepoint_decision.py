"""What the questions about a savepoint are given, what they answer with, and what several of them say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

from headrace.api import StreamSavepointStatus
from headrace.core.conditions import Fact
from headrace.core.decision import Sentence, stalled_facts
from headrace.core.model import Problem
from headrace.core.savepoint_model import (
    KeeperPhase,
    KeeperTry,
    Savepoint,
    SavepointAction,
    SavepointObserved,
    StopKeepers,
    Task,
)
from headrace.core.savepoints import disposal

# What a keeper says of itself when the fault may pass by itself. Without a word it was killed: likewise.
_PASSING = frozenset({"StoreUnavailable", ""})
_TASKS: tuple[Task, ...] = get_args(Task)


@dataclass(frozen=True, kw_only=True)
class Context:
    savepoint: Savepoint
    status: StreamSavepointStatus
    observed: SavepointObserved
    now: datetime

    @property
    def deletes_copy(self) -> bool:
        spec = self.savepoint.spec
        return disposal(spec.deletion_policy, imported=spec.path is not None) == "Delete"

    @property
    def is_over_time(self) -> bool:
        """Whether what has begun should have been done. Not by the time of day: a clock that leaps would end
        a copy that goes well."""
        return self.observed.under_way > timedelta(seconds=self.savepoint.spec.time_limit.seconds)


@dataclass(frozen=True, kw_only=True)
class Decision:
    status: StreamSavepointStatus
    state: str
    facts: tuple[Fact, ...]
    actions: tuple[SavepointAction, ...] = ()
    says: tuple[Sentence, ...] = ()
    waits: bool = False


def tidy(context: Context) -> tuple[SavepointAction, ...]:
    """What its keepers had to say is in the status."""
    over: tuple[Task, ...] = tuple(task for task in _TASKS if context.observed.of(task))
    return (StopKeepers(tasks=over),) if over else ()


def trouble_with(context: Context, task: Task) -> Problem | None:
    """Why it is not done yet, where there is more to say than that it takes its time."""
    if context.observed.refused is not None:
        return context.observed.refused
    tries = context.observed.of(task)
    if waiting := next((one.waiting for one in tries if one.waiting is not None), None):
        return waiting
    ended = [one for one in tries if one.phase is KeeperPhase.FAILED]
    if not ended:
        return None
    return Problem("KeeperFailed", str(ended[-1].words.get("message") or "the keeper pod failed"))


def give_up(context: Context, problem: Problem) -> Decision:
    message = problem.message or "no reason was told"
    said = f"{message}. Make another StreamSavepoint when that is mended"
    return Decision(
        status=context.status.model_copy(update={"failed_at": context.now, "copied_percent": None}),
        state="Failed",
        facts=(*stalled_facts(problem.reason, said), unverified(problem.reason)),
        actions=tidy(context),
        says=(Sentence(problem.reason, message),),
    )


def final_word(last: KeeperTry | None) -> Problem | None:
    """What went wrong for good, in the last try; None where another one may do better."""
    if last is None or last.phase is not KeeperPhase.FAILED:
        return None
    reason = str(last.words.get("reason", ""))
    if reason in _PASSING:
        return None
    named = str(last.words.get("errorClass") or reason) if reason == "Refused" else reason
    return Problem(named, str(last.words.get("message", "")))


def unverified(reason: str) -> Fact:
    return Fact(type="Verified", true=False, reason=reason)
