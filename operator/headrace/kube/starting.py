"""Starts an attempt: its Secret, ConfigMap and Service, then its driver pod."""

from __future__ import annotations

import contextlib

from headrace.api import Activation, StreamJobSpec, StreamJobStatus
from headrace.core.actions import StartCandidate, StartLookout
from headrace.core.executors import present_target
from headrace.core.manifests import (
    Candidacy,
    DriverAttempt,
    Lookout,
    Platform,
    RunPin,
    config_map,
    driver_pod,
    driver_service,
    lookout_pod,
    token_secret,
)
from headrace.core.manifests.ownership import ATTEMPT_LABEL
from headrace.core.model import Job, Problem
from headrace.core.start import driver_start, starts_without_state
from headrace.kube.agent import AgentTokens
from headrace.kube.client import Api, Object
from headrace.kube.errors import AlreadyExists, Conflict, Denied, Invalid, NotFound
from headrace.kube.found import AttemptNumber, Found, attempt_of, is_leaving, name_of, uid_of
from headrace.kube.labels import label
from headrace.kube.memory import Memory
from headrace.kube.namesakes import label_lost, name_taken
from headrace.kube.pods import has_ended
from headrace.kube.rehearsing import candidate_uid
from headrace.kube.resources import CONFIG_MAPS, PODS, SECRETS, SERVICES, STREAM_JOBS
from headrace.kube.sight import attempt_uid
from headrace.kube.store import lineages_of


