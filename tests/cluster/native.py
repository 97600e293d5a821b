"""The native cluster: up, down, status. Each step of a start is one line of `up`."""

import json
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import binaries, cgroups, components, debian, images, layout, namespaces, pki
from .console import MissingError, say
from .controlplane import answers
from .layout import FIRST, Node, log_dir
from .processes import NotReadyError, Process, start, tail, wait_ready, wait_until


@dataclass(frozen=True)
class Native:
    """A running native cluster."""

    nodes: dict[int, Process]
    kubeconfig: Path

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [binaries.program("kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NotReadyError(f"`kubectl {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout


def up(*, node_count: int = 2) -> Native:
    """Reuses what runs and is healthy; otherwise removes what is left of it and starts anew."""
    debian.need_root()
    debian.need(debian.FOR_CLUSTER)
    if not 1 <= node_count <= layout.MOST_NODES:
        raise MissingError(f"NODES={node_count}: between 1 and {layout.MOST_NODES}, please.")
    _need_visible_cache()
    if (found := find()) and len(found.nodes) == node_count and _healthy(found):
        say(f"reusing the cluster of {node_count} node(s)")
        return found
    down()
    programs = binaries.ensure(binaries.CLUSTER_PROGRAMS)
    began = time.monotonic()
    try:
        cluster = _start(programs, layout.nodes(node_count))
    except BaseException:
        # Half a cluster helps nobody. The logs stay.
        down()
        raise
    say(f"ready after {time.monotonic() - began:.1f} s: KUBECONFIG={cluster.kubeconfig}")
    return cluster


def down() -> None:
    """Ends every process of the cluster and removes all but the cache: binaries, images, keys, logs."""
    namespaces.close_nodes()
    cgroups.remove()
    layout.admin_kubeconfig().unlink(missing_ok=True)
    for scratch in layout.state_dir().glob("node*/scratch"):
        shutil.rmtree(scratch, ignore_errors=True)


def find() -> Native | None:
    """Without its first node there is no cluster, and no route to its addresses but the one out of here."""
    nodes = namespaces.running()
    return Native(nodes, layout.admin_kubeconfig()) if FIRST.number in nodes else None


def left_over() -> list[str]:
    """What `down` should have removed: empty, or it did not."""
    links = [link.name for link in Path("/sys/class/net").iterdir() if link.name == layout.MACHINE_LINK]
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [
        *(f"process {process.pid} of {process.name}" for process in namespaces.running().values()),
        *(f"process {pid}, which waits for the end of a node" for pid in namespaces.still_ending()),
        *(f"mount {mount}" for mount in mounts if mount.startswith(str(layout.state_dir()))),
        *(f"interface {link}" for link in links),
        *(f"cgroup {path}" for path in cgroups.left()),
    ]


def _need_visible_cache() -> None:
    hidden = [path for path in namespaces.HIDDEN_FROM_NODES if layout.state_dir().is_relative_to(path)]
    if hidden:
        raise MissingError(
            f"{layout.state_dir()} lies below {hidden[0]}, which a node does not see. "
            "Point XDG_CACHE_HOME at another directory."
        )


def _start(programs: dict[str, Path], nodes: list[Node]) -> Native:
    shutil.rmtree(log_dir(), ignore_errors=True)
    keys = _keys(nodes)
    inits = {node: namespaces.open_node(node) for node in nodes}
    first = inits[FIRST]
    namespaces.lay_cables(first, {node: init for node, init in inits.items() if node != FIRST})
    for node in nodes:
        cgroups.make(node)

    runtimes = {node: _start_runtime(node, init) for node, init in inits.items()}
    _start_api_server(first, programs, keys)
    cluster = Native(
        {node.number: init for node, init in inits.items()}, _kubeconfig(keys, pki.ADMIN, "admin")
    )
    _start_controllers(first, programs, keys)
    pause = images.pause_archive(layout.state_dir() / "pause.tar")
    for node, init in inits.items():
        _await_runtime(runtimes[node], node, init)
        images.forget_containers(init)
        images.load({node.number: init}, pause)
        _start_node_agents(node, init, programs, keys, node_count=len(nodes))
    _start_dns(cluster, first, programs, keys)
    _await(lambda: _healthy(cluster), what="nodes Ready and DNS answering", seconds=90)
    return cluster


def _keys(nodes: list[Node]) -> pki.Pki:
    parts = [
        pki.ADMIN,
        layout.API_SERVER,
        layout.CONTROLLERS,
        layout.SCHEDULER,
        layout.PROXY,
        layout.DNS,
        *(node.identity for node in nodes),
    ]
    return pki.ensure(layout.state_dir() / "pki", parts)


def _start_api_server(first: Process, programs: dict[str, Path], keys: pki.Pki) -> None:
    _run(first, FIRST, "etcd", components.etcd(programs["etcd"]))
    server = _run(first, FIRST, "kube-apiserver", components.api_server(programs["kube-apiserver"], keys))
    log = log_dir() / f"{FIRST.name}-kube-apiserver.log"
    wait_ready(server, lambda: answers(f"{layout.API_URL}/readyz", ca=keys.ca), log=log, seconds=90)


def _start_controllers(first: Process, programs: dict[str, Path], keys: pki.Pki) -> None:
    controllers = _kubeconfig(keys, layout.CONTROLLERS, "controllers")
    _run(
        first,
        FIRST,
        "kube-controller-manager",
        components.controller_manager(programs["kube-controller-manager"], keys, controllers),
    )
    scheduler = _kubeconfig(keys, layout.SCHEDULER, "scheduler")
    _run(first, FIRST, "kube-scheduler", components.scheduler(programs["kube-scheduler"], scheduler))


def _start_runtime(node: Node, init: Process) -> Process:
    return _run(init, node, "containerd", components.containerd(node))


def _await_runtime(runtime: Process, node: Node, init: Process) -> None:
    def ready() -> bool:
        try:
            images.names(init)
        except NotReadyError:
            return False
        return True

    wait_ready(runtime, ready, log=log_dir() / f"{node.name}-containerd.log", seconds=30)


def _start_node_agents(
    node: Node, init: Process, programs: dict[str, Path], keys: pki.Pki, *, node_count: int
) -> None:
    own = _kubeconfig(keys, node.identity, node.name)
    kubelet = components.kubelet(programs["kubelet"], node, keys, own, node_count=node_count)
    _run(init, node, "kubelet", kubelet)
    proxy = _kubeconfig(keys, layout.PROXY, "proxy")
    _run(init, node, "kube-proxy", components.proxy(programs["kube-proxy"], node, proxy))


def _start_dns(cluster: Native, first: Process, programs: dict[str, Path], keys: pki.Pki) -> None:
    objects = {"apiVersion": "v1", "kind": "List", "items": components.DNS_OBJECTS}
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(objects))
    _run(first, FIRST, "coredns", components.dns(programs["coredns"], _kubeconfig(keys, layout.DNS, "dns")))


def _run(init: Process, node: Node, name: str, command: list[str]) -> Process:
    environment = {"PATH": debian.SEARCH_PATH}
    log = log_dir() / f"{node.name}-{name}.log"
    return start(name, namespaces.enter(init, command), log=log, environment=environment)


def _kubeconfig(keys: pki.Pki, identity: pki.Identity, name: str) -> Path:
    path = layout.admin_kubeconfig() if identity == pki.ADMIN else keys.directory / f"{name}.kubeconfig"
    return pki.write_kubeconfig(path, server=layout.API_URL, keys=keys, identity=identity)


def _healthy(cluster: Native) -> bool:
    try:
        ready = cluster.kubectl(
            "get",
            "nodes",
            "--request-timeout=5s",
            "-o",
            'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}',
        ).split()
    except NotReadyError:
        return False
    return ready == ["True"] * len(cluster.nodes) and _resolves("kubernetes.default.svc")


def _resolves(name: str) -> bool:
    """Asks the cluster's DNS at its service address: an answer proves kube-proxy as well."""
    labels = f"{name}.{layout.DNS_DOMAIN}".split(".")
    question = b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"
    query = struct.pack("!HHHHHH", 1, 0x0100, 1, 0, 0, 0) + question + struct.pack("!HH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(1)
        try:
            udp.sendto(query, (layout.DNS_SERVICE_ADDRESS, 53))
            reply = udp.recv(512)
        except OSError:
            return False
    _, flags, _, answer_count, _, _ = struct.unpack("!HHHHHH", reply[:12])
    return flags & 0x000F == 0 and answer_count > 0


def _await(condition: Callable[[], bool], *, what: str, seconds: float) -> None:
    if not wait_until(condition, seconds=seconds, every=0.25):
        logs = "\n".join(f"--- {log.name}\n{tail(log, 5)}" for log in sorted(log_dir().glob("*.log")))
        raise NotReadyError(f"not reached in {seconds:.0f} s: {what}\n{logs}")
