"""The driver's agent, spoken to over loopback."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AgentClient:
    port: int
    token: str
    uid: str
    timeout_seconds: float = 5.0

    def status(self) -> dict[str, Any] | None:
        return self._call("GET", "/v1/status")

    def drain(self, *, timeout_seconds: float, snapshots_first: bool = False) -> bool:
        path = f"/v1/drain?timeoutSeconds={timeout_seconds}&snapshots={json.dumps(snapshots_first)}"
        return self._call("POST", path) is not None

    def activate(self, order: dict[str, Any]) -> bool:
        return self._call("POST", "/v1/activate", order) is not None

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """The answer, or None where there is none: a driver that starts or ends does not answer, and may."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout_seconds)
        try:
            connection.request(
                method,
                path,
                body=json.dumps(body) if body is not None else None,
                headers={"Authorization": f"Bearer {self.token}", "X-Headrace-Uid": self.uid},
            )
            answer = connection.getresponse()
            content = answer.read()
            return json.loads(content) if answer.status < 300 else None
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
