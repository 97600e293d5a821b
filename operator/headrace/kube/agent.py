"""The driver's agent, spoken to over the pod network."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp

from headrace.core.manifests.places import AGENT_PORT

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

    async def drain(self, address: AgentAddress, *, timeout_seconds: float) -> bool:
        """Whether the agent has taken the request. A driver that drains already keeps to its first limit."""
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
        return await self._call("GET", "/v1/status", address)

    async def drain(self, address: AgentAddress, *, timeout_seconds: float) -> bool:
        path = f"/v1/drain?timeoutSeconds={timeout_seconds}"
        return await self._call("POST", path, address) is not None

    async def _call(self, method: str, path: str, address: AgentAddress) -> dict[str, Any] | None:
        host = f"[{address.ip}]" if ":" in address.ip else address.ip
        headers = {
            "Authorization": f"Bearer {self.tokens.of(address.uid)}",
            "X-Headrace-Uid": address.uid,
        }
        try:
            async with self.session.request(
                method, f"http://{host}:{self.port}{path}", headers=headers, timeout=_TIMEOUT
            ) as response:
                return await response.json() if response.status < 300 else None
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None
