"""Copies state into the path of a run that is to begin, by keeper pods: one after another until one has."""

from __future__ import annotations

from headrace.core.actions import RestoreRun, SeedRun
from headrace.core.manifests import Platform, Seeding, seeding_pod
from headrace.core.manifests.ownership import REVISION_LABEL
from headrace.core.model import Job, Problem
from headrace.kube.client import Api
from headrace.kube.errors import AlreadyExists, Denied, Invalid
from headrace.kube.found import Found, name_of, uid_of
from headrace.kube.keepers import next_try, remove_pods, waits_in_vain
from headrace.kube.memory import Memory
from headrace.kube.namesakes import label_lost, name_taken
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
) -> None:
    tries, pin = found.seedings(action.to_run), found.pins[action.to_run]
    # For a start that is not wanted any more: it can only fill a path that nobody will use.
    await remove_pods(api, job.namespace, found.seedings_before(action.to_run))
    if under_way := [pod for pod in tries if not has_ended(pod)]:
        # Also one that is leaving: it copies to its last moment, and does not hear a polite signal.
        vain = [pod for pod in under_way if waits_in_vain(pod, REVISION_LABEL, pin.revision)]
        await remove_pods(api, job.namespace, vain)
        return
    if (number := next_try(tries, memory)) is None:
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
    pod = seeding_pod(seeding, platform)
    try:
        await api.create(PODS, job.namespace, pod)
    except AlreadyExists:
        there = await api.get(PODS, job.namespace, name_of(pod))
        if (taken := name_taken("pod", there, job_uid=job.uid)) is not None:
            memory.seed_problems[job.uid] = taken
            return
        if label_lost("pod", there, job=job.name) is not None:
            body = {"metadata": {"uid": uid_of(there), "labels": pod["metadata"]["labels"]}}
            await api.patch(PODS, job.namespace, name_of(pod), body)
    except (Denied, Invalid) as refusal:
        memory.seed_problems[job.uid] = Problem("SeedFailed", str(refusal))
        raise
    memory.seed_problems.pop(job.uid, None)
    # The last one that failed stays until there is news: it is what tells why.
    await remove_pods(api, job.namespace, tries[:-1])
