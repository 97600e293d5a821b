"""The log of a failed attempt in the store."""

import dataclasses
import json
import os
import threading

import pytest

from headrace_jobs.harness import kept_log
from headrace_jobs.harness.conf import driver_conf, has_event_log
from headrace_jobs.harness.event_log import prepare_event_log
from headrace_jobs.harness.kept_log import LOGS_KEPT, store_log
from headrace_jobs.harness.runfile import parse_run_file
from headrace_jobs.store.s3_options import S3Options, options_in, spark_conf
from tests.unit.harness.samples import GOOD


@pytest.fixture
def run_file(tmp_path):
    return dataclasses.replace(
        parse_run_file(json.dumps(GOOD)), store=f"file://{tmp_path}/store", run=2, attempt=7
    )


def names(tmp_path, place: str) -> list[str]:
    return sorted(path.name for path in (tmp_path / "store" / place).iterdir())


def test_it_lies_beside_the_run(run_file, tmp_path):
    told = store_log(run_file, b"boom\n")
    assert told == f"file://{tmp_path}/store/run-2/_logs/attempt-7.log"
    assert (tmp_path / "store/run-2/_logs/attempt-7.log").read_bytes() == b"boom\n"


def test_only_the_last_few_are_kept_and_never_a_newer_one_removed(run_file, tmp_path):
    for attempt in (20, *range(1, 13)):
        store_log(dataclasses.replace(run_file, attempt=attempt), b"x")
    kept = [f"attempt-{number}.log" for number in (*range(13 - LOGS_KEPT, 13), 20)]
    assert names(tmp_path, "run-2/_logs") == sorted(kept)


def test_a_store_that_does_not_answer_does_not_hold_the_end(run_file, monkeypatch):
    answered = threading.Event()

    class Deaf:
        def put(self, _key, _content):
            answered.wait(60)

    monkeypatch.setattr(kept_log, "store_of", lambda _run_file: Deaf())
    assert store_log(run_file, b"x", seconds=0.05) is None
    answered.set()


def test_a_store_that_refuses_is_no_second_failure(run_file, tmp_path):
    (tmp_path / "store").write_text("a file where a directory should be")
    assert store_log(run_file, b"x") is None


@pytest.mark.parametrize(
    "options",
    [
        S3Options(),
        S3Options(
            endpoint="https://s3.example.com:9000",
            region="eu-west-1",
            path_style=True,
            encryption="SSE-KMS",
            kms_key="k",
        ),
    ],
)
def test_the_settings_of_spark_lead_back_to_the_same_store(options):
    assert options_in(spark_conf(options)) == options


def with_events(run_file):
    conf = {"spark.eventLog.dir": f"{run_file.run_path}/_events"}
    return dataclasses.replace(run_file, spark_conf=conf)


def test_only_an_event_log_beside_the_run_is_ours(run_file):
    assert has_event_log(with_events(run_file))
    assert not has_event_log(run_file)
    elsewhere = {"spark.eventLog.dir": "s3a://acme-history/spark"}
    assert not has_event_log(dataclasses.replace(run_file, spark_conf=elsewhere))
    on_s3 = dataclasses.replace(run_file, store="s3://b/j", spark_conf={})
    conf = {"spark.eventLog.dir": "s3a://b/j/run-2/_events"}
    assert has_event_log(dataclasses.replace(on_s3, spark_conf=conf))


def test_spark_takes_the_place_of_the_event_logs_as_a_url(run_file):
    """Of all places only this one: elsewhere Spark takes paths as they are."""
    odd = with_events(dataclasses.replace(run_file, store="file:///home/my job é/100%"))
    conf = driver_conf(odd, jars=[], run_context="")
    assert conf["spark.eventLog.dir"] == "file:///home/my%20job%20%C3%A9/100%25/run-2/_events"
    assert conf["spark.hadoop.headrace.run.path"] == "file:///home/my job é/100%/run-2"


def test_the_place_of_the_event_logs_is_made_and_old_ones_go(run_file, tmp_path):
    prepare_event_log(with_events(run_file))
    place = tmp_path / "store/run-2/_events"
    assert names(tmp_path, "run-2/_events") == [".keep"]
    for number in range(5):
        log = place / f"eventlog_v2_app-{9 - number}"
        log.mkdir()
        file = log / "events_1_app"
        file.write_text("{}")
        os.utime(file, (1000 + number, 1000 + number))
    prepare_event_log(with_events(run_file))
    assert names(tmp_path, "run-2/_events") == [".keep", "eventlog_v2_app-5", "eventlog_v2_app-6"]
