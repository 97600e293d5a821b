"""The upgrade as a state machine over the status, up to the start of the new run:

      edit that needs a new run
                │  PinRun n+1
                ▼
         ┌────────────┐  failed: refused, and run n was not touched
         │ Rehearsing │──▶ (core/rehearsal.py; strategy Rehearsed, while run n runs)
         └────────────┘
                │ passed: the candidate waits, warm; or there is no room
                ▼
           ┌─────────┐  driver ended, a candidate waits        ┌────────────┐  run n+1, attempt 1
           │Draining │────────────────────────────────────────▶│ Activating │──▶ core/verification.py
           └─────────┘  (its pod uid)                          └────────────┘    core/warm.py
                │  ▲ │                                               │ it cannot, or dies: a keeper copies,
                │  │ │ none waits   ┌─────────┐  state copied   ┌──────────┐  the next attempt is cold
                │  │ └─────────────▶│ Seeding │────────────────▶│ Starting │──▶ core/verification.py
                │  │                └─────────┘                 └──────────┘  run n+1, attempt 1 intended
                │  │ core/rollback.py    │
                └──┼─ a newer edit re-pins run n+1 at any step before it starts
                   │
             back to an earlier version: the same steps, pinned like the run that had it

Run n keeps its path untouched: whatever still writes for it can only damage its own. Run n+1 begins with
a full copy, the pending `offsets/N+1` included, so rows that may already be in a sink are replayed within
the same bounds and stay recognisable. Where run n was itself on trial, the keeper leaves out what it did not
commit: see docs/concepts/upgrades.md for the table.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headrace.api import Activation, Change, Operation
from headrace.core import backlog, gates, loss_gate, rehearsal, repartition, warm
from headrace.core.actions import DrainAttempt, PinRun
from headrace.core.changes import ChangePlan, classify
from headrace.core.decision import Context, Decision, Sentence, progress_facts, stalled, stalled_facts
from headrace.core.edit_steps import sentence
from headrace.core.handover import (
    left_behind,
    next_to_copy_for,
    seed_of,
    seeded_from,
    story,
)
from headrace.core.history import Outcome
from headrace.core.model import Code, CodeProblem, ObservedCandidate, Problem, RollbackRequest
from headrace.core.starting import Begun, begin_run, copy_state, start_intended

_MOST_CHANGES = 32
# Nobody writes, or nobody will in a moment: events tell sooner, and this is for those that get lost.
_LOOK_SOON = timedelta(seconds=1)
# Stopped as asked, or done: the version was fine when it was last seen.
_WELL = ("Running", "Completed", "Suspended", "Detached", "Sleeping")


def begin(context: Context, why: str, changes: ChangePlan | None = None) -> Decision:
    run = context.status.run
    assert run is not None  # there is something to upgrade
    target = way_back(context)
    stateless = context.job.spec.upgrade.strategy == "Stateless"
    # What began without state has no handover point in common with the one before.
    common = target is not None and target != run.number and run.left is None
    operation = Operation(
        kind="Upgrade",
        step="Rehearsing" if rehearsal.is_wanted(context) else "Draining",
        from_run=run.number,
        to_run=run.number + 1,
        revision=context.wanted_revision,
        reason=why,
        changes=_paths(changes) if changes is not None else (),
        backlog=backlog.usual(context.current.queries) if context.current is not None else None,
        back_to=target,
        handover=target if common and not stateless else None,
        without_state=stateless,
        started_at=context.now,
    )
    operation = repartition.decided(context, operation)
    status = context.status.model_copy(update={"operation": operation})
    decision = carry_on(context.with_status(status), operation)
    return decision.saying(Sentence("Upgrade", f"run {operation.to_run}: {why}{_loudly(operation)}"))


def way_back(context: Context) -> int | None:
    """The run that a failed upgrade of the present one returns to: its version, and the end of its path."""
    status = context.status
    run, stable, operation = status.run, status.last_stable, status.operation
    assert run is not None  # there is something to upgrade
    if stable is not None and stable.run == run.number:
        return run.number
    ready = status.condition("Ready")
    well = ready is not None and ready.status == "True" and ready.reason in _WELL
    if operation is not None:
        # The version of a rollback is a good one; that it can go on from here is proven once it runs.
        return run.number if operation.kind == "Rollback" and well else operation.back_to
    if stable is not None:
        return stable.run
    return run.number if well else None


def refusal(context: Context) -> Problem | None:
    """Why the spec and the code as they stand are not taken, if so; also in the middle of an upgrade."""
    if context.job.rejected is not None:
        return context.job.rejected
    if isinstance(context.observed.code, CodeProblem):
        return Problem("CodeProblem", context.observed.code.message)
    run, wanted = context.status.run, context.job.spec.upgrade
    assert run is not None  # there is something to upgrade
    pinned = context.observed.pinned.get(run.number)
    if pinned is None or wanted.state_compatible or wanted.strategy == "Stateless":
        return None
    changed = classify(pinned.spec, context.job.spec).of_class(Change.STATE)
    if not changed:
        return None
    return Problem(
        "StateChange",
        f"{', '.join(each.path for each in changed)}: the state may not fit after this change. Put it back, "
        "or say spec.upgrade.stateCompatible: true if you know that it fits",
    )


def without_taken_back(context: Context) -> Context:
    """An edit that is taken back before the old run was told to end has touched nothing: as if it had not
    been. Where it came in the middle of a trial, that begins anew."""
    operation, run = context.status.operation, context.status.run
    if operation is None or run is None or operation.kind != "Upgrade" or not _is_untouched(operation):
        return context
    if refusal(context) is not None or context.wanted_revision != run.revision:
        return context
    target = operation.back_to
    trial = None
    if target is not None and target != run.number:
        trial = Operation(
            kind="Upgrade",
            step="Starting",
            from_run=target,
            to_run=run.number,
            revision=run.revision,
            reason="an edit was taken back: the run before it is on trial again",
            changes=run.changes,
            backlog=operation.backlog,
            back_to=target,
            started_at=operation.started_at,
            step_at=context.now,
        )
    return context.with_status(context.status.model_copy(update={"operation": trial}))


def _is_untouched(operation: Operation) -> bool:
    """The old run has not been told to end."""
    return operation.step == "Rehearsing" or (operation.step == "Draining" and operation.step_at is None)


def without_lost_code(context: Context) -> Context:
    """What an upgrade wants may be gone before it was kept: saved over by what cannot be taken.

    Keeping it is the first step, so where nothing is kept nothing was touched, and the upgrade is forgotten.
    Where something older is kept, the upgrade goes on with that: the old run may have ended already.
    Once its state is being copied, the old run goes on no more: the copy would lack what it writes then.
    """
    operation = context.status.operation
    if operation is None or operation.on_trial or operation.kind == "Rollback" or refusal(context) is None:
        return context
    pinned = context.observed.pinned.get(operation.to_run)
    if pinned is None and operation.step == "Seeding":
        return context
    kept = operation.model_copy(update={"revision": pinned.revision}) if pinned is not None else None
    return context.with_status(context.status.model_copy(update={"operation": kept}))


def under_way(context: Context) -> Decision | None:
    """Up to the start of the new run; what follows is a trial, and an edit begins another upgrade."""
    operation = context.status.operation
    if operation is None or operation.on_trial:
        return None
    refused = refusal(context)
    if operation.kind == "Upgrade" and refused is not None:
        if operation.to_run not in context.observed.pinned:
            return Decision(
                status=context.status,
                state="Stalled",
                facts=stalled_facts(refused.reason, refused.message),
                says=(Sentence(refused.reason, refused.message),),
            )
        return carry_on(context, operation)
    after = operation if refused is not None else _superseded(context, operation)
    return carry_on(context.with_status(context.status.model_copy(update={"operation": after})), after)


def _superseded(context: Context, operation: Operation) -> Operation:
    """A newer edit: the same operation, to something else. A copy that has begun is kept as it is."""
    wanted, rejected = context.wanted_revision, context.status.rejected
    stateless = context.job.spec.upgrade.strategy == "Stateless" and operation.step != "Seeding"
    if operation.kind == "Upgrade" and operation.without_state != stateless:
        # Asked for, or taken back, in time: the state is there, and nothing was made of it yet.
        operation = operation.model_copy(update={"without_state": stateless})
    if wanted == operation.revision or (rejected is not None and wanted == rejected.revision):
        return operation
    # While its predecessor waits for a savepoint, say, the old run runs: there is time to rehearse.
    untouched = _is_untouched(operation) and operation.candidate is not None
    why, changes = _why(context, operation)
    superseded = operation.model_copy(
        update={
            "kind": "Upgrade",
            "revision": wanted,
            "reason": why,
            "changes": changes,
            "version_of": None,
            "candidate": None,
            "step": "Rehearsing" if untouched and rehearsal.is_wanted(context) else operation.step,
            "without_state": stateless,
        }
    )
    if operation.kind == "Rollback":
        # Who asked for it has edited the spec since, and the annotation still says so.
        request = str(context.job.rollback) if isinstance(context.job.rollback, RollbackRequest) else None
        news = {"to_run": next_to_copy_for(operation), "answered": request}
        superseded = superseded.model_copy(update=news)
    return repartition.decided(context, superseded)


def _why(context: Context, operation: Operation) -> tuple[str, tuple[str, ...]]:
    """The edit as it is now, compared with the run that is replaced."""
    pinned, code = context.observed.pinned.get(operation.from_run), context.observed.code
    if pinned is None:
        return "a newer edit", ()
    change = classify(pinned.spec, context.job.spec)
    code_changed = isinstance(code, Code) and code.digest != pinned.code
    if not change.needs_run and not code_changed:
        return f"the edit was taken back: what run {operation.from_run} ran, in a new run", ()
    return sentence(change, context.job.spec, code_changed=code_changed), _paths(change)


def _paths(changes: ChangePlan) -> tuple[str, ...]:
    return tuple(each.path for each in changes.changed)[:_MOST_CHANGES]


def carry_on(context: Context, operation: Operation) -> Decision:
    """The next step towards the start of the new run."""
    pinned = context.observed.pinned.get(operation.to_run)
    if pinned is None or pinned.revision != operation.revision:
        return _pin(context, operation)
    rehearsing = operation.step == "Rehearsing"
    match rehearsal.rehearse(context, operation) if rehearsing else rehearsal.stand_by(context, operation):
        case Decision() as decision:
            return decision
        case rehearsal.Through() as through:
            return _onwards(context, through)
        case None:
            pass  # nobody waits, or who waits is there
    if (waiting := loss_gate.before_upgrade(context, operation)) is not None:
        return waiting
    if (waiting := gates.before_upgrade(context, operation)) is not None:
        return waiting
    return _drain(context, operation) if context.live else _hand_over(context, operation)


def _drain(context: Context, operation: Operation) -> Decision:
    attempt = context.live[0]
    # Written before the order is given: from here on the old run may have ended, whoever looks.
    operation = operation.model_copy(update={"step_at": operation.step_at or context.now})
    context = context.with_status(context.status.model_copy(update={"operation": operation}))
    drain = DrainAttempt(
        run=attempt.run,
        attempt=attempt.number,
        uid=attempt.uid,
        why=operation.reason,
        # Not of a version that is given up: the sooner it ends, the better.
        snapshots_first=operation.kind == "Upgrade" and not operation.without_state,
    )
    moving = _moving(context, operation, f"run {operation.from_run} finishes its batch", drain)
    warmly = operation.candidate is not None
    return replace(moving, recheck_at=context.now + _LOOK_SOON) if warmly else moving


def _hand_over(context: Context, operation: Operation) -> Decision:
    """The old driver has ended."""
    if (unfinished := warm.unfinished_seed(context)) is not None:
        return copy_state(context, unfinished)
    standby = rehearsal.observed_standby(context, operation)
    if standby is not None and not repartition.hands_over_cold(operation):
        return _activate(context, operation, standby)
    if operation.to_run not in context.observed.seeded_runs and not operation.without_state:
        return _seed(context, operation)
    return _start(context, operation)


def _onwards(context: Context, through: rehearsal.Through) -> Decision:
    after = context.status.model_copy(update={"operation": through.operation})
    onwards = carry_on(context.with_status(after), through.operation)
    return replace(onwards, facts=(*onwards.facts, through.fact)).saying(through.said)


def _pin(context: Context, operation: Operation) -> Decision:
    spec = context.job.spec
    if operation.version_of is not None:
        if (kept := context.observed.pinned.get(operation.version_of)) is None:
            message = f"what run {operation.version_of} ran is not kept any more. Edit the spec to go on"
            return stalled(context, "NoPin", message)
        spec = kept.spec
    pin = PinRun(run=operation.to_run, revision=operation.revision, spec=spec, like=operation.version_of)
    message = f"keeping a copy of the code for run {operation.to_run}"
    if operation.step == "Rehearsing":
        return rehearsal.meanwhile(context, message, pin)
    return _moving(context, operation, message, pin)


def _seed(context: Context, operation: Operation) -> Decision:
    operation = operation.model_copy(update={"step": "Seeding"})
    context = context.with_status(context.status.model_copy(update={"operation": operation}))
    return copy_state(context, seed_of(operation))


def _activate(context: Context, operation: Operation, standby: ObservedCandidate) -> Decision:
    """The old driver has ended. The intent first: whoever finds it knows that the candidate may write."""
    activation = Activation(
        candidate=standby.number,
        uid=standby.uid,
        from_run=operation.from_run,
        handover=operation.handover,
    )
    begun = begin_run(context, _begun(context, operation, "Activating", f"run-{operation.from_run}"))
    status = warm.with_activation(context, begun, activation)
    message = f"candidate {standby.number} takes over from run {operation.from_run}, warm"
    said = Sentence("Activating", f"run {operation.to_run}, attempt 1: {message} ({operation.reason})")
    return Decision(
        status=status,
        state="Activating",
        facts=progress_facts("Activating", message),
        actions=(warm.order(status),),
        says=(said,),
        recheck_at=context.now + _LOOK_SOON,
    )


def _start(context: Context, operation: Operation) -> Decision:
    queries = context.observed.seeded_queries.get(operation.to_run, ())
    begun = _begun(context, operation, "Starting", seeded_from(operation, queries))
    told = _with_story(context, operation, story(operation, queries))
    return start_intended(told, begin_run(told, begun), operation.reason + _loudly(operation))


def _begun(context: Context, operation: Operation, step: str, origin: str) -> Begun:
    outcome, message = _outcome(context, operation)
    trial = operation.model_copy(update={"step": step, "step_at": context.now, "candidate": None})
    return Begun(
        number=operation.to_run,
        revision=operation.revision,
        seeded_from=origin,
        version_of=operation.version_of,
        changes=operation.changes,
        repartition=operation.repartition,
        state_partitions=repartition.left_as_it_is(
            context, operation, context.observed.seeded_queries.get(operation.to_run, ())
        ),
        left=left_behind(context, operation),
        operation=trial,
        outcome=outcome,
        message=message,
    )


def _with_story(context: Context, operation: Operation, told: str) -> Context:
    """The condition says what the rollback began with, as the keeper reported it."""
    rejected = context.status.rejected
    if operation.kind != "Rollback" or rejected is None or not told:
        return context
    rejected = rejected.model_copy(update={"message": f"{rejected.message}; {told}"})
    return context.with_status(context.status.model_copy(update={"rejected": rejected}))


def _outcome(context: Context, operation: Operation) -> tuple[Outcome, str]:
    """How the run that is left ended."""
    stable, rejected = context.status.last_stable, context.status.rejected
    if rejected is not None and rejected.run == operation.from_run:
        return "RolledBack", rejected.message
    message = f"run {operation.to_run}: {operation.reason}"
    unproven = operation.back_to is not None and operation.back_to != operation.from_run
    if unproven and (stable is None or stable.run != operation.from_run):
        return "Superseded", message
    return "Replaced", message


def _loudly(operation: Operation) -> str:
    if not operation.without_state:
        return ""
    return (
        f". It begins WITHOUT the state of run {operation.from_run}, as spec.upgrade.strategy: Stateless asks"
    )


def _moving(context: Context, operation: Operation, message: str, action: PinRun | DrainAttempt) -> Decision:
    word = "RollingBack" if operation.kind == "Rollback" else "Upgrading"
    return Decision(status=context.status, state=word, facts=progress_facts(word, message), actions=(action,))
