"""Holds a StreamJob that is deleted, and has its checkpoints removed by keeper pods, one after another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from headrace.api import FINALIZER
from headrace.core.actions import DeleteCheckpoints
from headrace.core.manifests import Deletion, Platform, deletion_pod
from headrace.core.manifests.ownership import GENERATION_LABEL
from headrace.core.model import Job, Problem
from headrace.kube.client import Api, Object
from headrace.kube.errors import AlreadyExists, Conflict, Denied, Invalid, NotFound
from headrace.kube.found import Found, is_deletion
from headrace.kube.keepers import next_try, remove_pods, waits_in_vain
from headrace.kube.memory import Memory
from headrace.kube.pods import has_ended
from headrace.kube.resources import PODS, STREAM_JOBS, Resource
from headrace.kube.store import lineages_of, location_of


async def set_finalizer(
    api: Api,
    looked_at: Object,
    *,
    wanted: bool,
    resource: Resource = STREAM_JOBS,
    finalizer: str = FINALIZER,
) -> None:
    """On the very object that was looked at: an edit or a namesake since then is looked at first."""
    seen = looked_at["metadata"]
    try:
        there = (await api.get(resource, seen["namespace"], seen["name"]))["metadata"]
    except NotFound:
        return
    # Not its version, which our own status has changed. A deletion is a new generation, too.
    if (there["uid"], there["generation"]) != (seen["uid"], seen["generation"]):
        raise Conflict(f"{seen['name']}: it has changed since it was looked at")
    before: list[str] = there.get("finalizers") or []
    if (finalizer in before) == wanted:
        return
    after = [*before, finalizer] if wanted else [each for each in before if each != finalizer]
    patch = {"metadata": {"resourceVersion": there["resourceVersion"], "finalizers": after}}
    with contextlib.suppress(NotFound):
        await api.patch(resource, seen["namespace"], seen["name"], patch)


async def delete_checkpoints(
    api: Api,
    platform: Platform,
    job: Job,
    found: Found,
    action: DeleteCheckpoints,
    *,
    memory: Memory,
) -> None:
    """With the spec as it stands: whoever corrects the store's settings gets the job out of its trouble."""
    tries = found.deletions
    if under_way := tuple(pod for pod in tries if not has_ended(pod)):
        vain = [pod for pod in under_way if waits_in_vain(pod, GENERATION_LABEL, str(job.generation))]
        await remove_pods(api, job.namespace, vain)
        return
    if (number := next_try(tries, memory)) is None:
        return
    deletion = Deletion(
        namespace=job.namespace,
        job=job.name,
        job_uid=job.uid,
        spec=job.spec,
        lineages=_lineages(job, found, platform, action.path),
        generation=job.generation,
        number=number,
    )
    try:
        with contextlib.suppress(AlreadyExists):
            await api.create(PODS, job.namespace, deletion_pod(deletion, platform))
    except (Denied, Invalid) as refusal:
        memory.removal_problems[job.uid] = Problem("DeletionFailed", str(refusal))
        raise
    memory.removal_problems.pop(job.uid, None)
    # The last one that failed stays until there is news: it is what tells why.
    await remove_pods(api, job.namespace, tries[:-1])


async def stop_deleting(api: Api, job: Job, found: Found) -> None:
    """Nobody owns these pods, so nobody else removes them."""
    await remove_pods(api, job.namespace, found.deletions)


async def stop_unread(api: Api, looked_at: Object, pods: Iterable[Object]) -> bool:
    """The same for a job whose spec cannot be read; `pods` are under its label. Whether all have ended."""
    seen = looked_at["metadata"]
    deletions = tuple(pod for pod in pods if is_deletion(pod, seen["uid"]))
    await remove_pods(api, seen["namespace"], deletions)
    return all(map(has_ended, deletions))


def _lineages(job: Job, found: Found, platform: Platform, path: str | None) -> str:
    if path is not None:
        return path.rsplit("/", 2)[0]
    location = location_of(job, found, platform)
    assert location is not None  # validation has made sure
    return lineages_of(job, location)
