"""The plan of an edit, before anybody applies it: what changes, what will happen, and what it costs.

Whether an edit is taken is not judged here a second time: the planner itself is asked, with the job as it
runs and the spec as it would be. Fields and code digests are compared; what the code *does* is opaque, and is
what the rehearsal is for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from headrace.api import Change, StreamJob, StreamJobSpec, StreamJobStatus
from headrace.core import loss_gate, repartition, spark_line
from headrace.core.autoscale.words import duration
from headrace.core.changes import Changed, ChangePlan, classify
from headrace.core.decision import Context
from headrace.core.edit_steps import (
    Step,
    sentence,
    steps_of_first_run,
    steps_of_upgrade,
    warm,
)
from headrace.core.expectations import (
    NO_FIGURES,
    Expectation,
    Figures,
    catch_up,
    gap_of_live,
    gap_of_upgrade,
)
from headrace.core.guarantees import Guarantee, guarantees_for
from headrace.core.model import (
    AttemptPhase,
    Code,
    CodeProblem,
    Job,
    Observed,
    ObservedAttempt,
    PinnedRun,
    Problem,
)
from headrace.core.plan import plan
from headrace.core.rehearsal_scope import rehearsal_of
from headrace.core.revision import revision_of
from headrace.core.upgrade import way_back


class Verdict(StrEnum):
    NOTHING = "nothing"
    LIVE = "live"
    NEW_JOB = "new job"
    NEW_RUN = "new run"
    REFUSED = "refused"

    @property
    def exit_code(self) -> int:
        match self:
            case Verdict.NOTHING | Verdict.LIVE:
                return 0
            case Verdict.NEW_JOB | Verdict.NEW_RUN:
                return 10
            case Verdict.REFUSED:
                return 20


@dataclass(frozen=True, kw_only=True)
class Running:
    """The job as it is: what its run was pinned with, and the spec that was last applied."""

    spec: StreamJobSpec
    applied: StreamJobSpec
    status: StreamJobStatus
    # Digest of the pinned code; None where it could not be read.
    code: str | None = None
    paused: bool = False
    deleting: bool = False
    # Whether savepoints are taken before steps: `headrace dev` takes those that are asked for only.
    saves: bool = True


@dataclass(frozen=True, kw_only=True)
class Edit:
    """An edit, and what is known around it."""

    job: StreamJob
    now: datetime
    # None: there is no such job yet.
    running: Running | None = None
    # None: the code could not be read, so nobody can tell whether it changed.
    code: Code | CodeProblem | None = None
    figures: Figures = NO_FIGURES
    # What others refuse: the API server's dry run, …
    refusals: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EditPlan:
    job: str
    verdict: Verdict
    sentence: str
    changed: tuple[Changed, ...] = ()
    code_changed: bool | None = None
    # The new run begins without state, as upgrade.strategy asks.
    without_state: bool = False
    steps: tuple[Step, ...] = ()
    gap: Expectation | None = None
    catch_up: Expectation | None = None
    guarantees: tuple[Guarantee, ...] = ()
    # Whether the sinks are those of the job, or all that we know of.
    sinks_known: bool = False
    rehearsal_finds: tuple[str, ...] = ()
    rehearsal_misses: tuple[str, ...] = ()
    refusals: tuple[Problem, ...] = field(default=())
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return self.verdict.exit_code


def plan_edit(edit: Edit) -> EditPlan:
    if edit.running is None or edit.running.status.run is None:
        return _plan_of_new_job(edit)
    change = what_changes(edit.running, edit.job.spec)
    code_changed = _code_changed(edit)
    refusals = _refusals(edit)
    needs_run = change.needs_run or bool(code_changed)
    if needs_run and not refusals:
        refusals = _held_for_rows(edit, edit.running)
    if refusals:
        verdict = Verdict.REFUSED
    elif needs_run:
        verdict = Verdict.NEW_RUN
    else:
        verdict = Verdict.LIVE if change.changed else Verdict.NOTHING
    common = EditPlan(
        job=edit.job.metadata.name,
        verdict=verdict,
        sentence=_short(verdict, change, edit, refusals, code_changed=bool(code_changed)),
        changed=change.changed,
        code_changed=code_changed,
        refusals=refusals,
        notes=(*edit.notes, *_notes(edit, edit.running, change)),
    )
    return _with_upgrade(common, edit, edit.running) if verdict is Verdict.NEW_RUN else _without(common)


def what_changes(running: Running, new: StreamJobSpec) -> ChangePlan:
    """What needs a run is compared with what runs; what is live, with what was applied last."""
    of_run = [each for each in classify(running.spec, new).changed if each.change is not Change.LIVE]
    return ChangePlan((*of_run, *classify(running.applied, new).of_class(Change.LIVE)))


def _with_upgrade(common: EditPlan, edit: Edit, running: Running) -> EditPlan:
    new, status = edit.job.spec, running.status
    splits = repartition.changes(running.spec, new, status)
    gap = gap_of_upgrade(new, status, edit.figures, warm=warm(new, status) and not splits, repartition=splits)
    guarantees = guarantees_for(edit.figures.sinks)
    finds, misses = rehearsal_of(new, status)
    return replace(
        common,
        steps=steps_of_upgrade(
            new,
            status,
            way_back=way_back(_as_planner_sees(edit, running)),
            paused=running.paused,
            saves=running.saves,
            repartition=splits,
        ),
        without_state=new.upgrade.strategy == "Stateless",
        gap=gap,
        catch_up=catch_up(gap, status, edit.figures),
        guarantees=guarantees,
        sinks_known=bool(edit.figures.sinks),
        rehearsal_finds=finds,
        rehearsal_misses=misses,
    )


def _without(common: EditPlan) -> EditPlan:
    return replace(common, gap=gap_of_live()) if common.verdict is Verdict.LIVE else common


def _plan_of_new_job(edit: Edit) -> EditPlan:
    problem = edit.code if isinstance(edit.code, CodeProblem) else None
    refusals = (*edit.refusals, *((Problem("CodeProblem", problem.message),) if problem else ()))
    verdict = Verdict.REFUSED if refusals else Verdict.NEW_JOB
    return EditPlan(
        job=edit.job.metadata.name,
        verdict=verdict,
        sentence=refusals[0].message if refusals else "a new job: run 1 starts",
        steps=() if refusals else steps_of_first_run(edit.job.spec),
        refusals=refusals,
        notes=edit.notes,
    )


def _short(
    verdict: Verdict,
    change: ChangePlan,
    edit: Edit,
    refusals: tuple[Problem, ...],
    *,
    code_changed: bool,
) -> str:
    match verdict:
        case Verdict.NOTHING:
            return "nothing changes"
        case Verdict.REFUSED:
            return refusals[0].message
        case _:
            return sentence(change, edit.job.spec, code_changed=code_changed)


# ---- judging


def _code_changed(edit: Edit) -> bool | None:
    assert edit.running is not None
    if not isinstance(edit.code, Code) or edit.running.code is None:
        return None
    return edit.code.digest != edit.running.code


def _refusals(edit: Edit) -> tuple[Problem, ...]:
    running = edit.running
    assert running is not None
    if running.deleting:
        gone = Problem("Deleting", "the job is being deleted: wait until it is gone, then create it anew")
        return (gone, *edit.refusals)
    broken = edit.job.broken_by_edit_of(_as_applied(edit.job, running))
    by_rule = tuple(Problem("Immutable", f"{each.message}: {each.fix}") for each in broken)
    if by_rule or edit.refusals:
        # The server has the same rule: said once, in our words.
        return (*by_rule, *(each for each in edit.refusals if not by_rule or each.reason != "Invalid"))
    judged = _judged_by_planner(edit, running)
    return (judged,) if judged is not None else ()


def _held_for_rows(edit: Edit, running: Running) -> tuple[Problem, ...]:
    """A job that does not run loses nothing by the upgrade."""
    run = running.status.run
    stopped = running.applied.suspend or run is None or run.attempt is None or run.attempt.state != "Started"
    held = None if stopped else loss_gate.problem(running.status, edit.figures.stopped_seconds)
    return (held,) if held is not None else ()


def _as_applied(job: StreamJob, running: Running) -> StreamJob:
    return job.model_copy(update={"spec": running.applied, "status": running.status})


def _judged_by_planner(edit: Edit, running: Running) -> Problem | None:
    """The planner's own word on the edit, with the job as it runs and nothing else going on."""
    seen = _as_planner_sees(edit, running)
    quiet = seen.status.model_copy(update={"conditions": (), "operation": None})
    stalled = plan(seen.job, quiet, seen.observed, edit.now).status.condition("Stalled")
    if stalled is None or stalled.status != "True":
        return None
    return Problem(stalled.reason, stalled.message)


