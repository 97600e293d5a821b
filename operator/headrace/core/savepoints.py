"""When a savepoint is due, which ones stay, and what becomes of a copy. Only decisions: nothing is done here.

by schedule   the first time of the cron expression after the last scheduled one, however that one ended.
              Times that were missed are made up for by one savepoint, not by many
before a step upgrade, suspend, delete: as the policy says. An upgrade waits for it, and is held if it
              fails; suspending and deleting lose nothing without it, since the checkpoint stays, and go on
retention     scheduled ones, by count and age. Never the last good one of the job, none that is pinned, in
              use, or being made
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from headrace.api.lifecycle import Savepoints

Cause = Literal["Manual", "Schedule", "Upgrade", "Suspend", "Delete"]
Step = Literal["Upgrade", "Suspend", "Delete"]
Disposal = Literal["Retain", "Delete"]

NextTime = Callable[[str, datetime], datetime | None]
"""The first time of a cron expression, in UTC, after a moment; None if there is none."""


class Phase(StrEnum):
    TAKING = "Taking"
    GOOD = "Good"
    FAILED = "Failed"


@dataclass(frozen=True, kw_only=True)
class Known:
    """A savepoint of a job, as far as these rules look at it."""

    name: str
    cause: Cause
    phase: Phase
    began_at: datetime
    pinned: bool = False
    imported: bool = False
    in_use_by: tuple[str, ...] = ()
    # Why it failed, for those that did.
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Due:
    """Take one now, for this cause."""

    cause: Cause
    message: str


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What retention says about one savepoint."""

    name: str
    remove: bool
    reason: str
    message: str


class Gate(StrEnum):
    """What a step does about the savepoint before it."""

    TAKE = "Take"
    WAIT = "Wait"
    GO_ON = "GoOn"
    HELD = "Held"


@dataclass(frozen=True, kw_only=True)
class BeforeStep:
    gate: Gate
    reason: str
    message: str


# ---- by schedule


def due_by_schedule(
    policy: Savepoints,
    known: Sequence[Known],
    *,
    since: datetime,
    moves: bool,
    now: datetime,
    next_time: NextTime,
) -> Due | None:
    """`since` is when the job first ran; `moves` is whether it has committed anything since the last one."""
    if policy.schedule is None or not moves or any(one.phase is Phase.TAKING for one in known):
        return None
    last = max((one.began_at for one in known if one.cause == "Schedule"), default=since)
    at = next_time(policy.schedule, last)
    if at is None or at > now:
        return None
    return Due(
        cause="Schedule",
        message=f"the schedule {policy.schedule} asks for one at {_clock(at)}, none since then",
    )


def next_look(
    policy: Savepoints, known: Sequence[Known], *, since: datetime, next_time: NextTime
) -> datetime | None:
    """When the schedule is to be asked again; None without one."""
    if policy.schedule is None:
        return None
    last = max((one.began_at for one in known if one.cause == "Schedule"), default=since)
    return next_time(policy.schedule, last)


# ---- before a step


def before(
    step: Step,
    policy: Savepoints,
    known: Sequence[Known],
    *,
    step_began_at: datetime,
    has_state: bool,
    retains: bool = True,
) -> BeforeStep:
    """`has_state` is whether anything was ever committed; `retains` is `deletionPolicy: Retain`."""
    wanted = {
        "Upgrade": policy.on_upgrade,
        "Suspend": policy.on_suspend,
        "Delete": policy.on_delete and retains,
    }[step]
    if not wanted:
        return BeforeStep(gate=Gate.GO_ON, reason="NotAsked", message=_not_asked(step, policy))
    if not has_state:
        return BeforeStep(gate=Gate.GO_ON, reason="NothingToSave", message="no batch was ever committed")
    own = [one for one in known if one.cause == step and one.began_at >= step_began_at]
    newest = max(own, key=lambda one: one.began_at, default=None)
    match newest:
        case None:
            return BeforeStep(
                gate=Gate.TAKE,
                reason="Due",
                message=f"savepoints.on{step} asks for one before the {_noun(step)}",
            )
        case Known(phase=Phase.TAKING):
            return BeforeStep(gate=Gate.WAIT, reason="Taking", message=f"waiting for savepoint {newest.name}")
        case Known(phase=Phase.GOOD):
            return BeforeStep(gate=Gate.GO_ON, reason="Taken", message=f"savepoint {newest.name} is good")
        case _:
            return _failed(step, newest)


