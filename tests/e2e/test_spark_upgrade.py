"""Another line of Spark is an upgrade like any other: there, and back again, from the state as it is. And the
state itself, split into another number of partitions, by executors and through S3."""

import json
from collections.abc import Callable

import pytest

from tests.cluster.provider import Cluster
from tests.e2e.kafka_counts import COUNT_BY_KEY, Topic, spec_for
from tests.e2e.services import Services
from tests.e2e.streamjobs import Job, a_spec
from tests.e2e.testimages import FOREIGN

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800, func_only=True)]

KEYS = 5
REHEARSED = {"strategy": "Rehearsed", "verifyWindow": "20s", "startTimeout": "5m"}
# A plain Spark has no connector for Kafka, so the source is Spark's own, whose numbers have no gap: of the
# values 0 … n-1 each key has been given its share, or the state is not what it was.
COUNT_TICKS = """
import json
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()
ticks = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
counts = ticks.groupBy((F.col("value") % 5).alias("key")).agg(
    F.count("*").alias("n"), F.sum("value").alias("total"))


def write(frame, batch):
    rows = {row["key"]: [row["n"], row["total"]] for row in frame.collect()}
    print("COUNTED", json.dumps({"spark": spark.version, "batch": batch, "rows": rows}), flush=True)


counts.writeStream.queryName("ticks").outputMode("update").foreachBatch(write).start().awaitTermination()
"""


def counted(job: Job) -> list[dict]:
    """What the driver that runs has told of each batch, all keys in each."""
    log = job.cluster.kubectl("logs", "-n", job.namespace, job.driver()["metadata"]["name"], "-c", "driver")
    lines = [line.removeprefix("COUNTED ") for line in log.splitlines() if line.startswith("COUNTED ")]
    return [told for told in map(json.loads, lines) if len(told["rows"]) == KEYS]


def assert_exact(told: dict) -> None:
    """Of a prefix of all numbers, each counted once: none is missing, none is there twice."""
    rows = sum(n for n, _ in told["rows"].values())
    expected = {str(key): range(key, rows, KEYS) for key in range(KEYS)}
    assert told["rows"] == {key: [len(mine), sum(mine)] for key, mine in expected.items()}


def wait_exact(job: Job, *, spark: str, after: int) -> int:
    """A batch of this Spark after the one given, exact; its number."""
    job.wait(
        lambda: [told for told in counted(job) if told["batch"] > after],
        what=f"a batch after {after}",
        seconds=180,
    )
    batches = counted(job)
    assert {told["spark"] for told in batches} == {spark}
    for told in batches:
        assert_exact(told)
    return batches[-1]["batch"]


def test_another_line_of_spark_and_back(cluster: Cluster, services: Services, job_named: Callable[..., Job]):
    image = FOREIGN.to_load()
    cluster.load(image)
    job = job_named("ticks")
    job.write_code("ticks-code", COUNT_TICKS)
    job.apply({**a_spec(services, code="ticks-code"), "upgrade": REHEARSED})
    job.wait_ready(seconds=400)
    job.wait_stable(1)
    batch = wait_exact(job, spark="4.2.1", after=0)
    assert job.status()["run"]["sparkVersion"] == "4.2.1"

    job.edit({"image": image.reference})
    job.wait_stable(2)
    assert job.condition("Rehearsed")["status"] == "True"
    assert "Spark 4.2 → 4.3" in job.condition("Rehearsed")["message"]
    batch = wait_exact(job, spark="4.3.0", after=batch)
    assert job.status()["run"]["sparkVersion"] == "4.3.0"
    assert [event for event in job.events() if event["reason"] == "SparkChanged"]

    cluster.kubectl("annotate", "streamjob", job.name, "-n", job.namespace, "headrace.dev/rollback=2")
    job.wait_stable(3)
    assert job.status()["run"]["seededFrom"] == "run-2"  # forward: what 4.3.0 wrote, 4.2.1 reads
    wait_exact(job, spark="4.2.1", after=batch)
    job.delete()


def test_more_state_partitions_and_fewer(
    services: Services, job_named: Callable[..., Job], topic_named: Callable[[str], Topic]
):
    topic = topic_named("split")
    job = job_named("split")
    job.write_code("counts-code", COUNT_BY_KEY)
    topic.produce(500)
    without = {"onUpgrade": False}  # one is taken all the same
    job.apply({**spec_for(services, topic, upgrade=REHEARSED), "savepoints": without})
    job.wait_ready(seconds=400)
    job.wait_stable(1)
    for run, partitions in ((2, 5), (3, 2)):
        topic.produce(200)
        job.edit({"state": {"partitions": partitions}})
        job.wait_stable(run)
        assert f"into {partitions} partitions took" in job.condition("Rehearsed")["message"]
        topic.produce(200)
        topic.wait_exact()
        split = f"{job.store_prefix()}/run-{run}/queries/counts/state/0"
        there = {name.split("/")[0] for name in services.objects(split)}
        assert {str(number) for number in range(partitions)} <= there
    taken = job.cluster.kubectl("get", "ssp", "-n", job.namespace, "-o", "name").split()
    assert len([name for name in taken if "/split-upgrade-" in name]) == 2
    job.delete()
