"""One pass over one job: observe, validate, plan, write the status, act. Why it is called is no input.

The status is written before anything is done, with the version that was read as precondition. Whoever else
has written meanwhile, another operator or a person, makes this pass end with a Conflict and nothing done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headrace.api import StreamJobStatus
from headrace.core.conditions import with_facts
from headrace.core.decision import Plan, Sentence, stalled_facts
from headrace.core.deletion import way_out
from headrace.core.model import Job, Problem
from headrace.core.plan import plan
from headrace.core.validate import deletes_checkpoints, is_held, job_of, validate
from headrace.kube.agent import AgentAddress
from headrace.kube.client import Api, Object, status_patch
from headrace.kube.deleting import set_finalizer
from headrace.kube.errors import NotFound
from headrace.kube.found import is_leaving
from headrace.kube.memory import Recent
from headrace.kube.pins import pinned_spec
from headrace.kube.resources import STREAM_JOBS
from headrace.kube.sight import Sight
from headrace.kube.substrate import KubeSubstrate
from headrace.runtime.events import EventRecorder

log = logging.getLogger("headrace")

Key = tuple[str, str]  # (namespace, name)

# Results come as events. This is for those that get lost while something is under way.
_RECHECK_SECONDS = 10.0


class NoLongerLeader(Exception):
    """Another operator acts now. Nothing more may be done here."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a pass found, for those who watch the job between two passes."""

    job: Job | None = None
    status: StreamJobStatus | None = None
    report: Mapping[str, Any] | None = None
    address: AgentAddress | None = None
    recheck_after: float | None = None


GONE = Outcome()


@dataclass(frozen=True, kw_only=True)
class Reconciler:
    api: Api
    substrate: KubeSubstrate
    events: EventRecorder
    now: Callable[[], datetime]
    may_act: Callable[[], bool]
    # The versions that our own writes made: their events tell us nothing new.
    own_versions: Recent[Key, str] = field(default_factory=Recent[Key, str])

    async def reconcile(self, key: Key) -> Outcome:
        try:
            manifest = await self.api.get(STREAM_JOBS, *key)
        except NotFound:
            return GONE
        if is_leaving(manifest) and not is_held(manifest):
            return GONE  # owner references clean up, and nothing is to be started any more
        status = StreamJobStatus.parse(manifest.get("status") or {})
        match await self._validated(manifest, status):
            case Problem() as problem:
                return await self._reject(manifest, status, problem)
            case Job() as job:
                return await self._pass(manifest, job, status)

    async def _validated(self, manifest: Object, status: StreamJobStatus) -> Job | Problem:
        """A spec that cannot be taken does not touch what runs: that goes on as it was pinned."""
        default_location = self.substrate.platform.checkpoint_location
        if is_leaving(manifest) and status.run is not None:
            # It begins nothing any more, and where its checkpoints are is known.
            default_location = default_location or status.run.path
        checked = validate(manifest, default_location=default_location)
        if isinstance(checked, Job) or status.run is None:
            return checked
        metadata = manifest["metadata"]
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
        sight = await self.substrate.observe(job, status, now=now)
        made = plan(job, status, sight.observed, now)
        await self._write_status(manifest, made.status)
        await self._say(manifest, made.says)
        await self._act(manifest, job, made, sight, now)
        return Outcome(
            job=job,
            status=made.status,
            report=sight.report,
            address=sight.address,
            recheck_after=_recheck_after(made, now),
        )

    async def _act(self, manifest: Object, job: Job, made: Plan, sight: Sight, now: datetime) -> None:
        for action in made.actions:
            self._make_sure_to_lead()
            log.debug("%s/%s: %s", job.namespace, job.name, type(action).__name__)
            await self.substrate.perform(manifest, job, made.status, sight, action, now=now)
        if job.paused:
            return
        self._make_sure_to_lead()
        await self.substrate.upkeep(job, made.status, sight)

    async def _reject(self, manifest: Object, status: StreamJobStatus, problem: Problem) -> Outcome:
        """There is nothing to go on with: no run, and no spec to make one of."""
        leaving = is_leaving(manifest)
        if is_held(manifest) and (not deletes_checkpoints(manifest) or (leaving and status.run is None)):
            self._make_sure_to_lead()
            await set_finalizer(self.api, manifest, wanted=False)
            if leaving:
                return GONE
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
        return Outcome(status=after)

    async def _write_status(self, manifest: Object, status: StreamJobStatus) -> None:
        patch = status_patch(manifest, status.to_manifest())
        if patch is None:
            return
        self._make_sure_to_lead()
        key = (manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        written = await self.api.patch(STREAM_JOBS, *key, patch, subresource="status")
        self.own_versions[key] = written["metadata"]["resourceVersion"]

    async def _say(self, manifest: Object, sentences: tuple[Sentence, ...]) -> None:
        for sentence in sentences:
            await self.events.record(manifest, sentence, now=self.now())

    def _make_sure_to_lead(self) -> None:
        if not self.may_act():
            raise NoLongerLeader


def _recheck_after(made: Plan, now: datetime) -> float | None:
    if made.recheck_at is not None:
        return max(0.0, (made.recheck_at - now).total_seconds())
    reconciling = made.status.condition("Reconciling")
    under_way = reconciling is not None and reconciling.status == "True"
    return _RECHECK_SECONDS if under_way or made.actions else None
