"""What the plan of an edit says about the sinks."""

import pytest

from headrace.core.guarantees import GUARANTEES, SinkKind, guarantees_for, kinds_of
from tests.unit.core.edits import a_job, planned


@pytest.mark.parametrize(
    ("described", "kinds"),
    [
        ("FileSink[s3a://acme/out]", {SinkKind.FILES}),
        ("DeltaSink[/out]", {SinkKind.DELTA}),
        ("org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable@1", {SinkKind.KAFKA}),
        ("ForeachBatchSink", {SinkKind.LEDGER, SinkKind.FOREACH_BATCH}),
        ("org.apache.spark.sql.execution.streaming.ConsoleTable$@1", {SinkKind.CONSOLE}),
        ("MemorySink", {SinkKind.CONSOLE}),
        ("org.acme.MyTable", set()),
    ],
)
def test_sinks_are_known_by_spark_s_words(described: str, kinds: set[SinkKind]):
    assert set(kinds_of(described)) == kinds


def test_only_the_job_s_sinks_where_all_are_known():
    assert [row.sink for row in guarantees_for(("FileSink[/a]", "KafkaTable"))] == [
        SinkKind.FILES,
        SinkKind.KAFKA,
    ]
    assert guarantees_for(("FileSink[/a]", "org.acme.MyTable")) == GUARANTEES
    assert guarantees_for(()) == GUARANTEES


def test_every_kind_of_sink_has_a_row():
    assert {row.sink for row in GUARANTEES} == set(SinkKind)
    plan = planned(a_job(), a_job(image="a:2"))
    assert plan.guarantees == GUARANTEES and not plan.sinks_known
