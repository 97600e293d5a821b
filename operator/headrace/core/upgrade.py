"""The upgrade as a state machine over the status. For now it is the cold one:

      edit that needs a new run
                │  PinRun n+1
                ▼
           ┌─────────┐  driver ended   ┌─────────┐  state copied   ┌───────────────────────┐
           │Draining │────────────────▶│ Seeding │────────────────▶│ run n+1, attempt 1    │
           └─────────┘  (its pod uid)  └─────────┘                 │ intended, then started│
                │                           │                      └───────────────────────┘
                └── a newer edit re-pins run n+1 at any step before it starts ──┘

Run n keeps its path untouched: whatever still writes for it can only damage its own. Run n+1 begins with
a full copy, the pending `offsets/N+1` included, so rows that may already be in a sink are replayed within
the same bounds and stay recognisable.
"""

from __future__ import annotations

from headrace.api import Change, Operation
from headrace.core import gates
from headrace.core.actions import DrainAttempt, PinRun, SeedRun
from headrace.core.changes import classify
from headrace.core.decision import Context, Decision, Sentence, progress_facts, stalled_facts
from headrace.core.model import CodeProblem, Problem
from headrace.core.starting import begin_run, copy_state, start_intended


def begin(context: Context, why: str) -> Decision:
    run = context.status.run
    assert run is not None  # there is something to upgrade
    operation = Operation(
        kind="Upgrade",
        step="Draining",
        from_run=run.number,
        to_run=run.number + 1,
        revision=context.wanted_revision,
        reason=why,
        started_at=context.now,
    )
    status = context.status.model_copy(update={"operation": operation})
    decision = _carry_on(context.with_status(status), operation)
    return decision.saying(Sentence("Upgrade", f"run {operation.to_run}: {why}"))


def refusal(context: Context) -> Problem | None:
    """Why the spec and the code as they stand are not taken, if so; also in the middle of an upgrade."""
    if context.job.rejected is not None:
        return context.job.rejected
    if isinstance(context.observed.code, CodeProblem):
        return Problem("CodeProblem", context.observed.code.message)
    run = context.status.run
    assert run is not None  # there is something to upgrade
    pinned = context.observed.pinned.get(run.number)
    if pinned is None or context.job.spec.upgrade.state_compatible:
        return None
    changed = classify(pinned.spec, context.job.spec).of_class(Change.STATE)
    if not changed:
        return None
    return Problem(
        "StateChange",
        f"{', '.join(each.path for each in changed)}: the state may not fit after this change. Put it back, "
        "or say spec.upgrade.stateCompatible: true if you know that it fits",
    )


def without_lost_code(context: Context) -> Context:
    """What an upgrade wants may be gone before it was kept: saved over by what cannot be taken.

    Keeping it is the first step, so where nothing is kept nothing was touched, and the upgrade is forgotten.
    Where something older is kept, the upgrade goes on with that: the old run may have ended already.
    Once its state is being copied, the old run goes on no more: the copy would lack what it writes then.
    """
    operation = context.status.operation
    if operation is None or refusal(context) is None:
        return context
    pinned = context.observed.pinned.get(operation.to_run)
    if pinned is None and operation.step == "Seeding":
        return context
    kept = operation.model_copy(update={"revision": pinned.revision}) if pinned is not None else None
    return context.with_status(context.status.model_copy(update={"operation": kept}))


def under_way(context: Context) -> Decision | None:
    operation = context.status.operation
    if operation is None:
        return None
    refused = refusal(context)
    if refused is not None and operation.to_run not in context.observed.pinned:
        return Decision(
            status=context.status,
            state="Stalled",
            facts=stalled_facts(refused.reason, refused.message),
            says=(Sentence(refused.reason, refused.message),),
        )
    if refused is None and context.wanted_revision != operation.revision:
        # A newer edit: the same upgrade, to something else. What cannot be taken does not replace what can.
        operation = operation.model_copy(update={"revision": context.wanted_revision})
        context = context.with_status(context.status.model_copy(update={"operation": operation}))
    return _carry_on(context, operation)


def _carry_on(context: Context, operation: Operation) -> Decision:
    pinned = context.observed.pinned.get(operation.to_run)
    if pinned is None or pinned.revision != operation.revision:
        pin = PinRun(run=operation.to_run, revision=operation.revision, spec=context.job.spec)
        return _upgrading(context, f"keeping a copy of the code for run {operation.to_run}", pin)
    if (waiting := gates.before_upgrade(context, operation)) is not None:
        return waiting
    if context.live:
        attempt = context.live[0]
        drain = DrainAttempt(run=attempt.run, attempt=attempt.number, uid=attempt.uid, why=operation.reason)
        return _upgrading(context, f"run {operation.from_run} finishes its batch", drain)
    if operation.to_run not in context.observed.seeded_runs:
        return _seed(context, operation)
    status = begin_run(
        context, number=operation.to_run, revision=operation.revision, seeded_from=operation.from_run
    )
    return start_intended(context, status, operation.reason)


def _seed(context: Context, operation: Operation) -> Decision:
    operation = operation.model_copy(update={"step": "Seeding"})
    context = context.with_status(context.status.model_copy(update={"operation": operation}))
    return copy_state(context, SeedRun(from_run=operation.from_run, to_run=operation.to_run))


def _upgrading(context: Context, message: str, action: PinRun | DrainAttempt) -> Decision:
    return Decision(
        status=context.status,
        state="Upgrading",
        facts=progress_facts("Upgrading", message),
        actions=(action,),
    )
