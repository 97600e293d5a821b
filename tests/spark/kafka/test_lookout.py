"""A lookout at a real broker that asks for everything: it finds what came after the driver had ended."""

import json
import os
import subprocess
import sys

import pytest

from headrace_jobs.jvm.jars import connector_jars
from tests.spark.harness.conftest import wait_for
from tests.spark.kafka.broker import PASSWORD, running_broker
from tests.spark.kafka.test_secured_kafka import settings

JOB = r"""
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession

place, brokers = Path(sys.argv[1]), sys.argv[2]
spark = SparkSession.builder.getOrCreate()
jvm = spark._jvm
properties = jvm.java.util.Properties()
properties.setProperty("bootstrap.servers", brokers)
admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
topic = jvm.org.apache.kafka.clients.admin.NewTopic("numbers", 2, 1)
admin.createTopics(jvm.java.util.List.of(topic)).all().get()

def write(count):
    rows = spark.range(count).selectExpr("cast(id as string) as value")
    (rows.write.format("kafka").option("kafka.bootstrap.servers", brokers)
     .option("kafka.security.protocol", "PLAINTEXT").option("topic", "numbers").save())

write(20)
stream = spark.readStream.format("kafka").option("subscribe", "numbers").option("startingOffsets", "earliest")
stream.load().writeStream.queryName("numbers").foreachBatch(lambda frame, _: frame.count()).start()
while not (place / "more").exists():
    time.sleep(0.05)
for query in spark.streams.active:
    query.stop()
write(5)
"""


@pytest.mark.timeout(600)
@pytest.mark.full  # fetches a broker (45 MB) the first time
def test_a_lookout_finds_what_came_after_the_driver_had_ended(drive, tmp_path):
    for name in ("secrets", "broker"):
        (tmp_path / name).mkdir()
    with running_broker(tmp_path / "broker") as broker:
        driver = drive(
            JOB,
            application={"args": [str(tmp_path), broker.open]},
            kafka=settings(broker, tmp_path / "secrets"),
            spark_conf={"spark.jars": ",".join(map(str, connector_jars("kafka")))},
        )
        driver.wait_for_batch("numbers", 0)
        wait_for(
            lambda: (
                driver.query("numbers")["lag"]["rows"] == 0
                and driver.query("numbers")["lag"]["lookout"]["able"]
            ),
            f"it never could be looked at: {driver.query('numbers')}",
        )
        note = (driver.run / "_sources" / "numbers.json").read_text()
        assert PASSWORD not in note and "passwordFile" in note

        lookout = subprocess.Popen(
            [
                *(sys.executable, "-m", "headrace_jobs.lookout", "--every=1"),
                f"--run-file={driver.directory / 'run.json'}",
                f"--result={tmp_path / 'words.json'}",
            ],
            stderr=(tmp_path / "lookout.log").open("wb"),
            env=dict(os.environ),
        )
        try:
            log = tmp_path / "lookout.log"
            wait_for(lambda: "nothing waits" in log.read_text() or lookout.poll() is not None, "no look")
            assert lookout.poll() is None, log.read_text()
            (tmp_path / "more").touch()
            assert driver.end()["reason"] == "Completed", driver.log()
            assert lookout.wait(60) == 0, log.read_text()
        finally:
            lookout.kill()
            lookout.wait()
    words = json.loads((tmp_path / "words.json").read_text())
    assert words["reason"] == "Work", words
    assert words["message"].startswith("5 rows wait (numbers/")
