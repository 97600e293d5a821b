"""The StreamSavepoints that a job's own plan makes and removes."""

from __future__ import annotations

import contextlib

from headrace.core.actions import RemoveSavepoint, TakeSavepoint
from headrace.core.manifests import stream_savepoint
from headrace.core.model import Job, Problem
from headrace.kube.client import Api
from headrace.kube.errors import AlreadyExists, Conflict, Denied, Invalid, NotFound
from headrace.kube.memory import Memory
from headrace.kube.resources import STREAM_SAVEPOINTS


async def change_savepoints(
    api: Api, job: Job, action: TakeSavepoint | RemoveSavepoint, *, memory: Memory
) -> None:
    """A refusal is no error of the pass: what waits for the savepoint decides what becomes of it."""
    match action:
        case RemoveSavepoint():
            # By its uid: a namesake is another one.
            with contextlib.suppress(NotFound, Conflict):
                await api.delete(STREAM_SAVEPOINTS, job.namespace, action.name, uid=action.uid)
        case TakeSavepoint():
            wanted = stream_savepoint(
                action.name,
                namespace=job.namespace,
                job=job.name,
                cause=action.cause,
                policy=job.spec.savepoints,
            )
            try:
                with contextlib.suppress(AlreadyExists):
                    await api.create(STREAM_SAVEPOINTS, job.namespace, wanted)
            except (Denied, Invalid) as refusal:
                memory.savepoint_problems[job.uid] = Problem("SavepointRefused", str(refusal))
            else:
                memory.savepoint_problems.pop(job.uid, None)
