"""The cluster on paper: its addresses, its nodes and their files.

198.18.0.0/15 is reserved for tests of networks (RFC 2544): no machine on the internet has such an address.

    this machine 198.18.0.1 ── switch (in node 1) ─┬─ node 1   198.18.0.2   pods 198.18.65.0/24
                                                   ├─ node 2   198.18.0.3   pods 198.18.66.0/24
                                                   └─ …                 services 198.18.128.0/20
"""

from dataclasses import dataclass
from pathlib import Path

from . import pki
from .paths import cache_dir

MACHINE_ADDRESS = "198.18.0.1"
MACHINE_LINK = "headrace0"
PODS = "198.18.64.0/18"
SERVICES = "198.18.128.0/20"
API_SERVICE_ADDRESS = "198.18.128.1"
DNS_SERVICE_ADDRESS = "198.18.128.10"
DNS_DOMAIN = "cluster.local"
API_PORT = 6443
PAUSE_IMAGE = "headrace.local/pause:1"
MOST_NODES = 9


@dataclass(frozen=True)
class Node:
    number: int

    @property
    def name(self) -> str:
        return f"node{self.number}"

    @property
    def address(self) -> str:
        return f"198.18.0.{self.number + 1}"

    @property
    def pods(self) -> str:
        return f"198.18.{self.number + 64}.0/24"

    @property
    def cgroup(self) -> str:
        return f"headrace/{self.name}"

    @property
    def directory(self) -> Path:
        return state_dir() / self.name

    @property
    def images(self) -> Path:
        """containerd's store: it outlives the cluster, so that a warm start finds its images."""
        return self.directory / "containerd"

    @property
    def scratch(self) -> Path:
        """What a start makes and the end removes: configuration, kubelet's volumes, the pods' logs."""
        return self.directory / "scratch"

    @property
    def identity(self) -> pki.Identity:
        return pki.Identity(
            self.name,
            f"system:node:{self.name}",
            groups=("system:nodes",),
            names=(f"DNS:{self.name}", f"IP:{self.address}"),
        )


FIRST = Node(1)  # It also carries the control plane, as a small cluster's first node does.
API_URL = f"https://{FIRST.address}:{API_PORT}"

API_SERVER = pki.Identity(
    "apiserver",
    "kube-apiserver",
    names=(
        "DNS:kubernetes",
        "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc",
        f"DNS:kubernetes.default.svc.{DNS_DOMAIN}",
        f"IP:{API_SERVICE_ADDRESS}",
        f"IP:{FIRST.address}",
        "IP:127.0.0.1",
    ),
)
CONTROLLERS = pki.Identity("controllers", "system:kube-controller-manager")
SCHEDULER = pki.Identity("scheduler", "system:kube-scheduler")
PROXY = pki.Identity("proxy", "system:kube-proxy")
DNS = pki.Identity("dns", "system:coredns")


def nodes(count: int) -> list[Node]:
    return [Node(number) for number in range(1, count + 1)]


def state_dir() -> Path:
    return cache_dir() / "cluster"


def log_dir() -> Path:
    return state_dir() / "log"


def admin_kubeconfig() -> Path:
    return state_dir() / "kubeconfig"
