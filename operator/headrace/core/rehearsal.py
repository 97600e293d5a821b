"""A new version is tried on a fork of the real state, while the old one goes on (docs/concepts/rehearsal.md).

      Intended ──▶ Started ──▶ Standby ─────────────────────▶ the upgrade goes on, warm: core/warm.py
                      │           │
                      │           ├── ended, or silent ─────▶ another candidate, while the old run runs;
                      │           │                           else, or after a few, the upgrade is cold
                      │           └── rehearses once more: its program has started another query
                      ├── Rehearsed, without a standby ─────▶ the upgrade goes on, cold
                      ├── failed by its own fault ──────────▶ refused: the old run was not touched
                      ├── ended without a word on itself ───▶ another candidate, a few times
                      └── no room for both ─────────────────▶ the upgrade goes on, cold, and says so

A candidate that the status does not name is ended: a newer edit, a rollback or a suspension needs no more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from headrace.api import Candidate, HistoryEntry, Operation, Rejection, StreamJobStatus
from headrace.core.actions import PinRun, StartCandidate, StopCandidate
from headrace.core.attempts import keep_alive
from headrace.core.conditions import Fact
from headrace.core.decision import Context, Decision, Sentence, progress_facts
from headrace.core.history import with_entry
from headrace.core.model import AttemptPhase, Ended, Ending, ObservedCandidate, Problem
from headrace.core.restarts import reason_of
from headrace.core.revision import policy_of
from headrace.core.warm import TOLD_NOTHING

_KIND = "Rehearsed"
_MOST_TRIES = 3
_MOST_NOTES = 4
# So long a node may be looked for; the old version runs meanwhile.
_NO_ROOM = timedelta(seconds=60)
_NO_ROOM_REASONS = ("Unschedulable", "QuotaExceeded")
_LOOK_AGAIN = timedelta(seconds=10)
# For a candidate that does not answer just now, and is about to take over.
_LOOK_SOON = timedelta(seconds=1)


@dataclass(frozen=True)
class Through:
    """The upgrade goes on."""

    operation: Operation
    fact: Fact
    said: Sentence


def is_wanted(context: Context) -> bool:
    """Only where something runs that is worth protecting: else the upgrade is the repair."""
    current = context.current
    running = current is not None and current.phase is AttemptPhase.RUNNING
    return context.job.spec.upgrade.strategy == "Rehearsed" and running


def rehearse(context: Context, operation: Operation) -> Decision | Through:
    candidate = operation.candidate
    if context.job.spec.upgrade.strategy != "Rehearsed":
        return _through(operation, None, "NotWanted", "spec.upgrade.strategy asks for no rehearsal any more")
    if candidate is None:
        return _next_try(context, operation, tries=0)
    seen = _seen(context, candidate)
    if seen is None:
        return _unseen(context, operation, candidate)
    if seen.ended is not None:
        return _verdict(context, operation, candidate, seen.ended)
    return _under_way(context, operation, candidate, seen)


def strays(context: Context, status: StreamJobStatus) -> tuple[StopCandidate, ...]:
    """Candidates that live and that the status does not name any more."""
    if context.job.paused:
        return ()
    named = () if context.job.deleting else named_candidates(status)
    return tuple(
        StopCandidate(run=one.run, number=one.number, uid=one.uid)
        for one in context.observed.candidates
        if one.live and one.number not in named
    )


def named_candidates(status: StreamJobStatus) -> tuple[int, ...]:
    """Who rehearses, or waits; and who has become the attempt, or is about to."""
    operation, attempt = status.operation, status.run.attempt if status.run is not None else None
    rehearses = operation.candidate if operation is not None else None
    takes_over = attempt.activation if attempt is not None else None
    return (
        *((rehearses.number,) if rehearses is not None else ()),
        *((takes_over.candidate,) if takes_over is not None else ()),
    )


def without_candidate(status: StreamJobStatus) -> StreamJobStatus:
    """Of a job that is stopped: nobody waits for a handover. The upgrade stays, and goes on afterwards."""
    operation = status.operation
    if operation is None or operation.candidate is None:
        return status
    return status.model_copy(update={"operation": operation.model_copy(update={"candidate": None})})


def observed_standby(context: Context, operation: Operation) -> ObservedCandidate | None:
    """The candidate of this operation, if it says at this moment that it waits."""
    candidate = operation.candidate
    seen = _seen(context, candidate) if candidate is not None else None
    return seen if seen is not None and seen.live and seen.standby else None


def stand_by(context: Context, operation: Operation) -> Decision | Through | None:
    """None where nobody waits, or who waits is there. While the old run runs, there is time for another."""
    candidate = operation.candidate
    if candidate is None or observed_standby(context, operation) is not None:
        return None
    seen = _seen(context, candidate)
    if seen is not None and seen.live and seen.standby is None and seen.waiting is None:
        return _a_moment(context, f"candidate {candidate.number}, which waits, does not answer just now")
    if not is_wanted(context):
        return _cold(operation, candidate, seen)
    operation = operation.model_copy(update={"step": "Rehearsing", "step_at": None})
    if seen is not None and seen.live and seen.waiting is None:
        # Its program has started another query: that one is rehearsed first.
        again = candidate.model_copy(update={"state": "Started", "started_at": context.now})
        operation = operation.model_copy(update={"candidate": again})
        after = context.with_status(context.status.model_copy(update={"operation": operation}))
        return _rehearsing(after, operation, f"run {operation.to_run} is rehearsed once more")
    if candidate.tries + 1 >= _MOST_TRIES:
        return _cold(operation, candidate, seen)
    said = Sentence("StandbyLost", f"{_lost(candidate, seen)}: another one takes its place")
    return _next_try(context, operation, tries=candidate.tries + 1).saying(said)


def _unseen(context: Context, operation: Operation, candidate: Candidate) -> Decision | Through:
    if candidate.state == "Started":
        return _again(context, operation, candidate, "the candidate is gone without a trace")
    problem, waited = context.observed.candidate_problem, _since(context, candidate)
    limit = context.job.spec.upgrade.start_timeout
    start_limit = timedelta(seconds=limit.seconds)
    if problem is not None and _lacks_room(problem, waited, out_of_time=waited >= start_limit):
        return _without(operation, problem)
    if problem is not None and waited >= start_limit:
        message = f"its driver could not be started within {limit}: {problem.message}"
        return _refuse(context, operation, Problem(problem.reason, message))
    message = problem.message if problem is not None else f"run {operation.to_run} is to be rehearsed"
    return _rehearsing(context, operation, message, start=True)


def _under_way(
    context: Context, operation: Operation, candidate: Candidate, seen: ObservedCandidate
) -> Decision | Through:
    if candidate.state == "Intended":
        candidate = candidate.model_copy(update={"state": "Started"})
        operation = operation.model_copy(update={"candidate": candidate})
        context = context.with_status(context.status.model_copy(update={"operation": operation}))
    if seen.standby:
        return _stands_by(operation, candidate, seen)
    policy, waited = context.job.spec.upgrade, _since(context, candidate)
    start_limit = timedelta(seconds=policy.start_timeout.seconds)
    waiting = seen.waiting
    if waiting is not None and _lacks_room(waiting, seen.waiting_for, out_of_time=waited >= start_limit):
        return _without(operation, waiting)
    if not seen.running:
        if waited >= start_limit:
            why = f": {waiting.message}" if waiting is not None else ""
            message = f"its driver did not start within {policy.start_timeout}{why}"
            return _refuse(context, operation, Problem("NeverStarted", message))
    elif waited >= start_limit + timedelta(seconds=policy.rehearsal.time_limit.seconds):
        # The candidate keeps the time itself; this is for one that cannot tell.
        why = f": {waiting.message}" if waiting is not None else ""
        message = f"it was not through within {policy.rehearsal.time_limit}{why}"
        return _refuse(context, operation, Problem("RehearsalTimeout", message))
    told = seen.waiting.message if seen.waiting is not None else "on a copy of the state, with muted sinks"
    return _rehearsing(context, operation, f"run {operation.to_run} is rehearsed: {told}")


def _verdict(
    context: Context, operation: Operation, candidate: Candidate, ended: Ended
) -> Decision | Through:
    if ended.ending in (Ending.REHEARSED, Ending.STANDBY_EXPIRED, Ending.COMPLETED):
        return _through(operation, True, "Passed", ended.message or f"run {operation.to_run} rehearsed well")
    if ended.ending in TOLD_NOTHING:
        return _again(context, operation, candidate, ended.message or ended.ending)
    reason = reason_of(ended.error_class, ended.ending)
    return _refuse(
        context, operation, Problem(reason, ended.message or f"the candidate ended: {ended.ending}")
    )


def _again(context: Context, operation: Operation, candidate: Candidate, why: str) -> Decision | Through:
    if candidate.tries + 1 < _MOST_TRIES:
        return _next_try(context, operation, tries=candidate.tries + 1)
    message = f"{_MOST_TRIES} candidates ended without a word on the new version, the last: {why}"
    return _refuse(context, operation, Problem("RehearsalFailed", message))


def _next_try(context: Context, operation: Operation, *, tries: int) -> Decision:
    number = context.status.candidates + 1
    candidate = Candidate(number=number, state="Intended", tries=tries, started_at=context.now)
    operation = operation.model_copy(update={"candidate": candidate})
    after = context.status.model_copy(update={"operation": operation, "candidates": number})
    message = f"run {operation.to_run} is to be rehearsed"
    return _rehearsing(context.with_status(after), operation, message, start=True)


def _rehearsing(context: Context, operation: Operation, message: str, *, start: bool = False) -> Decision:
    candidate = operation.candidate
    assert candidate is not None  # somebody rehearses, or is about to
    run = context.status.run
    begin = StartCandidate(
        run=operation.to_run,
        number=candidate.number,
        from_run=operation.from_run,
        started_from=run.started_from if run is not None else None,
        repartition=operation.repartition,
    )
    return meanwhile(context, message, *((begin,) if start else ()))


def meanwhile(context: Context, message: str, *actions: StartCandidate | PinRun) -> Decision:
    """The old run is looked after as always."""
    decision = keep_alive(context)
    facts = decision.facts
    if decision.state in ("Running", "Completed"):
        telling = Fact(type="Reconciling", true=True, reason="Rehearsing", message=message)
        facts = (*(fact for fact in facts if fact.type != "Reconciling"), telling)
    look_at = min(filter(None, (decision.recheck_at, context.now + _LOOK_AGAIN)))
    return replace(decision, facts=facts, actions=(*decision.actions, *actions), recheck_at=look_at)


def _lacks_room(problem: Problem, lasting: timedelta, *, out_of_time: bool) -> bool:
    """Not at once: a node may be on its way. It is not the version's fault, however little time it has."""
    return problem.reason in _NO_ROOM_REASONS and (lasting >= _NO_ROOM or out_of_time)


