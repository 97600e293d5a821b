"""The API as tests speak it: JSON in, JSON out, and every refusal readable. Only the standard library."""

import base64
import http.client
import json
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Answer:
    status: int
    body: Object

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def message(self) -> str:
        """What the server says to a refused request; empty when it was accepted."""
        return "" if self.ok else str(self.body.get("message", ""))

    @property
    def refused_fields(self) -> list[str]:
        causes = (self.body.get("details") or {}).get("causes") or []
        return [cause.get("field", "") for cause in causes]

    def need(self) -> Object:
        assert self.ok, f"{self.status}: {self.message}"
        return self.body


class Api:
    """One API server, as one user."""

    def __init__(self, url: str, context: ssl.SSLContext | None) -> None:
        self._address = urlsplit(url)
        self._context = context

    @classmethod
    def plain(cls, url: str) -> "Api":
        """Through `kubectl proxy`, which does the rest."""
        return cls(url, None)

    @classmethod
    def from_kubeconfig(cls, kubeconfig: Path) -> "Api":
        """One that pki.write_kubeconfig wrote: JSON, one cluster, a client certificate."""
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
        # The ssl module reads a client's certificate from a file only.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
            pem.write(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            pem.flush()
            context.load_cert_chain(pem.name)
        return cls(cluster["server"], context)

    def get(self, path: str, **query: str) -> Answer:
        return self._request("GET", path, query=query)

    def create(self, path: str, body: Object, **query: str) -> Answer:
        return self._request("POST", path, body=body, query={"fieldValidation": "Strict", **query})

    def replace(self, path: str, body: Object, **query: str) -> Answer:
        return self._request("PUT", path, body=body, query={"fieldValidation": "Strict", **query})

    def patch(self, path: str, body: Object, **query: str) -> Answer:
        return self._request("PATCH", path, body=body, content_type=MERGE_PATCH, query=query)

    def apply(self, path: str, body: Object, **query: str) -> Answer:
        query = {"fieldManager": "tests", "force": "true", "fieldValidation": "Strict", **query}
        return self._request("PATCH", path, body=body, content_type=APPLY_PATCH, query=query)

    def delete(self, path: str, **query: str) -> Answer:
        return self._request("DELETE", path, query=query)

    def _request(
        self,
        method: str,
        path: str,
        *,
        body: Object | None = None,
        content_type: str = "application/json",
        query: dict[str, str],
    ) -> Answer:
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        connection = self._connect()
        try:
            connection.request(
                method, target, body=json.dumps(body) if body is not None else None, headers=headers
            )
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        try:
            parsed = json.loads(text)
        except json.JSONDecodeError:
            parsed = {"message": text}
        return Answer(response.status, parsed if isinstance(parsed, dict) else {"message": text})

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._context is None:
            return http.client.HTTPConnection(host, port, timeout=30)
        return http.client.HTTPSConnection(host, port, context=self._context, timeout=30)


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode()
