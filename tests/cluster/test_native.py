"""The native cluster as a whole: needs root, and the machine's one cluster for itself."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cluster import layout, namespaces, native
from tests.cluster.processes import NotReadyError, wait_until

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

SLEEPERS = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "sleepers"},
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "sleepers"}},
        "template": {
            "metadata": {"labels": {"app": "sleepers"}},
            "spec": {
                "containers": [
                    {
                        "name": "sleeper",
                        "image": layout.PAUSE_IMAGE,
                        "resources": {"limits": {"memory": "32Mi"}},
                    }
                ]
            },
        },
    },
}


DIRECTORIES = ("/run", "/var/lib", "/var/log", "/opt", "/etc")


@pytest.fixture
def no_cluster():
    native.down()
    yield
    native.down()


def test_nothing_is_left_after_down_nor_after_a_crash(no_cluster: None):
    before = what_the_machine_has()
    cluster = native.up(node_count=2)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(SLEEPERS))
    cluster.kubectl("rollout", "status", "deployment/sleepers", "--timeout=120s")
    assert pod_processes("node1")

    os.kill(cluster.nodes[1].pid, signal.SIGKILL)
    assert wait_until(lambda: not pod_processes("node1"), seconds=20)
    assert native.find() is None

    again = native.up(node_count=2)
    assert "sleepers" not in again.kubectl("get", "deployments")
    assert native.up(node_count=2).nodes == again.nodes

    native.down()
    assert native.left_over() == []
    assert not pod_processes("node2")
    assert what_the_machine_has() == before


def test_no_way_leads_out_of_a_node(no_cluster: None):
    """What a pod sends to an address that is not the cluster's ends at its node."""
    cluster = native.up(node_count=2)
    for node in cluster.nodes.values():
        assert "default" not in namespaces.run_inside(node, ["ip", "route"])
        # An address for documentation (RFC 5737).
        with pytest.raises(NotReadyError, match="unreachable"):
            namespaces.run_inside(node, ["ip", "route", "get", "192.0.2.1"])


def test_one_node_is_enough(no_cluster: None):
    cluster = native.up(node_count=1)
    assert cluster.kubectl("get", "nodes", "-o", "name").split() == ["node/node1"]
    assert len(native.up(node_count=2).nodes) == 2


def test_a_lost_node_is_noticed_and_its_pods_are_kept_in_doubt(no_cluster: None):
    cluster = native.up(node_count=2)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(SLEEPERS))
    cluster.kubectl("rollout", "status", "deployment/sleepers", "--timeout=120s")
    os.kill(namespaces.processes_inside(cluster.nodes[2])["kubelet"], signal.SIGKILL)
    ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    assert wait_until(
        lambda: cluster.kubectl("get", "node", "node2", "-o", ready) == "Unknown", seconds=120, every=1
    )
    on_lost_node = ["--field-selector=spec.nodeName=node2", "-o", "name"]
    lost = cluster.kubectl("get", "pods", *on_lost_node).split()[0]
    cluster.kubectl("delete", lost, "--wait=false")
    # Nobody can tell whether it still runs, so Kubernetes does not say that it has ended.
    assert lost in cluster.kubectl("get", "pods", *on_lost_node)
    assert cluster.kubectl("get", lost, "-o", "jsonpath={.metadata.deletionTimestamp}") != ""


def test_a_node_ends_although_its_kubelet_stands_still(no_cluster: None):
    cluster = native.up(node_count=2)
    os.kill(namespaces.processes_inside(cluster.nodes[2])["kubelet"], signal.SIGSTOP)
    native.down()
    assert native.left_over() == []


def pod_processes(node: str) -> list[str]:
    """What runs in containers of a node, known by their cgroup."""
    inside: list[str] = []
    for cgroup in Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):
            if f"headrace/{node}/" in cgroup.read_text():
                inside.append(cgroup.parent.name)
    return inside


def what_the_machine_has() -> dict[str, object]:
    """Everything that a cluster could leave behind, but for its cache."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    cgroups = [str(path) for path in Path("/sys/fs/cgroup").glob("*/*") if path.is_dir()]
    return {
        "mounts": sorted(mounts),
        "cgroups": sorted(cgroup for cgroup in cgroups if "headrace" in cgroup or "kubepods" in cgroup),
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "directories": sorted(
            str(path)
            for top in ("/run", "/var/lib", "/var/log", "/opt", "/etc")
            for path in Path(top).iterdir()
        ),
        "settings": {
            setting: Path(f"/proc/sys/{setting}").read_text()
            for setting in (*namespaces.KERNEL_SETTINGS_FOR_KUBELET, "net/ipv4/ip_forward")
        },
        "routes": _output("ip", "route"),
        "iptables": _output("iptables-save"),
    }


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