def _failed(step: Step, failed: Known) -> BeforeStep:
    why = f"savepoint {failed.name} failed: {failed.problem or 'no reason was told'}"
    if step == "Upgrade":
        return BeforeStep(
            gate=Gate.HELD,
            reason="SavepointFailed",
            message=f"{why}. Delete it to have another one taken, or set savepoints.onUpgrade: false",
        )
    return BeforeStep(
        gate=Gate.GO_ON,
        reason="SavepointFailed",
        message=f"{why}. The {_noun(step)} goes on without it: the checkpoint itself stays where it is",
    )


def _not_asked(step: Step, policy: Savepoints) -> str:
    if step == "Delete" and policy.on_delete:
        return "deletionPolicy is Delete: nothing is to be kept"
    return f"savepoints.on{step} is false"


def _noun(step: Step) -> str:
    return {"Upgrade": "upgrade", "Suspend": "suspension", "Delete": "deletion"}[step]


# ---- retention


def judge(policy: Savepoints, known: Iterable[Known], *, now: datetime) -> tuple[Judged, ...]:
    """Every savepoint of a job, newest first, with why it stays or goes."""
    ordered = sorted(known, key=lambda one: (one.began_at, one.name), reverse=True)
    last_good = next((one for one in ordered if one.phase is Phase.GOOD), None)
    scheduled = [one for one in ordered if one.cause == "Schedule" and one.phase is Phase.GOOD]
    places = {one.name: place for place, one in enumerate(scheduled, start=1)}
    return tuple(_judged(policy, one, last_good, places.get(one.name), now) for one in ordered)


def _judged(
    policy: Savepoints, one: Known, last_good: Known | None, place: int | None, now: datetime
) -> Judged:
    stays = _protection(one, last_good)
    goes = None if stays else _expiry(policy, one, place, now)
    reason, message = stays or goes or ("Kept", f"one of the {policy.keep} newest scheduled ones")
    return Judged(name=one.name, remove=goes is not None, reason=reason, message=message)


def _protection(one: Known, last_good: Known | None) -> tuple[str, str] | None:
    """Why it stays whatever the limits are."""
    if one.phase is Phase.TAKING:
        return "Taking", "it is being made"
    if one.pinned:
        return "Pinned", "it is pinned"
    if one.in_use_by:
        return "InUse", f"in use by {', '.join(one.in_use_by)}"
    if one.cause != "Schedule" or one.imported:
        return "NotScheduled", "retention removes scheduled ones only"
    if one == last_good:
        return "LastGood", "it is the last good one"
    if one.phase is Phase.FAILED and (last_good is None or last_good.began_at < one.began_at):
        return "Failed", "it failed, and none was good since: its message tells why"
    return None


def _expiry(policy: Savepoints, one: Known, place: int | None, now: datetime) -> tuple[str, str] | None:
    """Why it goes, if nothing protects it. `place` is its number among the good scheduled ones."""
    if one.phase is Phase.FAILED:
        return "Failed", "it failed, and another one was good since"
    if place is not None and place > policy.keep:
        return "Surplus", f"there are {policy.keep} newer scheduled ones, which is savepoints.keep"
    if policy.max_age is not None and now - one.began_at > timedelta(seconds=policy.max_age.seconds):
        return "TooOld", f"it is older than savepoints.maxAge, {policy.max_age}"
    return None


# ---- when a StreamSavepoint is deleted


def why_not_delete(one: Known) -> str | None:
    """Why the copy must stay although its object is to go; None if it may go."""
    if one.in_use_by:
        return f"in use by {', '.join(one.in_use_by)}: it goes when they have started from it"
    if one.phase is Phase.TAKING:
        return "it is being made: it goes when that has ended"
    return None


def disposal(wanted: Disposal | None, *, imported: bool) -> Disposal:
    """What becomes of the copy: the job that took one may remove it; an imported one is somebody else's."""
    return wanted if wanted is not None else ("Retain" if imported else "Delete")


def _clock(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")
