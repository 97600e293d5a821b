"""One look at everything of a job: what the cache holds of it, and a call to the driver's agent."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from headrace.api import StreamJobStatus
from headrace.api.names import attempt_name, candidate_name
from headrace.core.manifests.keeper_pod import KEEPER_CONTAINER
from headrace.core.manifests.ownership import CANDIDATE_LABEL, JOB_LABEL, RUN_LABEL
from headrace.core.model import (
    AttemptPhase,
    EarlierLineage,
    Job,
    Observed,
    ObservedAttempt,
    PinnedRun,
    Problem,
    Removal,
    SeededQuery,
)
from headrace.core.reports import seeded_queries
from headrace.core.warm import is_activating
from headrace.kube.agent import AgentAddress, Agents
from headrace.kube.cache import Cache
from headrace.kube.client import Api, Object
from headrace.kube.code import Sources, look_at_code
from headrace.kube.collecting import observed_collecting
from headrace.kube.errors import Denied, NotFound
from headrace.kube.executors import observed_executors
from headrace.kube.found import (
    AttemptNumber,
    Found,
    attempt_of,
    is_owned,
    name_of,
    sort_out,
    uid_of,
)
from headrace.kube.labels import label
from headrace.kube.lookouts import observed_lookout
from headrace.kube.memory import Memory
from headrace.kube.pods import (
    FAILED_MOUNT,
    earlier_lineage_of,
    has_ended,
    is_lost,
    is_running,
    keeper_result,
    may_wait_for_volumes,
    mount_problem,
    observed_attempt,
    waiting_of,
)
from headrace.kube.rehearsing import candidate_uid, observed_candidates
from headrace.kube.resources import CONFIG_MAPS, EVENTS, PODS, SERVICES
from headrace.kube.savepoint_sight import known_savepoints
from headrace.kube.start_point import find_savepoint
from headrace.kube.store import lineages_of

# A driver that was fine and does not answer is believed to be fine for so long.
_SILENCE = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True)
class Sight:
    found: Found
    observed: Observed
    sources: Sources
    report: Mapping[str, Any] | None
    """The agent's word on the live attempt."""

    address: AgentAddress | None


def attempt_uid(job_uid: str, attempt: AttemptNumber) -> str:
    """As the attempt's claim and its agent know it; a pod's own uid is not known before there is a pod."""
    return f"{job_uid}-r{attempt[0]}-a{attempt[1]}"


async def look(
    api: Api,
    cache: Cache,
    agents: Agents,
    job: Job,
    status: StreamJobStatus,
    *,
    memory: Memory,
    now: datetime,
    for_certain: bool = False,
) -> Sight:
    """`for_certain`: the pods are those that there are now, not those that were last heard of."""
    key = (job.namespace, job.name)
    if for_certain:
        listed = await api.list(PODS, job.namespace, selector=f"{JOB_LABEL}={job.name}")
        cache.replace(PODS, listed, job=key)
    pods = cache.children(PODS, key)
    if for_certain:
        pods += await _unlabelled(api, job, status, pods)
    sources = await look_at_code(api, job.namespace, job.spec.application)
    found = sort_out(
        job,
        status,
        pods=pods,
        config_maps=cache.children(CONFIG_MAPS, key),
        services=cache.children(SERVICES, key),
        known_pins=memory.pins,
    )
    current = current_attempt(status)
    driver = found.drivers.get(current) if current is not None else None
    address = agent_address(job, driver)
    report = await agents.status(address) if address is not None else None
    attempts = _attempts(job, status, found, report, memory=memory)
    observed = Observed(
        code=sources.code,
        attempts=await _with_mount_problems(api, job, found, attempts, now=now),
        candidates=await observed_candidates(api, agents, job, found, memory=memory),
        candidate_problem=memory.candidate_problems.get(job.uid),
        pinned={
            run: PinnedRun(
                revision=pin.revision,
                code=pin.code_digest,
                spec=pin.spec,
                path=f"{lineages_of(job, pin.location)}/{job.uid}/run-{run}",
            )
            for run, pin in found.pins.items()
        },
        seeded_runs=frozenset(_seeded_runs(found)),
        seeded_queries=_seeded_runs(found),
        seed_problem=_seed_problem(job, found, status, memory),
        seed_waiting=_seed_waiting(found, status, memory),
        start_problem=memory.start_problems.get((job.uid, *current)) if current is not None else None,
        pin_problem=memory.pin_problems.get(job.uid),
        executors=await observed_executors(api, job, status, found, driver, memory=memory, now=now),
        lookout=observed_lookout(job, status, found, memory),
        earlier=_earlier(found),
        savepoint=await find_savepoint(api, job, status),
        lingering=lingering(found) if job.deleting else (),
        removal=_removal(found),
        removal_problem=_removal_problem(job, found, memory),
        savepoints=known_savepoints(cache, key),
        savepoint_problem=memory.savepoint_problems.get(job.uid),
        collecting=observed_collecting(job, found, memory),
    )
    return Sight(found=found, observed=observed, sources=sources, report=report, address=address)


