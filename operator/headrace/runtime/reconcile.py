"""One pass over one job: observe, validate, plan, write the status, act. Why it is called is no input.

The status is written before anything is done, with the version that was read as precondition. Whoever else
has written meanwhile, another operator or a person, makes this pass end with a Conflict and nothing done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from headrace.api import StreamJobStatus
from headrace.core.actions import (
    ActivateCandidate,
    DeleteCheckpoints,
    PinRun,
    RestoreRun,
    SeedRun,
    StartAttempt,
    TakeSavepoint,
)
from headrace.core.advice import Advice
from headrace.core.conditions import with_facts
from headrace.core.decision import Plan, Sentence, stalled_facts
from headrace.core.deletion import way_out
from headrace.core.model import Idleness, Job, ObservedExecutors, Problem
from headrace.core.plan import plan
from headrace.core.savepoints import Summary
from headrace.core.validate import deletes_checkpoints, is_held, job_of, validate
from headrace.core.warm import is_activating
from headrace.kube.agent import AgentAddress
from headrace.kube.cache import AnyKey, Cache, JobKey, concerned, version_of
from headrace.kube.client import Api, Object, status_patch
from headrace.kube.deleting import set_finalizer, stop_unread
from headrace.kube.errors import Conflict
from headrace.kube.found import is_leaving
from headrace.kube.pins import pinned_spec
from headrace.kube.pods import is_placed
from headrace.kube.resources import PODS, STREAM_JOBS
from headrace.kube.sight import Sight, current_attempt
from headrace.kube.starting import StartRefused
from headrace.kube.substrate import KubeSubstrate
from headrace.kube.tidy import leftovers
from headrace.runtime.events import EventRecorder
from headrace.runtime.leading import make_sure

log = logging.getLogger("headrace")

Key = JobKey

# Results come as events. This is for those that get lost while something is under way.
_RECHECK_SECONDS = 10.0
_NEEDS_CERTAINTY = (StartAttempt, ActivateCandidate, SeedRun, RestoreRun, DeleteCheckpoints)
_SELDOM_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a pass found, for those who watch the job between two passes."""

    job: Job | None = None
    status: StreamJobStatus | None = None
    report: Mapping[str, Any] | None = None
    address: AgentAddress | None = None
    executors: ObservedExecutors | None = None
    recheck_after: float | None = None
    # For the metrics.
    savepoints: Summary | None = None
    # What we write ourselves, no watch tells as news: who depends on it is to look.
    wakes: frozenset[AnyKey] = frozenset()
    # Why the platform did not let a driver start; the status says so from the next pass on.
    refused: str | None = None


GONE = Outcome()


class UnreadableStatus(Exception):
    """The status holds words that this version does not know."""


