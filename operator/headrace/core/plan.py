"""(job, status, observed, now) -> what to do next, what the status says, and why.

The questions are asked in order; the first that applies decides:

    let go?            deleted, and its checkpoints stay: nothing holds it    (core/deletion.py)
    paused?            touch nothing
    lost writer?       its node is gone silent: wait for proof, or give it up if the spec says so
    stray writer?      a driver that the status does not name may still write: drain it, start nothing
    deleted?           drain, remove the checkpoints, let it go               (core/deletion.py)
    asked to stop?     suspend or detach: drain, keep the checkpoint
    no run yet?        pin and start run 1
    earlier lineage?   found in the store by the first attempt: wait until spec.startFrom says what to do
    upgrade begun?     carry it on from the step in the status         (core/upgrade.py)
    edited?            begin an upgrade, or refuse the edit with the reason and leave the job alone
    otherwise          keep the attempt alive: start, watch, restart with backoff, or by its schedule

At most one irreversible action comes out of a pass, and the status that comes with it already names it:
the caller writes that status first, then performs the action. A process that dies in between finds its
intent in the status and performs it then; results are never written, they are observed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from headrace.api import PAUSE_ANNOTATION, StartFrom, StreamJobStatus
from headrace.core import deletion, upgrade
from headrace.core.actions import AbandonAttempt, DrainAttempt, PinRun, ScaleExecutors, SeedRun
from headrace.core.changes import classify
from headrace.core.conditions import Fact, with_facts
from headrace.core.decision import Context, Decision, Plan, Sentence, progress_facts, stalled_facts
from headrace.core.executors import executors_status
from headrace.core.finite import due_at, outlook, with_completion
from headrace.core.model import (
    AttemptPhase,
    Code,
    CodeProblem,
    Ended,
    Ending,
    Job,
    Observed,
    ObservedAttempt,
    Problem,
)
from headrace.core.restarts import found_earlier_lineage, hold_reason, record_ending, without_failures
from headrace.core.schedule import zone_problem

Question = Callable[[Context], Decision | None]


def plan(job: Job, status: StreamJobStatus, observed: Observed, now: datetime) -> Plan:
    context = upgrade.without_lost_code(Context(job=job, status=status, observed=observed, now=now))
    decision = next(decided for question in QUESTIONS if (decided := question(context)) is not None)
    after = decision.status.model_copy(
        update={
            "state": decision.state,
            "observed_generation": job.generation,
            "conditions": with_facts(status.conditions, decision.facts, now=now, generation=job.generation),
            "executors": executors_status(context),
        }
    )
    return Plan(
        status=after,
        actions=(*deletion.hold(job), *decision.actions),
        says=decision.says,
        recheck_at=decision.recheck_at,
    )


def paused(context: Context) -> Decision | None:
    if not context.job.paused:
        return None
    if context.job.deleting:
        message = f"the checkpoints are removed when the annotation {PAUSE_ANNOTATION} is"
        return Decision(
            status=context.status, state="Paused", facts=progress_facts("Paused", deletion.way_out(message))
        )
    return Decision(status=context.status, state="Paused", facts=())


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
    return _stalled(context, "NodeLost", deletion.way_out(message) if context.job.deleting else message)


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
    if context.live:
        why = "the job is suspended" if suspend else "headrace dev is stopping"
        return Decision(
            status=context.status,
            state="Draining",
            facts=progress_facts("Draining", f"{why}: the running batch is finished first"),
            actions=tuple(_drain(attempt, why) for attempt in context.live),
        )
    # Stopping as asked is the wanted state: not ready would page somebody.
    facts = (
        Fact(type="Ready", true=True, reason=word, message="stopped as asked; the checkpoint is kept"),
        Fact(type="Reconciling", true=False, reason=word),
        Fact(type="Stalled", true=False, reason=word),
    )
    # No start is due while it is stopped, and none that was missed is made up for: the next time counts.
    status = _with_ended_attempt(context).model_copy(update={"next_start_at": None})
    return Decision(status=status, state=word, facts=facts)


def first_run(context: Context) -> Decision | None:
    if context.status.run is not None:
        return None
    if isinstance(context.observed.code, CodeProblem):
        return _stalled(context, "CodeProblem", context.observed.code.message)
    seed = first_seed(context)
    if isinstance(seed, Decision):
        return seed
    revision = context.wanted_revision
    if (pinned := context.observed.pinned.get(1)) is None or pinned.revision != revision:
        return Decision(
            status=context.status,
            state="Starting",
            facts=progress_facts("Starting", "keeping a copy of the code for run 1"),
            actions=(PinRun(run=1, revision=revision, spec=context.job.spec),),
        )
    if seed is not None and 1 not in context.observed.seeded_runs:
        return upgrade.copy_state(context, seed)
    status = upgrade.begin_run(context, number=1, revision=revision, seeded_from=None)
    return upgrade.start_intended(context, status, "the first run of the job")


def earlier_lineage(context: Context) -> Decision | None:
    """Only the job's own pods can look into the store: its first attempt found an earlier lineage there.

    Asked before any edit is: an upgrade of a run that never began would pass the lineage over in silence.
    """
    if not found_earlier_lineage(context.status) or context.live:
        return None
    last = context.status.last_termination
    assert last is not None  # it is what tells of the lineage
    if context.job.spec.start_from is None:
        return _stalled(context, "EarlierLineage", last.message)
    seed = first_seed(context)
    if isinstance(seed, Decision):
        return seed
    run = context.status.run
    assert run is not None  # its attempt found the lineage
    if context.job.spec.start_from.none and run.seeded_from is not None:
        # A keeper may be writing there still, and half of a state is worse than none.
        return _stalled(
            context,
            "StateCopied",
            f"the path of run {run.number} holds state of {run.seeded_from}, or a part of it: say "
            "spec.startFrom {latest: true}, or delete the job and create it with {none: true}",
        )
    if seed is not None and seed.to_run not in context.observed.seeded_runs:
        begun = run.model_copy(update={"seeded_from": f"{seed.from_uid}/run-{seed.from_run}"})
        named = context.with_status(context.status.model_copy(update={"run": begun}))
        return upgrade.copy_state(named, seed)
    return _start_next(context)


def first_seed(context: Context) -> SeedRun | Decision | None:
    """What run 1 begins with. Never from nothing by accident where an earlier lineage lies in the store."""
    start, earlier = context.job.spec.start_from, context.observed.earlier
    match start:
        case None if earlier is not None:
            return _stalled(
                context,
                "EarlierLineage",
                f"the store holds state of an earlier {context.job.name} ({earlier.uid}). Say spec.startFrom "
                "{latest: true} to go on from it, or {none: true} to begin anew",
            )
        case None:
            return None
        case StartFrom(none=True):
            return None
        case StartFrom(latest=True):
            if earlier is None:
                return None
            return SeedRun(from_uid=earlier.uid, from_run=earlier.last_run, to_run=1)
        case _:
            return _stalled(
                context,
                "StartFromUnsupported",
                "spec.startFrom: this version can start from {latest: true} or {none: true}",
            )


def edited(context: Context) -> Decision | None:
    """A revision other than the run's: judged here, before anything is touched."""
    run = context.status.run
    assert run is not None  # first_run answered before
    if (refusal := upgrade.refusal(context)) is not None:
        return _refused_edit(context, refusal.reason, refusal.message)
    code = context.observed.code
    assert isinstance(code, Code)  # else it was refused
    pinned = context.observed.pinned.get(run.number)
    if pinned is None:  # cannot be compared, so it is not what is wanted
        return upgrade.begin(context, "what the run was pinned to is not there")
    change = classify(pinned.spec, context.job.spec)
    if pinned.code == code.digest and not change.needs_run:
        return None
    if context.job.spec.upgrade.strategy == "Stateless":
        return _refused_edit(
            context,
            "StrategyUnsupported",
            "spec.upgrade.strategy: this version upgrades with the state only. Say Cold, or delete the job "
            "and create it anew with spec.startFrom: {none: true}",
        )
    return upgrade.begin(context, change.sentence() if change.needs_run else "the code changed")


