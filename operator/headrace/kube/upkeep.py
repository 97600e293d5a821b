"""Repairs what a live attempt stands on, and removes what no attempt needs any more."""

from __future__ import annotations

import contextlib
from typing import Any

from headrace.api import StreamJobStatus
from headrace.core.manifests import Platform, config_map, driver_service
from headrace.core.model import Job
from headrace.kube.client import Api
from headrace.kube.errors import AlreadyExists, Conflict, NotFound
from headrace.kube.found import Found, is_leaving, name_of, uid_of
from headrace.kube.pods import ended_of
from headrace.kube.resources import CONFIG_MAPS, PODS
from headrace.kube.sight import current_attempt
from headrace.kube.starting import StartRefused, driver_attempt, ensure_service
from headrace.kube.tidy import Leftover


async def repair(api: Api, platform: Platform, job: Job, status: StreamJobStatus, found: Found) -> None:
    """A Service that was deleted or edited by hand cuts the executors off from the driver."""
    run, current = status.run, current_attempt(status)
    if job.deleting or run is None or run.attempt is None or current is None or run.number not in found.pins:
        return
    pod = found.drivers.get(current)
    if pod is None or is_leaving(pod) or ended_of(pod) is not None:
        return
    attempt = driver_attempt(job, status, found.pins[run.number], current, epoch=run.attempt.epoch)
    service = driver_service(attempt)
    there = found.services.get(attempt.name, {})
    if not contains(there.get("spec"), service["spec"]):
        with contextlib.suppress(StartRefused):  # somebody else has the name now: it is his
            await ensure_service(api, attempt)
    if attempt.name not in found.config_maps:
        with contextlib.suppress(AlreadyExists):
            await api.create(CONFIG_MAPS, job.namespace, config_map(attempt, platform))


async def relabel(api: Api, job: Job, found: Found) -> None:
    """Watches, Services and budgets go by labels: a driver that lost some gets them back."""
    for pod, missing in found.mislabelled:
        body = {"metadata": {"uid": uid_of(pod), "labels": missing}}
        with contextlib.suppress(NotFound, Conflict):  # it is gone, or another one has its name
            await api.patch(PODS, job.namespace, name_of(pod), body)


async def remove(api: Api, job: Job, leftover: Leftover) -> None:
    uid = leftover.uid
    try:
        if leftover.owner_uid is not None:
            thing = await api.get(leftover.resource, job.namespace, leftover.name)
            owners = thing["metadata"].get("ownerReferences") or ()
            if leftover.owner_uid not in {owner["uid"] for owner in owners} or is_leaving(thing):
                return
            uid = uid_of(thing)
        await api.delete(leftover.resource, job.namespace, leftover.name, uid=uid)
    except NotFound:
        return
    except Conflict:
        if uid is None:
            raise
        # A namesake has taken its place, which is not ours to delete.


def contains(there: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; the server adds fields of its own."""
    match wanted:
        case dict():
            return isinstance(there, dict) and all(contains(there.get(key), wanted[key]) for key in wanted)
        case list():
            return isinstance(there, list) and len(there) == len(wanted) and all(map(contains, there, wanted))
        case _:
            return there == wanted