def current_attempt(status: StreamJobStatus) -> AttemptNumber | None:
    run = status.run
    return (run.number, run.attempt.number) if run is not None and run.attempt is not None else None


async def _unlabelled(api: Api, job: Job, status: StreamJobStatus, pods: list[Object]) -> list[Object]:
    """The driver of the status, where it is not among the pods under the job's label: before it counts as
    gone it is looked for by its name, since anybody can take a label off."""
    run, current = status.run, current_attempt(status)
    attempt = run.attempt if run is not None else None
    if current is None or attempt is None or not (attempt.state == "Started" or is_activating(status)):
        return []
    taken_over = attempt.activation
    name = candidate_name(job.name, taken_over.candidate) if taken_over else attempt_name(job.name, *current)
    if name in map(name_of, pods):
        return []
    try:
        pod = await api.get(PODS, job.namespace, name)
    except NotFound:
        return []
    return [pod] if is_owned(pod, job.uid) else []


def _attempts(
    job: Job,
    status: StreamJobStatus,
    found: Found,
    report: Mapping[str, Any] | None,
    *,
    memory: Memory,
) -> tuple[ObservedAttempt, ...]:
    current, ready = current_attempt(status), status.condition("Ready")
    was_ready = ready is not None and ready.status == "True"
    seen = [
        _attempt(
            pod,
            report if number == current else None,
            was_ready=was_ready and number == current,
            memory=memory,
        )
        for number, pod in sorted(found.drivers.items())
    ]
    if current is not None and current not in found.drivers:
        # Its pod is gone, but it was seen to end before it went.
        words = memory.last_words.get((job.uid, *current))
        seen += [words] if words is not None else []
    return tuple(seen)


def _attempt(
    pod: Object,
    report: Mapping[str, Any] | None,
    *,
    was_ready: bool,
    memory: Memory,
) -> ObservedAttempt:
    lost = is_lost(pod, memory)
    if report is not None or not is_running(pod):
        memory.silent_since.pop(uid_of(pod), None)
        return observed_attempt(pod, report, assumed=AttemptPhase.STARTING, lost=lost)
    silence = memory.lasting(memory.silent_since, uid_of(pod))
    if was_ready and silence < _SILENCE:
        return observed_attempt(pod, None, assumed=AttemptPhase.RUNNING, lost=lost)
    seen = observed_attempt(pod, None, assumed=AttemptPhase.STARTING, lost=lost)
    if silence < _SILENCE:
        return seen
    where = pod.get("status", {}).get("podIP", "its address")
    silent = Problem("AgentSilent", f"the driver runs, but its agent at {where} does not answer")
    return replace(seen, waiting=seen.waiting or silent)


async def _with_mount_problems(
    api: Api, job: Job, found: Found, attempts: tuple[ObservedAttempt, ...], *, now: datetime
) -> tuple[ObservedAttempt, ...]:
    """A volume that cannot be mounted (no such Secret, no such key) shows in Events only, not in the pod."""
    seen = list(attempts)
    for index, attempt in enumerate(seen):
        pod = found.drivers.get((attempt.run, attempt.number))
        if pod is None or attempt.waiting is not None or not may_wait_for_volumes(pod, now=now):
            continue
        chosen = f"involvedObject.uid={uid_of(pod)},reason={FAILED_MOUNT}"
        with contextlib.suppress(Denied):  # a better reason is all that is lost
            events = await api.list(EVENTS, job.namespace, fields=chosen)
            seen[index] = replace(attempt, waiting=mount_problem(events.items))
    return tuple(seen)