def _without(operation: Operation, problem: Problem) -> Through:
    message = (
        f"there is no room for run {operation.to_run} beside run {operation.from_run} ({problem.message}): "
        "it takes over cold, without a rehearsal"
    )
    return _through(operation, None, "NoRoom", message)


def _stands_by(operation: Operation, candidate: Candidate, seen: ObservedCandidate) -> Through:
    message = f"run {operation.to_run} rehearsed well: candidate {candidate.number} waits, warm"
    message = "; ".join([message, *_at_most(seen.notes)])
    through = _through(operation, True, "Passed", message)
    waits = candidate.model_copy(update={"state": "Standby"})
    return replace(through, operation=through.operation.model_copy(update={"candidate": waits}))


def _at_most(notes: tuple[str, ...]) -> tuple[str, ...]:
    """A job with many queries has many notes, and a condition is read by people."""
    if len(notes) <= _MOST_NOTES:
        return notes
    return (*notes[:_MOST_NOTES], f"and {len(notes) - _MOST_NOTES} more notes in its log")


def _cold(operation: Operation, candidate: Candidate, seen: ObservedCandidate | None) -> Through:
    """It rehearsed well, and that stands."""
    message = f"{_lost(candidate, seen)}: run {operation.to_run}, which rehearsed well, takes over cold"
    return replace(_through(operation, True, "Passed", message), said=Sentence("StandbyLost", message))