@dataclass(frozen=True, kw_only=True)
class Reconciler:
    api: Api
    substrate: KubeSubstrate
    events: EventRecorder
    now: Callable[[], datetime]
    may_act: Callable[[], bool]
    # What the autoscaler says of a job, by its key and uid.
    advice: Callable[[Key, str], Advice | None] = lambda _key, _uid: None
    # Whether a job has work, by its key and the uid of the attempt that would do it.
    idleness: Callable[[Key, str], Idleness | None] = lambda _key, _uid: None

    @property
    def cache(self) -> Cache:
        return self.substrate.cache

    async def reconcile(self, key: Key) -> Outcome:
        manifest = self.cache.job(key)
        if manifest is None:
            return GONE
        if is_leaving(manifest) and not is_held(manifest):
            return GONE  # owner references clean up, and nothing is to be started any more
        status = await self._read_status(manifest)
        match await self._validated(manifest, status):
            case Problem() as problem:
                return await self._reject(manifest, status, problem)
            case Job() as job:
                return await self._pass(manifest, job, status)

    async def _read_status(self, manifest: Object) -> StreamJobStatus:
        """What is under way stands in it, so a pass that cannot read all of it does nothing."""
        try:
            return StreamJobStatus.parse(manifest.get("status") or {})
        except ValidationError as unread:
            words = unread.errors(include_url=False)[0]
            where = ".".join(map(str, ("status", *words["loc"])))
            message = (
                f"{where}: {words['msg']}. A newer Headrace wrote it, it seems. What runs is left as it is; "
                "install that version again to go on"
            )
            await self._say(manifest, (Sentence("UnreadableStatus", message),))
            raise UnreadableStatus(message) from unread

    async def _validated(self, manifest: Object, status: StreamJobStatus) -> Job | Problem:
        """A spec that cannot be taken does not touch what runs: that goes on as it was pinned."""
        metadata, specs = manifest["metadata"], self.substrate.memory.specs
        known = (metadata["uid"], metadata["generation"])
        if known in specs:
            return job_of(manifest, specs[known])
        default_location = self.substrate.platform.checkpoint_location
        if is_leaving(manifest) and status.run is not None:
            # It begins nothing any more, and where its checkpoints are is known.
            default_location = default_location or status.run.path
        checked = validate(manifest, default_location=default_location)
        if isinstance(checked, Job):
            specs[known] = checked.spec
        if isinstance(checked, Job) or status.run is None:
            return checked
        spec = await pinned_spec(
            self.api,
            namespace=metadata["namespace"],
            job=metadata["name"],
            job_uid=metadata["uid"],
            run=status.run.number,
        )
        return job_of(manifest, spec, rejected=checked) if spec is not None else checked

    async def _pass(self, manifest: Object, job: Job, status: StreamJobStatus) -> Outcome:
        now = self.now()
        sight, made = await self._decide(job, status, now)
        written = await self._write_status(manifest, made.status)
        proven, manifest = written is not None, written or manifest
        await self._say(manifest, made.says)
        refused = None
        try:
            await self._act(manifest, job, made, sight, proven=proven)
        except StartRefused as refusal:
            refused = str(refusal)
        return Outcome(
            job=job,
            status=made.status,
            report=sight.report,
            address=sight.address,
            executors=sight.observed.executors,
            recheck_after=_recheck_after(made, sight, now),
            savepoints=made.savepoints,
            wakes=self._dependents(manifest) if proven or _makes_savepoint(made) else frozenset(),
            refused=refused,
        )

    def _dependents(self, manifest: Object) -> frozenset[AnyKey]:
        return frozenset(concerned(self.cache, STREAM_JOBS, manifest)) - {_key(manifest)}

    async def _decide(self, job: Job, status: StreamJobStatus, now: datetime) -> tuple[Sight, Plan]:
        """From what was heard of. What must not rest on hearsay is looked at again before it is decided."""
        sight, made = await self._look_and_plan(job, status, now)
        match made.actions:
            case (PinRun() as pin,) if self.may_act() and await self.substrate.pin_ahead(job, sight, pin):
                sight, made = await self._look_and_plan(job, status, now)
        if _needs_certainty(made, sight, status):
            sight, made = await self._look_and_plan(job, status, now, for_certain=True)
        return sight, made

    async def _look_and_plan(
        self, job: Job, status: StreamJobStatus, now: datetime, *, for_certain: bool = False
    ) -> tuple[Sight, Plan]:
        sight = await self.substrate.observe(job, status, now=now, for_certain=for_certain)
        key = (job.namespace, job.name)
        attempt = sight.address.uid if sight.address is not None else None
        heard = replace(
            sight.observed,
            advice=self.advice(key, job.uid),
            idleness=self.idleness(key, attempt) if attempt is not None else None,
        )
        return sight, plan(job, status, heard, now)

    async def _act(self, manifest: Object, job: Job, made: Plan, sight: Sight, *, proven: bool) -> None:
        """`proven`: the server has just confirmed that the job is as it was read, by taking its status."""
        unneeded = [] if job.paused else list(leftovers(job, made.status, sight.found))
        if (made.actions or unneeded) and not proven:
            await self._make_sure_it_is(manifest)
        for action in made.actions:
            self._make_sure_to_lead()
            log.debug("%s/%s: %s", job.namespace, job.name, type(action).__name__)
            await self.substrate.perform(manifest, job, made.status, sight, action)
        if job.paused:
            return
        self._make_sure_to_lead()
        await self.substrate.repair(job, made.status, sight)
        await self.substrate.remove(job, unneeded)

    async def _reject(self, manifest: Object, status: StreamJobStatus, problem: Problem) -> Outcome:
        """There is nothing to go on with: no run, and no spec to make one of."""
        leaving, recheck_after = is_leaving(manifest), None
        if is_held(manifest) and (not deletes_checkpoints(manifest) or (leaving and status.run is None)):
            self._make_sure_to_lead()
            if await stop_unread(self.api, manifest, self.cache.children(PODS, _key(manifest))):
                await set_finalizer(self.api, manifest, wanted=False)
                if leaving:
                    return GONE
            else:
                recheck_after = _RECHECK_SECONDS  # it goes when the removal has ended
        if leaving:
            problem = Problem(problem.reason, way_out(problem.message))
        generation = manifest["metadata"]["generation"]
        facts = stalled_facts(problem.reason, problem.message)
        conditions = with_facts(status.conditions, facts, now=self.now(), generation=generation)
        after = status.model_copy(
            update={"state": "Stalled", "observed_generation": generation, "conditions": conditions}
        )
        await self._write_status(manifest, after)
        await self._say(manifest, (Sentence(problem.reason, problem.message),))
        return Outcome(status=after, recheck_after=recheck_after)

    async def _write_status(self, manifest: Object, status: StreamJobStatus) -> Object | None:
        """The job as it is by then; None where there was nothing to write."""
        patch = status_patch(manifest, status.to_manifest())
        if patch is None:
            return None
        self._make_sure_to_lead()
        return await self.api.patch(STREAM_JOBS, *_key(manifest), patch, subresource="status")

    async def _make_sure_it_is(self, manifest: Object) -> None:
        """An act that the status has named before may be long over for everybody but a cache."""
        fresh = await self.api.get(STREAM_JOBS, *_key(manifest))
        self.cache.put(STREAM_JOBS, fresh)
        if version_of(fresh) != version_of(manifest):
            raise Conflict("the job has changed since it was last heard of", status=409)

    async def _say(self, manifest: Object, sentences: tuple[Sentence, ...]) -> None:
        for sentence in sentences:
            await self.events.record(manifest, sentence, now=self.now())

    def _make_sure_to_lead(self) -> None:
        make_sure(self.may_act())