def agent_address(job: Job, pod: Object | None) -> AgentAddress | None:
    if pod is None or not is_running(pod):
        return None
    ip, number = pod["status"].get("podIP"), label(pod, CANDIDATE_LABEL)
    own = candidate_uid(job.uid, int(number)) if number else attempt_uid(job.uid, attempt_of(pod))
    return AgentAddress(ip=ip, uid=own) if ip else None


def _seeded_runs(found: Found) -> dict[int, tuple[SeededQuery, ...]]:
    """The runs whose state is copied, each with what its keeper tells."""
    done = [pod for pod in found.keepers if pod.get("status", {}).get("phase") == "Succeeded"]
    return {
        int(label(pod, RUN_LABEL)): seeded_queries(keeper_result(pod, KEEPER_CONTAINER).get("seed") or {})
        for pod in done
    }


def _seedings(found: Found, status: StreamJobStatus) -> list[Object]:
    if status.operation is not None:
        return found.seedings(status.operation.to_run)
    return found.seedings(status.beginning.run if status.beginning is not None else 1)


def _seed_waiting(found: Found, status: StreamJobStatus, memory: Memory) -> Problem | None:
    """Why the copy that is asked for does not begin, or does not end."""
    for pod in _seedings(found, status):
        if has_ended(pod):
            continue
        if is_lost(pod, memory):
            message = (
                f"{name_of(pod)} is on a node that does not answer, and may be copying still. The job goes "
                "on when the node is back or removed"
            )
            return Problem("NodeLost", message)
        if (waiting := waiting_of(pod.get("status", {}))) is not None:
            return replace(waiting, message=f"{name_of(pod)} waits: {waiting.message}")
    return None


def _seed_problem(job: Job, found: Found, status: StreamJobStatus, memory: Memory) -> str | None:
    """Of the last try that failed, also while the next one is under way; or why none can be made."""
    if (refused := memory.seed_problems.get(job.uid)) is not None:
        return refused.message
    failed = [pod for pod in _seedings(found, status) if pod.get("status", {}).get("phase") == "Failed"]
    if not failed:
        return None
    return keeper_result(failed[-1], KEEPER_CONTAINER)["message"] or "the keeper pod failed"


def lingering(found: Found) -> tuple[str, ...]:
    """Who may write into the store beside the job's drivers: a task that runs on, a copy of state under way,
    a driver that was taken from the job (`kubectl delete --cascade=orphan`). And who still reads there: a
    savepoint that is being taken."""
    suspects = (*found.executors, *found.candidates.values(), *found.keepers, *found.saving, *found.foreign)
    return tuple(name_of(pod) for pod in suspects if not has_ended(pod))


def _removal(found: Found) -> Removal | None:
    phases = {pod.get("status", {}).get("phase") for pod in found.deletions}
    if "Succeeded" in phases:
        return Removal.DONE
    under_way = any(not has_ended(pod) for pod in found.deletions)
    return Removal.UNDER_WAY if under_way else None


def _removal_problem(job: Job, found: Found, memory: Memory) -> Problem | None:
    """Of the last try that failed, also while the next one is under way; or why none can be made."""
    if (refused := memory.removal_problems.get(job.uid)) is not None:
        return refused
    for pod in found.deletions:
        if not has_ended(pod) and (waiting := waiting_of(pod.get("status", {}))) is not None:
            return Problem("DeletionFailed", f"{name_of(pod)} waits: {waiting.message}")
    failed = [pod for pod in found.deletions if pod.get("status", {}).get("phase") == "Failed"]
    if not failed:
        return None
    said = keeper_result(failed[-1], KEEPER_CONTAINER)["message"]
    return Problem("DeletionFailed", said or "the keeper pod failed")


def _earlier(found: Found) -> EarlierLineage | None:
    told = [lineage for pod in found.drivers.values() if (lineage := earlier_lineage_of(pod)) is not None]
    return told[-1] if told else None
