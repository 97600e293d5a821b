"""Which queries are split, and what is refused before Spark is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace_jobs.harness.repartition import CannotRepartition, to_split
from headrace_jobs.store.partitions import QueryState
from headrace_jobs.store.runs import LastBatches

ORDERS = QueryState(
    name="orders",
    last=LastBatches(7, 7),
    stateful=True,
    partitions=4,
    provider="RocksDBStateStoreProvider",
    sink="ForeachBatchSink",
)
CLICKS = replace(ORDERS, name="clicks", stateful=False)


def test_those_with_state_and_another_number() -> None:
    assert to_split([ORDERS, CLICKS], 8, spark_version="4.2.1") == [ORDERS]
    assert to_split([ORDERS, CLICKS], 4, spark_version="4.2.1") == []
    assert to_split([CLICKS], 8, spark_version="4.1.0") == [], "a job without state asks for nothing"


def test_once_split_nothing_is_asked_any_more() -> None:
    """A later attempt of the run finds a batch that has begun, and that is no obstacle."""
    crashed = replace(ORDERS, partitions=8, last=LastBatches(9, 8), sink="FileSink[/out]")
    assert to_split([crashed], 8, spark_version="4.2.1") == []


@pytest.mark.parametrize(
    ("state", "version", "words"),
    [
        (ORDERS, "4.1.0", "this image has Spark 4.1.0, and 4.2 is the first that can. Use a newer image"),
        (replace(ORDERS, provider="HDFSBackedStateStoreProvider"), "4.3.0", "only RocksDB's can be split"),
        (replace(ORDERS, sink="FileSink[file:/out]"), "4.2.1", "Spark's file sink"),
        (replace(ORDERS, last=LastBatches(8, 7)), "4.2.1", "batch 8 has begun and not ended"),
        (replace(ORDERS, last=LastBatches(0, None)), "4.2.1", "batch 0 has begun and not ended"),
    ],
)
def test_what_cannot_be_split_is_refused_with_the_way_out(
    state: QueryState, version: str, words: str
) -> None:
    with pytest.raises(CannotRepartition) as refused:
        to_split([state], 8, spark_version=version)
    message = str(refused.value)
    assert message.startswith("query orders: its state cannot be split into 8 partitions instead of 4: ")
    assert words in message
    assert message.endswith("or put spec.state.partitions back")


def test_a_job_that_runs_has_a_batch_that_has_begun() -> None:
    running = replace(ORDERS, last=LastBatches(8, 7))
    assert to_split([running], 8, spark_version="4.2.1", at_rest=False) == [running]
