"""The driver's agent, spoken to over the pod network."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any, Protocol, cast

import aiohttp

from headrace.core.manifests.places import AGENT_PORT
from headrace.core.model import AttemptPhase
from headrace.core.reports import CANDIDATE_PHASES

_LONGEST_ANSWER = 4_000_000
_TIMEOUT = aiohttp.ClientTimeout(total=3.0, sock_connect=1.5)


@dataclass(frozen=True)
class AgentAddress:
    """Where an attempt's agent is. Addresses are reused; the uid says whom we mean."""

    ip: str
    uid: str


class Agents(Protocol):
    async def status(self, address: AgentAddress) -> dict[str, Any] | None:
        """The agent's report, or None: a driver that starts, ends or is cut off does not answer."""
        ...

    async def drain(
        self, address: AgentAddress, *, timeout_seconds: float, snapshots_first: bool = False
    ) -> bool:
        """Whether the agent has taken the request. A driver that drains already keeps to its first limit."""
        ...

    async def activate(self, address: AgentAddress, order: dict[str, Any]) -> bool:
        """Whether the candidate has taken the order, now or before; what becomes of it is in its status."""
        ...

    async def scaling(self, address: AgentAddress) -> dict[str, Any] | None:
        """What the autoscaler has left with the job; None where the agent cannot say (yet)."""
        ...

    async def keep_scaling(self, address: AgentAddress, news: dict[str, Any]) -> bool:
        """Whether the agent has taken it."""
        ...


@dataclass(frozen=True)
class AgentTokens:
    """Tokens that a restarted operator knows again, without reading any Secret."""

    key: bytes

    def of(self, attempt_uid: str) -> str:
        return hmac.new(self.key, attempt_uid.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class HttpAgents:
    session: aiohttp.ClientSession
    tokens: AgentTokens
    port: int = AGENT_PORT

    async def status(self, address: AgentAddress) -> dict[str, Any] | None:
        report = await self._call("GET", "/v1/status", address)
        return report if report is not None and _makes_sense(report) else None

    async def drain(
        self, address: AgentAddress, *, timeout_seconds: float, snapshots_first: bool = False
    ) -> bool:
        path = f"/v1/drain?timeoutSeconds={timeout_seconds}&snapshots={json.dumps(snapshots_first)}"
        return await self._call("POST", path, address) is not None

    async def activate(self, address: AgentAddress, order: dict[str, Any]) -> bool:
        return await self._call("POST", "/v1/activate", address, body=order) is not None

    async def scaling(self, address: AgentAddress) -> dict[str, Any] | None:
        return await self._call("GET", "/v1/scaling", address)

    async def keep_scaling(self, address: AgentAddress, news: dict[str, Any]) -> bool:
        return await self._call("POST", "/v1/scaling", address, body=news) is not None

    async def _call(
        self, method: str, path: str, address: AgentAddress, *, body: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        host = f"[{address.ip}]" if ":" in address.ip else address.ip
        headers = {
            "Authorization": f"Bearer {self.tokens.of(address.uid)}",
            "X-Headrace-Uid": address.uid,
        }
        try:
            async with self.session.request(
                method, f"http://{host}:{self.port}{path}", headers=headers, json=body, timeout=_TIMEOUT
            ) as response:
                return await _read(response) if response.status < 300 else None
        except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError):
            return None


async def _read(response: aiohttp.ClientResponse) -> dict[str, Any] | None:
    """Only so much: it comes out of a container in which the user's code runs."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _LONGEST_ANSWER:
            return None
    answer = json.loads(content)
    return cast(dict[str, Any], answer) if isinstance(answer, dict) else None


def _makes_sense(report: dict[str, Any]) -> bool:
    """Whether it has what decisions are made from. The rest is numbers, each of which may be missing."""
    phase, queries = report.get("phase"), report.get("queries")
    return (
        isinstance(phase, str)
        and (phase in set(AttemptPhase) or phase in CANDIDATE_PHASES)
        and isinstance(queries, list)
        and all(isinstance(query, dict) and _is_query(query) for query in cast(list[Any], queries))
    )


def _is_query(query: dict[str, Any]) -> bool:
    batch = query.get("committedBatch")
    known = isinstance(query.get("name"), str) and isinstance(query.get("active"), bool)
    return known and (batch is None or isinstance(batch, int))
