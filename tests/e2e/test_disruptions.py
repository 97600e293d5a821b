"""What a cluster does to a driver, and what must never happen then: two writers, a lost record, a counted one
counted again. The long rest: `make test-e2e-full`.
"""

import json
import signal
from collections.abc import Callable, Iterator

import pytest

from headrace.core.restarts import FAILURES_UNTIL_STALLED
from tests.cluster.api import Api
from tests.cluster.processes import wait_until
from tests.e2e.conftest import CRAMPED
from tests.e2e.install import NAMESPACE, Installed
from tests.e2e.kafka_counts import COUNT_BY_KEY, Topic, spec_for
from tests.e2e.nodes import own_nodes
from tests.e2e.quotas import pods_at_most
from tests.e2e.services import Services, rather_on
from tests.e2e.streamjobs import TICKS, Job, Object, a_spec

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200, func_only=True)]

# A broker that is away fails a query after three times this, instead of three minutes.
_IMPATIENT = '.option("kafka.default.api.timeout.ms", "20000").option("kafka.request.timeout.ms", "10000")'
COUNTS = COUNT_BY_KEY.replace('.option("startingOffsets"', f'{_IMPATIENT}.option("startingOffsets"')
HUNGRY = COUNTS.replace("spark = SparkSession", "hoard = bytearray(4 << 30)\nspark = SparkSession")
# Works, until a record in another topic names its epoch: the attempt after that has another one.
APPETITE = "orders-appetite"
GREEDY = COUNTS.replace(
    ".start().awaitTermination()",
    f""".start()
from headrace_jobs import run
query = spark.streams.active[0]
while not query.awaitTermination(5):
    named = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap) \\
        .option("subscribe", "{APPETITE}").load().select(parsed.alias("e")).filter(F.col("e.i") == run.epoch)
    if named.count():
        hoard = bytearray(4 << 30)
""",
)
MISSING_TABLE = """
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate().table("prices").show()
"""


@pytest.fixture(scope="module")
def topic(topic_named: Callable[[str], Topic]) -> Topic:
    return topic_named("orders")


@pytest.fixture(scope="module")
def job(job_named: Callable[..., Job], services: Services, topic: Topic) -> Iterator[Job]:
    orders = job_named("orders")
    orders.write_code("counts-code", COUNTS)
    topic.produce(1000)
    upgrade = {"strategy": "Cold", "verifyWindow": "10s"}
    spec = spec_for(services, topic, drainTimeout="5s", upgrade=upgrade)
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
    driver = job.wait_ready()
    for _ in range(3):
        if driver["spec"]["nodeName"] == "node2":
            break
        # It would rather be there, and has to move to get there.
        job.edit({"restartNonce": driver["metadata"]["name"]})
        job.wait_other_driver(driver)
        driver = job.wait_ready()
    assert driver["spec"]["nodeName"] == "node2"
    return driver


def is_proven(job: Job) -> bool:
    status = job.status()
    return status.get("lastStable", {}).get("run") == status["run"]["number"] and job.is_ready()


def change_code(job: Job, code: str) -> None:
    """Until the new version has proven itself."""
    before = job.driver()
    job.write_code("counts-code", code)
    job.wait_other_driver(before)
    job.wait(lambda: is_proven(job), what="the new version proves itself", seconds=400)


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


@pytest.mark.timeout(2400, func_only=True)
def test_kafka_away_is_a_reason_and_its_return_needs_no_help(job: Job, services: Services, topic: Topic):
    """Also for an edit that is made meanwhile: it is rolled back, the old version fails as well, and when
    Kafka is back the edit is made after all."""
    kafka = f"/api/v1/namespaces/{services.namespace}/services/kafka"
    selector = services.cluster.api.get(kafka).need()["spec"]["selector"]
    job.wait(lambda: is_proven(job), what="a version to go back to", seconds=300)
    services.cluster.api.patch(kafka, {"spec": {"selector": {"service": "nobody"}}}).need()
    try:
        job.edit({"restartNonce": "without-kafka"})
        message = job.wait_reason("OldVersionFailsToo", kind="RolledBack", seconds=900)
        assert "tried again by itself" in message
        assert job.status()["lastTermination"]["reason"] in ("QueryFailed", "ApplicationError")
        assert not job.is_ready()
    finally:
        services.cluster.api.patch(kafka, {"spec": {"selector": selector}}).need()
    rolled_back = job.status()["run"]["number"]
    job.wait(
        lambda: job.status()["run"]["number"] > rolled_back and is_proven(job),
        what="the edit is made after all",
        seconds=900,
    )
    assert job.condition("Stalled")["status"] == "False"
    topic.produce(500)
    topic.wait_exact()


def test_a_working_driver_that_runs_out_of_memory_goes_on_from_its_checkpoint(
    job: Job, services: Services, topic: Topic
):
    services.create_topic(APPETITE, partitions=1)
    change_code(job, GREEDY)
    topic.produce(1000)
    topic.wait_exact()
    before, run = job.driver(), job.status()["run"]
    services.produce(APPETITE, first=job.epoch(), count=1, keys=1, rate=1e9)
    topic.produce(1000)
    job.wait_other_driver(before)
    last = job.status()["lastTermination"]
    assert (last["reason"], last["run"], last["attempt"]) == (
        "OutOfMemory",
        run["number"],
        run["attempt"]["number"],
    ), json.dumps(last)
    assert "spec.driver.memory" in last["message"]
    job.wait_ready()
    assert job.status()["run"]["number"] == run["number"]
    topic.produce(500)
    topic.wait_exact()


def test_a_version_that_needs_more_memory_than_it_has_is_rolled_back_and_says_so(job: Job, topic: Topic):
    change_code(job, COUNTS)
    job.write_code("counts-code", HUNGRY)
    message = job.wait_reason("OutOfMemory", kind="RolledBack", seconds=400)
    assert "spec.driver.memory" in message, json.dumps(job.status(), indent=1)
    job.wait_ready(seconds=300)
    topic.produce(500)
    topic.wait_exact()
    job.write_code("counts-code", COUNTS)
    job.wait(lambda: job.condition("RolledBack")["status"] == "False", what="no complaint", seconds=120)


def test_code_that_raises_is_stalled_with_sparks_error_class_and_tried_on(
    job_named: Callable[..., Job], services: Services
):
    late = job_named("late")
    late.write_code("late-code", MISSING_TABLE)
    late.apply(a_spec(services, code="late-code"))
    try:
        message = late.wait_reason("TABLE_OR_VIEW_NOT_FOUND", kind="Stalled", seconds=600)
        assert "prices" in message
        tried = late.epoch()
        assert tried >= FAILURES_UNTIL_STALLED
        late.wait(lambda: late.epoch() > tried, what="another attempt", seconds=120)
        assert late.reason("Stalled") == "TABLE_OR_VIEW_NOT_FOUND"
        late.write_code("late-code", TICKS)
        late.wait_ready()
        assert late.condition("Stalled")["status"] == "False"
    finally:
        late.delete()


def test_executors_that_a_quota_refuses_are_a_reason(
    job_named: Callable[..., Job], services: Services, api: Api
):
    alone = job_named("alone", namespace=CRAMPED)
    alone.write_code("alone-code", TICKS)
    try:
        with pods_at_most(api, CRAMPED, 1):
            alone.apply(a_spec(services, code="alone-code"))
            message = alone.wait_reason("QuotaExceeded", seconds=240)
            assert "without an executor" in message and "exceeded quota" in message
            assert alone.live_drivers() != []
        # The controller of StatefulSets has waited longer with each refusal.
        alone.wait_ready(seconds=600)
    finally:
        alone.delete()
