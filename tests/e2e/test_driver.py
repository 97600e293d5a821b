"""The first witness: a driver pod made from core/manifests counts a Kafka topic, with its state in S3."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from headrace.core.manifests import Platform
from tests.cluster.api import Api
from tests.cluster.processes import wait_until
from tests.e2e.driver import WITNESS, start_driver
from tests.e2e.services import BUCKET, Services

KEYS = 20
BLOCK = 1000
RECORDS_PER_SECOND = 100
COUNT_BY_KEY = """
import sys
from pyspark.sql import SparkSession, functions as F

bootstrap = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap) \\
    .option("subscribe", "in").option("startingOffsets", "earliest").load()
parsed = F.from_json(F.col("value").cast("string"), "i long, key string")
events = records.select(parsed.alias("e")).select("e.*")
counts = events.groupBy("key").agg(F.count("*").alias("n"), F.sum("i").alias("total"))
counts.select(F.to_json(F.struct("*")).alias("value")).writeStream.queryName("counts").outputMode("update") \\
    .format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", "out").start() \\
    .awaitTermination()
"""


@pytest.mark.timeout(1800)
def test_a_driver_scales_without_losing_a_batch_and_drains(
    api: Api, services: Services, platform: Platform, namespace: str
):
    services.create_topic("in", partitions=4)
    services.create_topic("out", partitions=1)
    _copy_keys(api, services, namespace)
    driver = start_driver(
        api, services, platform, namespace, spec=_spec(services), code={"job.py": COUNT_BY_KEY}
    )
    pod_uid = driver.pod()["metadata"]["uid"]
    with _steady_load(services) as load:
        committed = driver.wait_committed("counts", beyond=0)
        for replicas in (3, 1):
            driver.scale(replicas)
            assert wait_until(
                lambda wanted=replicas: driver.ready_executors() == wanted, seconds=300, every=1
            )
            committed = driver.wait_committed("counts", beyond=committed + 3)

    expected = _expected(load.produced)
    assert wait_until(lambda: _final(services.consume("out")) == expected, seconds=300, every=2), driver.log()
    assert driver.pod()["metadata"]["uid"] == pod_uid
    assert driver.query("counts")["error"] is None

    ended = driver.end()
    assert (ended["exitCode"], ended["message"]["reason"]) == (0, "Drained")
    offsets, commits = _logs(services, driver.attempt.store)
    assert offsets == commits == set(range(max(commits) + 1))
    assert _final(services.consume("out")) == expected


@dataclass
class Load:
    """Numbered records, some each second, until it is told to stop."""

    services: Services
    produced: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stopping.is_set():
            self.services.produce("in", first=self.produced, count=BLOCK, keys=KEYS, rate=RECORDS_PER_SECOND)
            self.produced += BLOCK


@contextmanager
def _steady_load(services: Services) -> Iterator[Load]:
    load = Load(services)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        yield load
    finally:
        load.stopping.set()
        thread.join()


def _spec(services: Services) -> dict[str, Any]:
    return {
        "application": {"configMap": {"name": "counts-code"}, "args": [services.bootstrap]},
        "checkpoint": {
            "location": f"s3://{BUCKET}/checkpoints",
            "s3": {"endpoint": services.s3_endpoint, "credentials": {"secret": "s3-keys"}},
        },
        "state": {"partitions": 4},
        # Short-lived JVMs on a small machine: the optimising compiler would cost more than it gives.
        "sparkConf": {
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        },
        "trigger": {"interval": "2s"},
        "driver": {"memory": "1536Mi", "resources": {"requests": {"cpu": "100m"}}, "patch": WITNESS},
        "executors": {"memory": "1Gi", "resources": {"requests": {"cpu": "100m"}}},
    }


def _copy_keys(api: Api, services: Services, namespace: str) -> None:
    secret = api.get(f"/api/v1/namespaces/{services.namespace}/secrets/s3-keys").need()
    copy = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3-keys"}, "data": secret["data"]}
    api.create(f"/api/v1/namespaces/{namespace}/secrets", copy).need()


def _expected(produced: int) -> dict[str, tuple[int, int]]:
    return {
        f"k{key}": (len(range(key, produced, KEYS)), sum(range(key, produced, KEYS))) for key in range(KEYS)
    }


def _final(updates: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """The last word on each key. Every count ever written must have been true: n never goes back."""
    last: dict[str, tuple[int, int]] = {}
    for update in updates:
        assert update["n"] >= last.get(update["key"], (0, 0))[0], update
        last[update["key"]] = (update["n"], update["total"])
    return last


def _logs(services: Services, store: str) -> tuple[set[int], set[int]]:
    """Batch numbers in the offset and the commit log, from the objects themselves."""
    prefix = f"{store.removeprefix(f's3://{BUCKET}/')}/run-1/queries/counts"
    found = services.objects(prefix)

    def numbers(log: str) -> set[int]:
        names = [key.removeprefix(f"{log}/") for key in found if key.startswith(f"{log}/")]
        return {int(name) for name in names if name.isdigit()}

    return numbers("offsets"), numbers("commits")
