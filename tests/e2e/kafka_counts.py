"""The job of most tests: a Kafka topic, counted by key into another one."""

from collections.abc import Sequence
from typing import Any

from tests.cluster.processes import wait_until
from tests.e2e.services import Services
from tests.e2e.streamjobs import a_spec

KEYS = 20
COUNT_BY_KEY = """
import sys
from pyspark.sql import SparkSession, functions as F

bootstrap, topic = sys.argv[1:3]
spark = SparkSession.builder.getOrCreate()
records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap) \\
    .option("subscribe", topic).option("startingOffsets", "earliest").load()
parsed = F.from_json(F.col("value").cast("string"), "i long, key string")
events = records.select(parsed.alias("e")).select("e.*")
counts = events.groupBy("key").agg(F.count("*").alias("n"), F.sum("i").alias("total"))
counts.select(F.to_json(F.struct("*")).alias("value")).writeStream.queryName("counts").outputMode("update") \\
    .format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic + "-counts") \\
    .start().awaitTermination()
"""


class Topic:
    """Numbered records in, counts by key out."""

    def __init__(self, services: Services, name: str, *, partitions: int = 2) -> None:
        self.services, self.name, self.produced = services, name, 0
        services.create_topic(name, partitions=partitions)
        services.create_topic(f"{name}-counts", partitions=1)

    def produce(self, count: int, *, rate: float = 1e9) -> None:
        self.services.produce(self.name, first=self.produced, count=count, keys=KEYS, rate=rate)
        self.produced += count

    def produce_at(self, rates: Sequence[float], *, step_seconds: float) -> None:
        """At one rate after the other."""
        self.produced += self.services.produce_at(
            self.name, rates, step=step_seconds, first=self.produced, keys=KEYS
        )

    def counted(self) -> dict[str, tuple[int, int]]:
        """The last word on each key. Every count ever written must have been true: n never goes back."""
        last: dict[str, tuple[int, int]] = {}
        for update in self.services.consume(f"{self.name}-counts"):
            assert update["n"] >= last.get(update["key"], (0, 0))[0], update
            last[update["key"]] = (update["n"], update["total"])
        return last

    def wait_exact(self, *, seconds: float = 180) -> None:
        """All that was produced is counted: nothing lost, nothing counted twice."""
        expected = self._expected()
        seen: dict[str, tuple[int, int]] = {}

        def exact() -> bool:
            nonlocal seen
            seen = self.counted()
            return seen == expected

        assert wait_until(exact, seconds=seconds, every=1), f"expected {expected}, counted {seen}"

    def _expected(self) -> dict[str, tuple[int, int]]:
        numbers = {key: range(key, self.produced, KEYS) for key in range(KEYS)}
        return {f"k{key}": (len(mine), sum(mine)) for key, mine in numbers.items() if mine}


def committed(services: Services, run_prefix: str, query: str = "counts") -> tuple[set[int], set[int]]:
    """The batches in the two logs of a run's checkpoint."""

    def numbers(log: str) -> set[int]:
        names = services.objects(f"{run_prefix}/queries/{query}/{log}")
        return {int(name) for name in names if name.isdecimal()}

    return numbers("offsets"), numbers("commits")


def spec_for(services: Services, topic: Topic, **more: Any) -> dict[str, Any]:
    return a_spec(services, code="counts-code", args=[services.bootstrap, topic.name], **more)
