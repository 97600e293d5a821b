"""The first run of a job: what it begins with, and an earlier lineage of the same name in the store."""

from __future__ import annotations

from headrace.api import StartFrom
from headrace.core.actions import PinRun, SeedRun
from headrace.core.decision import Context, Decision, progress_facts, stalled
from headrace.core.model import CodeProblem
from headrace.core.restarts import found_earlier_lineage
from headrace.core.starting import Begun, begin_run, copy_state, start_intended, start_next


def first_run(context: Context) -> Decision | None:
    if context.status.run is not None:
        return None
    if isinstance(context.observed.code, CodeProblem):
        return stalled(context, "CodeProblem", context.observed.code.message)
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
        return copy_state(context, seed)
    status = begin_run(context, Begun(number=1, revision=revision))
    return start_intended(context, status, "the first run of the job")


def earlier_lineage(context: Context) -> Decision | None:
    """Only the job's own pods can look into the store: its first attempt found an earlier lineage there.

    Asked before any edit is: an upgrade of a run that never began would pass the lineage over in silence.
    """
    if not found_earlier_lineage(context.status) or context.live:
        return None
    last = context.status.last_termination
    assert last is not None  # it is what tells of the lineage
    if context.job.spec.start_from is None:
        return stalled(context, "EarlierLineage", last.message)
    seed = first_seed(context)
    if isinstance(seed, Decision):
        return seed
    run = context.status.run
    assert run is not None  # its attempt found the lineage
    if context.job.spec.start_from.none and run.seeded_from is not None:
        # A keeper may be writing there still, and half of a state is worse than none.
        return stalled(
            context,
            "StateCopied",
            f"the path of run {run.number} holds state of {run.seeded_from}, or a part of it: say "
            "spec.startFrom {latest: true}, or delete the job and create it with {none: true}",
        )
    if seed is not None and seed.to_run not in context.observed.seeded_runs:
        begun = run.model_copy(update={"seeded_from": f"{seed.from_uid}/run-{seed.from_run}"})
        named = context.with_status(context.status.model_copy(update={"run": begun}))
        return copy_state(named, seed)
    return start_next(context)


def first_seed(context: Context) -> SeedRun | Decision | None:
    """What run 1 begins with. Never from nothing by accident where an earlier lineage lies in the store."""
    start, earlier = context.job.spec.start_from, context.observed.earlier
    match start:
        case None if earlier is not None:
            return stalled(
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
            return stalled(
                context,
                "StartFromUnsupported",
                "spec.startFrom: this version can start from {latest: true} or {none: true}",
            )
