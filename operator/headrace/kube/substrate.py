"""Carries the planner's actions out with pods. Everything here may be done again without harm.

What guards it when two operators act at once, or one wakes from a long sleep: pods are created and never
applied, deletes carry the uid of what was seen, pins are immutable, and the status that names an action was
written, with the version that was read as precondition, before the action is performed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from headrace.api import StreamJobStatus
from headrace.api.names import candidate_set_name, executor_set_name
from headrace.core.actions import (
    AbandonAttempt,
    Action,
    ActivateCandidate,
    CollectOrphans,
    DeleteCheckpoints,
    DrainAttempt,
    EndCollecting,
    HoldDeletion,
    PinRun,
    ReleaseDeletion,
    RemoveSavepoint,
    RestoreRun,
    ScaleExecutors,
    SeedRun,
    StartAttempt,
    StartCandidate,
    StartLookout,
    StopCandidate,
    StopDeleting,
    TakeSavepoint,
)
from headrace.core.manifests import Platform, RunPin, run_pin
from headrace.core.manifests.ownership import ATTEMPT_LABEL, ROLE_LABEL, RUN_LABEL, labels_of_activated
from headrace.core.model import AttemptPhase, Code, Job
from headrace.core.revision import revision_of
from headrace.kube.agent import Agents, AgentTokens
from headrace.kube.budget import keep_budget
from headrace.kube.cache import Cache
from headrace.kube.client import Api, Object
from headrace.kube.collecting import collect
from headrace.kube.deleting import delete_checkpoints, set_finalizer, stop_deleting
from headrace.kube.errors import AlreadyExists, ApiError, NotFound
from headrace.kube.found import attempt_of, is_leaving, name_of, uid_of
from headrace.kube.labels import label, number_in
from headrace.kube.memory import Memory
from headrace.kube.namesakes import label_lost, name_taken
from headrace.kube.pods import ended_of, is_lost, observed_attempt
from headrace.kube.resources import CONFIG_MAPS, PODS, STATEFUL_SETS
from headrace.kube.savepointing import change_savepoints
from headrace.kube.seeding import seed
from headrace.kube.sight import Sight, agent_address, look
from headrace.kube.starting import (
    StartRefused,
    candidate,
    disarm,
    driver_attempt,
    lookout,
    pin_of,
    start,
    start_lookout,
)
from headrace.kube.store import location_of
from headrace.kube.tidy import Leftover
from headrace.kube.upkeep import relabel, remove, repair

# After its own time limit a driver gets this much to go; then its pod is deleted.
_DRAIN_GRACE = timedelta(seconds=30)
# A candidate writes nothing: there is nothing to finish.
_CANDIDATE_GRACE = 5


@dataclass(frozen=True)
class KubeSubstrate:
    api: Api
    agents: Agents
    tokens: AgentTokens
    platform: Platform
    cache: Cache
    memory: Memory = field(default_factory=Memory)

    async def observe(
        self, job: Job, status: StreamJobStatus, *, now: datetime, for_certain: bool = False
    ) -> Sight:
        """Everything the planner needs. Changes nothing."""
        return await look(
            self.api,
            self.cache,
            self.agents,
            job,
            status,
            memory=self.memory,
            now=now,
            for_certain=for_certain,
        )

    async def perform(
        self,
        manifest: Object,
        job: Job,
        status: StreamJobStatus,
        sight: Sight,
        action: Action,
    ) -> None:
        """`manifest` is the StreamJob with the status that names the action, `status` is that status.

        Raises StartRefused where the platform refuses.
        """
        match action:
            case PinRun():
                await self._pin(job, sight, action)
            case SeedRun() | RestoreRun():
                await seed(self.api, self.platform, job, sight.found, action, memory=self.memory)
            case StartAttempt():
                await self._start(manifest, job, status, sight, action)
            case StartCandidate() | StopCandidate() | ActivateCandidate():
                await self._candidate(job, status, sight, action)
            case DrainAttempt():
                await self._drain(job, sight, action)
            case AbandonAttempt():
                pod = _driver(sight, action)
                if pod is not None:
                    await self._delete(job, pod, grace_seconds=0)
            case ScaleExecutors():
                await self._scale(job, action)
            case StartLookout():
                wanted = lookout(job, status, sight.found, action)
                await start_lookout(self.api, self.platform, job, wanted, memory=self.memory)
            case HoldDeletion() | ReleaseDeletion() | DeleteCheckpoints() | StopDeleting():
                await self._see_it_off(manifest, job, sight, action)
            case TakeSavepoint() | RemoveSavepoint() | CollectOrphans() | EndCollecting():
                await self._save(job, sight, action)

    async def _see_it_off(
        self,
        manifest: Object,
        job: Job,
        sight: Sight,
        action: HoldDeletion | ReleaseDeletion | DeleteCheckpoints | StopDeleting,
    ) -> None:
        """What the deletion of a job takes."""
        match action:
            case HoldDeletion():
                await set_finalizer(self.api, manifest, wanted=True)
            case ReleaseDeletion():
                await stop_deleting(self.api, job, sight.found)
                await set_finalizer(self.api, manifest, wanted=False)
            case DeleteCheckpoints():
                await delete_checkpoints(
                    self.api, self.platform, job, sight.found, action, memory=self.memory
                )
            case StopDeleting():
                await stop_deleting(self.api, job, sight.found)

    async def _save(
        self,
        job: Job,
        sight: Sight,
        action: TakeSavepoint | RemoveSavepoint | CollectOrphans | EndCollecting,
    ) -> None:
        match action:
            case TakeSavepoint() | RemoveSavepoint():
                await change_savepoints(self.api, job, action, memory=self.memory)
            case CollectOrphans() | EndCollecting():
                await collect(
                    self.api,
                    self.platform,
                    job,
                    sight.found,
                    action,
                    cache=self.cache,
                    memory=self.memory,
                )

    async def repair(self, job: Job, status: StreamJobStatus, sight: Sight) -> None:
        await relabel(self.api, job, sight.found)
        await repair(self.api, self.platform, job, status, sight.found)
        await keep_budget(self.api, self.memory, job)

    async def remove(self, job: Job, leftovers: Iterable[Leftover]) -> None:
        for leftover in leftovers:
            await remove(self.api, job, leftover)

    def note_pod(self, pod: Object) -> None:
        """A pod as the watch showed it: one that ends and goes at once is seen only here."""
        is_lost(pod, self.memory)  # from here on it is measured how long one that was told to go takes
        owners = pod["metadata"].get("ownerReferences") or ()
        if not owners or label(pod, ROLE_LABEL) != "driver" or ended_of(pod) is None:
            return
        if None in (number_in(pod, RUN_LABEL), number_in(pod, ATTEMPT_LABEL)):
            return  # nobody can tell which attempt this is, without the status
        ended = observed_attempt(pod, None, assumed=AttemptPhase.STARTING)
        self.memory.last_words[(owners[0]["uid"], *attempt_of(pod))] = ended

    async def pin_ahead(self, job: Job, sight: Sight, action: PinRun) -> bool:
        """Pins a run that has no pin yet. Whether that was possible; if not, `perform` says why.

        It takes nothing away and nothing runs by it, so no status needs to name it before: what was pinned
        for a run that does not come about is pinned anew, or removed.
        """
        pin = self._wanted_pin(job, sight, action)
        if pin is None or pin.name in sight.found.config_maps:
            return False
        try:
            await self.api.create(CONFIG_MAPS, job.namespace, run_pin(pin))
        except ApiError:
            return False
        self.memory.pin_problems.pop(job.uid, None)
        return True

    async def _pin(self, job: Job, sight: Sight, action: PinRun) -> None:
        pin = self._wanted_pin(job, sight, action)
        if pin is None:
            return  # changed since it was looked at: the next look decides
        if (old := sight.found.config_maps.get(pin.name)) is not None:
            # A newer edit before the run has begun. The uid is proof that nobody pinned it anew meanwhile.
            await self.api.delete(CONFIG_MAPS, job.namespace, pin.name, uid=uid_of(old))
        try:
            await self.api.create(CONFIG_MAPS, job.namespace, run_pin(pin))
        except AlreadyExists:
            there = await self.api.get(CONFIG_MAPS, job.namespace, pin.name)
            taken = name_taken("ConfigMap", there, job_uid=job.uid)
            taken = taken or label_lost("ConfigMap", there, job=job.name)
            if taken is not None:
                self.memory.pin_problems[job.uid] = taken
                raise StartRefused(taken) from None
        self.memory.pin_problems.pop(job.uid, None)

    def _wanted_pin(self, job: Job, sight: Sight, action: PinRun) -> RunPin | None:
        if action.like is not None:
            kept = sight.found.pins.get(action.like)
            return replace(kept, run=action.run) if kept is not None else None
        code, location = sight.sources.code, location_of(job, sight.found, self.platform)
        if not isinstance(code, Code) or revision_of(action.spec, code.digest) != action.revision:
            return None
        assert location is not None  # validation has made sure
        return RunPin(
            namespace=job.namespace,
            job=job.name,
            job_uid=job.uid,
            run=action.run,
            revision=action.revision,
            code_digest=code.digest,
            spec=action.spec,
            location=location,
            code=sight.sources.files,
        )

    async def _start(
        self, manifest: Object, job: Job, status: StreamJobStatus, sight: Sight, action: StartAttempt
    ) -> None:
        number = (action.run, action.attempt)
        if number in sight.found.drivers:
            return  # started before, by us or by one that was killed: it is observed, not started again
        try:
            pin = pin_of(job, sight.found, action.run)
            attempt = driver_attempt(job, status, pin, number, epoch=action.epoch)
            await disarm(self.api, job, sight.found, but=number)
            await start(self.api, self.tokens, self.platform, attempt, found=sight.found, looked_at=manifest)
        except StartRefused as refused:
            self.memory.start_problems[(job.uid, *number)] = refused.problem
            raise
        self.memory.start_problems.pop((job.uid, *number), None)

    async def _candidate(
        self,
        job: Job,
        status: StreamJobStatus,
        sight: Sight,
        action: StartCandidate | StopCandidate | ActivateCandidate,
    ) -> None:
        match action:
            case StartCandidate():
                await self._start_candidate(job, status, sight, action)
            case StopCandidate():
                await self._stop_candidate(job, sight, action)
            case ActivateCandidate():
                await self._activate(job, sight, action)

    async def _start_candidate(
        self, job: Job, status: StreamJobStatus, sight: Sight, action: StartCandidate
    ) -> None:
        if action.number in sight.found.candidates:
            return  # started before: it is observed, not started again
        try:
            pin = pin_of(job, sight.found, action.run)
            attempt = candidate(job, status, pin, action)
            await start(self.api, self.tokens, self.platform, attempt, found=sight.found)
        except StartRefused as refused:
            self.memory.candidate_problems[job.uid] = refused.problem
            raise
        self.memory.candidate_problems.pop(job.uid, None)

    async def _stop_candidate(self, job: Job, sight: Sight, action: StopCandidate) -> None:
        pod = sight.found.candidates.get(action.number)
        if pod is not None and uid_of(pod) == action.uid and not is_leaving(pod):
            await self._delete(job, pod, grace_seconds=_CANDIDATE_GRACE)

    async def _activate(self, job: Job, sight: Sight, action: ActivateCandidate) -> None:
        """The labels first: they say for ever that this pod may have written as that attempt."""
        # As a candidate in the pass that names it, as a driver from then on.
        pods = (*sight.found.candidates.values(), *sight.found.drivers.values())
        pod = next((one for one in pods if uid_of(one) == action.uid), None)
        if pod is None or is_leaving(pod) or (address := agent_address(job, pod)) is None:
            return  # the next look tells what has become of it
        named = labels_of_activated(attempt=action.attempt, epoch=action.epoch)
        try:
            await self.api.patch(
                PODS, job.namespace, name_of(pod), {"metadata": {"uid": action.uid, "labels": named}}
            )
        except NotFound:
            return
        order = {
            "run": action.run,
            "attempt": action.attempt,
            "epoch": action.epoch,
            "acceptPending": action.accept_pending,
        }
        await self.agents.activate(address, order)

    async def _drain(self, job: Job, sight: Sight, action: DrainAttempt) -> None:
        pod = _driver(sight, action)
        if pod is None or is_leaving(pod):
            return
        # As the spec says now: the driver was told what it said when it began.
        limit = job.spec.drain_timeout.seconds
        asked = self.memory.lasting(self.memory.drain_asked_at, action.uid)
        in_time = asked < timedelta(seconds=limit) + _DRAIN_GRACE
        address = agent_address(job, pod)
        if in_time and address:
            snapshots_first = action.snapshots_first
            if await self.agents.drain(address, timeout_seconds=limit, snapshots_first=snapshots_first):
                return
        # It has no agent yet, or does not do as it is told: the kubelet's signal says the same, and insists.
        await self._delete(job, pod)

    async def _delete(self, job: Job, pod: Object, *, grace_seconds: int | None = None) -> None:
        try:
            await self.api.delete(
                PODS, job.namespace, name_of(pod), uid=uid_of(pod), grace_seconds=grace_seconds
            )
        except NotFound:
            # Nobody has told: else it would be waited for until everything is listed again.
            self.cache.remove(PODS, pod)

    async def _scale(self, job: Job, action: ScaleExecutors) -> None:
        name = (
            executor_set_name(job.name, action.epoch)
            if action.candidate is None
            else candidate_set_name(job.name, action.candidate)
        )
        wanted = {"spec": {"replicas": action.replicas}}
        with contextlib.suppress(NotFound):
            await self.api.patch(STATEFUL_SETS, job.namespace, name, wanted, subresource="scale")


def _driver(sight: Sight, action: DrainAttempt | AbandonAttempt) -> Object | None:
    """The pod that is meant, by its uid: a namesake is another driver."""
    pod = sight.found.drivers.get((action.run, action.attempt))
    return pod if pod is not None and uid_of(pod) == action.uid else None
