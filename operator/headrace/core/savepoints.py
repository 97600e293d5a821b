"""When a savepoint is due, which ones stay, and what becomes of a copy. Only decisions: nothing is done here.

by schedule   the first time of the cron expression after the last scheduled one, however that one ended.
              Times that were missed are made up for by one savepoint, not by many
before a step upgrade, suspend, delete: as the policy says. An upgrade waits for it, and is held if it
              fails; suspending and deleting lose nothing without it, since the checkpoint stays, and go on
retention     those that were not asked for by a person, by count (of each cause) and age. Never the last
              good one of the job, none that is pinned, in use, or being made
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from headrace.api.lifecycle import Savepoints

Cause = Literal["Manual", "Schedule", "Upgrade", "Suspend", "Delete"]
Step = Literal["Upgrade", "Suspend", "Delete"]
Disposal = Literal["Retain", "Delete"]

NextTime = Callable[[str, datetime], datetime | None]
"""The first time of a cron expression, in UTC, after a moment; None if there is none."""


_SPANS = tuple(timedelta(**span) for span in ({"minutes": 1}, {"hours": 1}, {"days": 1}, {"days": 31}))


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
    uid: str = ""
    pinned: bool = False
    # It was taken, and is being checked further, as the spec asks.
    verifying: bool = False
    imported: bool = False
    in_use_by: tuple[str, ...] = ()
    # Why it failed, for those that did: a word and a sentence.
    reason: str = ""
    problem: str = ""
    # Of those that are good: the batch of each query, when it was done, how long that took, how big it is.
    batches: Mapping[str, int] = field(default_factory=dict[str, int])
    # There are queries beyond these, for which the status had no room.
    more_queries: bool = False
    completed_at: datetime | None = None
    seconds: float | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Due:
    """The schedule asks for one, since then."""

    at: datetime
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
    if not moves or any(one.phase is Phase.TAKING for one in known):
        return None
    at = next_look(policy, known, since=since, now=now, next_time=next_time)
    if at is None or at > now or policy.schedule is None:
        return None
    latest = _latest_time(policy.schedule, now, next_time) or at
    if any(one.cause == "Schedule" and one.name.endswith(_time_in_name(latest)) for one in known):
        return None  # it was dated by a server whose clock differs from ours
    message = f"the schedule {policy.schedule} asks for one at {_clock(latest)}, none since then"
    return Due(at=latest, message=message)


def _latest_time(cron: str, now: datetime, next_time: NextTime) -> datetime | None:
    """The last time that has come. A savepoint that makes up for many has the name of this one: it is what
    it holds. Looked for in longer and longer spans, so that few times are gone through."""
    for span in _SPANS:
        found, at = None, next_time(cron, now - span)
        while at is not None and at <= now:
            found, at = at, next_time(cron, at)
        if found is not None:
            return found
    return None


def next_look(
    policy: Savepoints, known: Sequence[Known], *, since: datetime, now: datetime, next_time: NextTime
) -> datetime | None:
    """When the schedule is to be asked again; None without one."""
    if policy.schedule is None:
        return None
    # Savepoints are dated by the server. One that lies ahead of our clock does not put the next one off until
    # our clock comes there.
    times = [one.began_at for one in known if one.cause == "Schedule" and one.began_at <= now]
    last = max(times, default=since)
    return next_time(policy.schedule, last)


def has_moved(known: Iterable[Known], committed: Mapping[str, int | None]) -> bool:
    """Whether the newest good one lacks anything that is committed; true where nobody knows. What of its
    queries is not told is no reason to save a job that stands still over and over."""
    newest = newest_good(known)
    if newest is None or not committed:
        return True
    comparable = {q: n for q, n in committed.items() if q in newest.batches or not newest.more_queries}
    return not comparable or any(newest.batches.get(q) != n for q, n in comparable.items())


def newest_good(known: Iterable[Known]) -> Known | None:
    """Of those that were taken: an imported one is of another time."""
    good = [one for one in known if one.phase is Phase.GOOD and not one.imported]
    return max(good, key=lambda one: (one.began_at, one.name), default=None)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A job's savepoints in numbers."""

    last_good: Known | None
    # The newest that has ended failed.
    failed: bool
    # Since when the schedule asks for a good one that is not there.
    overdue_since: datetime | None


def summary(
    policy: Savepoints,
    known: Sequence[Known],
    *,
    since: datetime,
    moves: bool,
    now: datetime,
    next_time: NextTime,
) -> Summary:
    """`moves`: the job runs, and has committed something since the last one."""
    ended = [one for one in known if one.phase is not Phase.TAKING and one.reason != "NothingToSave"]
    newest = max(ended, key=lambda one: (one.began_at, one.name), default=None)
    good = [one for one in known if one.phase is Phase.GOOD]
    # One that the server has dated ahead of our clock has been taken, whenever that was.
    ahead = any(one.cause == "Schedule" and one.began_at > now for one in good)
    asked = moves and not ahead
    at = next_look(policy, good, since=since, now=now, next_time=next_time) if asked else None
    return Summary(
        last_good=newest_good(known),
        failed=newest is not None and newest.phase is Phase.FAILED,
        overdue_since=at if at is not None and at <= now else None,
    )


# ---- before a step


