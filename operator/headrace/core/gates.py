"""A savepoint before a step: what an upgrade, a suspension or a deletion waits for, where the policy says so.

    upgrade    from the job as it runs, before it is drained. If it fails, the upgrade is held and the job
               goes on as it was
    suspend    when the driver has ended: exactly what it left. If it fails, the job is suspended without
    delete     likewise, where the checkpoints are retained; if it fails, the job goes without

Each is asked with every pass and answers None when the step may go on. A savepoint of a step has a name that
only this very step has: whoever asks for it again, after a crash say, finds it.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.api import Operation
from headrace.core import attempts
from headrace.core.actions import Action, DrainAttempt, TakeSavepoint
from headrace.core.conditions import Fact
from headrace.core.decision import Context, Decision, Sentence, progress_facts
from headrace.core.savepoints import BeforeStep, Gate, Step, before, step_name


def before_upgrade(context: Context, operation: Operation) -> Decision | None:
    if operation.kind != "Upgrade" or operation.step == "Seeding":
        return None
    name = upgrade_savepoint(context.job.name, context.job.uid, operation)
    # What splits the state is experimental in Spark: it has one to go back to, whatever the policy.
    asked = _ask(context, "Upgrade", name, required=operation.repartition)
    match asked:
        case None | BeforeStep(gate=Gate.GO_ON):
            return None
        case BeforeStep(gate=Gate.HELD):
            held = attempts.keep_alive(context.refusing(asked.reason, asked.message))
            assert held is not None  # the last question always answers
            # Refused by the platform, it is asked for again: quotas and rights change without our knowing.
            again = () if _exists(context, name) else (TakeSavepoint(name=name, cause="Upgrade"),)
            refused = Sentence(asked.reason, asked.message)
            return replace(held, actions=(*held.actions, *again), refused=refused)
        case _:
            return _meanwhile(context, asked, name)


def before_suspend(context: Context) -> Decision | None:
    """Once, between the end of the driver and the note of it: what was suspended long ago is left alone."""
    run = context.status.run
    if not context.job.spec.suspend or run is None or run.attempt is None:
        return None
    if run.attempt.state != "Started" and context.status.sleep is None:
        return None
    name = step_name(context.job.name, "Suspend", run.attempt.epoch, scope=context.job.uid)
    asked = _ask(context, "Suspend", name)
    if asked is None or asked.gate is Gate.GO_ON:
        return None
    # Stopping as asked is the wanted state, also while it is saved: not ready would page somebody.
    facts = (
        Fact(type="Ready", true=True, reason="Suspended", message="stopped as asked; the checkpoint is kept"),
        Fact(type="Reconciling", true=True, reason="Savepoint", message=asked.message),
        Fact(type="Stalled", true=False, reason="Savepoint"),
    )
    return _waiting(context, asked, name, "Suspend", state="Suspending", facts=facts)


def before_delete(context: Context) -> Decision | None:
    """Of a job whose checkpoints are retained. A pause does not hold it up, nor does a node that is lost."""
    job, run = context.job, context.status.run
    if job.paused or not job.saves_on_delete or run is None:
        return None
    name = step_name(job.name, "Delete", context.status.epoch, scope=job.uid)
    asked = _ask(context, "Delete", name)
    if asked is None or asked.gate is Gate.GO_ON:
        return None
    if living := [attempt for attempt in context.live if not attempt.lost]:
        message = "the running batch is finished first, then a savepoint is taken"
        drains = tuple(
            DrainAttempt(run=one.run, attempt=one.number, uid=one.uid, why="the job is deleted")
            for one in living
        )
        return Decision(
            status=context.status,
            state="Deleting",
            facts=progress_facts("Deleting", message),
            actions=drains,
        )
    facts = progress_facts("Deleting", f"{asked.message}. To do without, set savepoints.onDelete: false")
    return _waiting(context, asked, name, "Delete", state="Deleting", facts=facts)


def upgrade_savepoint(job: str, uid: str, operation: Operation) -> str:
    """Its name. An upgrade that is begun anew, to the same number, is another one."""
    scope = f"{uid} {operation.started_at.isoformat() if operation.started_at else ''}"
    return step_name(job, "Upgrade", operation.to_run, scope=scope)


def _ask(context: Context, step: Step, name: str, *, required: bool = False) -> BeforeStep | None:
    """None where there are no savepoints."""
    known, run = context.observed.savepoints, context.status.run
    if known is None:
        return None
    refused = context.observed.savepoint_problem
    return before(
        step,
        context.job.spec.savepoints,
        known,
        name=name,
        has_state=run is not None and run.attempt is not None and run.path is not None,
        retains=not context.job.deletes_checkpoints,
        required=required,
        refused=refused.message if refused is not None else None,
    )


def _exists(context: Context, name: str) -> bool:
    return any(one.name == name for one in context.observed.savepoints or ())


def _meanwhile(context: Context, asked: BeforeStep, name: str) -> Decision:
    """The old version goes on while its state is copied. One that is down is not started once more."""
    facts = progress_facts("Savepoint", asked.message)
    if context.current is None or not context.current.live:
        return _waiting(context, asked, name, "Upgrade", state="Upgrading", facts=facts)
    running = attempts.keep_alive(context)
    assert running is not None  # the last question always answers
    _, *rest = facts
    ready = (fact for fact in running.facts if fact.type == "Ready")
    waiting = _waiting(context, asked, name, "Upgrade", state="Upgrading", facts=(*ready, *rest))
    return replace(waiting, status=running.status, actions=(*running.actions, *waiting.actions))


def _waiting(
    context: Context, asked: BeforeStep, name: str, step: Step, *, state: str, facts: tuple[Fact, ...]
) -> Decision:
    actions: tuple[Action, ...] = ()
    says: tuple[Sentence, ...] = ()
    if asked.gate is Gate.TAKE:
        actions = (TakeSavepoint(name=name, cause=step),)
        says = (Sentence("Savepoint", f"{name}: {asked.message}"),)
    return Decision(status=context.status, state=state, facts=facts, actions=actions, says=says)