def _makes_savepoint(made: Plan) -> bool:
    return any(isinstance(action, TakeSavepoint) for action in made.actions)


def _key(manifest: Object) -> Key:
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def _needs_certainty(made: Plan, sight: Sight, status: StreamJobStatus) -> bool:
    """A cache may not know yet of a driver that lives: nothing that takes it for gone may rest on a cache."""
    if any(isinstance(action, _NEEDS_CERTAINTY) for action in made.actions):
        return True
    attempt, current = status.run.attempt if status.run is not None else None, current_attempt(status)
    started = attempt is not None and (attempt.state == "Started" or is_activating(status))
    return started and current not in sight.found.drivers


def _recheck_after(made: Plan, sight: Sight, now: datetime) -> float | None:
    times = [_recheck_for_itself(made, sight, now)]
    times += [(made.schedule_at - now).total_seconds()] if made.schedule_at is not None else []
    return min((max(0.0, time) for time in times if time is not None), default=None)


def _recheck_for_itself(made: Plan, sight: Sight, now: datetime) -> float | None:
    if made.recheck_at is not None:
        return max(0.0, (made.recheck_at - now).total_seconds())
    if any(isinstance(action, StartAttempt) for action in made.actions):
        return 0.0  # its pod is known already: no watch will tell news of it
    if made.actions or any(is_leaving(pod) for pod in sight.found.drivers.values()):
        return _RECHECK_SECONDS
    reconciling = made.status.condition("Reconciling")
    if reconciling is None or reconciling.status != "True":
        return None
    # On its node a driver comes up, falls silent or waits for its volumes, and no event tells. One that waits
    # for a node wakes us when it gets one.
    return _RECHECK_SECONDS if any(map(is_placed, sight.found.drivers.values())) else _SELDOM_SECONDS
