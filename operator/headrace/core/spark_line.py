"""Another minor version of Spark under a job: an upgrade like any other, but for the way back.

What the newer one has written, the older may not be able to read. Nobody knows the version in an image before
it runs: the candidate of a rehearsal says what it found (headrace_jobs/harness/spark_line.py), and what took
over is told here.
"""

from __future__ import annotations

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core.decision import Context, Sentence

SPARK_CHANGED = "SparkChanged"


def news(context: Context, after: StreamJobStatus) -> tuple[Sentence, ...]:
    """Told once, when the driver of a new run first says which Spark it has."""
    before, run = context.status.run, after.run
    if before is None or run is None or before.number != run.number or run.spark_version is None:
        return ()
    if before.spark_version is not None:
        return ()
    past = next((entry for entry in after.history if entry.outcome != "Refused"), None)
    old = past.spark_version if past is not None else None
    if old is None or minor(old) == minor(run.spark_version):
        return ()
    message = (
        f"run {run.number} has Spark {run.spark_version}, run {past.run if past else 0} had {old}. Where "
        f"Spark {minor(old)} cannot read what it writes, a rollback goes back to the handover point, under a "
        "new lineage"
    )
    return (Sentence(SPARK_CHANGED, message),)


def note_of_edit(old: StreamJobSpec, new: StreamJobSpec, status: StreamJobStatus) -> str | None:
    """For the plan of an edit: what is in a new image, nobody knows before it runs."""
    version = status.run.spark_version if status.run is not None else None
    if old.image == new.image or version is None:
        return None
    return (
        f"the run has Spark {version}. If the new image has another minor version, the rehearsal says so, "
        f"and whether {minor(version)} could read what it writes: where not, there is no way back but to the "
        "handover point, under a new lineage"
    )


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
