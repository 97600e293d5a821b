"""The age of the oldest unread record, with a consumer that remembers what real ones remember."""

from unittest.mock import MagicMock

import pytest

from headrace_jobs.harness import kafka_lag
from headrace_jobs.harness.file_lag import jvm_patterns
from headrace_jobs.harness.kafka_lag import KafkaSource, KafkaTopics
from headrace_jobs.harness.offsets import LookFailed, PartitionOffsets


class Consumer:
    """As Kafka's: what is paused stays so, also when it is assigned again, until it is resumed."""

    def __init__(self) -> None:
        self.assigned: list[str] = []
        self.paused: set[str] = set()
        self.places: dict[str, int] = {}
        self.polls = 0

    def assign(self, partitions: list[str]) -> None:
        self.assigned = list(partitions)
        self.paused &= set(partitions)

    def seek(self, partition: str, offset: int) -> None:
        self.places[partition] = offset

    def pause(self, partitions: list[str]) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: list[str]) -> None:
        self.paused -= set(partitions)

    def poll(self, _patience: object) -> MagicMock:
        self.polls += 1
        return MagicMock(records=self._records)

    def _records(self, partition: str) -> MagicMock:
        record = MagicMock()
        record.timestamp.return_value = 1000 * self.places[partition]
        found = MagicMock()
        found.isEmpty.return_value = partition in self.paused
        found.get.return_value = record
        return found


def a_source(consumer: Consumer) -> KafkaSource:
    jvm = MagicMock()
    jvm.java.util.ArrayList = _JavaList
    jvm.java.util.List.of = lambda *members: list(members)
    jvm.org.apache.kafka.common.TopicPartition = lambda topic, number: f"{topic}/{number}"
    source = KafkaSource(jvm, MagicMock())
    source._consumer = consumer
    return source


class _JavaList(list):
    add = list.append


def test_the_age_of_the_oldest_record_is_read_at_every_look(monkeypatch):
    monkeypatch.setattr(kafka_lag, "_READ_SECONDS", 0.05)
    consumer = Consumer()
    source = a_source(consumer)
    for committed in (100, 200, 300):
        waiting = {f"t/{n}": PartitionOffsets(end=900, committed=committed + n, earliest=0) for n in (0, 1)}
        assert source._ages_of(waiting) == {"t/0": committed, "t/1": committed + 1}
    assert consumer.polls == 3


@pytest.mark.parametrize("look", [lambda find: KafkaTopics(MagicMock(), find).look, jvm_patterns])
def test_a_query_that_has_just_been_started_anew_stops_no_others_looks(look):
    java = MagicMock()
    java.streamingQuery().sources.return_value = None
    with pytest.raises(LookFailed, match="not planned what it reads"):
        look(lambda _name: java)("orders", 0)
