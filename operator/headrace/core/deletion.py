"""A StreamJob that is deleted: with `deletionPolicy: Delete`, its checkpoints go first.

      deleted                driver ended            nobody writes             keeper done
    ──────────▶ drain ──────────────────▶ wait for ────────────────▶ remove ──────────────▶ let it go
                                          executors                  (keeper pod, again while it fails)

A finalizer holds the StreamJob meanwhile. It is there only while the policy is `Delete`, or where a savepoint
is to be taken first (`savepoints.onDelete`): any other job whose state is retained can be deleted while no
operator runs. `Retain`, also said in the middle of it, lets the job go at once, with what is left of its
checkpoints.
"""

from __future__ import annotations

from headrace.core import gates
from headrace.core.actions import (
    Action,
    DeleteCheckpoints,
    DrainAttempt,
    HoldDeletion,
    ReleaseDeletion,
    StopDeleting,
)
from headrace.core.decision import Context, Decision, Sentence, progress_facts, stalled_facts
from headrace.core.model import Job, Removal

_WAY_OUT = "To delete the job and keep its checkpoints, set spec.deletionPolicy: Retain"


def hold(job: Job) -> tuple[Action, ...]:
    """Keeps the finalizer in step with the policy, before anything of the job can be in the store."""
    wanted = job.deletes_checkpoints or job.saves_on_delete
    if job.deleting or job.held == wanted:
        return ()
    return (HoldDeletion(),) if wanted else (ReleaseDeletion(),)


def let_go(context: Context) -> Decision | None:
    """Retained state holds nothing up, not even a pause; only a savepoint that was asked for may."""
    job = context.job
    if not job.deleting or job.deletes_checkpoints:
        return None
    if context.observed.removal is Removal.UNDER_WAY:
        return _deleting(
            context, "stopping the removal of the checkpoints: they are retained", StopDeleting()
        )
    if (waiting := gates.before_delete(context)) is not None:
        return waiting
    return _deleting(context, "the checkpoints are retained", ReleaseDeletion())


def deletion(context: Context) -> Decision | None:
    """Asked after those for lost and stray writers: none of them is left, and nothing starts any more."""
    if not context.job.deleting:
        return None
    if context.live:
        drains = (
            DrainAttempt(run=one.run, attempt=one.number, uid=one.uid, why="the job is deleted")
            for one in context.live
        )
        return _deleting(context, "the running batch is finished first", *drains)
    if _has_no_state(context):
        return _deleting(context, "there are no checkpoints", ReleaseDeletion())
    if lingering := context.observed.lingering:
        return _deleting(
            context,
            f"waiting for {', '.join(lingering)}, which may still be at work in the store. Delete what stays",
        )
    match context.observed.removal:
        case Removal.DONE:
            return _deleting(context, "the checkpoints are removed", ReleaseDeletion())
        case _:
            return _remove(context)


def way_out(message: str) -> str:
    return f"{message}. {_WAY_OUT}"


def _remove(context: Context) -> Decision:
    run = context.status.run
    remove = DeleteCheckpoints(path=run.path if run is not None else None)
    problem = context.observed.removal_problem
    if problem is None:
        return _deleting(context, "removing the checkpoints", remove)
    said = Sentence("DeletionFailed", way_out(f"the checkpoints could not be removed: {problem.message}"))
    return Decision(
        status=context.status,
        state="Stalled",
        facts=stalled_facts(said.reason, said.message),
        actions=(remove,),
        says=(said,),
    )


def _has_no_state(context: Context) -> bool:
    """No attempt was ever intended, and nothing was copied for one."""
    seen, status = context.observed, context.status
    if status.run is not None or status.beginning is not None:
        return False
    return not (seen.attempts or seen.seeded_runs or seen.lingering)


def _deleting(context: Context, message: str, *actions: Action) -> Decision:
    return Decision(
        status=context.status,
        state="Deleting",
        facts=progress_facts("Deleting", message),
        actions=actions,
    )
