"""Where a job's state lies. The operator names the place; it never looks into it."""

from __future__ import annotations

from headrace.core.manifests import Platform
from headrace.core.model import Job
from headrace.kube.found import Found


def location_of(job: Job, found: Found, platform: Platform) -> str | None:
    """The root of the store. A run keeps the one it began with: the platform's default may change."""
    if job.spec.checkpoint.location is not None:
        return job.spec.checkpoint.location
    pinned = [pin.location for _, pin in sorted(found.pins.items())]
    return pinned[-1] if pinned else platform.checkpoint_location


def lineages_of(job: Job, location: str) -> str:
    """The place of all lineages of this name."""
    return f"{location}/{job.namespace}/{job.name}"