def _lost(candidate: Candidate, seen: ObservedCandidate | None) -> str:
    waited = f"candidate {candidate.number}, which waited for the handover,"
    if seen is None:
        return f"{waited} is gone without a trace"
    if seen.ended is not None:
        return f"{waited} has ended ({seen.ended.message or seen.ended.ending})"
    return f"{waited} does not wait any more" if seen.waiting is None else f"{waited} does not answer"


def _a_moment(context: Context, message: str) -> Decision:
    """Nothing is drained for one that may not be there."""
    if context.live:
        decision = keep_alive(context)
        return replace(decision, recheck_at=context.now + _LOOK_SOON)
    facts = progress_facts("Upgrading", message)
    return Decision(
        status=context.status, state="Upgrading", facts=facts, recheck_at=context.now + _LOOK_SOON
    )


def _through(operation: Operation, passed: bool | None, reason: str, message: str) -> Through:
    return Through(
        operation=operation.model_copy(update={"step": "Draining", "candidate": None}),
        fact=Fact(type=_KIND, true=passed, reason=reason, message=message),
        said=Sentence(_KIND if passed else reason, message),
    )


def _refuse(context: Context, operation: Operation, problem: Problem) -> Decision:
    """The edit is not taken, and remembered so. Run n did not notice."""
    message = (
        f"run {operation.to_run} ({operation.reason}) failed its rehearsal: {problem.message}. Run "
        f"{operation.from_run} goes on untouched. A corrected spec or corrected code is rehearsed at once"
    )
    rejected = Rejection(
        run=operation.to_run,
        kind="Refused",
        policy=policy_of(context.job.spec),
        revision=operation.revision,
        reason=problem.reason,
        message=message,
        at=context.now,
    )
    entry = HistoryEntry(
        run=operation.to_run,
        revision=operation.revision,
        outcome="Refused",
        message=message,
        changes=operation.changes,
        started_at=operation.started_at,
        ended_at=context.now,
    )
    after = context.status.model_copy(
        update={
            "operation": None,
            "rejected": rejected,
            "history": with_entry(context.status.history, entry),
        }
    )
    decision = keep_alive(context.with_status(after).refusing("RehearsalFailed", message))
    fact = Fact(type=_KIND, true=False, reason=problem.reason, message=message)
    said = Sentence("RehearsalFailed", message)
    return replace(decision, facts=(*decision.facts, fact), refused=said).saying(said)


def _seen(context: Context, candidate: Candidate) -> ObservedCandidate | None:
    return next((one for one in context.observed.candidates if one.number == candidate.number), None)


def _since(context: Context, candidate: Candidate) -> timedelta:
    began: datetime = candidate.started_at or context.now
    return context.now - began
