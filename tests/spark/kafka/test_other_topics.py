"""New code that reads other topics is found in its rehearsal, on a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.jvm.jars import connector_jars
from tests.spark.kafka.broker import running_broker
from tests.spark.rehearsal.conftest import Rehearsals

FILL = """
properties = spark._jvm.java.util.Properties()
properties.setProperty("bootstrap.servers", "{broker}")
admin = spark._jvm.org.apache.kafka.clients.admin.Admin.create(properties)
topics = spark._jvm.java.util.ArrayList()
for name in ("a", "b"):
    topics.add(spark._jvm.org.apache.kafka.clients.admin.NewTopic(name, 1, 1))
admin.createTopics(topics).all().get()
admin.close()
for kind in ("key", "value"):
    properties.setProperty(f"{{kind}}.serializer", "org.apache.kafka.common.serialization.StringSerializer")
producer = spark._jvm.org.apache.kafka.clients.producer.KafkaProducer(properties)
for name in ("a", "b"):
    producer.send(spark._jvm.org.apache.kafka.clients.producer.ProducerRecord(name, "key", "value"))
producer.close()
"""
JOB = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
{fill}
read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{broker}") \\
    .option("startingOffsets", "earliest").option("{option}", "{value}").load()
query = read.groupBy("topic").count().writeStream.queryName("totals").outputMode("update") \\
    .format("noop").start()
query.awaitTermination()
"""


@pytest.mark.full  # fetches a broker (45 MB) the first time
def test_other_topics_are_asked_for(drive: Any, tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    with running_broker(tmp_path / "broker") as broker:
        rehearsals = Rehearsals(tmp_path, drive)
        jars = {"spark_conf": {"spark.jars": ",".join(map(str, connector_jars("kafka")))}}

        def script(option: str, value: str, fill: str = "") -> str:
            return JOB.format(broker=broker.open, option=option, value=value, fill=fill)

        first = script("subscribe", "a", fill=FILL.format(broker=broker.open))
        incumbent = rehearsals.start(first, **jars)
        incumbent.wait_for_batch("totals", 0)
        incumbent.wait_for_file(incumbent.run / "_plans" / "totals.json")

        for option, value, words in [
            ("subscribe", "b", "its sources were Kafka topics a; they are Kafka topics b"),
            ("subscribe", "a,b", "they are Kafka topics a, b"),
            ("subscribePattern", "[ab]", "they are Kafka topics like [ab]"),
        ]:
            end = rehearsals.rehearse(script(option, value), **jars)
            assert end["reason"] == "MeaningChanged", end["log"]
            assert words in end["message"]
        end = rehearsals.rehearse(script("subscribe", "a,b"), rehearsal={"stateCompatible": True}, **jars)
        assert end["reason"] == "Rehearsed", end["log"]
        assert rehearsals.rehearse(script("subscribe", "a"), **jars)["reason"] == "Rehearsed"
        assert incumbent.process.poll() is None
