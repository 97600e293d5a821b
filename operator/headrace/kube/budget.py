"""Keeps the PodDisruptionBudget of a job as its spec says: there, or not there."""

from __future__ import annotations

import contextlib
import logging

from headrace.core.manifests import disruption_budget, disruption_budget_name
from headrace.core.model import Job
from headrace.kube.client import Api, Object
from headrace.kube.errors import NotFound
from headrace.kube.found import is_leaving, is_owned, uid_of
from headrace.kube.memory import Memory
from headrace.kube.resources import DISRUPTION_BUDGETS
from headrace.kube.upkeep import contains

log = logging.getLogger("headrace")


async def keep_budget(api: Api, memory: Memory, job: Job) -> None:
    if job.deleting:
        return  # it goes with the job; the garbage collector may have taken it already
    wanted = job.spec.driver.evictions == "Block"
    never_wanted = job.generation == 1  # as it was created, the spec has asked for none
    if not wanted and (never_wanted or job.uid in memory.without_budget):
        return
    memory.without_budget.pop(job.uid, None)
    name = disruption_budget_name(job.name)
    there = await _find(api, job, name)
    if there is not None and not is_owned(there, job.uid):
        if wanted:
            log.warning(
                "%s/%s: the PodDisruptionBudget %s is not this job's, and is left alone",
                job.namespace, job.name, name,
            )  # fmt: skip
        return
    if wanted:
        budget = disruption_budget(namespace=job.namespace, job=job.name, job_uid=job.uid)
        if there is None or not contains(there["spec"], budget["spec"]):
            await api.apply(DISRUPTION_BUDGETS, job.namespace, budget)
        return
    if there is not None and not is_leaving(there):
        with contextlib.suppress(NotFound):
            await api.delete(DISRUPTION_BUDGETS, job.namespace, name, uid=uid_of(there))
    memory.without_budget[job.uid] = True


async def _find(api: Api, job: Job, name: str) -> Object | None:
    try:
        return await api.get(DISRUPTION_BUDGETS, job.namespace, name)
    except NotFound:
        return None
