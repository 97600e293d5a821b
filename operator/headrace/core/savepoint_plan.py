"""(savepoint, status, observed, now) -> what to do next, what the status says, and why.

      asked for ──▶ taking ──────────▶ Ready ──▶ verified further, as spec.verify says
          │           │ (keeper pod)     │                (keeper pod)
          │           └──▶ Failed        └──▶ Failed: found damaged
          └─ spec.path: checked, then adopted          checked again, each time that the annotation asks

      deleted ──▶ work on it stops ──▶ the copy is removed, or stays, as the policy says ──▶ gone

What is intended is in the status (where it will lie, from which run, since when) before a keeper begins. A
keeper may be started again at any time: of all tries of one savepoint, the store lets one finish.

What fails for good (nothing to save, a damaged checkpoint) fails at once. What may pass (a store that does
not answer, a pod that was killed, no room) is tried again until spec.timeLimit is over. Failed is the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from headrace.api import StreamSavepointStatus, Verification
from headrace.core.conditions import Fact, with_facts
from headrace.core.decision import Sentence, progress_facts, stalled_facts
from headrace.core.model import Problem
from headrace.core.savepoint_access import access_of
from headrace.core.savepoint_contents import in_words, with_contents
from headrace.core.savepoint_decision import (
    Context,
    Decision,
    final_word,
    give_up,
    tidy,
    trouble_with,
    unverified,
)
from headrace.core.savepoint_model import (
    HoldCopy,
    KeeperPhase,
    KeeperTry,
    ReleaseCopy,
    RunKeeper,
    Savepoint,
    SavepointAction,
    SavepointObserved,
    StopKeepers,
    Task,
)
from headrace.core.savepoint_verifying import checked, found_by, settled, verified

# As many as the status has room for.
_MOST_USERS = 32
_WORKING: tuple[Task, ...] = ("take", "verify", "check")


@dataclass(frozen=True, kw_only=True)
class SavepointPlan:
    status: StreamSavepointStatus
    actions: tuple[SavepointAction, ...] = ()
    says: tuple[Sentence, ...] = ()
    # It waits for something that no event tells of.
    waits: bool = False
    # It has been given up in this pass.
    failed: bool = False


Question = Callable[[Context], Decision | None]


def plan_savepoint(
    savepoint: Savepoint, status: StreamSavepointStatus, observed: SavepointObserved, now: datetime
) -> SavepointPlan:
    context = Context(savepoint=savepoint, status=status, observed=observed, now=now)
    decision = next(decided for question in QUESTIONS if (decided := question(context)) is not None)
    after = decision.status.model_copy(
        update={
            "state": decision.state,
            "observed_generation": savepoint.generation,
            "conditions": with_facts(
                status.conditions, decision.facts, now=now, generation=savepoint.generation
            ),
            "in_use_by": (*observed.in_use_by, *observed.in_use_elsewhere)[:_MOST_USERS],
        }
    )
    return SavepointPlan(
        status=after,
        actions=(*_hold(context), *decision.actions),
        says=decision.says,
        waits=decision.waits or bool(decision.actions),
        failed=status.failed_at is None and after.failed_at is not None,
    )


def _hold(context: Context) -> tuple[SavepointAction, ...]:
    """Keeps the finalizer in step with the policy, before anything of it can be in the store."""
    savepoint = context.savepoint
    if savepoint.deleting or savepoint.held == context.deletes_copy:
        return ()
    return (HoldCopy(),) if context.deletes_copy else (ReleaseCopy(),)


# ---- deleted ------------------------------------------------------------------------------------------


def deleted(context: Context) -> Decision | None:
    if not context.savepoint.deleting:
        return None
    if not context.deletes_copy or context.status.path is None:
        return _leaving(context, "the copy is retained", ReleaseCopy())
    if context.observed.namespace_ends:
        message = "the namespace is being deleted, so nothing can remove the copy: it stays"
        return replace(_leaving(context, message, ReleaseCopy()), says=(Sentence("CopyRetained", message),))
    if context.savepoint.paused:
        return _leaving(context, "the copy is removed when the pause ends")
    if users := context.observed.in_use_by:
        return replace(
            _leaving(context, f"in use by {', '.join(users)}: it goes when they have started from it"),
            waits=True,
        )
    return _remove_copy(context)


def _remove_copy(context: Context) -> Decision:
    if [one for task in _WORKING for one in context.observed.of(task) if _may_write(one)]:
        return _leaving(context, "waiting for its keeper to end", StopKeepers(tasks=_WORKING))
    tries = context.observed.of("discard")
    if any(one.phase is KeeperPhase.SUCCEEDED for one in tries):
        return _leaving(context, "the copy is removed", ReleaseCopy())
    if (problem := trouble_with(context, "discard")) is not None:
        said = Sentence(
            "DeletionFailed",
            f"the copy could not be removed: {problem.message}. To delete the StreamSavepoint and keep the "
            "copy, set spec.deletionPolicy: Retain",
        )
        return Decision(
            status=context.status,
            state="Stalled",
            facts=stalled_facts(said.reason, said.message),
            actions=(RunKeeper(task="discard"),),
            says=(said,),
        )
    return _leaving(context, "removing the copy", RunKeeper(task="discard"))


def _may_write(one: KeeperTry) -> bool:
    """One on a lost node is not waited for: the tombstone keeps it from finishing."""
    return not one.ended and not one.lost


def _leaving(context: Context, message: str, *actions: SavepointAction) -> Decision:
    facts = progress_facts("Deleting", message)
    return Decision(status=context.status, state="Deleting", facts=facts, actions=actions)


# ---- at rest ------------------------------------------------------------------------------------------


def paused(context: Context) -> Decision | None:
    if not context.savepoint.paused:
        return None
    return Decision(status=context.status, state="Paused", facts=())


def failed(context: Context) -> Decision | None:
    """The end: the conditions stay as they were, by the spec of today."""
    status = context.status
    if status.failed_at is None:
        return None
    stalled = status.condition("Stalled")
    facts = stalled_facts(stalled.reason, stalled.message) if stalled is not None else ()
    return Decision(
        status=status, state="Failed", facts=(*facts, *_same_verified(context)), actions=tidy(context)
    )


def _same_verified(context: Context) -> tuple[Fact, ...]:
    before = context.status.condition("Verified")
    if before is None:
        return ()
    return (
        Fact(type="Verified", true=before.status == "True", reason=before.reason, message=before.message),
    )


# ---- made ---------------------------------------------------------------------------------------------


def taken(context: Context) -> Decision | None:
    """By a keeper, from the run that the job has when it begins."""
    if context.status.completed_at is not None or context.savepoint.spec.path is not None:
        return None
    if context.status.started_at is None:
        return _begin_taking(context)
    return _carry_on(context, RunKeeper(task="take"), "copying")


def imported(context: Context) -> Decision | None:
    """Found in a store: looked at before anybody may start from it."""
    spec = context.savepoint.spec
    if context.status.completed_at is not None or spec.path is None:
        return None
    look = RunKeeper(task="verify", level="Objects" if spec.verify == "Objects" else "State")
    if context.status.started_at is not None:
        return _carry_on(context, look, "checking what lies there")
    if (waiting := _without_job(context)) is not None:
        return waiting
    status = _begun(context, path=spec.path.rstrip("/"))
    facts = (*progress_facts("Importing", "checking what lies there"), unverified("Importing"))
    return Decision(status=status, state="Importing", facts=facts, actions=(look,))


def _begin_taking(context: Context) -> Decision:
    if (waiting := _without_job(context)) is not None:
        return waiting
    job, savepoint = context.observed.job, context.savepoint
    assert job is not None and not isinstance(job, Problem)  # it was asked
    if job.run is None:
        message = f"the job {savepoint.spec.job.name} has no run yet: there is nothing to save"
        return _waiting(context, Problem("NothingToSave", message))
    lineages, uid, run = job.run.path.rsplit("/", 2)
    status = _begun(context, path=f"{lineages}/_savepoints/{savepoint.directory}").model_copy(
        update={"source": f"{uid}/{run}", "run": job.run.number, "revision": job.run.revision}
    )
    return _taking(replace(context, status=status), "copying", RunKeeper(task="take"))


def _begun(context: Context, *, path: str) -> StreamSavepointStatus:
    """The intent: written before the first keeper begins."""
    job = context.observed.job
    assert job is not None and not isinstance(job, Problem)  # the caller has asked
    return context.status.model_copy(
        update={"path": path, "started_at": context.now, "access": access_of(job.spec)}
    )


def _without_job(context: Context) -> Decision | None:
    job, name = context.observed.job, context.savepoint.spec.job.name
    if job is None:
        message = (
            f"there is no StreamJob {name} in this namespace, whose state and rights it takes: create it, or "
            "name another in spec.job.name of a new StreamSavepoint"
        )
        return _waiting(context, Problem("JobNotFound", message))
    if isinstance(job, Problem):
        return _waiting(context, Problem(job.reason, f"the StreamJob {name} cannot be taken: {job.message}"))
    return None


def _waiting(context: Context, problem: Problem) -> Decision:
    """It may come yet. After a while somebody should look at it; should it come then, it goes on."""
    reconciling = context.status.condition("Reconciling")
    stalled = context.status.condition("Stalled")
    limit = timedelta(seconds=context.savepoint.spec.time_limit.seconds)
    waits = reconciling is not None and reconciling.status == "True"
    since = reconciling.last_transition_time if reconciling is not None and waits else context.now
    over = (stalled is not None and stalled.status == "True") or context.now > since + limit
    facts = (stalled_facts if over else progress_facts)(problem.reason, problem.message)
    ready = context.status.condition("Ready")
    news = ready is None or ready.message != problem.message
    return Decision(
        status=context.status,
        state="Stalled" if over else "Waiting",
        facts=(*facts, unverified(problem.reason)),
        says=(Sentence(problem.reason, problem.message),) if news else (),
        waits=True,
    )


def _carry_on(context: Context, work: RunKeeper, doing: str) -> Decision:
    tries = context.observed.of(work.task)
    done = next((one for one in tries if one.phase is KeeperPhase.SUCCEEDED), None)
    if done is not None:
        return _complete(context, done)
    if (broken := final_word(tries[-1] if tries else None)) is not None:
        return give_up(context, broken)
    trouble = trouble_with(context, work.task)
    if context.is_over_time:
        limit = f"it took longer than spec.timeLimit, {context.savepoint.spec.time_limit}"
        return give_up(context, Problem("TimeLimit", f"{limit}: {trouble.message}" if trouble else limit))
    told = replace(context, status=_with_progress(context))
    return _taking(told, trouble.message if trouble is not None else _how_far(told, doing), work)


def _with_progress(context: Context) -> StreamSavepointStatus:
    """In tens: every step of it is a write. Unheard of, it is as far as it was."""
    percent = context.observed.copied_percent
    if percent is None:
        return context.status
    return context.status.model_copy(update={"copied_percent": percent // 10 * 10})


def _how_far(context: Context, doing: str) -> str:
    percent = context.status.copied_percent
    return doing if percent is None else f"{doing}: {percent}%"


def _taking(context: Context, message: str, work: RunKeeper) -> Decision:
    state = "Taking" if work.task == "take" else "Importing"
    facts = (*progress_facts(state, message), unverified(state))
    return Decision(status=context.status, state=state, facts=facts, actions=(work,))


def _complete(context: Context, done: KeeperTry) -> Decision:
    status = with_contents(context.status, done.words.get("savepoint")).model_copy(
        update={"completed_at": done.ended_at or context.now, "copied_percent": None}
    )
    word = "Taken" if context.savepoint.spec.path is None else "Imported"
    if word == "Taken":
        # Its copy was listed again and compared, object by object, before the manifest was written.
        found = Verification(level="Objects", at=context.now, message="listed and compared after copying")
    else:
        found = found_by(done, context.now)
    completed = replace(context, status=status.model_copy(update={"verified": found}))
    following = verified(completed) or settled(completed)
    return replace(following, says=(Sentence(word, in_words(completed.status)), *following.says))


QUESTIONS: tuple[Question, ...] = (deleted, paused, failed, taken, imported, checked, verified, settled)
