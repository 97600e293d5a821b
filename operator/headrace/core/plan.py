"""(job, status, observed, now) -> what to do next, what the status says, and why.

The questions are asked in order; the first that applies decides:

    let go?            deleted, and its checkpoints stay: nothing holds it    (core/deletion.py)
    paused?            touch nothing
    lost writer?       its node is gone silent: wait for proof, or give it up if the spec says so
    stray writer?      a driver that the status does not name may still write: drain it, start nothing
    deleted?           drain, remove the checkpoints, let it go               (core/deletion.py)
    asked to stop?     suspend or detach: drain, take a savepoint, keep the checkpoint   (core/gates.py)
    no run yet?        pin and start run 1                                    (core/beginning.py)
    earlier lineage?   found in the store by the first attempt: wait until spec.startFrom says what to do
    start refused?     what it was to start from did not fit, and is not said any more
    asked to go back?  to a savepoint, by annotation                          (core/restoring.py)
                       to an earlier version, by annotation                   (core/rollback.py)
    upgrade begun?     carry it on from the step in the status                (core/upgrade.py)
    edited?            begin an upgrade, or refuse the edit with the reason and leave the job alone
    without work?      let it sleep, and wake it when there is some           (core/idle.py)
    otherwise          keep the attempt alive: start, watch, restart with backoff, or by its schedule
                                                                              (core/attempts.py)
                       and, while its run is new, judge it: promote it, or go back
                                                                              (core/verification.py)

Whatever is decided, savepoints are taken by their schedule, and removed by retention (core/saving.py).

At most one irreversible action comes out of a pass, and the status that comes with it already names it:
the caller writes that status first, then performs the action. A process that dies in between finds its
intent in the status and performs it then; results are never written, they are observed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from headrace.api import PAUSE_ANNOTATION, StreamJobStatus
from headrace.core import (
    attempts,
    beginning,
    deletion,
    gates,
    idle,
    rehearsal,
    restoring,
    rollback,
    second_chance,
    spark_line,
    upgrade,
    verification,
    warm,
)
from headrace.core.actions import AbandonAttempt, DrainAttempt, PinRun
from headrace.core.changes import classify
from headrace.core.clock import without_future
from headrace.core.collecting import collect_orphans
from headrace.core.conditions import Fact, with_facts
from headrace.core.decision import Context, Decision, Plan, progress_facts, stalled, stalled_facts
from headrace.core.edit_steps import live_news, sentence
from headrace.core.edit_summary import planned
from headrace.core.executors import executors_status, kept_conditions, lag_status, scaling_facts
from headrace.core.model import Code, Job, Observed, ObservedAttempt
from headrace.core.refusing import refuse_edit
from headrace.core.saving import keep_savepoints

Question = Callable[[Context], Decision | None]


def plan(job: Job, status: StreamJobStatus, observed: Observed, now: datetime) -> Plan:
    begun = without_future(status, job.spec.restart, now=now)
    context = Context(job=job, status=begun, observed=observed, now=now)
    context = upgrade.without_taken_back(rollback.without_answered_rejection(context))
    context = second_chance.without_doubted(second_chance.with_doubt(context))
    context = warm.with_seed_seen(upgrade.without_lost_code(context))
    decision = next(decided for question in QUESTIONS if (decided := question(context)) is not None)
    decision = second_chance.look_again(context, _with_pin_problem(context, decision))
    shown = replace(context, refused=decision.refused)
    facts = (
        *decision.facts,
        *rollback.facts(decision.status),
        *scaling_facts(shown),
        *idle.facts(shown, decision.status),
    )
    saving, collecting = keep_savepoints(context), collect_orphans(context)
    # Nobody has acted on what a paused job asks for since: to wait for it is to wait for the pause to end.
    paused_before = job.paused and not job.deleting and status.observed_generation > 0
    generation = status.observed_generation if paused_before else job.generation
    after = decision.status.model_copy(
        update={
            "state": decision.state,
            "observed_generation": generation,
            "conditions": with_facts(kept_conditions(shown), facts, now=now, generation=generation),
            "executors": executors_status(shown),
            "lag": lag_status(shown),
            "plan": planned(context, decision),
            "last_savepoint": saving.last,
            "collection": collecting.status,
        }
    )
    return Plan(
        status=after,
        actions=(
            *deletion.hold(job),
            # First: who is not needed any more makes room for the next.
            *rehearsal.strays(context, after),
            *decision.actions,
            *saving.actions,
            *collecting.actions,
        ),
        says=(
            *live_news(context, after),
            *spark_line.news(context, after),
            *decision.says,
            *saving.says,
            *collecting.says,
        ),
        recheck_at=decision.recheck_at,
        schedule_at=saving.look_at,
        savepoints=saving.summary,
    )


def paused(context: Context) -> Decision | None:
    if not context.job.paused:
        return None
    if context.job.deleting:
        message = f"the checkpoints are removed when the annotation {PAUSE_ANNOTATION} is"
        return Decision(
            status=context.status, state="Paused", facts=progress_facts("Paused", deletion.way_out(message))
        )
    return attempts.left_alone(context)


def lost_writer(context: Context) -> Decision | None:
    """A silent node proves nothing: its driver may be writing still."""
    lost = [attempt for attempt in context.live if attempt.lost]
    if not lost:
        return None
    names = ", ".join(f"attempt {attempt.number} of run {attempt.run}" for attempt in lost)
    if context.job.spec.lost_node == "Force":
        return Decision(
            status=context.status,
            state="Abandoning",
            facts=progress_facts("NodeLost", f"{names}: its node is lost, and spec.lostNode is Force"),
            actions=tuple(
                AbandonAttempt(run=attempt.run, attempt=attempt.number, uid=attempt.uid) for attempt in lost
            ),
        )
    message = (
        f"{names}: its node does not answer, so nobody can tell whether it still writes. The job goes on "
        "when the node is back or removed; say spec.lostNode: Force only if every sink fences by epoch"
    )
    return stalled(context, "NodeLost", deletion.way_out(message) if context.job.deleting else message)


def stray_writer(context: Context) -> Decision | None:
    """Never a second writer: whoever lives and is not the attempt of the status must end first."""
    strays = [attempt for attempt in context.live if not context.is_current(attempt)]
    if not strays:
        return None
    stray = strays[0]
    why = f"attempt {stray.number} of run {stray.run} is still ending; nothing starts before it has"
    return Decision(
        status=context.status,
        state="Waiting",
        facts=progress_facts("WaitingForWriter", why),
        actions=tuple(_drain(attempt, "another attempt owns the job") for attempt in strays),
    )


def asked_to_stop(context: Context) -> Decision | None:
    suspend, detach = context.job.spec.suspend, context.job.detaching
    if not (suspend or detach):
        return None
    word = "Suspended" if suspend else "Detached"
    context = context.with_status(rehearsal.without_candidate(context.status))
    if context.live:
        why = "the job is suspended" if suspend else "headrace dev is stopping"
        return Decision(
            status=context.status,
            state="Draining",
            facts=progress_facts("Draining", f"{why}: the running batch is finished first"),
            actions=tuple(_drain(attempt, why) for attempt in context.live),
        )
    if (waiting := gates.before_suspend(context)) is not None:
        return waiting
    # Stopping as asked is the wanted state: not ready would page somebody.
    facts = (
        Fact(type="Ready", true=True, reason=word, message="stopped as asked; the checkpoint is kept"),
        Fact(type="Reconciling", true=False, reason=word),
        Fact(type="Stalled", true=False, reason=word),
    )
    # No start is due while it is stopped, and none that was missed is made up for: the next time counts.
    status = attempts.with_ended_attempt(context).model_copy(update={"next_start_at": None, "sleep": None})
    return Decision(status=status, state=word, facts=facts)


def edited(context: Context) -> Decision | None:
    """A revision other than the run's: judged here, before anything is touched."""
    run = context.status.run
    assert run is not None  # first_run answered before
    if (refusal := upgrade.refusal(context)) is not None:
        return refuse_edit(context, refusal.reason, refusal.message)
    code = context.observed.code
    assert isinstance(code, Code)  # else it was refused
    pinned = context.observed.pinned.get(run.number)
    if pinned is None:  # cannot be compared, so it is not what is wanted
        return upgrade.begin(context, "what the run was pinned to is not there")
    change = classify(pinned.spec, context.job.spec)
    if pinned.code == code.digest and not change.needs_run:
        return None
    if (problem := rollback.stands_rejected(context)) is not None:
        return refuse_edit(context, problem.reason, problem.message)
    code_changed = pinned.code != code.digest
    return upgrade.begin(context, sentence(change, context.job.spec, code_changed=code_changed), change)


