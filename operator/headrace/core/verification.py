"""Watches a new run, and decides what becomes of it.

                        first seen running             the window is over, all is well
    Activating ─┬─────────────────────▶ Verifying ──────────────────────────▶ promoted: lastStable
      Starting ─┘                           │  │
         │  ▲   not the version's fault     │  │
         │  └───────────────────────────────┘  │ fails
         │ startTimeout, fails                 ▼
         └──────────────────────────▶ rollback: Auto   -> core/rollback.py
                                      rollback: Manual -> Undecided: tried again; an edit, a rollback by
                                                          hand, or a whole window without failure ends it

A run without an operation (the first of a job) has nothing to go back to: it is only promoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from headrace.api import Operation, Restarts, StableRun, StreamJobStatus
from headrace.core import backlog, repartition, rollback, warm
from headrace.core.attempts import ending_of, ending_said, follow, keep_alive, no_executor, recorded
from headrace.core.conditions import Fact
from headrace.core.decision import Context, Decision, Sentence
from headrace.core.model import AttemptPhase, Ended, Ending, ObservedAttempt, Problem, QueryReport
from headrace.core.restarts import PEACEFUL, hold_reason
from headrace.core.starting import start_next

# What an attempt of any version may meet. Time and again, it counts against the version after all.
_NOT_ITS_FAULT = (
    Ending.EVICTED,
    Ending.NODE_LOST,
    Ending.STORE_UNAVAILABLE,
    Ending.FENCED,
    Ending.KILLED,
    Ending.UNKNOWN,
)
_TOO_OFTEN = 3
_LOOK_AGAIN = timedelta(seconds=10)


def watch(context: Context) -> Decision:
    """The last of the questions: keeps the attempt alive, and judges its run while it is unproven."""
    run, operation = context.status.run, context.status.operation
    assert run is not None  # first_run answered before
    if is_stable(context.status):
        return keep_alive(context)
    if (ended := ending_of(context)) is not None:
        if warm.says_nothing(context.status, ended):
            return _without_candidate(recorded(context, ended), ended)
        return _after_end(recorded(context, ended), ended)
    if hold_reason(context.status) is Ending.COMPLETED:
        return keep_alive(_promoted(context))
    if operation is None or operation.step == "Undecided":
        return _unproven(context)
    seen = context.current
    if seen is None:
        return keep_alive(context)
    if seen.phase is AttemptPhase.RUNNING and no_executor(context) is None:
        return _verifying(context, operation, seen)
    return _starting(context, operation, seen)


def is_stable(status: StreamJobStatus) -> bool:
    run, stable = status.run, status.last_stable
    return run is not None and stable is not None and stable.run == run.number


def _after_end(context: Context, ended: Ended) -> Decision:
    """`context` has the end recorded."""
    operation = context.status.operation
    if ended.ending is Ending.COMPLETED:
        return follow(_promoted(context), ended)
    if operation is None or operation.step == "Undecided":
        if (kept := repartition.given_up(context)) is not None:
            return _unsplit(context.with_status(kept), ended.message)
        return _with_verdict(follow(context, ended), operation)
    if (problem := _fault(ended, context.status.restarts)) is not None:
        return _failed(context, operation, problem).saying(ending_said(ended))
    return follow(_at_step(context, operation, "Starting"), ended)


def _without_candidate(context: Context, ended: Ended) -> Decision:
    """It was to take over, and could not: the next attempt is started as any other is."""
    operation = context.status.operation
    if operation is not None and operation.on_trial:
        context = _at_step(context, operation, "Starting")
    return follow(context, ended).saying(warm.fallback_said(context.status))


def _fault(ended: Ended, restarts: Restarts) -> Problem | None:
    """What an ending says against the version, if anything."""
    if ended.ending in PEACEFUL:
        return None
    if ended.ending in _NOT_ITS_FAULT and restarts.in_a_row < _TOO_OFTEN:
        return None
    return Problem(ended.ending, f"failed its verification: {ended.message or ended.ending}")


def _starting(context: Context, operation: Operation, seen: ObservedAttempt) -> Decision:
    """It has its time to come up, and again where it has to come up again."""
    takes_over = warm.is_activating(context.status)
    context = _at_step(context, operation, "Activating" if takes_over else "Starting")
    limit = context.job.spec.upgrade.start_timeout
    if repartition.is_under_way(seen) and context.now >= _due(context, limit.seconds / 2):
        context = _at_step(context, operation, "Starting", anew=True)
    due = _due(context, limit.seconds)
    if context.now < due:
        decision = keep_alive(context)
        return replace(decision, recheck_at=decision.recheck_at or min(due, context.now + _LOOK_AGAIN))
    waits = no_executor(context) or seen.waiting
    problem = Problem(
        "NeverStarted",
        f"failed its verification: its queries did not run within {limit} (spec.upgrade.startTimeout)"
        + (f": {waits.message}" if waits is not None else ""),
    )
    if not takes_over:
        context = context.with_status(context.with_started_attempt(seen))
    return _failed(context, operation, problem)


def _verifying(context: Context, operation: Operation, seen: ObservedAttempt) -> Decision:
    context = _at_step(context, operation, "Verifying")
    window = context.job.spec.upgrade.verify_window.seconds
    due = _due(context, window)
    if stuck := [query.name for query in seen.queries if query.stuck]:
        problem = Problem("BatchStuck", f"failed its verification: no end of the batch in {', '.join(stuck)}")
        return _failed(context, operation, problem)
    if context.now < due:
        return _watched(context, due)
    if not _has_shown_itself(seen.queries):
        return _watched(context, context.now + _LOOK_AGAIN)
    if (grown := backlog.growth(seen.queries, operation.backlog)) is not None:
        later = _due(context, 2 * window)
        if context.now < later or not grown.proven:
            return _watched(context, max(later, context.now + _LOOK_AGAIN))
        return _failed(context, operation, Problem("LagGrew", f"failed its verification: {grown.message}"))
    return keep_alive(_promoted(context)).saying(
        Sentence("Promoted", f"run {operation.to_run} passed its verification: it is the last stable version")
    )


def _watched(context: Context, look_at: datetime) -> Decision:
    operation = context.status.operation
    assert operation is not None  # it is on trial
    decision = keep_alive(context)
    look_at = min(filter(None, (look_at, decision.recheck_at)))
    if decision.state != "Running" or context.refused is not None:
        return replace(decision, recheck_at=look_at)
    until = _due(context, context.job.spec.upgrade.verify_window.seconds)
    message = f"run {operation.to_run} is watched until {until:%H:%M:%S} UTC"
    reconciling = Fact(type="Reconciling", true=True, reason="Verifying", message=message)
    return replace(decision, facts=_with(decision.facts, reconciling), recheck_at=look_at)


def _unproven(context: Context) -> Decision:
    """No window was opened for it: an attempt that has held for one is proof as well."""
    run, seen, operation = context.status.run, context.current, context.status.operation
    auto = context.job.spec.upgrade.rollback == "Auto"
    if operation is not None and auto and operation.problem is not None and _can_return(context, operation):
        return _roll_back(context, operation, Problem("VerificationFailed", operation.problem))
    decision = keep_alive(context)
    attempt = run.attempt if run is not None else None
    if seen is None or decision.state != "Running" or attempt is None or attempt.started_at is None:
        return _with_verdict(decision, operation)
    due = attempt.started_at + timedelta(seconds=context.job.spec.upgrade.verify_window.seconds)
    if context.now < due or not _has_shown_itself(seen.queries):
        look_at = min(
            filter(None, (due if context.now < due else context.now + _LOOK_AGAIN, decision.recheck_at))
        )
        return _with_verdict(replace(decision, recheck_at=look_at), operation)
    return keep_alive(_promoted(context))


def _has_shown_itself(queries: Sequence[QueryReport]) -> bool:
    """Each query has committed a batch, or has looked and found nothing to do. No query is no proof, nor is
    one whose source has not answered yet."""
    return bool(queries) and all(query.looked or not query.active for query in queries)


def _with_verdict(decision: Decision, operation: Operation | None) -> Decision:
    """What has failed stays on show while it is tried again."""
    if operation is None or operation.problem is None:
        return decision
    message = (
        f"run {operation.to_run} {operation.problem}. spec.upgrade.rollback is Manual: go back with `kubectl "
        f'streamjob rollback`, or with the annotation headrace.dev/rollback: "{operation.to_run}"'
    )
    stalled = Fact(type="Stalled", true=True, reason="VerificationFailed", message=message)
    reconciling = Fact(type="Reconciling", true=False, reason="VerificationFailed")
    return replace(decision, facts=_with(decision.facts, reconciling, stalled))


def _failed(context: Context, operation: Operation, problem: Problem) -> Decision:
    if operation.kind == "Rollback":
        return _failed_rollback(context, operation, problem)
    manual = context.job.spec.upgrade.rollback == "Manual"
    kept = repartition.given_up(context)
    if kept is not None and (manual or not _can_return(context, operation)):
        return _unsplit(context.with_status(kept), problem.message)
    if not _can_return(context, operation):
        # There is nothing better than to try again.
        return keep_alive(context.with_status(context.status.model_copy(update={"operation": None})))
    if manual:
        undecided = operation.model_copy(
            update={"step": "Undecided", "step_at": context.now, "problem": problem.message}
        )
        after = context.with_status(context.status.model_copy(update={"operation": undecided}))
        said = Sentence("VerificationFailed", f"run {operation.to_run} {problem.message}")
        return _with_verdict(keep_alive(after), undecided).saying(said)
    return _roll_back(context, operation, problem)


def _unsplit(context: Context, problem: str) -> Decision:
    """It goes on with the number of state partitions that it has."""
    run = context.status.run
    assert run is not None  # it is what goes on
    why = "the state stays split as it is; to try again, change spec.restartNonce"
    said = Sentence(repartition.CANNOT_REPARTITION, f"run {run.number}: {problem}. {why}")
    return start_next(context, why).saying(said)


def _can_return(context: Context, operation: Operation) -> bool:
    """Whether there is another version, and it is kept."""
    run, pinned = context.status.run, context.observed.pinned
    assert run is not None  # it is on trial
    target = pinned.get(operation.back_to) if operation.back_to is not None else None
    return target is not None and target.revision != run.revision


def _roll_back(context: Context, operation: Operation, problem: Problem) -> Decision:
    run = context.status.run
    assert run is not None and operation.back_to is not None  # it can return
    return rollback.begin(
        context, problem, version_of=operation.back_to, handover=operation.back_to, rejecting=run.revision
    )


def _failed_rollback(context: Context, operation: Operation, problem: Problem) -> Decision:
    rejected, version = context.status.rejected, operation.version_of
    if not rollback.cannot_go_on(context, operation) or version is None:
        return keep_alive(context.with_status(context.status.model_copy(update={"operation": None})))
    run, last = context.status.run, context.status.last_termination
    assert run is not None and last is not None  # it has ended so
    why = Problem(
        rejected.reason if rejected is not None else problem.reason,
        f"could not go on from what run {operation.from_run} left: {last.message}",
    )
    return rollback.begin(
        context,
        why,
        version_of=version,
        handover=operation.handover,
        rejecting=rejected.revision if rejected is not None else run.revision,
        rewind=True,
    )


def _promoted(context: Context) -> Context:
    run = context.status.run
    assert run is not None  # it is the one
    stable = StableRun(run=run.number, revision=run.revision, image=run.image, at=context.now)
    return context.with_status(context.status.model_copy(update={"last_stable": stable, "operation": None}))


def _at_step(context: Context, operation: Operation, step: str, *, anew: bool = False) -> Context:
    """At this step since now, or since it began."""
    if operation.step == step and not anew:
        return context
    moved = operation.model_copy(update={"step": step, "step_at": context.now})
    return context.with_status(context.status.model_copy(update={"operation": moved}))


def _due(context: Context, seconds: float) -> datetime:
    """So long after the step, or the attempt, began: whichever is later."""
    operation, run = context.status.operation, context.status.run
    assert operation is not None and run is not None  # it is on trial
    started = run.attempt.started_at if run.attempt is not None else None
    began = max(filter(None, (operation.step_at, started)), default=context.now)
    return began + timedelta(seconds=seconds)


def _with(facts: tuple[Fact, ...], *instead: Fact) -> tuple[Fact, ...]:
    types = {fact.type for fact in instead}
    return (*(fact for fact in facts if fact.type not in types), *instead)
