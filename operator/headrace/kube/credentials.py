"""Who we are to the API server: a pod's ServiceAccount, or the current context of a kubeconfig."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

_REQUEST_SECONDS = 30.0
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Credentials:
    server: str
    tls: ssl.SSLContext | None
    authorization: Callable[[], str | None]
    """The header, fresh each time: a ServiceAccount's token is replaced every hour."""


def load_credentials() -> Credentials:
    # A heavy import, and nobody but a starting operator needs it.
    from kubernetes import client, config  # noqa: PLC0415

    configuration: Any = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException:
        config.load_kube_config(client_configuration=configuration)
    return Credentials(
        server=configuration.host.rstrip("/"),
        tls=_tls(configuration) if configuration.host.startswith("https") else None,
        authorization=lambda: configuration.get_api_key_with_prefix("authorization"),
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
