"""What an edit will do, step by step and in one sentence, in the words of the upgrade itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core.changes import ChangePlan, classify
from headrace.core.decision import Context, Sentence
from headrace.core.model import Code

StepName = Literal[
    "wait", "savepoint", "rehearse", "drain", "activate", "copy", "repartition", "start", "verify", "promote"
]

# States in which no driver writes, so that there is nothing to drain.
_COMES_OR_GOES = frozenset({"Starting", "Draining", "Ending", "Suspending"})
_AT_REST = frozenset({"Suspended", "Sleeping", "Completed", "Failed", "Backoff", "Detached", "Stalled", ""})


@dataclass(frozen=True)
class Step:
    name: StepName
    message: str


def steps_of_upgrade(
    new: StreamJobSpec,
    status: StreamJobStatus,
    *,
    way_back: int | None,
    paused: bool,
    saves: bool,
    repartition: bool = False,
) -> tuple[Step, ...]:
    """From the run that writes now to the one that the edit asks for; `way_back` is the run to return to."""
    saves = saves and (new.savepoints.on_upgrade or repartition)
    steps = _steps(new, status, paused=paused, saves=saves, repartition=repartition)
    return (*steps, Step("promote", _ending(new, next_run(status), way_back)))


def _steps(
    new: StreamJobSpec, status: StreamJobStatus, *, paused: bool, saves: bool, repartition: bool
) -> Iterator[Step]:
    assert status.run is not None  # there is something to upgrade
    old, number = status.run.number, next_run(status)
    yield from _waits(new, status, paused=paused)
    policy = new.upgrade
    if rehearsed(new, status):
        rehearsal = policy.rehearsal
        yield Step(
            "rehearse",
            f"run {number} is tried on a copy of the state: {_batches(rehearsal.batches)} are replayed with "
            f"muted sinks, in at most {rehearsal.time_limit}. Run {old} goes on meanwhile; if it fails, "
            f"nothing else happens. {_afterwards(new, repartition=repartition)}Without room for both the "
            "upgrade goes on without, and says so",
        )
    if saves:
        yield Step("savepoint", f"a savepoint of run {old} is taken; the job does not notice")
    if status.state not in _AT_REST:
        yield Step(
            "drain",
            f"run {old} finishes the batch that is running (after {new.drain_timeout} it is cut, and "
            "replayed within the same bounds)",
        )
    if policy.strategy == "Stateless":
        yield Step("start", f"run {number} starts WITHOUT the state of run {old}, as upgrade.strategy asks")
    elif warm(new, status) and not repartition:
        yield Step(
            "activate",
            f"the driver that rehearsed becomes run {number}: it copies what is new of the state since it "
            f"waits, and goes on where run {old} ended: no row lost, none read twice. Run {old} keeps what "
            "it has. If it cannot, a new driver is started, and the gap is longer",
        )
    else:
        yield Step("copy", f"the state is copied to a path of its own; run {old} keeps what it has")
        if repartition:
            yield Step(
                "repartition",
                f"the driver of run {number} splits its copy into {new.state.partitions} partitions, before "
                "its queries start: a batch of its own, of which no sink hears. So the takeover is cold, and "
                "the gap longer. If it fails, or a batch was cut by the drain, run "
                f"{old}'s version goes on with what it has",
            )
        yield Step("start", f"run {number} starts where run {old} ended: no row lost, none read twice")
    yield Step(
        "verify", f"for {policy.verify_window}: batches commit, the backlog does not grow, no attempt fails"
    )


def rehearsed(new: StreamJobSpec, status: StreamJobStatus) -> bool:
    """Only where something runs that is worth protecting: else the edit may be the repair."""
    return new.upgrade.strategy == "Rehearsed" and status.state not in (*_AT_REST, *_COMES_OR_GOES)


def warm(new: StreamJobSpec, status: StreamJobStatus) -> bool:
    """Whether the version that rehearsed well waits for the handover."""
    return rehearsed(new, status) and new.upgrade.standby.enabled


def _afterwards(new: StreamJobSpec, *, repartition: bool) -> str:
    standby = new.upgrade.standby
    if repartition:
        return "Passed, the copy is split, too; what was replayed is of the old number. "
    return f"Passed, it waits, warm, for up to {standby.max_age}. " if standby.enabled else ""


def _ending(new: StreamJobSpec, number: int, way_back: int | None) -> str:
    passed = f"run {number} is then the last stable one"
    if new.upgrade.rollback == "Manual":
        return f"{passed}; if it fails, it stays, and waits for you: upgrade.rollback is Manual"
    if way_back is None:
        return f"{passed}; if it fails, it is tried again: no version before it was good"
    return (
        f"{passed}; if it fails, run {number + 1} follows with the version of run {way_back}, and goes on "
        f"from where run {number} was"
    )


def _waits(new: StreamJobSpec, status: StreamJobStatus, *, paused: bool) -> Iterator[Step]:
    if paused:
        yield Step("wait", "until the job's annotation headrace.dev/paused is removed")
    if new.suspend:
        yield Step("wait", "until the job is resumed: spec.suspend is true")
    operation = status.operation
    if operation is not None:
        yield Step(
            "wait",
            f"a change is under way ({operation.kind}, {operation.step}): this one takes its place where "
            f"run {operation.to_run} has not started, and follows it otherwise",
        )


def steps_of_first_run(new: StreamJobSpec) -> tuple[Step, ...]:
    begin = [Step("wait", "until the job is resumed: spec.suspend is true")] if new.suspend else []
    return (*begin, Step("start", f"run 1 starts {_beginning(new)}"))


def _beginning(new: StreamJobSpec) -> str:
    start = new.start_from
    if start is None:
        return "from nothing; if the store holds state of an earlier job of this name, it waits for startFrom"
    if start.savepoint is not None:
        return f"from savepoint {start.savepoint}"
    if start.path is not None:
        return f"from what lies at {start.path}"
    if start.timestamp is not None:
        return f"without state; sources are read from {start.timestamp} on"
    if start.offsets is not None:
        return f"without state, at the given offsets of {', '.join(start.offsets)}"
    if start.latest:
        return "from the newest state of this name in the store, if there is any"
    return "from nothing, whatever lies in the store"


def next_run(status: StreamJobStatus) -> int:
    """A version that was refused in its rehearsal has not used its number up."""
    assert status.run is not None
    return status.run.number + 1


def sentence(change: ChangePlan, new: StreamJobSpec, *, code_changed: bool = False) -> str:
    """The plan of an edit in one line, for the status and the event: what changed, then what is done."""
    changed = change.sentence() if change.needs_run or not code_changed else "the code changed"
    if not change.needs_run and not code_changed:
        return f"{changed}: applied without touching the driver" if changed else ""
    return f"{changed}: {_in_short(new)}"


def _in_short(new: StreamJobSpec) -> str:
    return (
        "a new run without the state" if new.upgrade.strategy == "Stateless" else "a new run from its state"
    )


def live_news(context: Context, after: StreamJobStatus) -> tuple[Sentence, ...]:
    """An edit that was taken without a new run is told once, when its generation is first seen."""
    run, observed = context.status.run, context.observed
    edited = context.job.generation > context.status.observed_generation > 0
    pinned = observed.pinned.get(run.number) if run is not None else None
    stalled = after.condition("Stalled")
    refused = stalled is not None and stalled.status == "True"
    if not edited or refused or pinned is None or after.operation is not None:
        return ()
    change = classify(pinned.spec, context.job.spec)
    new_code = isinstance(observed.code, Code) and observed.code.digest != pinned.code
    if not change.changed or change.needs_run or new_code:
        return ()
    return (Sentence("AppliedLive", sentence(change, context.job.spec)),)


def _batches(number: int) -> str:
    return f"the last {number} batches" if number > 1 else "the last batch"
