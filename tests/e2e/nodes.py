"""What happens to nodes and their processes. Only where the nodes are this machine's own."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import namespaces
from tests.cluster.processes import wait_until
from tests.cluster.provider import Cluster


@dataclass(frozen=True)
class Nodes:
    cluster: Cluster

    def signal_container(self, pod: dict[str, Any], container: str, number: int) -> list[int]:
        """To every process of a container, as the kernel's OOM killer or an operator at a console would."""
        statuses = pod["status"]["containerStatuses"]
        identity = next(one["containerID"] for one in statuses if one["name"] == container).rpartition("/")[2]
        pids = _processes_in_cgroup(identity)
        assert pids, f"no process of {container} in {pod['metadata']['name']}"
        for pid in pids:
            os.kill(pid, number)
        return pids

    @contextmanager
    def lost(self, node: int) -> Iterator[None]:
        """Its kubelet stands still: to the cluster the node is lost, whatever goes on running on it."""
        kubelet = namespaces.processes_inside(self.cluster.nodes[node])["kubelet"]
        # The `nsenter` that started it stops with it, and would never reap it: then the node could not end.
        entered_by = int(Path(f"/proc/{kubelet}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(kubelet, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in (kubelet, entered_by):
                os.kill(pid, signal.SIGCONT)

    def wait_node(self, node: int, ready: str, *, seconds: float) -> None:
        def reached() -> bool:
            found = self.cluster.api.get(f"/api/v1/nodes/node{node}").need()
            conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
            return conditions["Ready"] == ready

        assert wait_until(reached, seconds=seconds, every=1), f"node{node} never had Ready={ready}"


def own_nodes(cluster: Cluster, *, at_least: int = 1) -> Nodes:
    if not cluster.nodes:
        pytest.skip("needs nodes that are processes of this machine: HEADRACE_CLUSTER=native")
    if len(cluster.nodes) < at_least:
        pytest.skip(f"needs {at_least} nodes, and this cluster has {len(cluster.nodes)}")
    return Nodes(cluster)


def _processes_in_cgroup(identity: str) -> list[int]:
    found: list[int] = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and identity in (process / "cgroup").read_text():
                found.append(int(process.name))
        except OSError:
            continue
    return found
