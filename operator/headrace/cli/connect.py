"""How a cluster is reached: a kubeconfig and its context, or the ServiceAccount of the pod we run in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from headrace.cli.cluster import Answer, Cluster, ClusterProblem, Object, Ran, parsed
from headrace.kube.errors import from_answer

_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_CONNECT_SECONDS, _READ_SECONDS = 10.0, 60.0


def connect(
    *,
    context: str | None = None,
    kubeconfig: Path | None = None,
    namespace: str | None = None,
    everywhere: bool = False,
) -> Cluster:
    """The official client reads the credentials, plugins of clouds included; a proxy's settings as well."""
    try:
        from kubernetes import client, config  # noqa: PLC0415 - a second of its own, for those who need it
    except ImportError:
        raise ClusterProblem(
            "the Python package kubernetes is not installed: pip install 'headrace[kubectl]'"
        ) from None
    settings: Any = client.Configuration()
    if context is None and kubeconfig is None and not _has_kubeconfig() and _in_pod():
        config.load_incluster_config(client_configuration=settings)
        name, home = "in-cluster", _POD_NAMESPACE.read_text().strip()
    else:
        name, home = _load_kubeconfig(config, settings, context, kubeconfig)
    return Cluster(
        transport=HttpTransport(settings=settings, client=client.ApiClient(settings)),
        namespace=namespace or home,
        everywhere=everywhere,
        name=name,
    )


def _load_kubeconfig(config: Any, settings: Any, context: str | None, path: Path | None) -> tuple[str, str]:
    file = str(path) if path is not None else None
    shown = file or os.environ.get("KUBECONFIG") or "~/.kube/config"
    try:
        contexts, active = config.list_kube_config_contexts(config_file=file)
        names = [one["name"] for one in contexts]
        if context is not None and context not in names:
            raise ClusterProblem(f"there is no context {context} in {shown}. There are: {', '.join(names)}")
        config.load_kube_config(config_file=file, context=context, client_configuration=settings)
    except (config.ConfigException, OSError, ValueError) as error:
        raise ClusterProblem(
            f"no cluster can be reached by {shown}: {error}\n"
            "Name a kubeconfig with --kubeconfig or KUBECONFIG, and a context in it with --context"
        ) from None
    chosen = next((one for one in contexts if one["name"] == context), active)
    return chosen["name"], chosen["context"].get("namespace") or "default"


def _has_kubeconfig() -> bool:
    named = os.environ.get("KUBECONFIG")
    return bool(named) or (Path.home() / ".kube/config").exists()


def _in_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and _POD_NAMESPACE.exists()


@dataclass(frozen=True)
class HttpTransport:
    """Plain requests through the official client's connections: its certificates, proxies and tokens."""

    settings: Any
    client: Any

    def request(
        self, method: str, path: str, *, query: Mapping[str, str], body: Object | None, content_type: str
    ) -> Answer:
        response = self._send(
            method, path, query, json.dumps(body).encode() if body is not None else None, content_type
        )
        return Answer(response.status, parsed(response.data))

    def lines(self, path: str, *, query: Mapping[str, str]) -> Iterator[str]:
        response = self._send("GET", path, query, None, "application/json", stream=True)
        if response.status >= 300:
            raise from_answer(response.status, parsed(response.read()))
        rest = b""
        for chunk in response.stream(amt=None, decode_content=True):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
        if rest:
            yield rest.decode(errors="replace")

    def run(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> Ran:
        from kubernetes import client  # noqa: PLC0415
        from kubernetes.stream import stream  # noqa: PLC0415

        core = client.CoreV1Api(self.client)
        try:
            socket: Any = stream(
                core.connect_get_namespaced_pod_exec,
                pod,
                namespace,
                container=container,
                command=list(command),
                stdin=False,
                stdout=True,
                stderr=True,
                tty=False,
                _preload_content=False,
            )
            socket.run_forever(timeout=_READ_SECONDS)
        except client.ApiException as error:
            raise from_answer(error.status or 500, parsed((error.body or "").encode())) from None
        return Ran(int(socket.returncode or 0), socket.read_channel(1), socket.read_channel(2))

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        *,
        stream: bool = False,
    ) -> Any:
        import urllib3  # noqa: PLC0415 - comes with the client

        headers = {"Accept": "application/json, */*", "Content-Type": content_type, "User-Agent": "headrace"}
        # The name of the entry has changed between versions of the client.
        if (
            authorization := self.settings.get_api_key_with_prefix("BearerToken", "authorization")
        ) is not None:
            headers["Authorization"] = authorization
        address = f"{self.settings.host.rstrip('/')}{path}{f'?{urlencode(query)}' if query else ''}"
        try:
            return self.client.rest_client.pool_manager.request(
                method,
                address,
                body=body,
                headers=headers,
                preload_content=not stream,
                timeout=urllib3.Timeout(
                    connect=_CONNECT_SECONDS, read=None if stream and "follow" in query else _READ_SECONDS
                ),
                retries=urllib3.Retry(connect=1, read=0, redirect=3, other=0),
            )
        except urllib3.exceptions.HTTPError as error:
            raise ClusterProblem(
                f"the cluster at {self.settings.host} does not answer: {_why(error)}\n"
                "Is it up, and is it the one you mean? Choose another with --context"
            ) from None


def _why(error: Exception) -> str:
    """The reason at the bottom, without the layers above it."""
    reason = getattr(error, "reason", None)
    return str(reason if reason is not None else error)
