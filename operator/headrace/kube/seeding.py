"""Copies the state of a run into the path of the next, by keeper pods: one after another until it is done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import datetime, timedelta

from headrace.core.actions import SeedRun
from headrace.core.manifests import Platform, Seeding, seeding_pod
from headrace.core.manifests.keeper_pod import TRY_LABEL
from headrace.core.manifests.ownership import REVISION_LABEL
from headrace.core.model import Job, Problem
from headrace.kube.client import Api, Object
from headrace.kube.errors import AlreadyExists, Denied, Invalid, NotFound
from headrace.kube.found import Found, is_leaving, label, name_of, uid_of
from headrace.kube.memory import Memory
from headrace.kube.pods import finished_at, has_ended
from headrace.kube.resources import PODS
from headrace.kube.store import lineages_of

_FIRST_WAIT_SECONDS = 5
_LONGEST_WAIT_SECONDS = 300


async def seed(
    api: Api,
    platform: Platform,
    job: Job,
    found: Found,
    action: SeedRun,
    *,
    memory: Memory,
    now: datetime,
) -> None:
    tries, pin = found.seedings(action.to_run), found.pins[action.to_run]
    if under_way := [pod for pod in tries if not has_ended(pod)]:
        # Also one that is leaving: it copies to its last moment, and does not hear a polite signal.
        await _remove(api, job, [pod for pod in under_way if _waits_in_vain(pod, pin.revision)])
        return
    number = int(label(tries[-1], TRY_LABEL)) if tries else 0
    if tries and now < due_again(tries[-1], number):
        return
    seeding = Seeding(
        namespace=job.namespace,
        job=job.name,
        job_uid=job.uid,
        spec=pin.spec,
        lineages=lineages_of(job, pin.location),
        revision=pin.revision,
        from_uid=action.from_uid or job.uid,
        from_run=action.from_run,
        to_run=action.to_run,
        number=number + 1,
    )
    try:
        with contextlib.suppress(AlreadyExists):
            await api.create(PODS, job.namespace, seeding_pod(seeding, platform))
    except (Denied, Invalid) as refusal:
        memory.seed_problems[job.uid] = Problem("SeedFailed", str(refusal))
        raise
    memory.seed_problems.pop(job.uid, None)
    # The last one that failed stays until there is news: it is what tells why.
    await _remove(api, job, tries[:-1])


def _waits_in_vain(pod: Object, revision: str) -> bool:
    """It has not begun, and was made from a spec that was edited since: for one node selector, say."""
    pending = pod.get("status", {}).get("phase") == "Pending"
    return pending and not is_leaving(pod) and label(pod, REVISION_LABEL) != revision


async def _remove(api: Api, job: Job, pods: Iterable[Object]) -> None:
    for pod in pods:
        with contextlib.suppress(NotFound):
            await api.delete(PODS, job.namespace, name_of(pod), uid=uid_of(pod))


def due_again(failed: Object, number: int) -> datetime:
    """Doubling from a few seconds to a few minutes."""
    ended = finished_at(failed) or datetime.fromisoformat(failed["metadata"]["creationTimestamp"])
    wait = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2 ** min(number - 1, 10))
    return ended + timedelta(seconds=wait)
