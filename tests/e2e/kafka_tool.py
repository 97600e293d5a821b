"""Runs inside the services pod: topics, numbered records in, results out. `python3 kafka_tool.py <command> …`

No Python client of Kafka is needed: py4j (part of pyspark) drives Kafka's own Java client.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from py4j.java_gateway import JavaGateway

_SENT_AGAIN_AFTER = 5
# Any time but the very first: to Spark, what is of 1970-01-01T00:00:00 is late from the beginning.
_FIRST_AT_MS = 1_800_000_000_000


def main() -> None:
    arguments = _parse()
    jars = f"{_py4j_jar()}:/opt/kafka/*"
    gateway = JavaGateway.launch_gateway(
        classpath=jars, die_on_exit=True, enable_auth=True, javaopts=["-Xmx128m"]
    )
    COMMANDS[arguments.command](gateway.jvm, arguments)


def create_topic(jvm, arguments) -> None:
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(_config(jvm, arguments))
    topic = jvm.org.apache.kafka.clients.admin.NewTopic(arguments.topic, arguments.partitions, 1)
    admin.createTopics(jvm.java.util.List.of(topic)).all().get()
    admin.close()


def add_partitions(jvm, arguments) -> None:
    """Up to this number."""
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(_config(jvm, arguments))
    wanted = jvm.java.util.HashMap()
    more = jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(arguments.partitions)
    wanted.put(arguments.topic, more)
    admin.createPartitions(wanted).all().get()
    admin.close()


def produce(jvm, arguments) -> None:
    """Numbered records {"i": …, "key": …, "at_ms": …}: what arrived how often is told by the numbers."""
    config = _config(jvm, arguments, serializer="StringSerializer")
    config.setProperty("acks", "all")
    config.setProperty("linger.ms", "5")
    producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(config)
    record = jvm.org.apache.kafka.clients.producer.ProducerRecord
    began, number = time.monotonic(), arguments.first
    for due in _moments(arguments):
        if Path(arguments.until).exists():
            break
        for again in _sent_with(number, arguments.again):
            key = f"k{again % arguments.keys}"
            value = {"i": again, "key": key, "at_ms": _FIRST_AT_MS + again * arguments.step_ms}
            producer.send(record(arguments.topic, key, json.dumps(value)))
        number += 1
        behind = due - (time.monotonic() - began)
        if behind > 0.02:
            producer.flush()
            time.sleep(behind)
    producer.close()
    sys.stdout.write(json.dumps({"produced": number - arguments.first}) + "\n")


def _sent_with(number: int, again: int) -> list[int]:
    """Itself, and at times an earlier one: what a producer does that did not get an answer."""
    earlier = number - _SENT_AGAIN_AFTER
    return [number, earlier] if again and earlier >= 0 and earlier % again == 0 else [number]


def _moments(arguments) -> Iterator[float]:
    """When each record is due, in seconds: at one rate, or at one after the other."""
    if not arguments.rates:
        yield from (number / arguments.rate for number in range(arguments.count))
        return
    sent, wanted = 0, 0.0
    for index, rate in enumerate(map(float, arguments.rates.split(","))):
        before, wanted = wanted, wanted + rate * arguments.step
        while sent < int(wanted):
            yield (index + (sent - before) / (wanted - before)) * arguments.step
            sent += 1


def consume(jvm, arguments) -> None:
    """All records of a topic as it stands now, one JSON line each."""
    config = _config(jvm, arguments, deserializer="StringDeserializer")
    config.setProperty("isolation.level", "read_committed")
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(config)
    partition = jvm.org.apache.kafka.common.TopicPartition
    count = consumer.partitionsFor(arguments.topic).size()
    partitions = jvm.java.util.ArrayList()
    for number in range(count):
        partitions.add(partition(arguments.topic, number))
    consumer.assign(partitions)
    consumer.seekToBeginning(partitions)
    ends = consumer.endOffsets(partitions)
    while any(consumer.position(one) < ends.get(one) for one in partitions):
        records = consumer.poll(jvm.java.time.Duration.ofMillis(500)).iterator()
        while records.hasNext():
            record = records.next()
            line = {"partition": record.partition(), "offset": record.offset(), "value": record.value()}
            sys.stdout.write(json.dumps(line) + "\n")
    consumer.close()


COMMANDS = {
    "create-topic": create_topic,
    "add-partitions": add_partitions,
    "produce": produce,
    "consume": consume,
}


def _config(jvm, arguments, *, serializer: str | None = None, deserializer: str | None = None):
    config = jvm.java.util.Properties()
    config.setProperty("bootstrap.servers", arguments.bootstrap)
    package = "org.apache.kafka.common.serialization"
    for role in ("key", "value"):
        if serializer:
            config.setProperty(f"{role}.serializer", f"{package}.{serializer}")
        if deserializer:
            config.setProperty(f"{role}.deserializer", f"{package}.{deserializer}")
    return config


def _py4j_jar() -> str:
    import pyspark

    return str(next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--keys", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1e9, help="records per second")
    parser.add_argument("--step-ms", type=int, default=50, help="event time from a record to the next")
    parser.add_argument("--again", type=int, default=0, help="every so many records one is sent twice")
    parser.add_argument("--until", default="/nowhere", help="a file that ends it")
    parser.add_argument("--rates", default="", help="instead of a count: records per second, by commas")
    parser.add_argument("--step", type=float, default=15.0, help="seconds for which each of them holds")
    return parser.parse_args()


if __name__ == "__main__":
    main()