def before(
    step: Step,
    policy: Savepoints,
    known: Sequence[Known],
    *,
    name: str,
    has_state: bool,
    retains: bool = True,
    refused: str | None = None,
    required: bool = False,
) -> BeforeStep:
    """`name` is that of the savepoint of this very step; `has_state` is whether anything may have been
    committed; `retains` is `deletionPolicy: Retain`; `refused` is why none can be made; `required`: whatever
    the policy says."""
    wanted = {
        "Upgrade": policy.on_upgrade,
        "Suspend": policy.on_suspend,
        "Delete": policy.on_delete and retains,
    }[step]
    if not wanted and not required:
        return BeforeStep(gate=Gate.GO_ON, reason="NotAsked", message=_not_asked(step, policy))
    if not has_state:
        return BeforeStep(gate=Gate.GO_ON, reason="NothingToSave", message="no batch was ever committed")
    own = next((one for one in known if one.name == name), None)
    match own:
        case None if refused is not None:
            return _failed(step, f"savepoint {name} cannot be made: {refused}", required=required)
        case None:
            return BeforeStep(
                gate=Gate.TAKE,
                reason="Due",
                message="one is always taken before the state is split into another number of partitions"
                if required
                else f"savepoints.on{step} asks for one before the {_noun(step)}",
            )
        case Known(phase=Phase.TAKING):
            return BeforeStep(gate=Gate.WAIT, reason="Taking", message=f"waiting for savepoint {name}")
        case Known(phase=Phase.GOOD):
            return BeforeStep(gate=Gate.GO_ON, reason="Taken", message=f"savepoint {name} is good")
        case Known(reason="NothingToSave"):
            return BeforeStep(gate=Gate.GO_ON, reason="NothingToSave", message=own.problem)
        case _:
            why = f"savepoint {name} failed: {own.problem or 'no reason was told'}"
            return _failed(step, why, required=required)


def _failed(step: Step, why: str, *, required: bool) -> BeforeStep:
    if step == "Upgrade":
        without = "put spec.state.partitions back" if required else "set savepoints.onUpgrade: false"
        return BeforeStep(
            gate=Gate.HELD,
            reason="SavepointFailed",
            message=f"{why}. Delete it to have another one taken, or {without}",
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
    """Every savepoint of a job, newest first, with why it stays or goes. None takes the place of an older one
    before it has been checked as far as it is to be."""
    ordered = sorted(known, key=lambda one: (one.began_at, one.name), reverse=True)
    last_good = newest_good(one for one in ordered if not one.verifying)
    counts = Counter[tuple[Cause, Phase]]()
    judged: list[Judged] = []
    for one in ordered:
        counts[one.cause, one.phase] += not one.verifying
        judged.append(_judged(policy, one, last_good, counts[one.cause, one.phase], now))
    return tuple(judged)


def _judged(policy: Savepoints, one: Known, last_good: Known | None, place: int, now: datetime) -> Judged:
    stays = _protection(one, last_good)
    goes = None if stays else _expiry(policy, one, last_good, place, now)
    reason, message = stays or goes or ("Kept", f"one of the {policy.keep} newest for {one.cause}")
    return Judged(name=one.name, remove=goes is not None, reason=reason, message=message)


def _protection(one: Known, last_good: Known | None) -> tuple[str, str] | None:
    """Why it stays whatever the limits are."""
    if one.phase is Phase.TAKING:
        return "Taking", "it is being made"
    if one.verifying:
        return "Verifying", "it is being checked"
    if one.pinned:
        return "Pinned", "it is pinned"
    if one.in_use_by:
        return "InUse", f"in use by {', '.join(one.in_use_by)}"
    if one.cause == "Manual" or one.imported:
        return "AskedFor", "retention removes what Headrace took by itself"
    if one.cause == "Delete":
        return "OfDeletedJob", "it is what is left of a job that was deleted"
    if one == last_good:
        return "LastGood", "it is the last good one"
    return None


def _expiry(
    policy: Savepoints, one: Known, last_good: Known | None, place: int, now: datetime
) -> tuple[str, str] | None:
    """Why it goes, if nothing protects it. `place` is its number among those of its cause that ended so."""
    if one.phase is Phase.FAILED and last_good is not None and last_good.began_at > one.began_at:
        return "Failed", "it failed, and another one was good since"
    if place > policy.keep:
        return "Surplus", f"there are {policy.keep} newer ones for {one.cause}, which is savepoints.keep"
    if one.phase is Phase.FAILED:
        return None
    if policy.max_age is not None and now - one.began_at > timedelta(seconds=policy.max_age.seconds):
        return "TooOld", f"it is older than savepoints.maxAge, {policy.max_age}"
    return None


# ---- when a StreamSavepoint is deleted


def disposal(wanted: Disposal | None, *, imported: bool) -> Disposal:
    """What becomes of the copy: the job that took one may remove it; an imported one is somebody else's."""
    return wanted if wanted is not None else ("Retain" if imported else "Delete")


def _clock(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")


# ---- names: each is used once, so that a savepoint that was asked for twice is taken once


def scheduled_name(job: str, at: datetime) -> str:
    return f"{job}{_time_in_name(at)}"


def _time_in_name(at: datetime) -> str:
    return f"-{at:%Y%m%d-%H%M}"


def step_name(job: str, step: Step, number: int, *, scope: str) -> str:
    """`scope` tells apart what has the same number: a job of the same name, an upgrade begun anew."""
    digest = hashlib.sha256(scope.encode()).hexdigest()[:8]
    return f"{job}-{step.lower()}-{number}-{digest}"
