"""etcd and the API server: how they are started, on loopback for tests or inside a node's namespaces."""

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import binaries, debian, pki
from .processes import Process, start, wait_ready

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class ApiServer:
    """Only the API: objects are stored, validated and watched, but nothing acts on them."""

    url: str
    kubeconfig: Path
    kubectl: Path
    version: str


@contextmanager
def running_api_server(directory: Path) -> Iterator[ApiServer]:
    """etcd and kube-apiserver on loopback, for as long as the caller lives. Needs no root."""
    debian.need(debian.FOR_API_SERVER)
    programs = binaries.ensure(binaries.API_SERVER_PROGRAMS)
    serving = pki.Identity("apiserver", "kube-apiserver", names=(f"IP:{LOOPBACK}",))
    keys = pki.ensure(directory / "pki", [pki.ADMIN, serving])
    etcd_port, etcd_peer_port, port = free_ports(3)
    etcd_url, url = f"http://{LOOPBACK}:{etcd_port}", f"https://{LOOPBACK}:{port}"
    started: list[Process] = []

    def run(name: str, command: list[str], ready: Callable[[], bool]) -> None:
        log = directory / f"{name}.log"
        # Also when the caller is killed, nothing stays behind.
        started.append(start(name, ["setpriv", "--pdeathsig", "KILL", *command], log=log))
        wait_ready(started[-1], ready, log=log, seconds=60)

    try:
        run(
            "etcd",
            etcd_command(
                programs["etcd"],
                directory / "etcd",
                client_url=etcd_url,
                peer_port=etcd_peer_port,
                durable=False,
            ),
            ready=lambda: answers(f"{etcd_url}/health"),
        )
        api_server = api_server_command(
            programs["kube-apiserver"],
            etcd_url=etcd_url,
            address=LOOPBACK,
            port=port,
            services="198.18.128.0/20",
            keys=keys,
            serving=serving,
        )
        # No controller makes service accounts here, and no pod will run: objects are created as they are.
        run(
            "kube-apiserver",
            [*api_server, "--disable-admission-plugins=ServiceAccount"],
            ready=lambda: answers(f"{url}/readyz", ca=keys.ca),
        )
        kubeconfig = pki.write_kubeconfig(
            directory / "kubeconfig", server=url, keys=keys, identity=pki.ADMIN, name="headrace-apiserver"
        )
        yield ApiServer(url, kubeconfig, programs["kubectl"], binaries.KUBERNETES.version)
    finally:
        for process in reversed(started):
            process.end(patience_seconds=5)


def etcd_command(
    program: Path, data: Path, *, client_url: str, peer_port: int, durable: bool = True
) -> list[str]:
    peer_url = f"http://{LOOPBACK}:{peer_port}"
    return [
        str(program),
        f"--data-dir={data}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--log-level=warn",
        *([] if durable else ["--unsafe-no-fsync"]),
    ]


def api_server_command(
    program: Path,
    *,
    etcd_url: str,
    address: str,
    port: int,
    services: str,
    keys: pki.Pki,
    serving: pki.Identity,
) -> list[str]:
    return [
        str(program),
        f"--etcd-servers={etcd_url}",
        f"--bind-address={address}",
        f"--advertise-address={address}",
        f"--secure-port={port}",
        f"--service-cluster-ip-range={services}",
        f"--client-ca-file={keys.ca}",
        f"--tls-cert-file={keys.certificate(serving)}",
        f"--tls-private-key-file={keys.key(serving)}",
        f"--service-account-key-file={keys.service_account_key}",
        f"--service-account-signing-key-file={keys.service_account_key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def answers(url: str, *, ca: Path | None = None) -> bool:
    """Whether a health endpoint says yes."""
    context = ssl.create_default_context(cafile=str(ca)) if ca else None
    # A proxy that the machine uses for the outside must not be asked about addresses of ours.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(url, timeout=2) as response:
            return response.status == 200
    except (OSError, urllib.error.URLError):
        return False


def free_ports(count: int) -> list[int]:
    """All are held until each is known, so that no two are the same."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
