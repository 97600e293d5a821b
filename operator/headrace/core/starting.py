"""Starting drivers: what comes before the first attempt of a run, and how each attempt is intended."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.api import Operation, Run, StreamJobStatus
from headrace.core.actions import RestoreRun, SeedRun, StartAttempt
from headrace.core.decision import Context, Decision, Sentence, progress_facts, stalled_facts
from headrace.core.history import Outcome, image_of, with_past_run
from headrace.core.model import NAME_TAKEN
from headrace.core.restarts import without_failures


def copy_state(context: Context, seed: SeedRun | RestoreRun) -> Decision:
    """Ask for the copy, again while it fails: a run never starts on half of a state."""
    problem, waiting = context.observed.seed_problem, context.observed.seed_waiting
    word, failed = (
        ("Upgrading", "SeedFailed") if isinstance(seed, SeedRun) else ("Restoring", "RestoreFailed")
    )
    if problem is None and waiting is not None:
        facts = progress_facts(waiting.reason, f"{seed.what} is to be copied: {waiting.message}")
        return Decision(status=context.status, state=word, facts=facts, actions=(seed,))
    if problem is None:
        facts = progress_facts(word, f"copying {seed.what}")
        return Decision(status=context.status, state=word, facts=facts, actions=(seed,))
    message = f"{seed.what} could not be copied: {problem}"
    return Decision(
        status=context.status, state="Stalled", facts=stalled_facts(failed, message), actions=(seed,)
    )


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A run that is about to begin, and what becomes of the one before it."""

    number: int
    revision: str
    seeded_from: str | None = None
    # What the job begins with, or begins anew with; None: what it began with before.
    started_from: str | None = None
    version_of: int | None = None
    changes: tuple[str, ...] = ()
    repartition: bool = False
    state_partitions: int | None = None
    left: int | None = None
    operation: Operation | None = None
    outcome: Outcome = "Replaced"
    message: str = ""


def begin_run(context: Context, begun: Begun) -> StreamJobStatus:
    """The status in which run `number` is the run, its first attempt intended."""
    status = context.status
    before = status.run.started_from if status.run is not None else None
    run = Run(
        number=begun.number,
        revision=begun.revision,
        generation=context.job.generation,
        started_at=context.now,
        path=context.observed.pinned[begun.number].path,
        seeded_from=begun.seeded_from,
        started_from=begun.started_from or before,
        changes=begun.changes,
        repartition=begun.repartition,
        state_partitions=begun.state_partitions,
        left=begun.left,
        image=image_of(status, begun.version_of) if begun.version_of is not None else None,
    )
    after = status.model_copy(
        update={
            "run": run,
            "operation": begun.operation,
            "beginning": None,
            "history": with_past_run(status, begun.outcome, begun.message, now=context.now),
            **without_failures(status),
        }
    )
    return context.with_status(after).with_intended_attempt(1)


def start_intended(context: Context, status: StreamJobStatus, why: str) -> Decision:
    run = status.run
    assert run is not None and run.attempt is not None  # the caller intended it
    start = StartAttempt(
        run=run.number,
        attempt=run.attempt.number,
        epoch=run.attempt.epoch,
        started_from=run.started_from,
        repartition=run.repartition,
    )
    said = Sentence("Starting", f"run {run.number}, attempt {run.attempt.number}: {why}")
    again = context.status.run == run
    # Refused by the platform, it is asked again: quotas and admission rules change without our knowing.
    problem = context.observed.start_problem if again else None
    shown = Sentence(problem.reason, problem.message) if problem is not None else said
    facts = stalled_facts if shown.reason == NAME_TAKEN else progress_facts
    return Decision(
        status=status,
        state="Starting",
        facts=facts(shown.reason, shown.message),
        actions=(start,),
        says=() if shown == said and again else (shown,),
    )


def start_next(context: Context, why: str | None = None) -> Decision:
    run = context.status.run
    assert run is not None  # first_run answered before
    number = run.attempt.number + 1 if run.attempt is not None else 1
    failed = context.status.restarts.in_a_row > 0 and context.status.last_termination
    after = f"after {failed.reason}, from the checkpoint" if failed else "from the checkpoint"
    return start_intended(context, context.with_intended_attempt(number), why or after)
