"""Copies state into the path of a run that is to begin, by keeper pods: one after another until one has."""

from __future__ import annotations

import contextlib
from datetime import datetime

from headrace.core.actions import RestoreRun, SeedRun
from headrace.core.manifests import Platform, Seeding, seeding_pod
from headrace.core.manifests.ownership import REVISION_LABEL
from headrace.core.model import Job, Problem
from headrace.kube.client import Api
from headrace.kube.errors import AlreadyExists, Denied, Invalid
from headrace.kube.found import Found
from headrace.kube.keepers import next_try, remove_pods, waits_in_vain
from headrace.kube.memory import Memory
from headrace.kube.pods import has_ended
from headrace.kube.resources import PODS
from headrace.kube.store import lineages_of


async def seed(
    api: Api,
    platform: Platform,
    job: Job,
    found: Found,
    action: SeedRun | RestoreRun,
    *,
    memory: Memory,
    now: datetime,
) -> None:
    tries, pin = found.seedings(action.to_run), found.pins[action.to_run]
    # For a start that is not wanted any more: it can only fill a path that nobody will use.
    await remove_pods(api, job.namespace, found.seedings_before(action.to_run))
    if under_way := [pod for pod in tries if not has_ended(pod)]:
        # Also one that is leaving: it copies to its last moment, and does not hear a polite signal.
        vain = [pod for pod in under_way if waits_in_vain(pod, REVISION_LABEL, pin.revision)]
        await remove_pods(api, job.namespace, vain)
        return
    if (number := next_try(tries, now=now)) is None:
        return
    seeding = Seeding(
        namespace=job.namespace,
        job=job.name,
        job_uid=job.uid,
        spec=pin.spec,
        lineages=lineages_of(job, pin.location),
        revision=pin.revision,
        action=action,
        number=number,
    )
    try:
        with contextlib.suppress(AlreadyExists):
            await api.create(PODS, job.namespace, seeding_pod(seeding, platform))
    except (Denied, Invalid) as refusal:
        memory.seed_problems[job.uid] = Problem("SeedFailed", str(refusal))
        raise
    memory.seed_problems.pop(job.uid, None)
    # The last one that failed stays until there is news: it is what tells why.
    await remove_pods(api, job.namespace, tries[:-1])
