"""Candidates: drivers that rehearse the next run beside the one that runs, and wait for the handover."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headrace.core.manifests.ownership import RUN_LABEL
from headrace.core.model import Job, ObservedCandidate, Problem
from headrace.core.reports import STANDBY, rehearsal_notes
from headrace.kube.agent import AgentAddress, Agents
from headrace.kube.client import Api, Object
from headrace.kube.executors import refused_executors
from headrace.kube.found import Found, uid_of
from headrace.kube.labels import label
from headrace.kube.memory import Memory
from headrace.kube.pods import ended_of, is_running, waiting_of

# Nothing is lost with one that is given up: so it is not waited for as long as for a driver.
_SILENCE = timedelta(seconds=10)


def candidate_uid(job_uid: str, number: int) -> str:
    """As its claim and its agent know it, also when it has taken over; for an attempt see `attempt_uid`."""
    return f"{job_uid}-c{number}"


async def observed_candidates(
    api: Api, agents: Agents, job: Job, found: Found, *, memory: Memory
) -> tuple[ObservedCandidate, ...]:
    seen = [
        await _observed(api, agents, job, found, number, memory=memory) for number in sorted(found.candidates)
    ]
    return tuple(replace(one, waiting_for=_waiting_for(one, memory)) for one in seen)


def _waiting_for(seen: ObservedCandidate, memory: Memory) -> timedelta:
    if seen.waiting is None:
        memory.candidate_waits.pop(seen.uid, None)
        return timedelta(0)
    now, reason = memory.clock(), seen.waiting.reason
    known, since = memory.candidate_waits.get(seen.uid, (reason, now))
    if known != reason:
        since = now
    memory.candidate_waits[seen.uid] = (reason, since)
    return timedelta(seconds=now - since)


async def _observed(
    api: Api,
    agents: Agents,
    job: Job,
    found: Found,
    number: int,
    *,
    memory: Memory,
) -> ObservedCandidate:
    pod = found.candidates[number]
    ended, running = ended_of(pod), is_running(pod)
    seen = ObservedCandidate(
        run=int(label(pod, RUN_LABEL)),
        number=number,
        uid=uid_of(pod),
        ended=ended,
        running=running,
        waiting=waiting_of(pod.get("status", {})) if ended is None else None,
    )
    ip = pod.get("status", {}).get("podIP")
    if not running or not ip:
        return seen
    report = await agents.status(AgentAddress(ip=ip, uid=candidate_uid(job.uid, number)))
    if report is not None:
        memory.silent_since.pop(uid_of(pod), None)
        standby = report["phase"] == STANDBY
        waiting = None if standby else await _no_executor(api, job, found, pod)
        return replace(seen, standby=standby, notes=rehearsal_notes(report), waiting=waiting)
    if memory.lasting(memory.silent_since, uid_of(pod)) < _SILENCE:
        return seen
    return replace(seen, waiting=Problem("AgentSilent", f"its agent at {ip} does not answer"))


async def _no_executor(api: Api, job: Job, found: Found, pod: Object) -> Problem | None:
    """Why nobody does the work of a candidate, if so: where no node has room for its executors, say."""
    executors = [one.get("status", {}) for one in found.executors_of(pod)]
    if any(status.get("phase") == "Running" for status in executors):
        return None
    if not executors:
        return await refused_executors(api, job, pod)
    return next(filter(None, map(waiting_of, executors)), None)
