"""Has orphans of savepoints looked for by a keeper pod, once for each time that it is asked."""

from __future__ import annotations

import contextlib

from headrace.core.actions import CollectOrphans, EndCollecting
from headrace.core.collecting import digest_of
from headrace.core.manifests import OrphanHunt, Platform, collector_pod
from headrace.core.manifests.keeper_pod import KEEPER_CONTAINER
from headrace.core.manifests.ownership import TASK_LABEL
from headrace.core.model import Job, ObservedCollecting, Problem
from headrace.core.savepoint_contents import place_of
from headrace.kube.cache import Cache
from headrace.kube.client import Api
from headrace.kube.errors import AlreadyExists, Denied, Invalid
from headrace.kube.found import Found, is_leaving
from headrace.kube.keepers import remove_pods
from headrace.kube.labels import label
from headrace.kube.memory import Memory
from headrace.kube.pods import has_ended, keeper_result
from headrace.kube.resources import PODS


def observed_collecting(job: Job, found: Found, memory: Memory) -> ObservedCollecting | None:
    if not found.collectors:
        asked = digest_of(job.collect or "")
        refused = memory.collect_problems.get((job.uid, asked))
        return (
            ObservedCollecting(asked=asked, ended=True, pod=False, message=refused.message)
            if refused
            else None
        )
    pod = found.collectors[-1]
    words = keeper_result(pod, KEEPER_CONTAINER) if has_ended(pod) else {}
    objects, size, savepoints = words.get("objects"), words.get("bytes"), words.get("savepoints")
    return ObservedCollecting(
        asked=label(pod, TASK_LABEL),
        ended=has_ended(pod),
        message=str(words.get("message") or "the keeper pod failed"),
        objects=objects if isinstance(objects, int) else None,
        size_bytes=size if isinstance(size, int) else None,
        savepoints=tuple(savepoints) if isinstance(savepoints, list) else (),
    )


def _known(cache: Cache, namespace: str, place: str) -> tuple[str, ...]:
    """Whatever the jobs are that they belong to: an import may name another's."""
    everywhere = (cache.savepoint(key) for key in cache.savepoints() if key.namespace == namespace)
    paths = [((one or {}).get("status") or {}).get("path") or "" for one in everywhere]
    return tuple(sorted({place_of(path)[1].rpartition("/")[2] for path in paths if path.startswith(place)}))


async def collect(
    api: Api,
    platform: Platform,
    job: Job,
    found: Found,
    action: CollectOrphans | EndCollecting,
    *,
    cache: Cache,
    memory: Memory,
) -> None:
    wanted = action.asked if isinstance(action, CollectOrphans) else ""
    others = [pod for pod in found.collectors if label(pod, TASK_LABEL) != wanted and not is_leaving(pod)]
    await remove_pods(api, job.namespace, others)
    if isinstance(action, EndCollecting) or len(found.collectors) > len(others):
        return
    hunt = OrphanHunt(
        namespace=job.namespace,
        job=job.name,
        job_uid=job.uid,
        spec=job.spec,
        place=action.place,
        asked=action.asked,
        mode=action.mode,
        known=_known(cache, job.namespace, action.place),
    )
    try:
        with contextlib.suppress(AlreadyExists):
            await api.create(PODS, job.namespace, collector_pod(hunt, platform))
    except (Denied, Invalid) as refusal:
        # Whoever asked is told, and asks again: the job itself is not held up by it.
        memory.collect_problems[job.uid, action.asked] = Problem("CollectRefused", str(refusal))