class StartRefused(Exception):
    """The platform does not let the attempt start now. It is tried again; meanwhile the status says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def pin_of(job: Job, found: Found, run: int) -> RunPin:
    if (pin := found.pins.get(run)) is not None:
        return pin
    message = f"the ConfigMap {job.name}-r{run}, which says what to run, is gone or cannot be read"
    raise StartRefused(Problem("NoPin", message))


def driver_attempt(
    job: Job, status: StreamJobStatus, pin: RunPin, number: AttemptNumber, *, epoch: int
) -> DriverAttempt:
    run, attempt = number
    if (activation := _activation(status, number)) is not None:
        # Its driver was started as a candidate, and is what it was told to be then.
        assert status.run is not None  # it has that attempt
        start = StartCandidate(
            run=run,
            number=activation.candidate,
            from_run=activation.from_run,
            started_from=status.run.started_from,
        )
        return candidate(job, status, pin, start)
    own = status.run if status.run is not None and status.run.number == run else None
    return DriverAttempt(
        namespace=job.namespace,
        job=job.name,
        job_uid=job.uid,
        spec=_with_live_fields(pin.spec, job.spec, executors=present_target(job.spec, status)),
        run=run,
        attempt=attempt,
        epoch=epoch,
        uid=attempt_uid(job.uid, number),
        store=f"{lineages_of(job, pin.location)}/{job.uid}",
        image=own.image if own is not None else None,
        code=pin.code,
        start=driver_start(job.spec.start_from, started_from=own.started_from if own is not None else None),
        repartition=own is not None and own.repartition,
        check_store=run == 1 and not starts_without_state(job.spec.start_from),
    )


def _activation(status: StreamJobStatus, number: AttemptNumber) -> Activation | None:
    run = status.run
    if run is None or run.attempt is None or (run.number, run.attempt.number) != number:
        return None
    return run.attempt.activation


def candidate(job: Job, status: StreamJobStatus, pin: RunPin, action: StartCandidate) -> DriverAttempt:
    """Started as any driver is; but its epoch is 0, and what it claims is its fork."""
    return DriverAttempt(
        namespace=job.namespace,
        job=job.name,
        job_uid=job.uid,
        spec=_with_live_fields(pin.spec, job.spec, executors=present_target(job.spec, status)),
        run=action.run,
        attempt=action.number,
        epoch=0,
        uid=candidate_uid(job.uid, action.number),
        store=f"{lineages_of(job, pin.location)}/{job.uid}",
        code=pin.code,
        start=driver_start(job.spec.start_from, started_from=action.started_from),
        repartition=action.repartition,
        candidacy=Candidacy(number=action.number, from_run=action.from_run, policy=job.spec.upgrade),
    )


async def start(
    api: Api,
    tokens: AgentTokens,
    platform: Platform,
    attempt: DriverAttempt,
    *,
    found: Found,
    looked_at: Object | None = None,
) -> None:
    """`looked_at` is the StreamJob that asks for a writer; None of a candidate, which writes nothing."""
    if writers := [pod for pod in found.foreign if not has_ended(pod)]:
        names = ", ".join(name_of(pod) for pod in writers)
        message = f"{names}: left by an earlier {attempt.job}, and may still write. Delete it if it stays"
        raise StartRefused(Problem("WaitingForWriter", message))
    try:
        await _create(api, tokens, platform, attempt, looked_at)
    except Denied as refusal:
        raise StartRefused(Problem(refusal.reason, str(refusal))) from refusal
    except Invalid as refusal:
        raise StartRefused(Problem("PodInvalid", str(refusal))) from refusal


async def disarm(api: Api, job: Job, found: Found, *, but: AttemptNumber) -> None:
    """Takes away what pods of other attempts would mount that are not there.

    Such an attempt was intended and not begun: its leader may have been paused just before it made the pod,
    and make it when it wakes. Without its ConfigMap that pod never starts.
    """
    for name, thing in found.config_maps.items():
        if not label(thing, ATTEMPT_LABEL) or is_leaving(thing):
            continue
        number = attempt_of(thing)
        if number != but and number not in found.drivers:
            with contextlib.suppress(NotFound, Conflict):
                await api.delete(CONFIG_MAPS, job.namespace, name, uid=uid_of(thing))


def lookout(job: Job, status: StreamJobStatus, found: Found, action: StartLookout) -> Lookout:
    """Looks where the attempt left off that the job sleeps since."""
    run = status.run
    assert run is not None and run.attempt is not None  # it has slept since that one
    number = (run.number, run.attempt.number)
    pin = pin_of(job, found, run.number)
    attempt = driver_attempt(job, status, pin, number, epoch=run.attempt.epoch)
    return Lookout(attempt=attempt, number=action.number, every_seconds=action.every_seconds)


async def start_lookout(api: Api, platform: Platform, job: Job, wanted: Lookout, *, memory: Memory) -> None:
    place = (job.uid, wanted.number)
    try:
        with contextlib.suppress(AlreadyExists):
            await api.create(PODS, job.namespace, lookout_pod(wanted, platform))
    except (Denied, Invalid) as refusal:
        # The planner asks again, and wakes the job when that has lasted too long.
        memory.lookout_problems[place] = Problem("LookoutRefused", str(refusal))
        return
    memory.lookout_problems.pop(place, None)


async def _create(
    api: Api, tokens: AgentTokens, platform: Platform, attempt: DriverAttempt, looked_at: Object | None
) -> None:
    """What the pod mounts comes first: a pod that finds nothing to mount waits, and complains."""
    namespace = attempt.namespace
    mounted = await _ensure_config_map(api, platform, attempt)
    with contextlib.suppress(AlreadyExists):
        await api.create(SECRETS, namespace, _token_of(attempt, tokens, owner=mounted))
    await ensure_service(api, attempt)
    if looked_at is not None:
        await _make_sure_it_is_wanted(api, looked_at)
    try:
        await api.create(PODS, namespace, driver_pod(attempt, platform))
    except AlreadyExists:
        pod = await api.get(PODS, namespace, attempt.name)
        _make_sure_it_is_ours("pod", pod, attempt)
        if (lost := label_lost("pod", pod, job=attempt.job)) is not None:
            raise StartRefused(lost) from None


async def _make_sure_it_is_wanted(api: Api, looked_at: Object) -> None:
    """The last look before a writer begins to be: a create has no precondition. Whoever leads by now, if it
    is not us, has written another status; by our own clock we could not tell, where it stood still, too."""
    known = looked_at["metadata"]
    try:
        fresh = await api.get(STREAM_JOBS, known["namespace"], known["name"])
    except NotFound:
        raise Conflict(f"{known['name']}: it is gone", status=409) from None
    there = fresh["metadata"]
    same = (there["uid"], there["generation"]) == (known["uid"], known["generation"])
    # Not the version: a label or a finalizer changes nothing.
    if not same or (fresh.get("status") or {}) != (looked_at.get("status") or {}):
        raise Conflict(f"{known['name']}: it has changed since the attempt was intended", status=409)


def _token_of(attempt: DriverAttempt, tokens: AgentTokens, *, owner: Object) -> Object:
    """Goes with the ConfigMap beside it: Secrets are never read, so one cannot be deleted as ours."""
    secret = token_secret(attempt, token=tokens.of(attempt.uid))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name_of(owner), "uid": uid_of(owner)}
    return {**secret, "metadata": {**secret["metadata"], "ownerReferences": [reference]}}


async def ensure_service(api: Api, attempt: DriverAttempt) -> None:
    """Made, or put back to what it should be."""
    wanted = driver_service(attempt)
    try:
        await api.create(SERVICES, attempt.namespace, wanted)
    except AlreadyExists:
        named = await api.list(SERVICES, attempt.namespace, fields=f"metadata.name={attempt.name}")
        for there in named.items:
            _make_sure_it_is_ours("Service", there, attempt)
        await api.apply(SERVICES, attempt.namespace, wanted)


async def _ensure_config_map(api: Api, platform: Platform, attempt: DriverAttempt) -> Object:
    wanted = config_map(attempt, platform)
    try:
        return await api.create(CONFIG_MAPS, attempt.namespace, wanted)
    except AlreadyExists:
        there = await api.get(CONFIG_MAPS, attempt.namespace, attempt.name)
        _make_sure_it_is_ours("ConfigMap", there, attempt)
        if there.get("data") == wanted["data"]:
            return there
        # Made by an operator of another version that did not come to make the pod.
        await api.delete(CONFIG_MAPS, attempt.namespace, attempt.name, uid=uid_of(there))
        return await api.create(CONFIG_MAPS, attempt.namespace, wanted)


def _make_sure_it_is_ours(kind: str, thing: Object, attempt: DriverAttempt) -> None:
    if (problem := name_taken(kind, thing, job_uid=attempt.job_uid)) is not None:
        raise StartRefused(problem)


def _with_live_fields(pinned: StreamJobSpec, wanted: StreamJobSpec, *, executors: int) -> StreamJobSpec:
    """A restart keeps what the run was pinned with, but not a number of executors of long ago."""
    present = pinned.executors.model_copy(update={"count": executors})
    return pinned.model_copy(update={"executors": present, "drain_timeout": wanted.drain_timeout})
