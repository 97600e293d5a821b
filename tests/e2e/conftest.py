"""One cluster with Kafka, S3 and an installed Headrace, for all tests here. HEADRACE_CLUSTER says which."""

from collections.abc import Callable, Iterator

import pytest
from images import build

from headrace.core.manifests import Platform
from tests.cluster.api import Api
from tests.cluster.console import MissingError
from tests.cluster.processes import wait_until
from tests.cluster.provider import Cluster, running_cluster
from tests.e2e.install import Installed, installed, refuse_foreign_release
from tests.e2e.kafka_counts import Topic
from tests.e2e.services import Services, start_services
from tests.e2e.streamjobs import Job
from tests.e2e.testimages import SERVICES, product_image

# Made before Headrace is installed: the chart makes the drivers' ServiceAccount in each of them.
JOBS, CRAMPED, RESTORED = NAMESPACES = "e2e-jobs", "e2e-cramped", "e2e-restored"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
            refuse_foreign_release(running)
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


@pytest.fixture(scope="session")
def services(cluster: Cluster) -> Iterator[Services]:
    image = SERVICES.to_load()
    cluster.load(image)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "services-"}}
    name = cluster.api.create("/api/v1/namespaces", body).need()["metadata"]["name"]
    yield start_services(cluster, name, image.reference)
    cluster.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def operator(cluster: Cluster, platform: Platform, services: Services) -> Iterator[Installed]:
    """Headrace, installed by Helm; the namespaces of jobs are under the strictest Pod Security standard."""
    for namespace in NAMESPACES:
        _make_namespace(cluster, namespace)
        services.copy_keys(namespace)
    with installed(cluster, platform, job_namespaces=list(NAMESPACES)) as running:
        yield running
        # While there is an operator: what a job leaves behind is its business.
        for namespace in NAMESPACES:
            for kind in ("streamjobs", "streamsavepoints"):
                cluster.kubectl("delete", kind, "--all", "-n", namespace, "--timeout=180s")
    for namespace in NAMESPACES:
        cluster.kubectl("delete", "namespace", namespace, "--timeout=180s")


@pytest.fixture(scope="session")
def job_named(cluster: Cluster, operator: Installed) -> Callable[..., Job]:
    def named(name: str, *, namespace: str = JOBS) -> Job:
        return Job(cluster, operator, namespace, name)

    return named


@pytest.fixture(scope="session")
def topic_named(services: Services) -> Callable[[str], Topic]:
    return lambda name: Topic(services, name)


def _make_namespace(cluster: Cluster, name: str) -> None:
    """A run that was broken off may have left one that is still going."""
    path = f"/api/v1/namespaces/{name}"

    def is_going() -> bool:
        return "deletionTimestamp" in cluster.api.get(path).body.get("metadata", {})

    assert wait_until(lambda: not is_going(), seconds=180, every=1), f"{name} of an earlier run does not go"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    cluster.api.apply(path, body).need()
