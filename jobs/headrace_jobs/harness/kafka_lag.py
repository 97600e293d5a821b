"""How far the topics of a query reach, read live by the JVM's Kafka client with the query's own settings.

Neither Spark's "behind latest" (as of the last batch, and zero for a batch that takes everything) nor a
consumer group (Spark commits to none). The client is one of our own, beside the query's: a broker that does
not answer holds up nobody but us.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from headrace_jobs.harness.jvm_errors import innermost
from headrace_jobs.harness.offsets import (
    UNKNOWN_RETENTION,
    LookFailed,
    PartitionOffsets,
    Retention,
    SourceOffsets,
    retention_in,
    shortest,
)
from headrace_jobs.harness.source_notes import NotNoted, kafka_note
from headrace_jobs.harness.spark_inside import private_field, source_at, sources_of

log = logging.getLogger("headrace")

# A look must not take longer than the next one is away.
_PATIENCE = {"default.api.timeout.ms": "8000", "request.timeout.ms": "4000"}
_RETENTION_SECONDS = 300.0
# Of so many partitions the oldest unread record is read in one look; the others are next, or reckoned.
_READ_AT_ONCE = 16
_READ_SECONDS = 2.0
_SMALL_FETCH = {"max.poll.records": "500", "max.partition.fetch.bytes": "4096", "fetch.max.bytes": "1048576"}


FindQuery = Callable[[str], Any]


@dataclass
class KafkaTopics:
    """The Kafka sources of all queries. For one thread."""

    jvm: Any
    find_query: FindQuery
    """The query in the JVM, by its name."""

    references: frozenset[str] = frozenset()
    """Values of settings that name a secret and are none."""

    # With the run of the query; None where it cannot be looked at.
    _sources: dict[tuple[str, int], tuple[str, KafkaSource | None]] = field(default_factory=dict)

    def look(self, query: str, index: int) -> SourceOffsets | None:
        """None if the source is no Kafka, or a Spark whose inside we do not know."""
        execution = self.find_query(query).streamingQuery()
        try:
            stream = source_at(execution, index)
            if "KafkaMicroBatchStream" not in stream.getClass().getName():
                return None
            source = self._source(query, index, execution.runId().toString(), stream)
            if source is None:
                return None
            planned = _offsets(execution.availableOffsets(), stream)
            committed = _offsets(execution.committedOffsets(), stream)
            if committed is None and planned is not None:
                # Its first batch of all runs, maybe for hours: it began where Spark has noted that it would.
                committed = source.began_at(execution.sparkSession(), stream)
            return source.look(committed, planned)
        except Py4JJavaError as error:
            raise LookFailed(f"Kafka does not tell its offsets: {innermost(error)}") from None
        except Py4JError as error:
            # A Spark made otherwise inside, or one that is just ending: others are to be measured, too.
            raise LookFailed(f"Spark does not tell its offsets: {str(error)[:300]}") from None

    def note(self, query: str, index: int) -> dict[str, Any]:
        """Raises NotNoted. Of a source that was looked at before."""
        known = self._sources.get((query, index))
        if known is None or known[1] is None:
            raise NotNoted("its sources were not looked at yet")
        return known[1].note(self.references)

    def _source(self, query: str, index: int, run_id: str, stream: Any) -> KafkaSource | None:
        known = self._sources.get((query, index))
        if known is not None and known[0] == run_id:
            return known[1]
        if known is not None and known[1] is not None:
            known[1].close()
        try:
            source = KafkaSource(self.jvm, stream)
        except Py4JError:
            log.warning("the offsets of %s cannot be looked up live in this Spark", query, exc_info=True)
            source = None
        self._sources[query, index] = (run_id, source)
        return source

    def descriptions(self, query: str) -> list[str]:
        """None before the query has made its plan."""
        sources = sources_of(self.find_query(query).streamingQuery())
        return (
            [sources.apply(index).toString() for index in range(sources.size())]
            if sources is not None
            else []
        )


class KafkaSource:
    """One source, with a reader of offsets, a consumer and an admin of its own."""

    def __init__(self, jvm: Any, stream: Any) -> None:
        self._jvm = jvm
        theirs = stream.kafkaOffsetReader()
        self._strategy = private_field(theirs, "consumerStrategy")
        self._params = jvm.java.util.HashMap(theirs.driverKafkaParams())
        self._given = {str(key): str(value) for key, value in dict(self._params).items()}
        for key, value in _PATIENCE.items():
            self._params.put(key, value)
        kafka = jvm.org.apache.spark.sql.kafka010
        self._reader = kafka.KafkaOffsetReaderAdmin(self._strategy, self._params, _impatient(jvm), "headrace")
        self._json = kafka.JsonUtils
        self._consumer: Any = None
        self._options = private_field(stream, "options")
        self._max_rows = _option(stream.maxOffsetsPerTrigger())
        self._retention = UNKNOWN_RETENTION
        self._retention_due = 0.0
        self._began_at: Mapping[str, int] | None = None
        # (partition, committed) -> when the record there was written.
        self._ages: dict[tuple[str, int], float] = {}

    def look(self, committed: Mapping[str, int] | None, planned: Mapping[str, int] | None) -> SourceOffsets:
        """`planned` is where the batch that runs will end."""
        before = time.time()
        nothing = self._jvm.scala.Option.apply(None)
        ends = _flat(self._json.partitionOffsets(self._reader.fetchLatestOffsets(nothing)))
        at = (before + time.time()) / 2
        earliest = _flat(self._json.partitionOffsets(self._reader.fetchEarliestOffsets()))
        if committed is None:
            raise LookFailed("no batch has ended yet, so nobody knows where the query began")
        partitions = {
            name: PartitionOffsets(end, committed.get(name), earliest.get(name)) for name, end in ends.items()
        }
        ages = self._ages_of({name: one for name, one in partitions.items() if one.behind})
        retention = self._retention_of({name.rpartition("/")[0] for name in partitions})
        return SourceOffsets(
            at=at,
            partitions={
                name: PartitionOffsets(one.end, one.committed, one.earliest, ages.get(name))
                for name, one in partitions.items()
            },
            retention_seconds=retention.seconds,
            deletes_by_size=retention.by_size,
            min_partitions=_number(self._options.get("minPartitions")),
            max_rows_per_batch=self._max_rows,
            planned_rows=_between(committed, planned),
        )

    def note(self, references: frozenset[str]) -> dict[str, Any]:
        options = {key: self._options.get(key) for key in ("subscribe", "subscribepattern", "assign")}
        return kafka_note(self._given, options, references=references)

    def began_at(self, session: Any, stream: Any) -> Mapping[str, int] | None:
        """From the checkpoint, where Spark notes it before it plans the first batch."""
        if self._began_at is None:
            kafka, place = self._jvm.org.apache.spark.sql.kafka010, private_field(stream, "metadataPath")
            noted = kafka.KafkaSourceInitialOffsetWriter(session, place).get(0)
            self._began_at = _flat(noted.get().json()) if noted.isDefined() else None
        return self._began_at

    def close(self) -> None:
        for client in (self._reader, self._consumer):
            try:
                if client is not None:
                    client.close()
            except Py4JError:
                log.debug("a Kafka client did not close", exc_info=True)

    # The age of the oldest unread record.

    def _ages_of(self, waiting: Mapping[str, PartitionOffsets]) -> dict[str, float]:
        wanted = {(name, max(one.committed or 0, one.earliest or 0)): one for name, one in waiting.items()}
        self._ages = {place: age for place, age in self._ages.items() if place in wanted}
        missing = sorted(wanted.keys() - self._ages.keys(), key=lambda place: -(wanted[place].behind or 0))
        if missing:
            try:
                self._read(missing[:_READ_AT_ONCE])
            except Py4JJavaError as error:
                log.debug("the oldest unread records cannot be read: %s", innermost(error))
        return {name: age for (name, _), age in self._ages.items()}

    def _read(self, places: list[tuple[str, int]]) -> None:
        consumer = self._consumer = self._consumer or self._new_consumer()
        java = self._jvm.org.apache.kafka.common
        by_name = {}
        for name, offset in places:
            topic, _, number = name.rpartition("/")
            by_name[name] = (java.TopicPartition(topic, int(number)), offset)
        assigned = self._jvm.java.util.ArrayList()
        for partition, _ in by_name.values():
            assigned.add(partition)
        consumer.assign(assigned)
        # One that was paused at an earlier look stays so, also when it is assigned again.
        consumer.resume(assigned)
        for partition, offset in by_name.values():
            consumer.seek(partition, offset)
        deadline = time.monotonic() + _READ_SECONDS
        while by_name and time.monotonic() < deadline:
            records = consumer.poll(self._jvm.java.time.Duration.ofMillis(200))
            for name, (partition, offset) in list(by_name.items()):
                found = records.records(partition)
                if found.isEmpty():
                    continue
                stamp = found.get(0).timestamp()
                if stamp > 0:
                    self._ages[name, offset] = stamp / 1000
                del by_name[name]
                consumer.pause(self._jvm.java.util.List.of(partition))

    def _new_consumer(self) -> Any:
        params = self._jvm.java.util.HashMap(self._strategy.setAuthenticationConfigIfNeeded(self._params))
        # It belongs to no group: nothing is committed, and no right to a group is needed.
        params.remove("group.id")
        for key, value in _SMALL_FETCH.items():
            params.put(key, value)
        return self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(params)

    # How long the topics keep a row.

    def _retention_of(self, topics: set[str]) -> Retention:
        now = time.monotonic()
        if now >= self._retention_due:
            self._retention_due = now + _RETENTION_SECONDS
            try:
                known = [retention_of(self._jvm, self._reader.admin(), topic) for topic in sorted(topics)]
                self._retention = shortest(known)
            except Py4JJavaError as error:
                # No right to read it, most likely: the movement of the first offset still tells.
                log.info("how long the topics keep their rows is not known: %s", innermost(error))
        return self._retention


def retention_of(jvm: Any, admin: Any, topic: str) -> Retention:
    config = jvm.org.apache.kafka.common.config.ConfigResource
    kind = getattr(jvm.org.apache.kafka.common.config, "ConfigResource$Type").TOPIC
    resource = config(kind, topic)
    entries = admin.describeConfigs(jvm.java.util.List.of(resource)).all().get().get(resource)
    return retention_in(lambda key: entries.get(key).value())


def _offsets(progress: Any, stream: Any) -> dict[str, int] | None:
    offset = progress.get(stream)
    return _flat(offset.get().json()) if offset.isDefined() else None


def _between(committed: Mapping[str, int], planned: Mapping[str, int] | None) -> int | None:
    """Of partitions that no batch has read from, nobody can tell."""
    if planned is None:
        return None
    return sum(max(0, end - committed[name]) for name, end in planned.items() if name in committed)


def _flat(text: str) -> dict[str, int]:
    """{"orders": {"0": 17}} -> {"orders/0": 17}"""
    by_topic = json.loads(text)
    return {
        f"{topic}/{number}": offset for topic, ends in by_topic.items() for number, offset in ends.items()
    }


def _impatient(jvm: Any) -> Any:
    options = jvm.java.util.HashMap()
    options.put("fetchoffset.numretries", "1")
    options.put("fetchoffset.retryintervalms", "100")
    options = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(options)
    # The class has an `apply` of its own, so that of its companion is not among its static ones.
    companion = getattr(jvm.org.apache.spark.sql.catalyst.util, "CaseInsensitiveMap$")
    return getattr(companion, "MODULE$").apply(options)


def _option(value: Any) -> int | None:
    return int(value.get()) if value.isDefined() else None


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdigit() else None