def _as_planner_sees(edit: Edit, running: Running) -> Context:
    run = running.status.run
    assert run is not None
    attempt = run.attempt.model_copy(update={"state": "Started"}) if run.attempt is not None else None
    begun = run.model_copy(update={"attempt": attempt})
    status = running.status.model_copy(update={"run": begun})
    pinned_code = running.code or "pinned"
    code = edit.code if edit.code is not None else Code(pinned_code)
    live = (
        ObservedAttempt(run=run.number, number=attempt.number, uid="live", phase=AttemptPhase.RUNNING)
        if attempt is not None
        else None
    )
    observed = Observed(
        code=code,
        attempts=(live,) if live is not None else (),
        pinned={
            run.number: PinnedRun(
                revision=revision_of(running.spec, pinned_code), code=pinned_code, spec=running.spec
            )
        },
    )
    # A suspended job takes the edit when it is resumed: it is judged as of then.
    wanted = edit.job.spec.model_copy(update={"suspend": False})
    job = Job(
        namespace=edit.job.metadata.namespace or "default",
        name=edit.job.metadata.name,
        uid="",
        generation=1,
        spec=wanted,
    )
    return Context(job=job, status=status, observed=observed, now=edit.now)


def _notes(edit: Edit, running: Running, change: ChangePlan) -> tuple[str, ...]:
    notes: list[str] = []
    paths = {each.path for each in change.changed}
    if any(path.startswith("spec.startFrom") for path in paths):
        notes.append("spec.startFrom is read when a job has no run of its own: this edit of it has no effect")
    applied = classify(running.spec, running.applied).changed
    pending = [each.path for each in applied if each.change is not Change.LIVE]
    if pending:
        notes.append(
            f"what was applied last is not what runs ({', '.join(pending[:3])}): compared is what runs"
        )
    if edit.code is None or running.code is None:
        notes.append("the code was not compared: new code makes a new run, too")
    if (spark := spark_line.note_of_edit(running.spec, edit.job.spec, running.status)) is not None:
        notes.append(spark)
    left, stops = edit.figures.stopped_seconds, edit.job.spec.suspend and not running.applied.suspend
    if left is not None and (stops or change.needs_run):
        notes.append(
            f"stopped now, the job loses unread rows in {duration(left)}: what its sources delete by then"
        )
    policy = edit.job.spec.upgrade
    if policy.state_compatible and change.needs_run:
        notes.append(
            "upgrade.stateCompatible vouches for the meaning of the state, and for the next edit as well: "
            "remove it afterwards"
        )
    return tuple(notes)
