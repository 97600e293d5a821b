"""The cluster is real enough to prove things on."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.api import Api
from tests.cluster.processes import NotReadyError
from tests.cluster.provider import Cluster
from tests.e2e.services import Services


def a_pod(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-"},
        "spec": {"containers": [{"name": "main", "image": "none.example/none"}], **spec},
    }


def test_every_node_is_ready(cluster: Cluster):
    nodes = cluster.api.get("/api/v1/nodes").need()["items"]
    ready = [
        condition["status"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    assert nodes
    assert ready == ["True"] * len(nodes)


def test_a_pod_finds_another_by_the_name_of_its_service(services: Services):
    script = (
        "import socket, sys; "
        "socket.create_connection((sys.argv[1], 7070), timeout=5); print(socket.gethostbyname(sys.argv[1]))"
    )
    address = services.shell("kafka", f'python3 -c "{script}" s3.{services.namespace}.svc').strip()
    service = services.cluster.api.get(f"/api/v1/namespaces/{services.namespace}/services/s3").need()
    assert address == service["spec"]["clusterIP"]


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "e2e-", "labels": labels}}
    name = api.create("/api/v1/namespaces", body).need()["metadata"]["name"]
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


def test_a_service_account_may_do_only_what_it_was_allowed(cluster: Cluster, namespace: str):
    asked = ["auth", "can-i", "delete", "pods", f"--as=system:serviceaccount:{namespace}:default"]
    with pytest.raises(NotReadyError):
        cluster.kubectl(*asked, "-n", namespace)


def test_the_restricted_standard_is_enforced(api: Api, namespace: str):
    refused = api.create(f"/api/v1/namespaces/{namespace}/pods", a_pod(hostNetwork=True))
    assert refused.status == 403
    assert "restricted" in refused.message


def test_a_network_policy_is_accepted(api: Api, namespace: str):
    """Whether it is enforced is the network plugin's business: see tests/cluster/README.md."""
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "nobody"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    }
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    assert api.create(path, policy).need()["spec"]["policyTypes"] == ["Ingress"]
