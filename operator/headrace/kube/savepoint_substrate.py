"""Carries out what is planned for a StreamSavepoint, by keeper pods."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace

from headrace.api import SAVEPOINT_FINALIZER, StreamJobSpec, StreamSavepointStatus
from headrace.core.collecting import digest_of
from headrace.core.manifests import Platform, SavepointWork, savepoint_pod
from headrace.core.manifests.ownership import GENERATION_LABEL
from headrace.core.manifests.places import AGENT_PORT
from headrace.core.model import Problem
from headrace.core.savepoint_access import spec_with_access
from headrace.core.savepoint_contents import place_of
from headrace.core.savepoint_model import (
    HoldCopy,
    ReleaseCopy,
    RunKeeper,
    SavedJob,
    Savepoint,
    SavepointAction,
    StopKeepers,
)
from headrace.kube.cache import Cache
from headrace.kube.client import Api, Object
from headrace.kube.deleting import set_finalizer
from headrace.kube.errors import AlreadyExists, Denied, Invalid
from headrace.kube.found import is_leaving
from headrace.kube.keeper_progress import Keepers
from headrace.kube.keepers import next_try, remove_pods, waits_in_vain
from headrace.kube.memory import Memory
from headrace.kube.pods import has_ended
from headrace.kube.resources import PODS, STREAM_SAVEPOINTS
from headrace.kube.savepoint_sight import SavepointSight, asked_for, look_at_savepoint

# A keeper ends by itself when its time is over; this is for one that hangs.
_GRACE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class SavepointSubstrate:
    """What is planned for a savepoint, done with pods. Everything here may be done again without harm."""

    api: Api
    platform: Platform
    cache: Cache
    memory: Memory
    keepers: Keepers

    async def observe(self, manifest: Object, savepoint: Savepoint) -> SavepointSight:
        sight = look_at_savepoint(self.cache, self.platform, manifest, savepoint, memory=self.memory)
        takers = [pod for pod in sight.pods["take"] if not has_ended(pod) and not is_leaving(pod)]
        ip = takers[-1].get("status", {}).get("podIP") if takers else None
        if not ip or savepoint.deleting:
            return sight
        percent = await self.keepers.copied_percent(ip, owner=savepoint.uid)
        return replace(sight, observed=replace(sight.observed, copied_percent=percent))

    async def perform(
        self,
        manifest: Object,
        savepoint: Savepoint,
        status: StreamSavepointStatus,
        sight: SavepointSight,
        action: SavepointAction,
    ) -> None:
        """`manifest` is the StreamSavepoint as it was looked at, `status` the one that names the action."""
        match action:
            case HoldCopy():
                await self._set_finalizer(manifest, wanted=True)
            case ReleaseCopy():
                # Nobody owns these, so nobody else removes them.
                await remove_pods(self.api, savepoint.namespace, sight.pods["discard"])
                await self._set_finalizer(manifest, wanted=False)
                self.memory.keeper_problems.pop(savepoint.uid, None)
            case StopKeepers():
                pods = [pod for task in action.tasks for pod in sight.pods[task] if not is_leaving(pod)]
                await remove_pods(self.api, savepoint.namespace, pods)
                self.memory.keeper_problems.pop(savepoint.uid, None)
            case RunKeeper():
                await self._run(savepoint, status, sight, action)

    async def _set_finalizer(self, manifest: Object, *, wanted: bool) -> None:
        await set_finalizer(
            self.api, manifest, wanted=wanted, resource=STREAM_SAVEPOINTS, finalizer=SAVEPOINT_FINALIZER
        )

    async def _run(
        self,
        savepoint: Savepoint,
        status: StreamSavepointStatus,
        sight: SavepointSight,
        action: RunKeeper,
    ) -> None:
        tries = asked_for(savepoint, action.task, sight.pods[action.task])
        earlier = [pod for pod in sight.pods[action.task] if pod not in tries and not is_leaving(pod)]
        await remove_pods(self.api, savepoint.namespace, earlier)
        job = sight.observed.job
        made_from = f"{job.generation if isinstance(job, SavedJob) else 0}-{savepoint.generation}"
        if under_way := [pod for pod in tries if not has_ended(pod)]:
            vain = [pod for pod in under_way if waits_in_vain(pod, GENERATION_LABEL, made_from)]
            await remove_pods(self.api, savepoint.namespace, vain)
            return
        if (number := next_try(tries, self.memory)) is None:
            return
        left = _seconds_left(savepoint, sight) if action.task == "take" else None
        work = SavepointWork(
            namespace=savepoint.namespace,
            job=savepoint.spec.job.name,
            savepoint=savepoint.name,
            savepoint_uid=savepoint.uid,
            spec=_spec(job, status),
            task=action.task,
            arguments=_arguments(savepoint, status, action, left),
            made_from=made_from,
            number=number,
            asked=digest_of(savepoint.check or "") if action.task == "check" else None,
            limit_seconds=left + _GRACE_SECONDS if left is not None else None,
        )
        try:
            with contextlib.suppress(AlreadyExists):
                await self.api.create(PODS, savepoint.namespace, savepoint_pod(work, self.platform))
        except (Denied, Invalid) as refusal:
            self.memory.keeper_problems[savepoint.uid] = Problem("KeeperRefused", str(refusal))
            raise
        self.memory.keeper_problems.pop(savepoint.uid, None)
        # The last one that failed stays until there is news: it is what tells why.
        await remove_pods(self.api, savepoint.namespace, tries[:-1])


def _spec(job: SavedJob | Problem | None, status: StreamSavepointStatus) -> StreamJobSpec:
    """As the job has it now: whoever corrects its store's settings gets the savepoint out of its trouble."""
    if isinstance(job, SavedJob):
        return job.spec
    assert status.access is not None  # it is written with the intent, before anything is to be done
    return spec_with_access(status.access)


def _seconds_left(savepoint: Savepoint, sight: SavepointSight) -> int:
    spent = sight.observed.under_way.total_seconds()
    return max(1, math.ceil(savepoint.spec.time_limit.seconds - spent))


def _arguments(
    savepoint: Savepoint, status: StreamSavepointStatus, action: RunKeeper, left: int | None
) -> tuple[str, ...]:
    assert status.path is not None  # likewise
    store, directory = place_of(status.path)
    place = (f"--store={store}", f"--savepoint={directory}")
    match action.task:
        case "take":
            rate = savepoint.spec.max_copy_rate
            return (
                "savepoint",
                *place,
                f"--from={status.source}",
                f"--owner={savepoint.uid}",
                f"--job={savepoint.namespace}/{savepoint.spec.job.name}",
                f"--cause={savepoint.spec.cause}",
                f"--spec-digest={status.revision}",
                f"--time-limit-seconds={left}",
                f"--progress-port={AGENT_PORT}",
                *([f"--max-bytes-per-second={rate.bytes}"] if rate is not None else []),
            )
        case "verify" | "check":
            return ("verify", *place, f"--level={action.level}")
        case "discard":
            return ("discard", *place, f"--why=StreamSavepoint {savepoint.name} was deleted")
