"""One cluster, and Kafka and S3 in it, for all tests of this folder. HEADRACE_CLUSTER says which cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from images import build

from headrace.core.manifests import Platform
from tests.cluster.api import Api
from tests.cluster.console import MissingError
from tests.cluster.provider import Cluster, running_cluster
from tests.e2e.services import Services, product_image, services_image, start_services

CRDS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
            for file in sorted(CRDS.glob("*.yaml")):
                definition = yaml.safe_load(file.read_text())
                path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
                running.api.apply(f"{path}/{definition['metadata']['name']}", definition).need()
            running.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=30s")
            yield running
    except MissingError as missing:
        pytest.exit(str(missing), returncode=2)


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Api:
    return cluster.api


@pytest.fixture(scope="session")
def platform(cluster: Cluster) -> Platform:
    """Headrace's two images, loaded where they are needed."""
    spark, operator = product_image(build.SPARK), product_image(build.OPERATOR)
    for image in (spark, operator):
        cluster.load(image)
    return Platform(
        job_image=spark.reference, headrace_image=operator.reference, image_pull_policy="IfNotPresent"
    )


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """One of its own, under the strictest Pod Security standard. Gone after the test, pods and all."""
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "generateName": "e2e-",
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    }
    name = api.create("/api/v1/namespaces", body).need()["metadata"]["name"]
    yield name
    for pod in api.get(f"/api/v1/namespaces/{name}/pods").need()["items"]:
        # A test that failed may not have come to read its driver's last words.
        path = f"/api/v1/namespaces/{name}/pods/{pod['metadata']['name']}"
        api.patch(path, {"metadata": {"finalizers": None}})
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def services(cluster: Cluster) -> Iterator[Services]:
    image = services_image()
    cluster.load(image)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "services-"}}
    name = cluster.api.create("/api/v1/namespaces", body).need()["metadata"]["name"]
    yield start_services(cluster, name, image.reference)
    cluster.api.delete(f"/api/v1/namespaces/{name}")
