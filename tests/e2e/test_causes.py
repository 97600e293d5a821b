"""Why a job does not start, as the condition says it, and that it starts by itself when the cause goes.

None of these comes to start Spark: a driver's container that runs is proof enough, and the job is deleted.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.api import Api
from tests.e2e.conftest import CRAMPED
from tests.e2e.quotas import pods_at_most
from tests.e2e.services import BUCKET, Services
from tests.e2e.streamjobs import Job, Object, a_spec

# Not its fixtures: the first test also brings up the cluster and installs Headrace, with limits of their own.
pytestmark = pytest.mark.timeout(300, func_only=True)

IDLE = "import time\ntime.sleep(3600)\n"


@pytest.fixture
def starting(job_named: Callable[..., Job], services: Services) -> Callable[..., object]:
    """A job of the given name and spec; gone afterwards."""

    @contextmanager
    def start(name: str, *, namespace: str = "e2e-jobs", **spec: object) -> Iterator[Job]:
        job = job_named(name, namespace=namespace)
        job.write_code(f"{name}-code", IDLE)
        job.apply({**a_spec(services, code=f"{name}-code"), **spec})
        try:
            yield job
        finally:
            job.delete(wait=False)

    return start


def checkpoint(services: Services, *, bucket: str = BUCKET, secret: str = "s3-keys") -> Object:
    s3 = {"endpoint": services.s3_endpoint, "credentials": {"secret": secret}}
    return {"location": f"s3://{bucket}/checkpoints", "s3": s3}


def test_an_image_that_cannot_be_pulled(starting: Callable[..., Job]):
    with starting("no-image", image="headrace.local/no-such-image:1") as job:
        message = job.wait_reason("ErrImagePull", "ImagePullBackOff")
        assert "no-such-image" in message
        job.edit({"image": None})
        job.wait(job.live_drivers, what="a driver that runs", seconds=120)
        assert job.status()["run"]["number"] == 2


def test_a_secret_that_is_missing(starting: Callable[..., Job], services: Services):
    with starting("no-secret", checkpoint=checkpoint(services, secret="late-keys")) as job:
        message = job.wait_reason("FailedMount")
        assert "spec.checkpoint.s3.credentials" in message
        assert "late-keys" in message
        services.copy_keys(job.namespace, name="late-keys")
        job.wait(job.live_drivers, what="a driver that runs", seconds=120)
        assert job.status()["run"]["attempt"]["number"] == 1


def test_wrong_keys(starting: Callable[..., Job], services: Services):
    services.copy_keys("e2e-jobs", name="wrong-keys", secret_key="not-the-secret")
    with starting("wrong-keys", checkpoint=checkpoint(services, secret="wrong-keys")) as job:
        message = job.wait_reason("StoreUnavailable")
        assert "not-the-secret" not in message
        services.copy_keys(job.namespace, name="wrong-keys")
        job.wait(job.live_drivers, what="a driver that runs", seconds=120)


def test_a_bucket_that_is_not_there(starting: Callable[..., Job], services: Services):
    with starting("no-bucket", checkpoint=checkpoint(services, bucket="no-such-bucket")) as job:
        message = job.wait_reason("StoreUnavailable")
        assert "no-such-bucket" in message
        services.make_bucket("no-such-bucket")
        job.wait(job.live_drivers, what="a driver that runs", seconds=120)


def test_no_node_that_will_have_it(starting: Callable[..., Job]):
    wanted = {"memory": "1Gi", "nodeSelector": {"disk": "fast"}, "resources": {"requests": {"cpu": "100m"}}}
    with starting("no-node", driver=wanted) as job:
        message = job.wait_reason("Unschedulable")
        assert "node" in message
        node = job.cluster.api.get("/api/v1/nodes").need()["items"][0]["metadata"]["name"]
        job.cluster.kubectl("label", "node", node, "disk=fast")
        try:
            job.wait(job.live_drivers, what="a driver that runs", seconds=120)
        finally:
            job.cluster.kubectl("label", "node", node, "disk-")


def test_a_quota_that_is_used_up(starting: Callable[..., Job], api: Api):
    with contextlib.ExitStack() as cleaned_up:
        with pods_at_most(api, CRAMPED, 0):
            job = cleaned_up.enter_context(starting("no-quota", namespace=CRAMPED))
            message = job.wait_reason("QuotaExceeded")
            assert "exceeded quota" in message
        job.wait(job.live_drivers, what="a driver that runs", seconds=180)
