"""A job without work sleeps, where `autoscaling.idle` asks for it, and is woken when there is some.

      no work for `after`                 driver ended                    work, blind, or `maxSleep`
    ──────────────────────▶ FallingAsleep ────────────▶ Sleeping ──────────────────────────────▶ next attempt
      status.sleep, then drain                 a lookout looks every `lookEvery`

The run stays, and its checkpoint with it: a woken job is another attempt of the same run. An edit that needs
a run, a restore and a rollback come before this question, so they wake the job; `suspend` and a deletion end
its sleep.

Unknown is never zero. A lookout that cannot look says so after a few tries, and then the job is woken; so it
is where none comes to run for some minutes, or one after the other fails. Awake without knowing its lag, it
does not fall asleep again. After a sleep that ended so the next one comes after twice the time: a lookout
that can never look must not make a job come and go.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from headrace.api import Idle, Sleep, StreamJobStatus
from headrace.core import attempts
from headrace.core.actions import DrainAttempt, StartLookout
from headrace.core.autoscale.words import duration
from headrace.core.conditions import Fact
from headrace.core.decision import Context, Decision, Sentence
from headrace.core.model import AttemptPhase, ObservedLookout
from headrace.core.restarts import hold_reason
from headrace.core.starting import start_next

# So long may a lookout take to run.
_UNWATCHED = timedelta(minutes=5)
# One that is not there so long after it was intended has been taken away.
_TAKEN_AWAY = timedelta(minutes=1)
# As many may fail, or be taken away, in one sleep: then nobody can tell.
_MOST_FAILURES = 3
_LOOK_AGAIN = timedelta(seconds=15)
_MOST_DOUBLINGS = 7


def rest(context: Context) -> Decision | None:
    """None while the job is awake, and is to be."""
    sleep, wanted = context.status.sleep, _wanted(context)
    if sleep is None:
        return _fall_asleep(context, wanted) if wanted is not None else None
    if context.live:
        return _falling_asleep(context)
    ended = _with_its_end(context, sleep)
    sleep = ended.status.sleep
    assert sleep is not None  # as before
    if hold_reason(ended.status) is not None:
        # It came to an end of its own at the last moment: nothing is left to be woken.
        return attempts.keep_alive(ended.with_status(ended.status.model_copy(update={"sleep": None})))
    if wanted is None:
        return _wake(ended, "spec.autoscaling.idle does not ask for sleep any more", restless=0)
    if (why := _work_or_time(ended, sleep, wanted)) is not None:
        return _wake(ended, why, restless=0)
    if (why := _why_blind(ended, sleep)) is not None:
        return _wake(ended, why, restless=ended.status.restless + 1, reason="WokenBlind")
    return _asleep(ended, sleep, wanted)


def _wake(context: Context, why: str, *, restless: int, reason: str = "Woken") -> Decision:
    woken = context.with_status(context.status.model_copy(update={"restless": restless}))
    return start_next(woken, f"awake: {why}").saying(Sentence(reason, why))


def seconds_without_work(wanted: Idle, status: StreamJobStatus) -> float:
    """How long a job must have had no work before it sleeps."""
    return wanted.after.seconds * 2 ** min(status.restless, _MOST_DOUBLINGS)


def _with_its_end(context: Context, sleep: Sleep) -> Context:
    """The driver has ended as it was asked to. From now on somebody has to look."""
    run, status = context.status.run, attempts.with_ended_attempt(context)
    just_ended = run is not None and run.attempt is not None and run.attempt.state != "Ended"
    if just_ended:
        status = status.model_copy(update={"sleep": sleep.model_copy(update={"lookout_at": context.now})})
    return context.with_status(status)


def facts(context: Context, status: StreamJobStatus) -> tuple[Fact, ...]:
    """The condition Asleep, of a job that may sleep; as before while nobody can look."""
    scaling, seen = context.job.spec.autoscaling, context.observed.idleness
    if scaling is None or scaling.idle is None:
        return ()
    if status.sleep is not None:
        since = f"since {_moment(status.sleep.since)}"
        return (Fact(type="Asleep", true=True, reason="NoWork", message=since),)
    if seen is not None and seen.problem is not None:
        message = f"the job never sleeps, because nobody could tell when to wake it: {seen.problem}"
        return (Fact(type="Asleep", true=False, reason="CannotLook", message=message),)
    if scaling.mode == "Advise" and seen is not None and _is_due(context, scaling.idle):
        message = "there is no work; with another autoscaling.mode than Advise the job would sleep"
        return (Fact(type="Asleep", true=False, reason="AdviceOnly", message=message),)
    if status.restless:
        needed = duration(seconds_without_work(scaling.idle, status))
        message = (
            f"nobody could tell in its last sleep whether there was work; it sleeps after {needed} without"
        )
        return (Fact(type="Asleep", true=False, reason="Restless", message=message),)
    before = status.condition("Asleep")
    if seen is None and before is not None and before.status == "False":
        return ()  # as it was when somebody last looked
    return (Fact(type="Asleep", true=False, reason="Awake"),)


def _wanted(context: Context) -> Idle | None:
    scaling = context.job.spec.autoscaling
    return scaling.idle if scaling is not None and scaling.mode != "Advise" else None


def _fall_asleep(context: Context, wanted: Idle) -> Decision | None:
    """Only from rest: a run that is on trial shows what it can do first."""
    seen, idleness = context.current, context.observed.idleness
    if context.status.operation is not None or seen is None or seen.phase is not AttemptPhase.RUNNING:
        return None
    if idleness is None or idleness.problem is not None or not _is_due(context, wanted):
        return None
    if any(query.busy or query.lag_rows for query in seen.queries):
        return None  # it has come since the last look
    started = context.with_status(context.with_started_attempt(seen))
    falling = started.with_status(_with_lookout(started, since=context.now, failures=0))
    said = f"no work since {_moment(idleness.since)}: the job sleeps until there is some"
    return _falling_asleep(falling).saying(Sentence("FallsAsleep", said))


def _is_due(context: Context, wanted: Idle) -> bool:
    since = context.observed.idleness.since if context.observed.idleness is not None else None
    needed = timedelta(seconds=seconds_without_work(wanted, context.status))
    return since is not None and context.now - since >= needed


def _falling_asleep(context: Context) -> Decision:
    why = "there is no work"
    message = f"{why}: the driver ends, the checkpoint is kept"
    return Decision(
        status=context.status,
        state="FallingAsleep",
        facts=(
            Fact(type="Ready", true=True, reason="Sleeping", message=message),
            Fact(type="Reconciling", true=True, reason="FallingAsleep", message=message),
            Fact(type="Stalled", true=False, reason="Sleeping"),
        ),
        actions=tuple(
            DrainAttempt(run=one.run, attempt=one.number, uid=one.uid, why=why) for one in context.live
        ),
    )


def _asleep(context: Context, sleep: Sleep, wanted: Idle) -> Decision:
    context, sleep = _with_right_lookout(context, sleep, wanted)
    seen = _seen(context, sleep)
    start = StartLookout(number=sleep.lookout, every_seconds=wanted.look_every.seconds)
    until = _until(sleep, wanted)
    message = (
        f"asleep since {_moment(sleep.since)}, for there is no work; its sources are looked at every "
        f"{wanted.look_every}, and the job is woken when there is work, at {_moment(until)} at the latest"
    )
    settled = (
        Fact(type="Reconciling", true=False, reason="Sleeping"),
        Fact(type="Stalled", true=False, reason="Sleeping"),
    )
    # Sleep is what was asked for: not ready would page somebody.
    ready = Fact(type="Ready", true=True, reason="Sleeping", message=message)
    watched = seen is not None and seen.running
    return Decision(
        status=context.status,
        state="Sleeping",
        facts=(ready, *(context.refusal() or settled)),
        actions=(start,) if seen is None or not seen.made else (),
        recheck_at=until if watched else min(until, context.now + _LOOK_AGAIN),
    )


def _work_or_time(context: Context, sleep: Sleep, wanted: Idle) -> str | None:
    seen = _seen(context, sleep)
    if seen is not None and seen.found == "Work":
        return seen.message or "there is work"
    if context.now >= _until(sleep, wanted):
        return f"it has slept for {wanted.max_sleep} (spec.autoscaling.idle.maxSleep)"
    return None


def _why_blind(context: Context, sleep: Sleep) -> str | None:
    """Why nobody can tell whether there is work, if so."""
    seen = _seen(context, sleep)
    if seen is not None and seen.found is not None:
        return seen.message or "nobody can tell whether there is work"
    if _has_failed(context, sleep) and sleep.failures + 1 >= _MOST_FAILURES:
        why = seen.message if seen is not None else ""
        return f"nobody can tell whether there is work: {why or 'its lookouts do not last'}"
    if seen is not None and not (seen.running or seen.ended) and context.now >= sleep.lookout_at + _UNWATCHED:
        why = f": {seen.waiting.message}" if seen.waiting is not None else ""
        return f"nobody can tell whether there is work: the lookout does not start{why}"
    return None


def _has_failed(context: Context, sleep: Sleep) -> bool:
    seen = _seen(context, sleep)
    if seen is not None:
        return seen.ended and seen.found is None
    return context.now >= sleep.lookout_at + _TAKEN_AWAY


def _with_right_lookout(context: Context, sleep: Sleep, wanted: Idle) -> tuple[Context, Sleep]:
    """Another one for one that failed, and for one that looks as often as an earlier spec said."""
    seen, failed = _seen(context, sleep), _has_failed(context, sleep)
    other = seen is not None and seen.made and seen.every_seconds != wanted.look_every.seconds
    if not (failed or other):
        return context, sleep
    failures = sleep.failures + 1 if failed else sleep.failures
    after = context.with_status(_with_lookout(context, since=sleep.since, failures=failures))
    assert after.status.sleep is not None  # it was just written
    return after, after.status.sleep


def _with_lookout(context: Context, *, since: datetime, failures: int) -> StreamJobStatus:
    """The status that names the next lookout: written before its pod is made."""
    number = context.status.lookouts + 1
    sleep = Sleep(since=since, lookout=number, lookout_at=context.now, failures=failures)
    return context.status.model_copy(update={"sleep": sleep, "lookouts": number})


def _seen(context: Context, sleep: Sleep) -> ObservedLookout | None:
    seen = context.observed.lookout
    return seen if seen is not None and seen.number == sleep.lookout else None


def _until(sleep: Sleep, wanted: Idle) -> datetime:
    return sleep.since + timedelta(seconds=wanted.max_sleep.seconds)


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment is not None else "a while ago"
