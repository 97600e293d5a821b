"""The programs of the cluster: how each is configured and started. Every flag has been needed once."""

import json
import os
from pathlib import Path

from . import layout, pki
from .controlplane import api_server_command, etcd_command
from .layout import FIRST, Node

ETCD_URL = "http://127.0.0.1:2379"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
LOCAL_ONLY = "--bind-address=127.0.0.1"


def etcd(program: Path) -> list[str]:
    # In memory: fast, and gone with the node.
    return etcd_command(program, Path("/run/etcd"), client_url=ETCD_URL, peer_port=2380, durable=False)


def api_server(program: Path, keys: pki.Pki) -> list[str]:
    return [
        *api_server_command(
            program,
            etcd_url=ETCD_URL,
            address=FIRST.address,
            port=layout.API_PORT,
            services=layout.SERVICES,
            keys=keys,
            serving=layout.API_SERVER,
        ),
        f"--kubelet-client-certificate={keys.certificate(pki.ADMIN)}",
        f"--kubelet-client-key={keys.key(pki.ADMIN)}",
        f"--kubelet-certificate-authority={keys.ca}",
        # The nodes' names are in no DNS: by name, logs and exec would fail.
        "--kubelet-preferred-address-types=InternalIP",
    ]


def controller_manager(program: Path, keys: pki.Pki, kubeconfig: Path) -> list[str]:
    return [
        str(program),
        *_serves_with(kubeconfig),
        f"--service-account-private-key-file={keys.service_account_key}",
        f"--root-ca-file={keys.ca}",
        "--use-service-account-credentials",
        # Each node's pod network is fixed on paper, so that routes can be laid before it joins.
        "--allocate-node-cidrs=false",
        # The default of 20 requests a second makes a fleet test wait for the test's own cluster.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def scheduler(program: Path, kubeconfig: Path) -> list[str]:
    return [str(program), *_serves_with(kubeconfig), "--kube-api-qps=200", "--kube-api-burst=400"]


def containerd(node: Node) -> list[str]:
    cni = node.scratch / "cni"
    cni.mkdir(parents=True, exist_ok=True)
    (cni / "10-pods.conflist").write_text(json.dumps(_pod_network(node)))
    config = node.scratch / "containerd.toml"
    config.write_text(
        f"""version = 2
root = "{node.images}"
state = "/run/containerd"
# Its default, /opt/containerd, would be made on this machine.
[plugins."io.containerd.internal.v1.opt"]
  path = "{node.scratch}/opt"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{layout.PAUSE_IMAGE}"
  # Without CAP_SYS_RESOURCE a container could not get the low score kubelet asks for, and would not start.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
"""
    )
    return ["containerd", "--config", str(config), "--log-level", "warn"]


def kubelet(program: Path, node: Node, keys: pki.Pki, kubeconfig: Path, *, node_count: int) -> list[str]:
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(keys.ca)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(keys.certificate(node.identity)),
        "tlsPrivateKeyFile": str(keys.key(node.identity)),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [layout.DNS_SERVICE_ADDRESS],
        "clusterDomain": layout.DNS_DOMAIN,
        # This machine's name servers cannot be reached from a pod.
        "resolvConf": "",
        "volumePluginDir": f"{node.scratch}/volume-plugins",
        "systemReserved": {"memory": _memory_of_others(node_count)},
        # The disk and the memory are shared with whoever else works here: no pod is evicted for them.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        # The images were brought by hand, and nothing could pull them again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "maxPods": 200,
    }
    file = node.scratch / "kubelet.json"
    file.write_text(json.dumps(config, indent=2))
    return [
        str(program),
        f"--config={file}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--root-dir={node.scratch}/kubelet",
    ]


def proxy(program: Path, node: Node, kubeconfig: Path) -> list[str]:
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": layout.PODS,
        "hostnameOverride": node.name,
        # 0: leave the machine's connection tracking as it is.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }
    file = node.scratch / "proxy.json"
    file.write_text(json.dumps(config, indent=2))
    return [str(program), f"--config={file}"]


def dns(program: Path, kubeconfig: Path) -> list[str]:
    corefile = FIRST.scratch / "Corefile"
    corefile.write_text(
        f""".:53 {{
    errors
    health 127.0.0.1:8180
    ready 127.0.0.1:8181
    kubernetes {layout.DNS_DOMAIN} in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
    cache 5
}}
"""
    )
    return [str(program), "-conf", str(corefile)]


# CoreDNS is a process of node 1, not a pod: names resolve before the first image is there.
DNS_OBJECTS: list[dict[str, object]] = [
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {
            "clusterIP": layout.DNS_SERVICE_ADDRESS,
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            ],
        },
    },
    {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [FIRST.address], "conditions": {"ready": True}}],
        "ports": [
            {"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:coredns"},
        "rules": [
            {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "system:coredns"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": layout.DNS.user}],
    },
]


def _serves_with(kubeconfig: Path) -> list[str]:
    same = f"kubeconfig={kubeconfig}"
    return [
        f"--{same}",
        f"--authentication-{same}",
        f"--authorization-{same}",
        "--leader-elect=false",
        LOCAL_ONLY,
    ]


def _pod_network(node: Node) -> dict[str, object]:
    """Each pod on a cable of its own to the node: all traffic is routed, so that service addresses also work
    between neighbours, without the kernel module that a bridge would need for it."""
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": node.pods}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": "/run/pod-addresses",
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _memory_of_others(node_count: int) -> str:
    """Every kubelet believes it owns the machine: reserve what belongs to the others."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return str(int(total - total * 0.8 / node_count))
