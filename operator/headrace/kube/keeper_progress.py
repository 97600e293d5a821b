"""How far a keeper is with its copy, asked over the pod network. Nobody depends on the answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol, cast

import aiohttp

from headrace.core.manifests.places import AGENT_PORT

_LONGEST_ANSWER = 10_000
_TIMEOUT = aiohttp.ClientTimeout(total=2.0, sock_connect=1.0)


class Keepers(Protocol):
    async def copied_percent(self, ip: str, *, owner: str) -> int | None:
        """None where it does not answer, has nothing to say yet, or is another's: addresses are reused."""
        ...


@dataclass(frozen=True)
class HttpKeepers:
    session: aiohttp.ClientSession
    port: int = AGENT_PORT

    async def copied_percent(self, ip: str, *, owner: str) -> int | None:
        host = f"[{ip}]" if ":" in ip else ip
        url = f"http://{host}:{self.port}/v1/progress"
        try:
            async with self.session.get(url, timeout=_TIMEOUT) as response:
                content = await response.content.read(_LONGEST_ANSWER)
                told = json.loads(content) if response.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError):
            return None
        return _percent(told, owner)


def _percent(told: Any, owner: str) -> int | None:
    if not isinstance(told, dict):
        return None
    answer = cast(dict[str, Any], told)
    done, whole = answer.get("bytesDone"), answer.get("bytes")
    if answer.get("owner") != owner or not isinstance(done, int) or not isinstance(whole, int) or whole <= 0:
        return None
    return max(0, min(100, 100 * done // whole))
