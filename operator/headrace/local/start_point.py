"""What a job of this machine can start from: savepoints by name, and stores elsewhere."""

from __future__ import annotations

from pathlib import Path

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.api.storage import S3
from headrace.core.model import Job, ObservedSavepoint
from headrace.core.start import awaited_savepoint
from headrace.local.layout import Layout
from headrace_jobs.store import StoreError, directory_url, open_store
from headrace_jobs.store.s3_options import S3Options
from headrace_jobs.store.savepoints import SAVEPOINTS, find_manifest


def find_savepoint(layout: Layout, job: Job, status: StreamJobStatus) -> ObservedSavepoint | None:
    """The one that the job is about to start from: its own, or one of a job that is kept beside it."""
    name = awaited_savepoint(job, status)
    if name is None:
        return None
    places = layout.home.parent.glob(f"*/store/{job.namespace}/*/{SAVEPOINTS}/{name}")
    found = sorted(places, key=lambda place: (_job_of(place) != job.name, place))
    return _observed(name, found[0]) if found else None


def _job_of(place: Path) -> str:
    return place.parent.parent.name


def _observed(name: str, place: Path) -> ObservedSavepoint:
    job = _job_of(place)
    try:
        manifest = find_manifest(open_store(directory_url(place.parent)), place.name)
    except StoreError as error:
        return ObservedSavepoint(name=name, job=job, problem=str(error), lasting=True)
    if manifest is None:
        return ObservedSavepoint(name=name, job=job, problem="it is not finished, or was removed")
    return ObservedSavepoint(name=name, job=job, path=directory_url(place))


def s3_options(spec: StreamJobSpec) -> S3Options:
    """For what lies in S3; keys come from where AWS' own tools find them."""
    s3 = spec.checkpoint.s3 or S3()
    return S3Options(
        endpoint=s3.endpoint,
        region=s3.region,
        path_style=s3.path_style if s3.path_style is not None else s3.endpoint is not None,
    )
