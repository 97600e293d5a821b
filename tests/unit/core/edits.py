"""A job, what is known of it, and the plan of an edit."""

from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.api import (
    Attempt,
    Condition,
    Run,
    StableRun,
    StreamJob,
    StreamJobStatus,
    StreamSavepointStatus,
)
from headrace.core.edit_plan import Edit, EditPlan, Running, plan_edit
from headrace.core.model import Code
from headrace.core.revision import revision_of

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
CODE = Code("c0de")


def a_job(**spec: Any) -> StreamJob:
    whole = {"application": {"file": "job.py"}, **spec}
    return StreamJob.parse({"metadata": {"name": "clicks"}, "spec": whole})


def a_status(job: StreamJob, **more: Any) -> StreamJobStatus:
    attempt = Attempt(number=1, epoch=3, state="Started", started_at=NOW - timedelta(minutes=30))
    run = Run(number=3, revision=revision_of(job.spec, CODE.digest), attempt=attempt)
    known = {"state": "Running", "run": run, "observed_generation": 1}
    return StreamJobStatus(**{**known, "last_stable": StableRun(run=3, revision=run.revision), **more})


def planned(old: StreamJob, new: StreamJob, *, code=CODE, **more: Any) -> EditPlan:
    status = more.pop("status", None) or a_status(old)
    applied = more.pop("applied", old).spec
    running = Running(
        spec=old.spec,
        applied=applied,
        status=status,
        code=CODE.digest,
        paused=more.pop("paused", False),
        deleting=more.pop("deleting", False),
    )
    return plan_edit(Edit(job=new, now=NOW, running=running, code=code, **more))


def steps(plan: EditPlan) -> list[str]:
    return [step.name for step in plan.steps]


def ready(seconds_after_start: float) -> Condition:
    began = NOW - timedelta(minutes=30)
    return Condition(
        type="Ready",
        status="True",
        reason="Running",
        last_transition_time=began + timedelta(seconds=seconds_after_start),
    )


def saved(seconds: float) -> StreamSavepointStatus:
    return StreamSavepointStatus(started_at=NOW, completed_at=NOW + timedelta(seconds=seconds))


COLD = {"upgrade": {"strategy": "Cold"}}
