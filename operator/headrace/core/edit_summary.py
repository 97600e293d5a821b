"""The plan of an edit in the status: the words of `kubectl streamjob plan`, shortened to what is decided.

Written once, with the pass that first sees the edit (or that an upgrade to other code begins), and kept until
the next: its figures are of that moment, so that a status which nobody edits stays quiet.
"""

from __future__ import annotations

from headrace.api import PlannedEdit, StreamJobSpec
from headrace.core import repartition
from headrace.core.changes import ChangePlan, classify
from headrace.core.decision import Context, Decision, Sentence
from headrace.core.edit_steps import next_run, sentence, steps_of_upgrade, warm
from headrace.core.expectations import Figures, catch_up, gap_of_live, gap_of_upgrade
from headrace.core.guarantees import Guarantee, guarantees_for
from headrace.core.model import Code, Job, QueryReport
from headrace.core.rehearsal_scope import rehearsal_of
from headrace.core.upgrade import way_back

_MOST_CHANGES = 32
_UNKNOWN_SINKS = "not known while no batch has told; `kubectl streamjob plan` lists what each kind keeps"


def planned(context: Context, decision: Decision) -> PlannedEdit | None:
    """`context` is as the pass found it."""
    status, run = context.status, context.status.run
    if run is None or context.job.deleting or not _is_news(context, decision):
        return status.plan if run is not None else None
    pinned = context.observed.pinned.get(run.number)
    if pinned is None:
        return status.plan
    change = classify(pinned.spec, context.job.spec)
    code = context.observed.code
    code_changed = isinstance(code, Code) and code.digest != pinned.code
    if decision.refused is not None:
        return _refused(context.job, change, decision.refused)
    if change.needs_run or code_changed:
        return _new_run(context, pinned.spec, change, code_changed=code_changed)
    return _live(context.job, change) if change.changed else None


def _is_news(context: Context, decision: Decision) -> bool:
    before, after = context.status.operation, decision.status.operation
    # A paused job does not observe its edits: what was said of one is not said again with every pass.
    told = context.status.plan.generation if context.status.plan is not None else None
    if 0 < context.status.observed_generation < context.job.generation != told:
        return True
    if after is None or after.kind != "Upgrade" or after.on_trial:
        return False
    # Other code is no other generation.
    return before is None or before.revision != after.revision


def _common(job: Job, change: ChangePlan) -> PlannedEdit:
    return PlannedEdit(
        generation=job.generation,
        verdict="live",
        sentence=sentence(change, job.spec),
        change_class=change.change_class.value if change.change_class is not None else "restart",
        changes=tuple(each.path for each in change.changed)[:_MOST_CHANGES],
    )


def _live(job: Job, change: ChangePlan) -> PlannedEdit:
    return _common(job, change).model_copy(update={"gap": gap_of_live().text})


def _refused(job: Job, change: ChangePlan, why: Sentence) -> PlannedEdit:
    told = f"{why.reason}: {why.message}"
    return _common(job, change).model_copy(update={"verdict": "refused", "sentence": told})


def _new_run(context: Context, old: StreamJobSpec, change: ChangePlan, *, code_changed: bool) -> PlannedEdit:
    job, status, new = context.job, context.status, context.job.spec
    queries = context.current.queries if context.current is not None else ()
    figures = _figures(queries)
    splits = repartition.changes(old, new, status)
    gap = gap_of_upgrade(new, status, figures, warm=warm(new, status) and not splits, repartition=splits)
    finds, misses = rehearsal_of(new, status)
    steps = steps_of_upgrade(
        new,
        status,
        way_back=way_back(context),
        paused=job.paused,
        saves=context.observed.savepoints is not None,
        repartition=splits,
    )
    common = _common(job, change)
    return common.model_copy(
        update={
            "verdict": "new run",
            "sentence": sentence(change, new, code_changed=code_changed),
            "run": next_run(status),
            "change_class": common.change_class if change.needs_run else "restart",
            "steps": tuple(step.name for step in steps),
            "gap": gap.text,
            "catch_up": catch_up(gap, status, figures).text,
            "sinks": _kept(figures.sinks),
            "finds": "; ".join(finds),
            "misses": "; ".join(misses),
        }
    )


def _figures(queries: tuple[QueryReport, ...]) -> Figures:
    """A job is as fast as its slowest query."""
    batches = [one.batch_seconds for one in queries if one.batch_seconds is not None]
    arrival = [one.arrival for one in queries if one.arrival is not None]
    capacity = [one.capacity for one in queries if one.capacity is not None]
    return Figures(
        batch_seconds=max(batches, default=None),
        arrival_rows_per_second=sum(arrival) if arrival else None,
        capacity_rows_per_second=sum(capacity) if capacity else None,
        sinks=tuple(sorted({one.sink for one in queries if one.sink is not None})),
    )


def _kept(sinks: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_in_a_line(row) for row in guarantees_for(sinks)) if sinks else (_UNKNOWN_SINKS,)


def _in_a_line(row: Guarantee) -> str:
    return f"{row.sink}: each row once; of a batch that is cut {row.cut}; back to an older batch: {row.back}"
