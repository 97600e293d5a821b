"""Jobs that start at a time or at offsets, on a real broker; and what cannot is refused with its reason."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.jvm.jars import connector_jars
from tests.spark.kafka.broker import Broker, running_broker

# Two topics with two partitions each; record i of a partition was made i minutes after the first.
JOB = r"""
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession

place, broker, first, variant = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
spark = SparkSession.builder.getOrCreate()
jvm = spark._jvm
if not (place / "filled").exists():
    properties = jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", broker)
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    topics = jvm.java.util.ArrayList()
    for name in ("a", "b"):
        topics.add(jvm.org.apache.kafka.clients.admin.NewTopic(name, 2, 1))
    admin.createTopics(topics).all().get()
    admin.close()
    for kind in ("key", "value"):
        properties.setProperty(f"{kind}.serializer", "org.apache.kafka.common.serialization.StringSerializer")
    producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(properties)
    for name in ("a", "b"):
        for partition in range(2):
            for i in range(10 if partition == 0 else 3):
                record = jvm.org.apache.kafka.clients.producer.ProducerRecord(
                    name, partition, first + i * 60_000, "", f"{name}{partition}-{i}")
                producer.send(record)
    producer.close()
    (place / "filled").write_text("")

def read(topics, **more):
    options = {"kafka.bootstrap.servers": broker, "subscribe": topics, **more}
    return spark.readStream.format("kafka").options(**options).load()

def write(frame, name):
    def out(rows, batch):
        values = [row.value.decode() for row in rows.select("value").collect()]
        with open(place / f"{name}.out", "a") as file:
            file.writelines(value + "\n" for value in values)
    frame.writeStream.queryName(name).foreachBatch(out).start().awaitTermination()

if variant == "rate":
    rate = spark.readStream.format("rate").load()
    write(rate.selectExpr("cast(cast(value as string) as binary) as value"), "one")
elif variant == "shared":
    shared = read("a")
    write(shared, "one")
    write(shared, "two")
else:
    write(read("a", startingOffsets="earliest"), "one")
    write(read("a").union(read("b", startingTimestamp=str(first))), "two")
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running_broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture
def run(drive: Any, tmp_path: Path, broker: Broker) -> Any:
    first = int(time.time() * 1000) - 3_600_000

    def start(variant: str, place: Path, **changes: Any) -> Any:
        wanted = changes.pop("start")(first)
        return drive(
            JOB,
            application={"args": [str(place), broker.open, str(first), variant]},
            spark_conf={"spark.jars": ",".join(map(str, connector_jars("kafka")))},
            trigger={"mode": "AvailableNow", "intervalSeconds": None},
            start={"timestampMillis": None, "offsets": None, **wanted} if wanted else None,
            **changes,
        )

    return start


def read_by(place: Path, query: str) -> list[str]:
    path = place / f"{query}.out"
    return sorted(path.read_text().split()) if path.exists() else []


def records(*ranges: tuple[str, range]) -> list[str]:
    return sorted(f"{name}-{i}" for name, numbers in ranges for i in numbers)


@pytest.mark.full  # fetches a broker (45 MB) the first time
def test_a_time_offsets_and_what_is_refused(run: Any, tmp_path: Path, broker: Broker) -> None:
    """One story, since brokers and drivers start slowly."""
    home = tmp_path / "by-time"
    home.mkdir()
    at_a_time = run("two", home, start=lambda first: {"timestampMillis": first + 7 * 60_000})
    assert at_a_time.end()["reason"] == "Completed", at_a_time.log()
    # Partition 1 has nothing since then: it is read from its end, and is no error.
    assert read_by(home, "one") == records(("a0", range(7, 10)))
    assert read_by(home, "two") == records(("a0", range(7, 10)), ("b0", range(7, 10)))
    again = run("two", home, start=lambda first: {"timestampMillis": first}, attempt=2)
    assert again.end()["reason"] == "Completed", again.log()
    assert len(read_by(home, "one")) == 3, "a query that has a checkpoint goes on from it"

    offsets = {
        "one": {"a": {"0": 4, "1": -2}},
        "two": {"a": {"0": -1, "1": 1}, "b": {"0": 8, "1": -1}},
    }
    home = tmp_path / "by-offsets"
    home.mkdir()
    (home / "filled").write_text("")
    at_offsets = run("two", home, start=lambda _: {"offsets": offsets}, run=2)
    assert at_offsets.end()["reason"] == "Completed", at_offsets.log()
    assert read_by(home, "one") == records(("a0", range(4, 10)), ("a1", range(3)))
    assert read_by(home, "two") == records(("a1", range(1, 3)), ("b0", range(8, 10)))

    refusals = [
        ("rate", {"timestampMillis": 1}, "query one reads rate, which cannot start at a time"),
        ("two", {"offsets": {"on": {"a": {"0": 1}}}}, "says nothing of query one; it names on"),
        ("two", {"offsets": {"one": {"b": {"0": 1}}}}, "the topic b, which the query does not read"),
        (
            "shared",
            {"offsets": {"one": {"a": {"0": 9, "1": 2}}, "two": {"a": {"0": 0, "1": 0}}}},
            "the queries one and two share one reader",
        ),
    ]
    for number, (variant, start, words) in enumerate(refusals):
        refused = run(variant, home, start=lambda _, start=start: start, run=10 + number)
        end = refused.end()
        assert (end["reason"], end["errorClass"]) == ("Refused", "StartRefused"), refused.log()
        assert words in end["message"]
        assert end["userFrame"]["file"].endswith("job.py")


def test_names_of_queries_bind_where_the_job_begins_with_something(drive: Any, tmp_path: Path) -> None:
    """And the sink is noted in the store: a fork of a file sink must be refused later."""
    script = """
        import sys
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.getOrCreate()
        frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        out = sys.argv[1] + "/out"
        frame.writeStream.format("parquet").option("path", out).queryName("files").start().awaitTermination()
    """
    driver = drive(script)
    driver.wait_for_batch("files", 1)
    driver.wait_for_file(driver.run / "_sinks/files")
    assert (driver.run / "_sinks/files").read_text().startswith("FileSink[")
    driver.kill()

    marker = {"from_run": "_savepoints/n", "batches": {"other": [3, 3]}, "objects": 1, "size_bytes": 1}
    seeded = tmp_path / "store/run-2/_seed.json"
    seeded.parent.mkdir(parents=True)
    seeded.write_text(json.dumps({**marker, "rewritten": 0, "binding": True}))
    end = drive(script, run=2).end()
    assert (end["reason"], end["errorClass"]) == ("Refused", "StartRefused")
    assert "holds the queries other and none of the name files" in end["message"]
