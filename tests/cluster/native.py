"""The native cluster: up, down, status. Each step of a start is one line of `up`."""

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import binaries, cgroups, components, debian, images, layout, namespaces, pki, reuse
from .console import MissingError, say
from .controlplane import answers
from .layout import FIRST, Node, log_dir
from .processes import NotReadyError, Process, start, tail, wait_ready, wait_until

USUAL_NODES = 2
HEALTH_PATIENCE_SECONDS = 30
LOCKED_DIRECTORY = "/run"


@dataclass(frozen=True)
class Native:
    """A running native cluster."""

    nodes: dict[int, Process]
    kubeconfig: Path
    started_here: bool = False
    """Whether this very call of `up` started it, and may therefore end it."""

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


def up(*, node_count: int | None = None) -> Native:
    """Reuses what runs; starts anew where nothing does, or only what a crash has left.

    A cluster that runs and does not fit is neither reused nor ended, but refused. Without a number it fits
    whatever size it has, and a new one has two nodes.
    """
    debian.need_root()
    debian.need(debian.FOR_CLUSTER)
    if node_count is not None and not 1 <= node_count <= layout.MOST_NODES:
        raise MissingError(f"NODES={node_count}: between 1 and {layout.MOST_NODES}, please.")
    _need_visible_cache()
    with _only_one_at_a_time():
        if found := _reusable(node_count):
            return found
    # Minutes, the first time: nobody has to wait for these.
    programs = binaries.ensure(binaries.CLUSTER_PROGRAMS)
    with _only_one_at_a_time():
        if found := _reusable(node_count):
            return found
        _remove()
        return _start_or_remove(programs, layout.nodes(node_count or USUAL_NODES))


def down() -> None:
    """Ends every process of the cluster and removes all but the cache: binaries, images, keys, logs."""
    debian.need_root()
    with _only_one_at_a_time():
        _remove()


def down_if_still(cluster: Native) -> None:
    """Ends this one, and no other that somebody has started in its place meanwhile."""
    with _only_one_at_a_time():
        found = find()
        if found is None or found.nodes[FIRST.number] == cluster.nodes[FIRST.number]:
            _remove()


def find() -> Native | None:
    """Without its first node there is no cluster, and no route to its addresses but the one out of here."""
    nodes = namespaces.running()
    return Native(nodes, layout.admin_kubeconfig()) if FIRST.number in nodes else None


def _reusable(node_count: int | None) -> Native | None:
    """None: there is none, or it has crashed."""
    found = find()
    if found is None:
        return None
    seen = _look_at(found)
    # As the kernel names the files of what runs: without links.
    wanted = {name: binaries.program(name).resolve() for name in binaries.CLUSTER_PROGRAMS}
    if why := reuse.belongs_elsewhere(seen, wanted):
        raise _in_the_way(why)
    if gone := reuse.crashed(seen):
        say(f"the cluster that ran has crashed ({', '.join(gone)} missing): it is replaced")
        return None
    if why := reuse.other_size(seen, node_count):
        raise _in_the_way(why)
    # A busy machine answers late, and one late answer is no reason to give a cluster up.
    if not wait_until(lambda: _healthy(found), seconds=HEALTH_PATIENCE_SECONDS, every=0.5):
        raise _in_the_way(f"its nodes or its DNS were not ready for {HEALTH_PATIENCE_SECONDS} s")
    say(f"reusing the cluster of {len(found.nodes)} node(s)")
    return found


def _look_at(cluster: Native) -> reuse.Seen:
    programs = {number: namespaces.programs_inside(init) for number, init in cluster.nodes.items()}
    size = namespaces.size_of_its_cluster(cluster.nodes[FIRST.number]) or len(cluster.nodes)
    return reuse.Seen(programs, size)


def _in_the_way(why: str) -> MissingError:
    return MissingError(
        f"A cluster runs on this machine, but {why}.\n"
        "If nobody needs it any more: make cluster-down. All that is in it is lost then."
    )


@contextmanager
def _only_one_at_a_time() -> Iterator[None]:
    """Starts and ends of the machine's one cluster, whichever checkout or cache they come from.

    The lock is on a directory that every machine has, so it leaves nothing behind.
    """
    lock = os.open(LOCKED_DIRECTORY, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another start or end of the cluster")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _remove() -> None:
    namespaces.close_nodes()
    cgroups.remove()
    layout.admin_kubeconfig().unlink(missing_ok=True)
    for scratch in layout.state_dir().glob("node*/scratch"):
        shutil.rmtree(scratch, ignore_errors=True)


def _start_or_remove(programs: dict[str, Path], nodes: list[Node]) -> Native:
    began = time.monotonic()
    try:
        cluster = _start(programs, nodes)
    except BaseException:
        # Half a cluster helps nobody. The logs stay.
        _remove()
        raise
    say(f"ready after {time.monotonic() - began:.1f} s: KUBECONFIG={cluster.kubeconfig}")
    return cluster


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
    inits = {node: namespaces.open_node(node, node_count=len(nodes)) for node in nodes}
    first = inits[FIRST]
    namespaces.lay_cables(first, {node: init for node, init in inits.items() if node != FIRST})
    for node in nodes:
        cgroups.make(node)

    runtimes = {node: _start_runtime(node, init) for node, init in inits.items()}
    _start_api_server(first, programs, keys)
    numbered = {node.number: init for node, init in inits.items()}
    cluster = Native(numbered, _kubeconfig(keys, pki.ADMIN, "admin"), started_here=True)
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
