"""The native cluster as a whole: needs root, and the machine's one cluster for itself."""

import contextlib
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cluster import layout, leftovers, namespaces, native, provider, reuse
from tests.cluster.console import MissingError
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


# The names of what Kubernetes and a container runtime make on an ordinary machine.
THEIR_NAMES = re.compile(r"kube|containerd|runc|cni|netns|etcd|coredns|pods|headrace", re.IGNORECASE)
THEIR_CHAINS = re.compile(r"KUBE-|CNI-|headrace", re.IGNORECASE)
DIRECTORIES = ("/run", "/var/lib", "/var/log", "/opt", "/etc")


@pytest.fixture
def no_cluster():
    if provider.chosen() != "native":
        pytest.skip("starts and ends the native cluster: HEADRACE_CLUSTER=native")
    native.down()
    # As `make cluster-down` does: images that were built before are not what is looked at here.
    leftovers.remove_images_run_directory()
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
    assert not any(leftovers.left_over().values())
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
    assert native.up().nodes == cluster.nodes
    with pytest.raises(MissingError, match="make cluster-down"):
        native.up(node_count=2)
    assert native.find() == native.Native(cluster.nodes, cluster.kubeconfig)


def test_what_runs_is_seen_as_what_was_started(no_cluster: None):
    cluster = native.up(node_count=2)
    assert any(leftovers.left_over().values())
    seen = native._look_at(cluster)
    assert reuse.crashed(seen) == []
    assert seen.size == 2
    os.kill(cluster.nodes[2].pid, signal.SIGKILL)
    assert wait_until(lambda: 2 not in namespaces.running(), seconds=20)
    assert native.up(node_count=2).nodes.keys() == {1, 2}


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
    cluster.kubectl("delete", lost, "--wait=false", "--grace-period=1")
    # Nobody can tell whether it still runs, so Kubernetes does not say that it has ended, however long after.
    with pytest.raises(NotReadyError, match="timed out"):
        cluster.kubectl("wait", "--for=delete", lost, "--timeout=10s")
    assert lost in cluster.kubectl("get", "pods", *on_lost_node)
    assert cluster.kubectl("get", lost, "-o", "jsonpath={.metadata.deletionTimestamp}") != ""


def test_a_node_ends_although_its_kubelet_stands_still(no_cluster: None):
    cluster = native.up(node_count=2)
    os.kill(namespaces.processes_inside(cluster.nodes[2])["kubelet"], signal.SIGSTOP)
    native.down()
    assert not any(leftovers.left_over().values())


def pod_processes(node: str) -> list[str]:
    """What runs in containers of a node, known by their cgroup."""
    inside: list[str] = []
    for cgroup in Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):
            if f"headrace/{node}/" in cgroup.read_text():
                inside.append(cgroup.parent.name)
    return inside


def what_the_machine_has() -> dict[str, object]:
    """All that a cluster could change outside its cache. What others do meanwhile is not looked at."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    cgroups = [str(path) for path in Path("/sys/fs/cgroup").glob("*/*") if path.is_dir()]
    names = [str(path) for top in DIRECTORIES for path in Path(top).iterdir()]
    rules = leftovers.rules(_output("iptables-save"))
    return {
        "left over": leftovers.left_over(),
        "mounts": sorted(mount for mount in mounts if THEIR_NAMES.search(mount) and not _of_a_build(mount)),
        "cgroups": sorted(cgroup for cgroup in cgroups if "headrace" in cgroup or "kubepods" in cgroup),
        "directories": sorted(name for name in names if THEIR_NAMES.search(name) and not _of_a_build(name)),
        "settings": {
            setting: Path(f"/proc/sys/{setting}").read_text()
            for setting in (*namespaces.KERNEL_SETTINGS_FOR_KUBELET, "net/ipv4/ip_forward")
        },
        "iptables": sorted(rule for rule in rules if THEIR_CHAINS.search(rule)),
    }


def _of_a_build(path: str) -> bool:
    """Somebody may build images on this machine, too."""
    return "/headrace/images" in path or path.startswith(str(leftovers.IMAGES_RUN_DIRECTORY))


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
