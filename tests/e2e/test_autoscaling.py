"""Executors follow the load of a real topic under one driver, and stay when nobody can tell the load."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from headrace.cli.kubectl import main as kubectl_streamjob
from tests.e2e.kafka_counts import Topic
from tests.e2e.nodes import own_nodes
from tests.e2e.services import Services
from tests.e2e.streamjobs import Job, a_spec

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800, func_only=True)]

# Each row takes its core 20 ms, and next to no CPU: three executors are three times as fast on any machine.
SLOW_COUNT = """
import sys
from pyspark.sql import SparkSession, functions as F

bootstrap, topic = sys.argv[1:3]
spark = SparkSession.builder.getOrCreate()
records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap) \\
    .option("subscribe", topic).option("startingOffsets", "earliest").load()
parsed = F.from_json(F.col("value").cast("string"), "i long, key string")
events = records.select(parsed.alias("e")).select("e.*")
slow = events.where("coalesce(reflect('java.lang.Thread', 'sleep', 20L), '') != 'never'")
counts = slow.groupBy("key").agg(F.count("*").alias("n"), F.sum("i").alias("total"))
counts.select(F.to_json(F.struct("*")).alias("value")).writeStream.queryName("counts").outputMode("update") \\
    .format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic + "-counts") \\
    .start().awaitTermination()
"""


@pytest.fixture(scope="module")
def topic(services: Services) -> Topic:
    return Topic(services, "ramp", partitions=6)


@pytest.fixture(scope="module")
def job(job_named: Callable[..., Job], services: Services, topic: Topic) -> Job:
    ramp = job_named("ramp")
    ramp.write_code("ramp-code", SLOW_COUNT)
    spec = a_spec(services, code="ramp-code", args=[services.bootstrap, topic.name])
    ramp.apply(
        {
            **spec,
            "trigger": {"interval": "5s"},
            "executors": {**spec["executors"], "cores": 1},
            "autoscaling": {"max": 3, "lagObjective": "60s"},
        }
    )
    return ramp


@contextmanager
def load(topic: Topic, *, rate: float, seconds: float) -> Iterator[None]:
    """Rows come meanwhile; whoever leaves waits for the last of them."""
    producer = threading.Thread(target=topic.produce, args=(int(rate * seconds),), kwargs={"rate": rate})
    producer.start()
    try:
        yield
    finally:
        producer.join()


def target(job: Job) -> int:
    return job.status().get("executors", {}).get("target", 0)


def explain(job: Job, *more: str) -> str:
    kubeconfig = next(flag for flag in job.cluster.kubectl_command if flag.startswith("--kubeconfig="))
    arguments = ["explain", job.name, "-n", job.namespace, *kubeconfig.split("=", 1), *more]
    result = CliRunner().invoke(kubectl_streamjob, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_executors_follow_the_load_from_one_to_three_and_back(job: Job, topic: Topic):
    driver = job.wait_ready(seconds=400)
    with load(topic, rate=15, seconds=90):
        job.wait_reason("Measured", kind="LagKnown", seconds=400)
    with load(topic, rate=110, seconds=240):
        job.wait(lambda: target(job) == 3, what="a target of three", seconds=400)
        job.wait(lambda: job.executors_ready() == 3, what="three executors", seconds=180)
    up = job.status()["executors"]["reason"]
    with load(topic, rate=5, seconds=420):
        job.wait(lambda: target(job) == 1, what="a target of one", seconds=900)
        job.wait(lambda: len(job.pods("executor")) == 1, what="one executor", seconds=120)
    topic.wait_exact(seconds=300)
    assert job.driver()["metadata"]["uid"] == driver["metadata"]["uid"]
    assert job.epoch() == 1
    assert "executors" in up
    ring = json.loads(explain(job, "-o", "json"))
    moves = [(one["asked"], one["target"]) for one in ring["decisions"] if one["asked"] != one["target"]]
    assert moves[0][0] == 1 and max(after for _, after in moves) == 3 and moves[-1][1] == 1, moves
    shown = explain(job, "--lines", "200")
    assert "→ 3 executors: " in shown and "rows/s arrive" in shown
    assert "counts: a batch takes" in shown
    # The ring lies in the job's own store, where no operator goes.
    assert "ring.json" in topic.services.objects(f"{job.store_prefix()}/_scaling")


def test_a_broker_that_is_away_freezes_the_number(job: Job, services: Services):
    nodes = own_nodes(job.cluster)
    kafka = job.cluster.api.get(f"/api/v1/namespaces/{services.namespace}/pods/kafka").need()
    before = target(job)
    nodes.signal_container(kafka, "kafka", signal.SIGSTOP)
    try:
        message = job.wait_reason("LagUnknown", kind="LagKnown", seconds=150)
        assert "is not known" in message
        assert target(job) == before
        assert job.status()["lag"]["band"] == "Unknown"
    finally:
        nodes.signal_container(kafka, "kafka", signal.SIGCONT)
