"""How a job begins: with nothing, with an earlier lineage, with a savepoint, at a time or at offsets.

      spec.startFrom        pin            copy (latest, savepoint, path)        run n, attempt 1
    ────────────────▶ run n ────▶ beginning ─────────────────────────────▶ intended, then started
                        ▲                        (keeper, again while it fails)          │
                        └── n+1: another start is said, before it has begun, or ─────────┘
                            when it was refused for what it was to start from

Each start has a run, and so a path, of its own: whoever still copies for an earlier one does no harm.
"""

from __future__ import annotations

from datetime import timedelta

from headrace.api import Beginning, StartFrom
from headrace.core.actions import PinRun, RestoreRun, SeedRun
from headrace.core.decision import Context, Decision, Sentence, progress_facts, stalled
from headrace.core.model import CodeProblem, ObservedSavepoint
from headrace.core.restarts import found_earlier_lineage, refused_its_start
from headrace.core.start import start_in_words, start_problem
from headrace.core.starting import Begun, begin_run, copy_state, start_intended, start_next

# Nobody wakes a job when the savepoint that it waits for is made, or becomes Ready.
_LOOK_AGAIN = timedelta(seconds=15)


def first_run(context: Context) -> Decision | None:
    if not _has_to_begin(context):
        return None
    if isinstance(context.observed.code, CodeProblem):
        return stalled(context, "CodeProblem", context.observed.code.message)
    seed = first_seed(context)
    if isinstance(seed, Decision):
        return seed
    start = context.job.spec.start_from
    words = start_in_words(start) if start is not None else None
    number = _number(context, _source(seed, words))
    revision = context.wanted_revision
    if (pinned := context.observed.pinned.get(number)) is None or pinned.revision != revision:
        return Decision(
            status=context.status,
            state="Starting",
            facts=progress_facts("Starting", f"keeping a copy of the code for run {number}"),
            actions=(PinRun(run=number, revision=revision, spec=context.job.spec),),
        )
    if seed is not None:
        seed = _to(seed, number)
        if number not in context.observed.seeded_runs:
            # The intent first: what was begun to be copied is not begun with by another start.
            begun = Beginning(run=number, start=_source(seed, words))
            status = context.status.model_copy(update={"beginning": begun})
            return copy_state(context.with_status(status), seed)
    first = Begun(
        number=number,
        revision=revision,
        seeded_from=_seeded_from(seed),
        started_from=words,
        outcome="Refused",
        message=f"run {number} begins from {words}",
    )
    again = f", from {words}" if words is not None and number > 1 else ""
    return start_intended(context, begin_run(context, first), f"the first run of the job{again}")


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
    if _has_to_begin(context):
        return first_run(context)
    seed = first_seed(context)
    if isinstance(seed, Decision):
        return seed
    assert not isinstance(seed, RestoreRun)  # that is a run of its own
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


def refused_start(context: Context) -> Decision | None:
    """What the job was to start from does not fit its queries: as long as it stands, nothing is tried."""
    if not refused_its_start(context.status) or context.live or context.job.spec.start_from is not None:
        return None
    last = context.status.last_termination
    assert last is not None  # it tells of the refusal
    return stalled(
        context,
        "StartRefused",
        f"{last.message}. spec.startFrom was removed since: say where to start, or {{none: true}} to begin "
        "from nothing",
    )


def first_seed(context: Context) -> SeedRun | RestoreRun | Decision | None:
    """What the first run begins with. Never from nothing by accident where there is something."""
    start, earlier = context.job.spec.start_from, context.observed.earlier
    if (problem := start_problem(start)) is not None:
        return stalled(context, problem.reason, problem.message)
    match start:
        case None if earlier is not None:
            return stalled(
                context,
                "EarlierLineage",
                f"the store holds state of an earlier {context.job.name} ({earlier.uid}). Say spec.startFrom "
                "{latest: true} to go on from it, or {none: true} to begin anew",
            )
        case StartFrom(latest=True) if earlier is not None:
            return SeedRun(from_uid=earlier.uid, from_run=earlier.last_run, to_run=1)
        case StartFrom(savepoint=str(name)):
            return _from_savepoint(context, name)
        case StartFrom(path=str(path), query=query):
            return RestoreRun(path=path, to_run=1, lineage="auto", query=query)
        case _:
            return None


