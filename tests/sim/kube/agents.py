"""The agents of a fake cluster's drivers: what each says of itself, and which orders it takes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from headrace.kube.agent import AgentAddress
from headrace_jobs.harness.scaling_ring import empty, with_news
from tests.sim.kube.fake_api import Object, Place


@dataclass
class Agent:
    """The agent of one driver pod."""

    pod: Place
    phase: str = "Starting"
    drains: bool = False
    deaf: bool = False
    stuck: bool = False
    busy: bool = False
    batches: int = 0
    # It may write: of a candidate, once it has taken over.
    claimed: bool = True
    # The order by which a candidate takes over, and why it came to nothing.
    order: dict[str, Any] | None = None
    copied: bool = False
    refusal: str = ""
    # What it tells beyond that, if the test cares.
    told: dict[str, Any] = field(default_factory=dict)


@dataclass
class FakeAgents:
    by_uid: dict[str, Agent] = field(default_factory=dict)
    # What the autoscaler has left with the job: in its store, so that the next attempt has it, too.
    ring: dict[str, Any] = field(default_factory=dict)
    # How long a drain may take, each time that one was asked for.
    drain_limits: list[float] = field(default_factory=list)
    snapshots_first: list[bool] = field(default_factory=list)
    # Every order to take over that was taken.
    orders: list[dict[str, Any]] = field(default_factory=list)

    async def status(self, address: AgentAddress) -> dict[str, Any] | None:
        agent = self.by_uid.get(address.uid)
        if agent is None or agent.deaf:
            return None
        query = {
            "name": "q",
            "active": True,
            "committedBatch": 1 if agent.batches and not agent.busy else None,
            "batchStartedAt": "2026-01-01T00:00:00Z" if agent.busy else None,
            "lastProgressAt": None if agent.busy else "2026-01-01T00:00:00Z",
            "stuck": agent.stuck,
            "lag": {"known": True, "rows": 0},
        }
        report = {"phase": agent.phase, "queries": [query], "activation": _activation(agent)}
        return {**report, **agent.told}

    async def activate(self, address: AgentAddress, order: dict[str, Any]) -> bool:
        agent = self.by_uid.get(address.uid)
        if agent is None or agent.deaf:
            return False
        if agent.order == order and not agent.refusal:
            return True
        if agent.phase != "Standby":
            return False
        agent.order, agent.phase, agent.refusal = order, "Activating", ""
        self.orders.append(order)
        return True

    async def drain(
        self, address: AgentAddress, *, timeout_seconds: float, snapshots_first: bool = False
    ) -> bool:
        agent = self.by_uid.get(address.uid)
        if agent is None or agent.deaf:
            return False
        self.drain_limits.append(timeout_seconds)
        self.snapshots_first.append(snapshots_first)
        agent.drains, agent.phase = True, "Draining"
        return True

    async def scaling(self, address: AgentAddress) -> dict[str, Any] | None:
        agent = self.by_uid.get(address.uid)
        return None if agent is None or agent.deaf else self.ring

    async def keep_scaling(self, address: AgentAddress, news: dict[str, Any]) -> bool:
        agent = self.by_uid.get(address.uid)
        if agent is None or agent.deaf:
            return False
        self.ring = with_news({**empty(), **self.ring}, json.loads(json.dumps(news)))
        return True


def _activation(agent: Agent) -> Object | None:
    if agent.order is None:
        return None
    state = "Failed" if agent.refusal else "Active" if agent.phase == "Running" else "Copying"
    return {**agent.order, "state": state, "message": agent.refusal or None, "seconds": {"copy": 0.3}}
