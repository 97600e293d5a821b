"""The StreamSavepoint that a job is about to start from. Read when it starts, and only then."""

from __future__ import annotations

from pydantic import ValidationError

from headrace.api import StreamJobStatus, StreamSavepointStatus
from headrace.core.model import Job, ObservedSavepoint
from headrace.core.start import awaited_savepoint
from headrace.kube.client import Api, Object
from headrace.kube.errors import Denied, NotFound
from headrace.kube.found import is_leaving
from headrace.kube.resources import STREAM_SAVEPOINTS


async def find_savepoint(api: Api, job: Job, status: StreamJobStatus) -> ObservedSavepoint | None:
    """None where there is none of that name, or where none is asked for."""
    name = awaited_savepoint(job, status)
    if name is None:
        return None
    try:
        return observed_savepoint(await api.get(STREAM_SAVEPOINTS, job.namespace, name))
    except NotFound:
        return None
    except Denied as refusal:
        return ObservedSavepoint(name=name, job="", problem=str(refusal), lasting=True)


def observed_savepoint(found: Object) -> ObservedSavepoint:
    name, job = found["metadata"]["name"], found["spec"]["job"]["name"]
    if is_leaving(found):
        return ObservedSavepoint(name=name, job=job, problem="it is being deleted", lasting=True)
    try:
        status = StreamSavepointStatus.parse(found.get("status") or {})
    except ValidationError as error:
        return ObservedSavepoint(
            name=name, job=job, problem=f"its status is not readable: {error}", lasting=True
        )
    conditions = {one.type: one for one in status.conditions}
    ready, stalled = conditions.get("Ready"), conditions.get("Stalled")
    if ready is not None and ready.status == "True" and status.path is not None:
        return ObservedSavepoint(name=name, job=job, path=status.path)
    failed = stalled is not None and stalled.status == "True"
    why = (stalled if failed else ready) or None
    problem = why.message or why.reason if why is not None else "nobody has begun to take it"
    return ObservedSavepoint(name=name, job=job, problem=problem, lasting=failed)