def refused_request(context: Context) -> Decision | None:
    problem = rollback.request_problem(context)
    return refuse_edit(context, problem.reason, problem.message) if problem is not None else None


QUESTIONS: tuple[Question, ...] = (
    deletion.let_go,
    paused,
    lost_writer,
    stray_writer,
    deletion.deletion,
    asked_to_stop,
    beginning.first_run,
    beginning.earlier_lineage,
    beginning.refused_start,
    restoring.restore,
    rollback.requested,
    upgrade.under_way,
    edited,
    refused_request,
    idle.rest,
    verification.watch,
)


def _with_pin_problem(context: Context, decision: Decision) -> Decision:
    """A run that cannot be pinned does not begin; what runs goes on."""
    problem = context.observed.pin_problem
    if problem is None or not any(isinstance(action, PinRun) for action in decision.actions):
        return decision
    facts = stalled_facts(problem.reason, problem.message)
    runs = [fact for fact in decision.facts if fact.type == "Ready" and fact.true]
    kept = [fact for fact in decision.facts if fact.type not in {one.type for one in facts}]
    return replace(decision, facts=(*(runs or facts[:1]), *facts[1:], *kept))


def _drain(attempt: ObservedAttempt, why: str) -> DrainAttempt:
    return DrainAttempt(run=attempt.run, attempt=attempt.number, uid=attempt.uid, why=why)
