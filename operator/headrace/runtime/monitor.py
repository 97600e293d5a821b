"""Asks the agents of running drivers how they are, between two passes.

What it hears goes to the metrics and to the autoscaler. Only what could change a decision wakes the
reconciler: so a fleet in peace costs one small request per job and interval, and none to the API server.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.kube.agent import AgentAddress, Agents
from headrace.runtime.job_metrics import JobMetrics
from headrace.runtime.reconcile import Key, Outcome
from headrace.runtime.scaling import Scaling

_CALM_SECONDS = 15.0
_BUSY_SECONDS = 1.0
_TICK_SECONDS = 0.5
_AT_ONCE = 32
# As long as a silent agent is believed, and a little more: then the status must say so.
_SILENCE_SECONDS = 65.0

Signature = tuple[Any, ...] | None
Wake = Callable[[Key], None]


@dataclass(frozen=True)
class _Watched:
    address: AgentAddress
    signature: Signature
    due: float
    silent_since: float | None = None


@dataclass(kw_only=True)
class Monitor:
    agents: Agents
    metrics: JobMetrics
    scaling: Scaling
    clock: Callable[[], float]
    _watched: dict[Key, _Watched] = field(default_factory=dict)

    def follow(self, key: Key, outcome: Outcome) -> None:
        """After a pass: from here on, until the next one."""
        self.scaling.follow(key, outcome)
        if outcome.address is None:
            self._watched.pop(key, None)
            return
        seen, before = signature_of(outcome.report), self._watched.get(key)
        due = self.clock() + _interval(seen)
        # Passes that follow each other do not put the autoscaler's next look off.
        if before is not None and (before.address, before.signature) == (outcome.address, seen):
            due = min(due, before.due)
        self._watched[key] = _Watched(outcome.address, seen, due)

    def forget(self, key: Key) -> None:
        self._watched.pop(key, None)
        self.scaling.forget(key)

    async def run(self, wake: Wake) -> None:
        while True:
            await self.ask_all_due(wake)
            await asyncio.sleep(_TICK_SECONDS)

    async def ask_all_due(self, wake: Wake) -> None:
        now = self.clock()
        due = [(key, watched) for key, watched in self._watched.items() if watched.due <= now]
        for start in range(0, len(due), _AT_ONCE):
            some = due[start : start + _AT_ONCE]
            await asyncio.gather(*(self._ask(key, watched, wake) for key, watched in some))

    async def _ask(self, key: Key, watched: _Watched, wake: Wake) -> None:
        report = await self.agents.status(watched.address)
        if self._watched.get(key) is not watched:
            return  # a pass has been there meanwhile, and knows better
        now, seen = self.clock(), signature_of(report)
        since = None if report is not None else watched.silent_since or now
        self._watched[key] = replace(watched, signature=seen, due=now + _interval(seen), silent_since=since)
        self.metrics.set_report(key, report)
        if await self.scaling.look(key, watched.address, report):
            wake(key)
        if seen != watched.signature or (since is not None and now - since > _SILENCE_SECONDS):
            wake(key)


def signature_of(report: Mapping[str, Any] | None) -> Signature:
    """Of what an agent says, that which a decision may depend on."""
    if report is None:
        return None
    queries = [(query["name"], query["active"], bool(query.get("stuck"))) for query in report["queries"]]
    return report["phase"], *queries


def _interval(seen: Signature) -> float:
    calm = seen is None or seen[0] == "Running"
    # Spread, so that a fleet that was started together is not asked together.
    return (_CALM_SECONDS if calm else _BUSY_SECONDS) * random.uniform(0.8, 1.2)  # noqa: S311