def attempt(context: Context) -> Decision | None:
    run = context.status.run
    assert run is not None  # first_run answered before
    current, seen = run.attempt, context.current
    if current is None or current.state == "Ended":
        return _next_attempt(context)
    if seen is not None and seen.live:
        return _running(context, seen)
    if seen is not None:
        return _ended(context, seen.ended or Ended(ending=Ending.UNKNOWN))
    if current.state == "Intended":
        return upgrade.start_intended(context, context.status, "starting as intended")
    return _ended(context, Ended(ending=Ending.UNKNOWN, message="the driver is gone without a trace"))


QUESTIONS: tuple[Question, ...] = (
    deletion.let_go,
    paused,
    lost_writer,
    stray_writer,
    deletion.deletion,
    asked_to_stop,
    first_run,
    earlier_lineage,
    upgrade.under_way,
    edited,
    attempt,
)


def _running(context: Context, seen: ObservedAttempt) -> Decision:
    status = context.with_started_attempt(seen)
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
    if (problem := _no_executor(context)) is not None:
        ready, *rest = progress_facts(
            problem.reason, f"the driver runs without an executor. {problem.message}"
        )
        return Decision(
            status=status, state="Waiting", facts=(ready, *(refusal or rest)), actions=_scale(context)
        )
    ready = Fact(type="Ready", true=True, reason="Running", message="all queries are active")
    return Decision(
        status=status,
        state="Running",
        facts=(ready, *(refusal or _settled())),
        actions=_scale(context),
    )


