"""Who we are to the API server: a pod's ServiceAccount, or the current context of a kubeconfig."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_HEADER_SECONDS = 60.0
_REQUEST_SECONDS = 30.0
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Credentials:
    server: str
    tls: ssl.SSLContext | None
    authorization: Callable[[], str | None]
    """The header, fresh each time: a ServiceAccount's token is replaced every hour."""


def load_credentials() -> Credentials:
    return in_cluster(Path(_SERVICE_ACCOUNT), os.environ, clock=time.monotonic) or _from_kubeconfig()


def in_cluster(
    directory: Path, environment: Mapping[str, str], *, clock: Callable[[], float]
) -> Credentials | None:
    """The ServiceAccount of the pod that we run in; None where we do not run in one."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    token = directory / "token"
    if not host or not port or not token.exists():
        return None
    return Credentials(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        tls=ssl.create_default_context(cafile=str(directory / "ca.crt")),
        # The kubelet replaces the token about once an hour, well before the old one ends.
        authorization=_Header(lambda: f"Bearer {token.read_text().strip()}", clock).fresh,
    )


@dataclass
class _Header:
    """Read again now and then; for each request anew it would cost more than the request."""

    read: Callable[[], str | None]
    clock: Callable[[], float]
    _header: str | None = None
    _read_at: float = float("-inf")

    def fresh(self) -> str | None:
        if self.clock() - self._read_at > _HEADER_SECONDS:
            self._header, self._read_at = self.read(), self.clock()
        return self._header


def _from_kubeconfig() -> Credentials:
    # A heavy import, and an operator in a pod does not need it.
    from kubernetes import client, config  # noqa: PLC0415

    configuration: Any = client.Configuration()
    config.load_kube_config(client_configuration=configuration)
    return Credentials(
        server=configuration.host.rstrip("/"),
        tls=_tls(configuration) if configuration.host.startswith("https") else None,
        authorization=_Header(
            # The name of the entry has changed between versions of the client.
            lambda: configuration.get_api_key_with_prefix("BearerToken", "authorization"),
            time.monotonic,
        ).fresh,
    )


def open_session(
    credentials: Credentials, *, traces: Sequence[aiohttp.TraceConfig] = ()
) -> aiohttp.ClientSession:
    """A session that authorises every request by itself. The caller closes it."""

    async def authorize(
        request: aiohttp.ClientRequest,
        handler: Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]],
    ) -> aiohttp.ClientResponse:
        if (header := credentials.authorization()) is not None:
            request.headers["Authorization"] = header
        return await handler(request)

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=credentials.tls or True),
        headers={"User-Agent": "headrace"},
        timeout=aiohttp.ClientTimeout(total=_REQUEST_SECONDS, sock_connect=_CONNECT_SECONDS),
        middlewares=[authorize],
        trace_configs=list(traces),
    )


def _tls(configuration: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
