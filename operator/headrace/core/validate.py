"""A StreamJob as the API server keeps it -> a job that nothing re-checks later, or what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from headrace.api import (
    COLLECT_ANNOTATION,
    FINALIZER,
    PAUSE_ANNOTATION,
    RESTORE_ANNOTATION,
    ROLLBACK_ANNOTATION,
    StreamJob,
    StreamJobSpec,
)
from headrace.core.model import Job, Problem, RollbackRequest
from headrace.core.schedule import zone_problem

_ROLLBACK = re.compile(r"^\s*(\d{1,9})(?:\s+to\s+(\d{1,9}))?\s*$")


def validate(manifest: dict[str, Any], *, default_location: str | None) -> Job | Problem:
    """The API server's schema has accepted it; what is left is what only we know, and version skew."""
    try:
        spec = StreamJob.parse({key: value for key, value in manifest.items() if key != "status"}).spec
    except ValidationError as error:
        return invalid_spec(error)
    if spec.checkpoint.location is None and default_location is None:
        return Problem(
            "NoCheckpointLocation",
            "spec.checkpoint.location: the platform has no default; name a place such as "
            "s3://bucket/checkpoints",
        )
    if (problem := zone_problem(spec.trigger.time_zone)) is not None:
        return Problem("UnknownTimeZone", f"spec.trigger.timeZone: {problem}")
    return job_of(manifest, spec)


def invalid_spec(error: ValidationError) -> Problem:
    """The first of what is wrong."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return Problem("InvalidSpec", f"{where}: {first['msg']}")


def job_of(manifest: dict[str, Any], spec: StreamJobSpec, *, rejected: Problem | None = None) -> Job:
    metadata = manifest["metadata"]
    annotations: dict[str, str] = metadata.get("annotations") or {}
    return Job(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata["generation"],
        spec=spec,
        paused=is_paused(manifest),
        restore=annotations.get(RESTORE_ANNOTATION) or None,
        rollback=rollback_request(annotations),
        rejected=rejected,
        deletes_checkpoints=deletes_checkpoints(manifest),
        saves_on_delete=saves_on_delete(manifest),
        held=is_held(manifest),
        deleting="deletionTimestamp" in metadata,
        collect=annotations.get(COLLECT_ANNOTATION) or None,
    )


def rollback_request(annotations: Mapping[str, str]) -> RollbackRequest | Problem | None:
    """What `headrace.dev/rollback` asks for."""
    if (text := annotations.get(ROLLBACK_ANNOTATION)) is None:
        return None
    if (asked := _ROLLBACK.match(text)) is None:
        return Problem(
            "BadRollback",
            f'{ROLLBACK_ANNOTATION}: {text!r} is not the number of a run to leave: "5", or "5 to 3"',
        )
    return RollbackRequest(run=int(asked[1]), to=int(asked[2]) if asked[2] else None)


def deletes_checkpoints(manifest: dict[str, Any]) -> bool:
    return manifest["spec"].get("deletionPolicy") == "Delete"


def saves_on_delete(manifest: dict[str, Any]) -> bool:
    policy: dict[str, Any] = manifest["spec"].get("savepoints") or {}
    return policy.get("onDelete") is True


def is_paused(manifest: dict[str, Any]) -> bool:
    """Whether somebody asks us to leave it alone, be it a job or a savepoint."""
    annotations: dict[str, str] = manifest["metadata"].get("annotations") or {}
    return annotations.get(PAUSE_ANNOTATION, "false") != "false"


def is_held(manifest: dict[str, Any]) -> bool:
    """Whether the finalizer is there that keeps a deleted job until its checkpoints are gone, or saved."""
    return FINALIZER in (manifest["metadata"].get("finalizers") or ())
