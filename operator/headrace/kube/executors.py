"""The executors of a driver, as they are seen: pods that a StatefulSet of Spark's keeps, or cannot keep."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from headrace.api import StreamJobStatus
from headrace.core.model import Job, ObservedExecutors, Problem
from headrace.kube.client import Api, Object
from headrace.kube.errors import Denied, NotFound, denial_in
from headrace.kube.found import Found, executor_set_of, is_leaving, is_owned, name_of, uid_of
from headrace.kube.memory import Memory
from headrace.kube.pods import executor_problem, is_lost, is_running, last_message
from headrace.kube.resources import EVENTS, STATEFUL_SETS

# One that ends is replaced within seconds. A job that was Ready stays so for that long.
_REPLACED_WITHIN = timedelta(seconds=30)
_FAILED_CREATE = "FailedCreate"


async def observed_executors(
    api: Api,
    job: Job,
    status: StreamJobStatus,
    found: Found,
    driver: Object | None,
    *,
    memory: Memory,
    now: datetime,
) -> ObservedExecutors:
    if driver is None:
        return ObservedExecutors(replicas=0, ready=0)
    own = found.executors_of(driver)
    staying = [pod for pod in own if not is_leaving(pod)]
    made = await _executor_set(api, job, driver) if is_running(driver) else None
    seen = ObservedExecutors(
        replicas=len(staying),
        ready=sum(map(_is_ready, staying)),
        asked=made["spec"].get("replicas") if made is not None else None,
        waiting=next(filter(None, map(executor_problem, staying)), None),
    )
    if seen.ready > 0 or not is_running(driver):
        memory.without_executor_since.pop(uid_of(driver), None)
        return seen
    without, ready = memory.lasting(memory.without_executor_since, uid_of(driver)), status.condition("Ready")
    if seen.waiting is not None:
        return seen
    if ready is not None and ready.status == "True" and without < _REPLACED_WITHIN:
        return replace(seen, expected_by=now + _REPLACED_WITHIN - without)
    return replace(seen, waiting=await _why_none(api, job, driver, own, made, memory=memory))


async def refused_executors(api: Api, job: Job, driver: Object) -> Problem | None:
    """Why the cluster makes none of the executors that this driver has asked for, if so."""
    made = await _executor_set(api, job, driver)
    return await _refusal(api, job, made) if made is not None else None


async def _executor_set(api: Api, job: Job, driver: Object) -> Object | None:
    """The one that Spark made for this driver: a namesake is somebody else's, and is not ours to scale."""
    try:
        made = await api.get(STATEFUL_SETS, job.namespace, executor_set_of(job.name, driver))
    except NotFound:
        return None
    return made if is_owned(made, uid_of(driver)) else None


async def _why_none(
    api: Api, job: Job, driver: Object, own: Sequence[Object], made: Object | None, *, memory: Memory
) -> Problem:
    """Why nobody does the work, where no pod says so: there may be none, or only such as nobody hears of."""
    if made is None:
        name = executor_set_of(job.name, driver)
        message = f"there is no StatefulSet {name}, and Spark makes none anew: change spec.restartNonce"
        return Problem("NoExecutors", message)
    if lost := [name_of(pod) for pod in own if is_lost(pod, memory)]:
        message = (
            f"{', '.join(lost)}: on a node that does not answer, so no other pod of the name is made before "
            "the node is back or removed"
        )
        return Problem("NodeLost", message)
    if not own and (refused := await _refusal(api, job, made)) is not None:
        return refused
    return Problem("NoExecutors", f"None of the {made['spec'].get('replicas')} asked for is ready")


async def _refusal(api: Api, job: Job, executor_set: Object) -> Problem | None:
    """A quota or an admission rule shows in the Events of the set only."""
    chosen = f"involvedObject.uid={uid_of(executor_set)},reason={_FAILED_CREATE}"
    with contextlib.suppress(Denied):  # a better reason is all that is lost
        events = await api.list(EVENTS, job.namespace, fields=chosen)
        if (message := last_message(events.items)) is not None:
            return Problem(denial_in(message) or _FAILED_CREATE, message)
    return None


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
