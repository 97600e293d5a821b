"""Jobs that end by themselves: when one that is completed starts again.

The time is computed when the job ends, and kept in the status. Times that pass while an attempt runs, or is
tried again, are left out. A time that passes while nobody acts (no operator, a pause) is made up for, once,
however many there were. A time that passes while the job is suspended is not.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from headrace.api import StreamJobStatus, Trigger
from headrace.core.model import Job
from headrace.core.schedule import next_time, zone_problem


def next_start(trigger: Trigger, after: datetime) -> datetime | None:
    """None without a schedule, with one that never comes, and where `zone_problem` has something to say."""
    if trigger.schedule is None or zone_problem(trigger.time_zone) is not None:
        return None
    return next_time(trigger.schedule, trigger.time_zone, after)


def with_completion(trigger: Trigger, status: StreamJobStatus, *, at: datetime) -> StreamJobStatus:
    """`at` may be by the clock of a node, which may be behind ours: what was due before the attempt began is
    what it began for, and must not be due again."""
    began = status.run.attempt.started_at if status.run is not None and status.run.attempt else None
    after = max(at, began or at)
    return status.model_copy(update={"completed_at": at, "next_start_at": next_start(trigger, after)})


def due_at(job: Job, status: StreamJobStatus, *, now: datetime) -> datetime | None:
    """When the completed job starts again. In the past: it should have by now."""
    trigger, known = job.spec.trigger, status.next_start_at
    if known is not None and (job.rejected is not None or (known <= now and _is_one_of(trigger, known))):
        return known
    # What lies ahead follows the schedule as it is now, also after an edit.
    return next_start(trigger, now)


def outlook(trigger: Trigger, due: datetime | None) -> str:
    """What comes after the end, in words; empty where nothing does."""
    if due is not None:
        return f"; next start at {due:%Y-%m-%d %H:%M} UTC"
    return "; spec.trigger.schedule names a day that never comes" if trigger.schedule is not None else ""


def _is_one_of(trigger: Trigger, moment: datetime) -> bool:
    return next_start(trigger, moment - timedelta(seconds=1)) == moment