def _from_savepoint(context: Context, name: str) -> RestoreRun | Decision:
    job, found = context.job, context.observed.savepoint
    if found is None:
        return _waiting(
            context,
            "SavepointNotFound",
            f"spec.startFrom.savepoint: there is no savepoint {name} in the namespace {job.namespace}. Name "
            "one that there is, or say spec.startFrom {path: …} if you know where one lies",
        )
    if found.path is None or found.problem:
        return _not_ready(context, found)
    lineage = "forward" if found.job == job.name else "new"
    return RestoreRun(path=found.path, to_run=1, lineage=lineage)


def _not_ready(context: Context, found: ObservedSavepoint) -> Decision:
    why = found.problem or "it is being taken"
    if found.lasting:
        return _waiting(
            context,
            "SavepointNotReady",
            f"spec.startFrom.savepoint: {found.name} cannot be started from: {why}. Name another one",
        )
    return Decision(
        status=context.status,
        state="Waiting",
        facts=progress_facts("SavepointNotReady", f"waiting for the savepoint {found.name}: {why}"),
        recheck_at=context.now + _LOOK_AGAIN,
    )


def _waiting(context: Context, reason: str, message: str) -> Decision:
    """Stalled, and looked at again: the savepoint may come yet."""
    told = any(c.type == "Stalled" and c.message == message for c in context.conditions)
    decided = stalled(context, reason, message)
    says = () if told else (Sentence(reason, message),)
    return Decision(
        status=decided.status,
        state=decided.state,
        facts=decided.facts,
        says=says,
        recheck_at=context.now + _LOOK_AGAIN,
    )


def _has_to_begin(context: Context) -> bool:
    """There is no run yet; or there is one that never began, and it is said where to start instead."""
    status, start = context.status, context.job.spec.start_from
    if status.run is None:
        return True
    operation = status.operation
    if context.live or start is None or (operation is not None and not operation.on_trial):
        return False
    if found_earlier_lineage(status):
        # `latest` and `none` go on with the run that looked into the store.
        return not (start.latest or start.none)
    return refused_its_start(status) and start_in_words(start) != status.run.started_from


def _number(context: Context, source: str) -> int:
    """Of the run to begin: the one that is being made from this very start, or else a fresh one."""
    status = context.status
    lowest = status.run.number + 1 if status.run is not None else 1
    begun = status.beginning
    if begun is None or begun.run < lowest:
        return lowest
    return begun.run if begun.start == source else begun.run + 1


def _source(seed: SeedRun | RestoreRun | None, words: str | None) -> str:
    """As precise as it is known: a savepoint of the same name may lie elsewhere the next time."""
    match seed:
        case RestoreRun():
            return f"{words} ({seed.path}, {seed.lineage})"
        case SeedRun():
            return f"{words} ({seed.from_uid}/run-{seed.from_run})"
        case None:
            return words or "nothing"


def _seeded_from(seed: SeedRun | RestoreRun | None) -> str | None:
    match seed:
        case RestoreRun():
            return seed.path
        case SeedRun():
            return f"{seed.from_uid}/run-{seed.from_run}"
        case None:
            return None


def _to(seed: SeedRun | RestoreRun, number: int) -> SeedRun | RestoreRun:
    match seed:
        case SeedRun():
            return SeedRun(from_uid=seed.from_uid, from_run=seed.from_run, to_run=number)
        case RestoreRun():
            return RestoreRun(path=seed.path, to_run=number, lineage=seed.lineage, query=seed.query)