def _no_executor(context: Context) -> Problem | None:
    """Why there is nobody to do the work, if so: a query without executors is active, and stands still."""
    executors = context.observed.executors
    return executors.waiting if executors is not None and executors.ready == 0 else None


def _scale(context: Context) -> tuple[ScaleExecutors, ...]:
    """A refused edit is refused as a whole: its number of executors is not taken either."""
    run, executors = context.status.run, context.observed.executors
    assert run is not None and run.attempt is not None  # it is running
    count = context.job.spec.executors.count
    if context.refused is not None or executors is None or executors.asked in (None, count):
        return ()
    return (
        ScaleExecutors(run=run.number, attempt=run.attempt.number, epoch=run.attempt.epoch, replicas=count),
    )


def _ended(context: Context, ended: Ended) -> Decision:
    """The driver is gone: say why, and decide whether and when another attempt follows."""
    policy = context.job.spec.restart
    record = record_ending(context.status, ended, policy, now=context.now)
    status = context.with_attempt(state="Ended").model_copy(update=record)
    if ended.ending is Ending.COMPLETED:
        status = with_completion(context.job.spec.trigger, status, at=ended.at or context.now)
    recorded = context.with_status(status)
    following = earlier_lineage(recorded) or _next_attempt(recorded)
    return following.saying(Sentence(ended.ending, ended.message or f"the driver ended: {ended.ending}"))


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
    return _start_next(context)


def _completed(context: Context) -> Decision:
    """A finite job is done: for good, or until its schedule says."""
    trigger = context.job.spec.trigger
    if (problem := zone_problem(trigger.time_zone)) is not None:
        facts = stalled_facts("UnknownTimeZone", f"spec.trigger.timeZone: {problem}")
        return Decision(status=context.status, state="Stalled", facts=facts)
    due = due_at(context.job, context.status, now=context.now)
    if due is not None and due <= context.now:
        return _start_next(context, f"due at {due:%Y-%m-%d %H:%M} UTC by spec.trigger.schedule")
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


def _start_next(context: Context, why: str | None = None) -> Decision:
    run = context.status.run
    assert run is not None  # first_run answered before
    number = run.attempt.number + 1 if run.attempt is not None else 1
    failed = context.status.restarts.in_a_row > 0 and context.status.last_termination
    after = f"after {failed.reason}, from the checkpoint" if failed else "from the checkpoint"
    return upgrade.start_intended(context, context.with_intended_attempt(number), why or after)


def _with_ended_attempt(context: Context) -> StreamJobStatus:
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


def _refused_edit(context: Context, reason: str, message: str) -> Decision:
    """The edit is not taken; what runs goes on, under the spec it was pinned with."""
    decided = attempt(context.refusing(reason, message))
    assert decided is not None  # the last question always answers
    already = any(
        c.type == "Stalled" and c.reason == reason and c.message == message for c in context.conditions
    )
    return decided if already else decided.saying(Sentence(reason, message))


def _stalled(context: Context, reason: str, message: str) -> Decision:
    return Decision(
        status=context.status,
        state="Stalled",
        facts=stalled_facts(reason, message),
        says=(Sentence(reason, message),),
    )


def _settled() -> tuple[Fact, Fact]:
    return (
        Fact(type="Reconciling", true=False, reason="Settled"),
        Fact(type="Stalled", true=False, reason="Settled"),
    )


def _drain(attempt: ObservedAttempt, why: str) -> DrainAttempt:
    return DrainAttempt(run=attempt.run, attempt=attempt.number, uid=attempt.uid, why=why)
