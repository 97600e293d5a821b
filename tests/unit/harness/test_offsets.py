"""Offsets partition by partition: what waits, since when, and how little of it is told."""

import pytest

from headrace_jobs.harness.lag import LagMeter
from headrace_jobs.harness.offsets import (
    LookFailed,
    PartitionOffsets,
    Retention,
    SourceOffsets,
    grouped,
    retention_in,
    shortest,
    to_report,
    together,
)

KAFKA = {"description": "KafkaV2[Subscribe[orders]]"}


def offsets(at: float = 100.0, **partitions: PartitionOffsets) -> SourceOffsets:
    return SourceOffsets(at=at, partitions=partitions)


class Topics:
    """A broker that answers as it is told."""

    def __init__(self, *answers: SourceOffsets | Exception | None) -> None:
        self.answers = list(answers)

    def look(self, query: str, index: int) -> SourceOffsets | None:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def descriptions(self, query: str) -> list[str]:
        return [KAFKA["description"]]


@pytest.mark.parametrize(
    ("partition", "behind"),
    [
        (PartitionOffsets(10, 4), 6),
        (PartitionOffsets(10, 12), 0),
        (PartitionOffsets(10, None, 3), 7),
        (PartitionOffsets(10, None), None),
        (PartitionOffsets(10, 2, 5), 5),
    ],
)
def test_what_waits_in_a_partition(partition, behind):
    assert partition.behind == behind


def test_one_unknown_partition_makes_the_whole_unknown():
    assert offsets(a=PartitionOffsets(9, 9), b=PartitionOffsets(9, None)).behind is None


def test_sources_of_one_query_are_one():
    first = SourceOffsets(at=5, partitions={"t/0": PartitionOffsets(2, 1)}, retention_seconds=60)
    second = SourceOffsets(at=3, partitions={"t/0": PartitionOffsets(9, 1)}, max_rows_per_batch=7)
    both = together([first, second])
    assert both is not None
    assert (both.at, both.behind, both.retention_seconds, both.max_rows_per_batch) == (3, 9, 60, None)
    assert set(both.partitions) == {"t/0", "1:t/0"}


@pytest.mark.parametrize(
    ("policy", "milliseconds", "size", "then"),
    [
        ("delete", "3600000", "-1", Retention(3600.0, by_size=False)),
        ("compact,delete", "3600000", "1000000", Retention(3600.0, by_size=True)),
        ("delete", "-1", "1000000", Retention(None, by_size=True)),
        ("compact", "3600000", "1000000", Retention(None, by_size=False)),
    ],
)
def test_what_a_topic_says_of_its_retention(policy, milliseconds, size, then):
    settings = {"cleanup.policy": policy, "retention.ms": milliseconds, "retention.bytes": size}
    assert retention_in(settings.__getitem__) == then


def test_of_several_topics_the_first_row_to_go_counts():
    assert shortest([Retention(None, by_size=True), Retention(60.0, by_size=False)]) == Retention(60.0, True)


def test_whether_a_source_deletes_by_size_is_unknown_until_all_have_said_no():
    sources = [SourceOffsets(at=1, partitions={}, deletes_by_size=one) for one in (False, None, True)]
    both = [together(sources[:count]) for count in (1, 2, 3)]
    assert [one.deletes_by_size for one in both if one is not None] == [False, None, True]


def test_many_partitions_are_told_in_groups_and_nothing_gets_lost():
    many = {f"t/{number}": PartitionOffsets(100 + number, number, 0, 50.0) for number in range(1000)}
    few = grouped(many, 256)
    assert len(few) == 256
    assert sum(one.behind or 0 for one in few.values()) == sum(one.behind or 0 for one in many.values())
    assert len(to_report(SourceOffsets(at=1, partitions=many))["partitions"]) == 256


def test_partitions_that_are_added_leave_the_others_in_their_groups():
    before = {f"t/{number}": PartitionOffsets(1000, 0, 0) for number in range(300)}
    after = {**before, **{f"t/{number}": PartitionOffsets(0, 0, 0) for number in range(300, 340)}}
    few, more = grouped(before, 256), grouped(after, 256)
    assert few.keys() == more.keys()
    assert all(more[name].end >= one.end for name, one in few.items())
    assert to_report(SourceOffsets(at=1, partitions=after))["partitionCount"] == 340


def test_groups_are_of_one_size():
    many = {f"{topic}/{number}": PartitionOffsets(1, 0) for topic in "ab" for number in range(512)}
    assert {one.end for one in grouped(many, 256).values()} == {4}


def test_live_offsets_are_believed_and_aged_by_records():
    live = offsets(**{"orders/0": PartitionOffsets(20, 5, 0, 90.0), "orders/1": PartitionOffsets(7, 7, 0)})
    lag = LagMeter(Topics(live)).measure("q", {"sources": [KAFKA]})
    assert (lag.known, lag.rows, lag.behind_since) == (True, 15, "1970-01-01T00:01:30.000Z")


def test_an_age_that_no_record_told_is_reckoned_from_the_history():
    first = offsets(at=100.0, **{"orders/0": PartitionOffsets(10, 10, 0)})
    second = offsets(at=110.0, **{"orders/0": PartitionOffsets(20, 10, 0)})
    meter = LagMeter(Topics(first, second))
    meter.measure("q", {"sources": [KAFKA]})
    lag = meter.measure("q", {"sources": [KAFKA]})
    assert lag.offsets is not None and lag.offsets.partitions["orders/0"].unread_since == 100.0


def test_a_broker_that_does_not_answer_makes_the_lag_unknown():
    lag = LagMeter(Topics(LookFailed("Timeout"))).measure("q", {"sources": [KAFKA]})
    assert (lag.known, lag.rows, lag.why, lag.offsets) == (False, None, "Timeout", None)


def test_the_lag_is_known_while_the_first_batch_of_an_attempt_runs():
    live = offsets(**{"orders/0": PartitionOffsets(20, 5, 0, 90.0)})
    assert LagMeter(Topics(live)).measure("q", None).rows == 15


def test_without_a_live_look_the_progress_tells():
    source = {**KAFKA, "endOffset": {"orders": {"0": 3}}, "latestOffset": {"orders": {"0": 9}}}
    progress = {"sources": [source], "timestamp": "2026-01-01T00:00:00Z"}
    lag = LagMeter(Topics(None)).measure("q", progress)
    assert lag.rows == 6 and "last progress" in lag.why
    assert lag.offsets is not None and to_report(lag.offsets)["live"] is False
