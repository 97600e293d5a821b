"""A StreamJob as the API server keeps it -> a job that nothing re-checks later, or what is wrong with it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from headrace.api import FINALIZER, PAUSE_ANNOTATION, RESTORE_ANNOTATION, StreamJob, StreamJobSpec
from headrace.core.model import Job, Problem
from headrace.core.schedule import zone_problem


def validate(manifest: dict[str, Any], *, default_location: str | None) -> Job | Problem:
    """The API server's schema has accepted it; what is left is what only we know, and version skew."""
    try:
        spec = StreamJob.parse({key: value for key, value in manifest.items() if key != "status"}).spec
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return Problem("InvalidSpec", f"{where}: {first['msg']}")
    if spec.checkpoint.location is None and default_location is None:
        return Problem(
            "NoCheckpointLocation",
            "spec.checkpoint.location: the platform has no default; name a place such as "
            "s3://bucket/checkpoints",
        )
    if (problem := zone_problem(spec.trigger.time_zone)) is not None:
        return Problem("UnknownTimeZone", f"spec.trigger.timeZone: {problem}")
    return job_of(manifest, spec)


def job_of(manifest: dict[str, Any], spec: StreamJobSpec, *, rejected: Problem | None = None) -> Job:
    metadata = manifest["metadata"]
    annotations: dict[str, str] = metadata.get("annotations") or {}
    return Job(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata["generation"],
        spec=spec,
        paused=annotations.get(PAUSE_ANNOTATION, "false") != "false",
        restore=annotations.get(RESTORE_ANNOTATION) or None,
        rejected=rejected,
        deletes_checkpoints=deletes_checkpoints(manifest),
        held=is_held(manifest),
        deleting="deletionTimestamp" in metadata,
    )


def deletes_checkpoints(manifest: dict[str, Any]) -> bool:
    return manifest["spec"].get("deletionPolicy") == "Delete"


def is_held(manifest: dict[str, Any]) -> bool:
    """Whether the finalizer is there that keeps a deleted job until its checkpoints are gone."""
    return FINALIZER in (manifest["metadata"].get("finalizers") or ())
