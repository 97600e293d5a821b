"""The attempts of a run: watched while they run, and followed by another when one ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from headrace.api import PAUSE_ANNOTATION, StreamJobStatus
from headrace.core import warm
from headrace.core.beginning import earlier_lineage
from headrace.core.conditions import Fact
from headrace.core.decision import Context, Decision, Sentence, progress_facts, stalled_facts
from headrace.core.executors import BOUNDARY_RECHECK, awaits_boundary, scale, scaling_said
from headrace.core.finite import due_at, outlook, with_completion
from headrace.core.model import AttemptPhase, Ended, Ending, ObservedAttempt, Problem
from headrace.core.restarts import (
    failing,
    hold_reason,
    reason_of,
    record_ending,
    with_progress,
    without_failures,
)
from headrace.core.schedule import zone_problem
from headrace.core.starting import copy_state, start_intended, start_next

_LOOK_AGAIN = timedelta(seconds=10)


def keep_alive(context: Context) -> Decision:
    return _with_failure(context, _keep_alive(context))


def _keep_alive(context: Context) -> Decision:
    run = context.status.run
    assert run is not None  # first_run answered before
    current, seen = run.attempt, context.current
    if current is None or current.state == "Ended":
        return _next_attempt(context)
    if (ended := ending_of(context)) is not None:
        return follow(recorded(context, ended), ended)
    if seen is not None and warm.is_activating(context.status) and seen.phase is not AttemptPhase.RUNNING:
        return warm.activating(context, seen)
    if seen is not None:
        return _running(context, seen)
    return start_intended(context, context.status, "starting as intended")


def left_alone(context: Context) -> Decision:
    """Of a paused job: nothing is done, but what is said of its driver stays true."""
    run, seen = context.status.run, context.current
    decision = Decision(status=context.status, state="Paused", facts=())
    if run is None or run.attempt is None or run.attempt.state == "Ended":
        return decision
    if seen is not None and seen.live:
        running = _with_failure(context, _running(context, seen))
        ready = (fact for fact in running.facts if fact.type == "Ready")
        return replace(decision, facts=tuple(ready), recheck_at=running.recheck_at)
    ended = ending_of(context)
    told = ending_said(ended).message if ended is not None else "the driver has not been started"
    message = f"{told}. Nothing follows while the annotation {PAUSE_ANNOTATION} is there"
    return replace(decision, facts=(Fact(type="Ready", true=False, reason="Paused", message=message),))


def ending_of(context: Context) -> Ended | None:
    """How the current attempt ended, where the status does not know yet that it has."""
    run = context.status.run
    current, seen = run.attempt if run is not None else None, context.current
    if current is None or current.state == "Ended" or (seen is not None and seen.live):
        return None
    if seen is not None:
        return seen.ended or Ended(ending=Ending.UNKNOWN)
    if current.state == "Intended" and current.activation is None:
        return None
    return Ended(ending=Ending.UNKNOWN, message="the driver is gone without a trace")


def recorded(context: Context, ended: Ended) -> Context:
    """The driver is gone: the status says why."""
    policy = context.job.spec.restart
    record = record_ending(context.status, ended, policy, now=context.now)
    if warm.says_nothing(context.status, ended):
        record |= without_failures(context.status)  # nobody writes: the next attempt is not put off
    status = context.with_attempt(state="Ended").model_copy(update=record)
    if ended.ending is Ending.COMPLETED:
        status = with_completion(context.job.spec.trigger, status, at=ended.at or context.now)
    return context.with_status(status)


def follow(context: Context, ended: Ended) -> Decision:
    """Whether and when another attempt follows the one whose end was just recorded."""
    following = earlier_lineage(context) or _with_failure(context, _next_attempt(context))
    return following.saying(ending_said(ended))


def ending_said(ended: Ended) -> Sentence:
    return Sentence(ended.ending, ended.message or f"the driver ended: {ended.ending}")


def with_ended_attempt(context: Context) -> StreamJobStatus:
    """The driver ended because we asked: no failure, whatever noise it made, and no wait before the next."""
    run = context.status.run
    if run is None or run.attempt is None or run.attempt.state != "Started":
        return context.status
    ended = context.current.ended if context.current is not None else None
    if ended is not None and ended.ending is Ending.COMPLETED:
        # It was done by then. Started again, it would do over what nobody asked for.
        record = record_ending(context.status, ended, context.job.spec.restart, now=context.now)
        status = context.with_attempt(state="Ended").model_copy(update=record)
        return status.model_copy(update={"completed_at": ended.at or context.now})
    return context.with_attempt(state="Ended").model_copy(update=without_failures(context.status))


def _running(context: Context, seen: ObservedAttempt) -> Decision:
    status = with_progress(
        context.with_started_attempt(seen), seen.queries, context.job.spec.restart, now=context.now
    )
    stuck = [query.name for query in seen.queries if query.stuck]
    refusal = context.refusal()
    if seen.phase is AttemptPhase.STARTING:
        waiting = seen.waiting or Problem("Starting", "the driver is starting")
        facts = progress_facts(waiting.reason, waiting.message)
        return Decision(status=status, state="Starting", facts=facts)
    if seen.phase is AttemptPhase.DRAINING:
        facts = progress_facts("Ending", "the driver is ending")
        return Decision(status=status, state="Ending", facts=facts)
    if stuck:
        ready = Fact(
            type="Ready",
            true=False,
            reason="BatchStuck",
            message=f"no end of the batch in {', '.join(stuck)}",
        )
        return Decision(status=status, state="Stuck", facts=(ready, *_settled()))
    if (problem := no_executor(context)) is not None:
        ready, *rest = progress_facts(
            problem.reason, f"the driver runs without an executor. {problem.message}"
        )
        return Decision(
            status=status, state="Waiting", facts=(ready, *(refusal or rest)), actions=scale(context)
        )
    ready = Fact(type="Ready", true=True, reason="Running", message="all queries are active")
    return Decision(
        status=status,
        state="Running",
        facts=(ready, *(refusal or _settled())),
        actions=scale(context),
        says=(*warm.taken_over(context, seen), *scaling_said(context)),
        recheck_at=_look_at_executors(context),
    )


def _with_failure(context: Context, decision: Decision) -> Decision:
    """Code that has failed again and again is Stalled, also while it is tried once more: until a batch of
    every query shows that it works."""
    failed = failing(decision.status)
    if failed is None:
        # Whether it gets any further than the attempt before it is to be seen.
        unseen = decision.state == "Running" and decision.status.restarts.without_progress > 0
        look_at = context.now + _LOOK_AGAIN if unseen else None
        return replace(decision, recheck_at=min(filter(None, (decision.recheck_at, look_at)), default=None))
    reason = reason_of(failed.error_class, failed.reason)
    count = decision.status.restarts.without_progress
    message = f"{failed.message or failed.reason} ({count} attempts in a row failed without a batch"
    due = decision.status.restarts.next_at
    following = f"the next at {due:%H:%M:%S} UTC)" if due is not None else "one more is under way)"
    facts = stalled_facts(reason, f"{message}; {following}")
    waits = [fact for fact in decision.facts if fact.type == "Ready" and not fact.true]
    if due is None and waits:
        facts = (*waits, *(fact for fact in facts if fact.type != "Ready"))
    look_at = None if decision.actions or due is not None else context.now + _LOOK_AGAIN
    return replace(decision, facts=facts, recheck_at=decision.recheck_at or look_at)


def _look_at_executors(context: Context) -> datetime | None:
    executors = context.observed.executors
    boundary = context.now + BOUNDARY_RECHECK if awaits_boundary(context) else None
    missing = executors.expected_by if executors is not None else None
    return min(filter(None, (boundary, missing)), default=None)


def no_executor(context: Context) -> Problem | None:
    """Why there is nobody to do the work, if so: a query without executors is active, and stands still."""
    executors = context.observed.executors
    return executors.waiting if executors is not None and executors.ready == 0 else None


def _next_attempt(context: Context) -> Decision:
    status = context.status
    held = hold_reason(status)
    if held == Ending.COMPLETED:
        return _completed(context)
    last = status.last_termination
    message = last.message if last is not None else ""
    if held is not None:
        return Decision(status=status, state="Failed", facts=stalled_facts(held, message))
    due = status.restarts.next_at
    if due is not None and due > context.now:
        reason = last.reason if last is not None else "Backoff"
        # The moment, not the seconds left: those would change the status with every look.
        following = f"next attempt at {due:%H:%M:%S} UTC, after {status.restarts.in_a_row} in a row"
        facts = progress_facts(reason, f"{message} ({following})")
        return Decision(status=status, state="Backoff", facts=facts, recheck_at=due)
    if (seed := warm.unfinished_seed(context)) is not None:
        return copy_state(context, seed)
    return start_next(context)


def _completed(context: Context) -> Decision:
    """A finite job is done: for good, or until its schedule says."""
    trigger = context.job.spec.trigger
    if (problem := zone_problem(trigger.time_zone)) is not None:
        facts = stalled_facts("UnknownTimeZone", f"spec.trigger.timeZone: {problem}")
        return Decision(status=context.status, state="Stalled", facts=facts)
    due = due_at(context.job, context.status, now=context.now)
    if due is not None and due <= context.now:
        return start_next(context, f"due at {due:%Y-%m-%d %H:%M} UTC by spec.trigger.schedule")
    message = f"all queries finished by themselves{outlook(trigger, due)}"
    return Decision(
        status=context.status.model_copy(update={"next_start_at": due}),
        state="Completed",
        facts=(
            Fact(type="Ready", true=True, reason="Completed", message=message),
            *(context.refusal() or _settled()),
        ),
        recheck_at=due,
    )


def _settled() -> tuple[Fact, Fact]:
    return (
        Fact(type="Reconciling", true=False, reason="Settled"),
        Fact(type="Stalled", true=False, reason="Settled"),
    )
