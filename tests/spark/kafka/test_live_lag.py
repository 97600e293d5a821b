"""The lag of a Kafka source, partition by partition, as a real broker has it while a batch is running."""

import os
import signal
import time

import pytest

from headrace_jobs.jvm.jars import connector_jars
from tests.spark.harness.conftest import wait_for
from tests.spark.kafka.broker import running_broker

JOB = r"""
import sys, threading, time
from pathlib import Path
from pyspark.sql import SparkSession

place, brokers = Path(sys.argv[1]), sys.argv[2]
spark = SparkSession.builder.getOrCreate()
jvm = spark._jvm
properties = jvm.java.util.Properties()
properties.setProperty("bootstrap.servers", brokers)
admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
topic = jvm.org.apache.kafka.clients.admin.NewTopic("numbers", 2, 1)
settings = jvm.java.util.HashMap()
settings.put("retention.ms", "3600000")
admin.createTopics(jvm.java.util.List.of(topic.configs(settings))).all().get()

def write(count, partition):
    rows = spark.range(count).selectExpr("cast(id as string) as value", f"{partition} as partition")
    rows.write.format("kafka").option("kafka.bootstrap.servers", brokers).option("topic", "numbers").save()

write(20, 0)
write(4, 1)

def wait_for(name):
    while not (place / name).exists():
        time.sleep(0.05)

def process(frame, batch_id):
    frame.count()
    if batch_id == 0:
        (place / "in-batch-0").touch()
        wait_for("go-on")
    if batch_id == 1:
        (place / "in-batch-1").touch()
        wait_for("go")

stream = (
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", "numbers")
    .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 6).option("minPartitions", 3).load()
)
stream.writeStream.queryName("numbers").foreachBatch(process).start()
wait_for("more")
partitions = jvm.java.util.HashMap()
partitions.put("numbers", getattr(jvm.org.apache.kafka.clients.admin, "NewPartitions").increaseTo(3))
admin.createPartitions(partitions).all().get()
write(10, 2)
(place / "more-written").touch()
spark.streams.awaitAnyTermination()
"""


@pytest.mark.full  # fetches a broker (45 MB) the first time
def test_lag_is_what_the_broker_has_less_what_is_committed(drive, tmp_path):
    (tmp_path / "broker").mkdir()
    began = time.time()
    with running_broker(tmp_path / "broker") as broker:
        driver = drive(
            JOB,
            application={"args": [str(tmp_path), broker.open]},
            spark_conf={"spark.jars": ",".join(map(str, connector_jars("kafka")))},
        )

        def lag_of(rows: int | None) -> dict:
            def seen():
                lag = (driver.query("numbers") or {}).get("lag") or {}
                return lag if lag.get("rows") == rows and lag["why"] != "no batch has ended yet" else None

            return wait_for(seen, f"the lag is never {rows}: {driver.query('numbers')}")

        # In the very first batch nothing is committed yet: it counts from where the query begins.
        driver.wait_for_file(tmp_path / "in-batch-0")
        assert lag_of(24)["offsets"]["plannedRows"] == 6
        (tmp_path / "go-on").touch()
        driver.wait_for_file(tmp_path / "in-batch-1")
        lag = lag_of(18)
        offsets = lag["offsets"]
        assert offsets["retentionSeconds"] == 3600
        assert (offsets["minPartitions"], offsets["maxRowsPerBatch"]) == (3, 6)
        assert offsets["plannedRows"] == 6
        ends = {name: one[0] for name, one in offsets["partitions"].items()}
        assert ends == {"numbers/0": 20, "numbers/1": 4}
        assert sum(one[1] for one in offsets["partitions"].values()) == 6
        assert {one[2] for one in offsets["partitions"].values()} == {0}
        ages = [one[3] for one in offsets["partitions"].values() if one[0] > one[1]]
        assert ages and all(began < age < time.time() for age in ages)
        assert lag["behindSince"] is not None
        (batch,) = driver.query("numbers")["batches"]
        assert (batch[0], batch[2], batch[3]) == (0, 6, 1)

        # Partitions that come while a batch runs count from their first offset.
        (tmp_path / "more").touch()
        driver.wait_for_file(tmp_path / "more-written")
        partitions = lag_of(28)["offsets"]["partitions"]
        assert partitions["numbers/2"][:3] == [10, None, 0]

        # A broker that does not answer is not an empty one.
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            silent = lag_of(None)
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        assert silent["known"] is False and silent["offsets"] is None
        assert silent["why"].startswith("Kafka does not tell its offsets")
        lag_of(28)

        (tmp_path / "go").touch()
        lag_of(0)
        assert driver.call("POST", "/v1/drain")[0] == 202
        assert driver.end()["reason"] == "Drained", driver.log()
