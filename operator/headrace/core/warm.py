"""A candidate in standby takes over: it becomes the first attempt of its run, without a new driver.

    Draining ── the old driver has ended (by its uid) ──▶ Activating ── seen running ──▶ Verifying
                                                            │   ▲
                             the order came to nothing ─────┘   └── given again, for a while; then the
                                                                    candidate is ended
       the candidate has ended ──▶ a keeper copies the state, where nobody has seen that it was copied
                                   ──▶ the next attempt of the run, cold

The status names run, attempt, epoch and candidate before the order is given. From then on the candidate
counts as a writer, whether or not the order has reached it: it is an attempt, and all rules for attempts
hold for it. Nothing follows it before it has ended.
"""

from __future__ import annotations

from datetime import timedelta

from headrace.api import Activation, Attempt, StreamJobStatus
from headrace.core.actions import ActivateCandidate, DrainAttempt, SeedRun
from headrace.core.decision import Context, Decision, Sentence, progress_facts
from headrace.core.model import AttemptPhase, Ended, Ending, ObservedActivation, ObservedAttempt

_WORD = "Activating"
# They say nothing about the version: of a candidate that was never seen to be active.
TOLD_NOTHING = (
    Ending.STORE_UNAVAILABLE,
    Ending.INTERNAL_ERROR,
    Ending.EVICTED,
    Ending.NODE_LOST,
    Ending.FENCED,
    Ending.KILLED,
    Ending.DRAINED,
    Ending.UNKNOWN,
)
_WAITED_IN_VAIN = (*TOLD_NOTHING, Ending.STANDBY_EXPIRED, Ending.REHEARSED)
# Nobody writes meanwhile. A cold start takes about as long.
_PATIENCE = timedelta(seconds=30)
_LOOK_AGAIN = timedelta(seconds=0.5)
# As the candidate says it (jobs, harness/activation.py).
_PENDING = "PendingBatch"


def order(status: StreamJobStatus) -> ActivateCandidate:
    run = status.run
    assert run is not None and run.attempt is not None and run.attempt.activation is not None  # intended
    activation = run.attempt.activation
    return ActivateCandidate(
        run=run.number,
        number=activation.candidate,
        uid=activation.uid,
        attempt=run.attempt.number,
        epoch=run.attempt.epoch,
        # What a keeper would copy, too. After a run on trial a keeper decides, query by query.
        accept_pending=activation.handover is None,
    )


def is_activating(status: StreamJobStatus) -> bool:
    """A candidate was named as the attempt, and has not been seen to be active."""
    attempt = _attempt(status)
    return attempt is not None and attempt.activation is not None and attempt.state == "Intended"


def activating(context: Context, seen: ObservedAttempt) -> Decision:
    """Until it runs, it is ordered to; in vain for too long, it is ended."""
    attempt, told = _attempt(context.status), seen.activation
    assert attempt is not None and attempt.activation is not None  # it is activating
    who = f"candidate {attempt.activation.candidate}"
    if seen.phase is AttemptPhase.DRAINING:
        return _moving(context, f"{who} ends, run {seen.run} starts cold then")
    if told is not None and not told.failed:
        return _moving(context, f"{who} takes over as run {seen.run}: {_doing(told)}")
    why = told.message if told is not None else "it does not answer"
    if _is_in_vain(context, attempt, told):
        said = Sentence("ActivationFailed", f"{who} could not take over: {why}. Run {seen.run} starts cold")
        drain = DrainAttempt(run=seen.run, attempt=seen.number, uid=seen.uid, why=said.message)
        return Decision(
            status=context.status,
            state=_WORD,
            facts=progress_facts(said.reason, said.message),
            actions=(drain,),
            says=(said,),
        )
    message = f"{who} is to take over as run {seen.run}" + (f"; so far {why}" if told is not None else "")
    return _moving(context, message, order(context.status))


def says_nothing(status: StreamJobStatus, ended: Ended) -> bool:
    """Whether the end of the attempt is that of a candidate that waited, and no word on the version."""
    return is_activating(status) and ended.ending in _WAITED_IN_VAIN


def fallback_said(status: StreamJobStatus) -> Sentence:
    run = status.run
    assert run is not None  # it is what goes on
    return Sentence(
        "StandbyLost", f"the candidate ended before it was seen to write: run {run.number} goes on, cold"
    )


def taken_over(context: Context, seen: ObservedAttempt) -> tuple[Sentence, ...]:
    """Told once, when it is first seen to be active."""
    if not is_activating(context.status):
        return ()
    told = seen.activation or ObservedActivation(state="Active")
    took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in told.seconds.items())
    return (Sentence("HandedOver", f"run {seen.run} has taken over, warm" + (f": {took}" if took else "")),)


def unfinished_seed(context: Context) -> SeedRun | None:
    """The copy that a candidate may have left undone. Nothing follows its run before it is made.

    Made by a keeper, and again where it was made: it then finds the marker, and copies nothing.
    """
    attempt, run = _attempt(context.status), context.status.run
    activation = attempt.activation if attempt is not None else None
    if run is None or activation is None or activation.seeded:
        return None
    return SeedRun(from_run=activation.from_run, to_run=run.number, handover=activation.handover)


def with_seed_seen(context: Context) -> Context:
    """Remembered: who copies for the next run removes the pod that tells of it."""
    attempt, run = _attempt(context.status), context.status.run
    activation = attempt.activation if attempt is not None else None
    if run is None or activation is None or activation.seeded:
        return context
    if run.number not in context.observed.seeded_runs:
        return context
    seeded = activation.model_copy(update={"seeded": True})
    return context.with_status(context.with_attempt(activation=seeded))


def with_activation(context: Context, status: StreamJobStatus, activation: Activation) -> StreamJobStatus:
    """The status in which the intended attempt is that candidate."""
    named = context.with_status(status)
    return named.with_attempt(activation=activation, uid=activation.uid)


def _is_in_vain(context: Context, attempt: Attempt, told: ObservedActivation | None) -> bool:
    if told is not None and told.message.startswith(_PENDING):
        return True  # it is for a keeper to say what becomes of that batch
    began = attempt.started_at or context.now
    return context.now - began >= _PATIENCE


def _doing(told: ObservedActivation) -> str:
    return "it copies what is new of the state" if told.state == "Copying" else "its queries start"


def _moving(context: Context, message: str, *actions: ActivateCandidate) -> Decision:
    return Decision(
        status=context.status,
        state=_WORD,
        facts=progress_facts(_WORD, message),
        actions=actions,
        recheck_at=context.now + _LOOK_AGAIN,
    )


def _attempt(status: StreamJobStatus) -> Attempt | None:
    return status.run.attempt if status.run is not None else None
