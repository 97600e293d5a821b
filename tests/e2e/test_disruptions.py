"""What a cluster does to a driver, and what must never happen then: two writers, a lost record, a counted one
counted again. The long rest: `make test-e2e-full`.
"""

import json
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.processes import wait_until
from tests.e2e.install import NAMESPACE, Installed
from tests.e2e.kafka_counts import COUNT_BY_KEY, Topic, spec_for
from tests.e2e.nodes import own_nodes
from tests.e2e.services import Services, rather_on
from tests.e2e.streamjobs import Job, Object

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200, func_only=True)]

HUNGRY = COUNT_BY_KEY.replace("spark = SparkSession", "hoard = bytearray(4 << 30)\nspark = SparkSession")


@pytest.fixture(scope="module")
def topic(topic_named: Callable[[str], Topic]) -> Topic:
    return topic_named("orders")


@pytest.fixture(scope="module")
def job(job_named: Callable[..., Job], services: Services, topic: Topic) -> Iterator[Job]:
    orders = job_named("orders")
    orders.write_code("counts-code", COUNT_BY_KEY)
    topic.produce(1000)
    spec = spec_for(services, topic, drainTimeout="5s")
    # What is done to a driver there does not hit the control plane, which is node 1's.
    spec["driver"]["affinity"] = rather_on("node2")
    orders.apply(spec)
    orders.wait_ready(seconds=400)
    yield orders
    orders.delete()


@pytest.fixture
def on_node_2(job: Job) -> Object:
    """The driver, which an earlier test may have made flee to node 1."""
    own_nodes(job.cluster, at_least=2)
    before = job.wait_ready()
    if before["spec"]["nodeName"] == "node2":
        return before
    job.edit({"restartNonce": before["metadata"]["name"]})
    job.wait_other_driver(before)
    driver = job.wait_ready()
    assert driver["spec"]["nodeName"] == "node2"
    return driver


def test_an_evicted_driver_drains_and_the_next_attempt_goes_on(job: Job, topic: Topic):
    before = job.driver()
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": before["metadata"]["name"], "namespace": job.namespace},
    }
    path = f"/api/v1/namespaces/{job.namespace}/pods/{before['metadata']['name']}/eviction"
    job.cluster.api.create(path, eviction).need()
    topic.produce(1000)
    job.wait_other_driver(before)
    job.wait_ready()
    topic.wait_exact()
    assert job.status()["lastTermination"]["reason"] in ("Drained", "Evicted")


def test_a_drained_node_gives_its_driver_to_another(job: Job, topic: Topic, on_node_2: Object):
    flags = ["--pod-selector=headrace.dev/job=orders", "--delete-emptydir-data", "--force", "--timeout=120s"]
    try:
        job.cluster.kubectl("drain", "node2", *flags)
        topic.produce(1000)
        job.wait_other_driver(on_node_2)
        after = job.wait_ready()
        topic.wait_exact()
    finally:
        job.cluster.kubectl("uncordon", "node2")
    assert after["spec"]["nodeName"] == "node1"


def test_a_lost_node_stalls_the_job_until_it_is_back(job: Job, topic: Topic, on_node_2: Object):
    nodes, before = own_nodes(job.cluster), on_node_2
    with nodes.lost(2):
        # The kubelet cannot carry it out: the pod stays, and nobody can tell whether its driver writes.
        job.cluster.kubectl("delete", "pod", before["metadata"]["name"], "-n", job.namespace, "--wait=false")
        message = job.wait_reason("NodeLost", kind="Stalled", seconds=240)
        assert "lostNode" in message
        assert job.live_drivers() == [before["metadata"]["name"]]
        topic.produce(1000)
    job.wait_other_driver(before, seconds=240)
    job.wait_ready()
    topic.wait_exact()


def test_force_starts_another_driver_and_the_store_fences_the_old_one(
    job: Job, topic: Topic, on_node_2: Object
):
    nodes, before = own_nodes(job.cluster), on_node_2
    with nodes.lost(2):
        job.cluster.kubectl("delete", "pod", before["metadata"]["name"], "-n", job.namespace, "--wait=false")
        job.wait_reason("NodeLost", kind="Stalled", seconds=240)
        job.edit({"lostNode": "Force"})
        job.wait_other_driver(before, seconds=120)
        after = job.wait_ready(seconds=300)
        assert after["spec"]["nodeName"] == "node1"
        topic.produce(1000)
        topic.wait_exact()
    nodes.wait_node(2, "True", seconds=120)
    topic.produce(500)
    topic.wait_exact()
    assert job.live_drivers() == [after["metadata"]["name"]]
    job.edit({"lostNode": "Wait"})


def test_a_paused_leader_that_wakes_does_no_harm(job: Job, operator: Installed, topic: Topic):
    nodes, leader = own_nodes(job.cluster), operator.leader()
    assert leader is not None
    before, holder = job.driver(), operator.lease()["spec"]["holderIdentity"]
    nodes.signal_container(leader, "operator", signal.SIGSTOP)
    try:
        assert wait_until(lambda: operator.lease()["spec"]["holderIdentity"] != holder, seconds=60, every=1)
        job.edit({"executors": {"count": 2}})
        job.wait(lambda: job.executors_ready() == 2, what="the new leader scales", seconds=120)
    finally:
        nodes.signal_container(leader, "operator", signal.SIGCONT)
    job.cluster.kubectl("rollout", "status", "-n", NAMESPACE, "deployment/headrace", "--timeout=120s")
    assert operator.lease()["spec"]["holderIdentity"] != holder
    topic.produce(500)
    topic.wait_exact()
    assert job.driver()["metadata"]["uid"] == before["metadata"]["uid"]
    job.edit({"executors": {"count": 1}})


def test_kafka_away_is_a_reason_and_its_return_needs_no_help(job: Job, services: Services, topic: Topic):
    kafka = f"/api/v1/namespaces/{services.namespace}/services/kafka"
    selector = services.cluster.api.get(kafka).need()["spec"]["selector"]
    services.cluster.api.patch(kafka, {"spec": {"selector": {"service": "nobody"}}}).need()
    try:
        job.edit({"restartNonce": "without-kafka"})
        message = job.wait_reason("QueryFailed", "ApplicationError", seconds=400)
        assert message
    finally:
        services.cluster.api.patch(kafka, {"spec": {"selector": selector}}).need()
    job.wait_ready(seconds=300)
    topic.produce(500)
    topic.wait_exact()


def test_a_driver_that_needs_more_memory_than_it_has_says_so(job: Job, topic: Topic):
    job.write_code("counts-code", HUNGRY)
    message = job.wait_reason("OutOfMemory", seconds=300)
    assert "spec.driver.memory" in message, json.dumps(job.status(), indent=1)
    job.write_code("counts-code", COUNT_BY_KEY)
    job.wait_ready(seconds=300)
    topic.produce(500)
    topic.wait_exact()
