"""The savepoints of a job beside its life: taken by schedule, removed by retention, counted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headrace.core.actions import Action, RemoveSavepoint, TakeSavepoint
from headrace.core.decision import Context, Sentence
from headrace.core.savepoints import (
    Known,
    Summary,
    due_by_schedule,
    has_moved,
    judge,
    newest_good,
    scheduled_name,
    summary,
)
from headrace.core.schedule import next_time


@dataclass(frozen=True, kw_only=True)
class Saving:
    last: str | None = None
    actions: tuple[Action, ...] = ()
    says: tuple[Sentence, ...] = ()
    look_at: datetime | None = None
    summary: Summary | None = None


def keep_savepoints(context: Context) -> Saving:
    known = context.observed.savepoints
    if known is None:
        return Saving(last=context.status.last_savepoint)
    newest = newest_good(known)
    told = _summary(context, known)
    last = newest.name if newest is not None else None
    if context.job.paused or context.job.deleting:
        return Saving(last=last, summary=told)
    removals = tuple(
        RemoveSavepoint(name=one.name, uid=one.uid, why=verdict.message)
        for verdict in judge(context.job.spec.savepoints, known, now=context.now)
        for one in known
        if verdict.remove and one.name == verdict.name
    )
    says = tuple(Sentence("SavepointRemoved", f"{one.name}: {one.why}") for one in removals)
    taking = _by_schedule(context, known)
    return Saving(
        last=last,
        actions=(*removals, *taking.actions),
        says=(*says, *taking.says),
        look_at=taking.look_at,
        summary=told,
    )


def _by_schedule(context: Context, known: tuple[Known, ...]) -> Saving:
    """While the job runs, and no step is under way that takes one of its own."""
    policy, since = context.job.spec.savepoints, _since(context)
    if since is None:
        return Saving()
    due = due_by_schedule(
        policy, known, since=since, moves=_moves(context, known), now=context.now, next_time=_next_time
    )
    look_at = _next_time(policy.schedule, context.now) if policy.schedule is not None else None
    if due is None:
        return Saving(look_at=look_at)
    name = scheduled_name(context.job.name, due.at)
    return Saving(
        actions=(TakeSavepoint(name=name, cause="Schedule"),),
        says=(Sentence("Savepoint", f"{name}: {due.message}"),),
        look_at=look_at,
    )


def _summary(context: Context, known: tuple[Known, ...]) -> Summary:
    since = _since(context)
    return summary(
        context.job.spec.savepoints,
        known,
        since=since or context.now,
        moves=since is not None and _moves(context, known),
        now=context.now,
        next_time=_next_time,
    )


def _since(context: Context) -> datetime | None:
    """From when on the schedule counts; None while it does not."""
    run, operation = context.status.run, context.status.operation
    # A run on trial is saved as any other: the trial may last until somebody decides.
    changing = operation is not None and not operation.on_trial
    idle = context.job.spec.suspend or context.job.deleting or changing
    if idle or run is None or run.attempt is None or run.attempt.state != "Started" or not context.live:
        return None
    return run.started_at


def _moves(context: Context, known: tuple[Known, ...]) -> bool:
    current = context.current
    queries = current.queries if current is not None else ()
    return has_moved(
        known, {one.name: one.committed_batch for one in queries if one.committed_batch is not None}
    )


def _next_time(cron: str, after: datetime) -> datetime | None:
    return next_time(cron, None, after)
