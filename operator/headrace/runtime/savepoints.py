"""One pass over one StreamSavepoint: observe, validate, plan, write the status, act. As that over a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from headrace.api import SAVEPOINT_FINALIZER, StreamSavepointStatus
from headrace.core.conditions import with_facts
from headrace.core.decision import Sentence, stalled_facts
from headrace.core.model import Problem
from headrace.core.savepoint_plan import SavepointPlan, plan_savepoint
from headrace.kube.cache import AnyKey, SavepointKey, concerned, key_of, version_of
from headrace.kube.client import Object, status_patch
from headrace.kube.errors import Conflict
from headrace.kube.found import is_leaving
from headrace.kube.resources import STREAM_SAVEPOINTS
from headrace.kube.savepoint_sight import read_savepoint
from headrace.kube.savepoint_substrate import SavepointSubstrate
from headrace.runtime.events import EventRecorder
from headrace.runtime.leading import make_sure

# Results come as events. This is for those that get lost, and for what no event tells.
_RECHECK_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class SavepointOutcome:
    """What a pass found, for those who depend on the savepoint."""

    gone: bool = False
    recheck_after: float | None = None
    # What we write ourselves, no watch tells as news.
    wakes: frozenset[AnyKey] = frozenset()
    # The job whose savepoint was given up in this pass, and why.
    failed: tuple[str, str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class SavepointReconciler:
    substrate: SavepointSubstrate
    events: EventRecorder
    now: Callable[[], datetime]
    may_act: Callable[[], bool]

    async def reconcile(self, key: SavepointKey) -> SavepointOutcome:
        manifest = self.substrate.cache.savepoint(key)
        if manifest is None:
            return SavepointOutcome(gone=True)
        held = SAVEPOINT_FINALIZER in (manifest["metadata"].get("finalizers") or ())
        if is_leaving(manifest) and not held:
            return SavepointOutcome(gone=True)
        now, status = self.now(), StreamSavepointStatus.parse(manifest.get("status") or {})
        savepoint = read_savepoint(manifest)
        if isinstance(savepoint, Problem):
            return await self._reject(manifest, status, savepoint, now)
        sight = await self.substrate.observe(manifest, savepoint)
        made = plan_savepoint(savepoint, status, sight.observed, now)
        wrote = await self._write_status(manifest, made.status)
        await self._say(manifest, made.says, now)
        if made.actions and not wrote:
            await self._make_sure_it_is(manifest)
        for action in made.actions:
            make_sure(self.may_act())
            await self.substrate.perform(manifest, savepoint, made.status, sight, action)
        return SavepointOutcome(
            recheck_after=_RECHECK_SECONDS if made.waits else None,
            wakes=self._dependents(manifest) if wrote else frozenset(),
            failed=_failure(manifest, made),
        )

    async def _reject(
        self, manifest: Object, status: StreamSavepointStatus, problem: Problem, now: datetime
    ) -> SavepointOutcome:
        """Written by another version: nothing is done to it."""
        generation = manifest["metadata"]["generation"]
        facts = stalled_facts(problem.reason, problem.message)
        conditions = with_facts(status.conditions, facts, now=now, generation=generation)
        after = status.model_copy(
            update={"state": "Stalled", "observed_generation": generation, "conditions": conditions}
        )
        await self._write_status(manifest, after)
        return SavepointOutcome()

    async def _write_status(self, manifest: Object, status: StreamSavepointStatus) -> bool:
        """Whether there was anything to write."""
        patch = status_patch(manifest, status.to_manifest())
        if patch is None:
            return False
        make_sure(self.may_act())
        metadata = manifest["metadata"]
        await self.substrate.api.patch(
            STREAM_SAVEPOINTS, metadata["namespace"], metadata["name"], patch, subresource="status"
        )
        return True

    async def _make_sure_it_is(self, manifest: Object) -> None:
        """An act that the status has named before may be long over for everybody but a cache."""
        metadata = manifest["metadata"]
        fresh = await self.substrate.api.get(STREAM_SAVEPOINTS, metadata["namespace"], metadata["name"])
        self.substrate.cache.put(STREAM_SAVEPOINTS, fresh)
        if version_of(fresh) != version_of(manifest):
            raise Conflict("the savepoint has changed since it was last heard of", status=409)

    async def _say(self, manifest: Object, sentences: tuple[Sentence, ...], now: datetime) -> None:
        for sentence in sentences:
            await self.events.record(manifest, sentence, now=now)

    def _dependents(self, manifest: Object) -> frozenset[AnyKey]:
        own = key_of(manifest)
        return frozenset(concerned(self.substrate.cache, STREAM_SAVEPOINTS, manifest)) - {own}


def _failure(manifest: Object, made: SavepointPlan) -> tuple[str, str, str] | None:
    stalled = made.status.condition("Stalled")
    if not made.failed or stalled is None:
        return None
    return manifest["metadata"]["namespace"], manifest["spec"]["job"]["name"], stalled.reason
