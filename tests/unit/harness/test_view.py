"""Progress, status and lag: what is known is shown, what is not known is never zero."""

import json
from dataclasses import replace

import pytest

from headrace_jobs.harness.lag import LagMeter, offsets_behind
from headrace_jobs.harness.metrics import render_metrics
from headrace_jobs.harness.runfile import parse_run_file
from headrace_jobs.harness.view import Lag, QueryView, to_status, with_progress, with_status
from headrace_jobs.harness.watchdog import stuck_queries
from tests.unit.harness.samples import GOOD

VIEW = QueryView("orders", "id-1", "run-1")


def a_progress(batch: int, *, rows: int = 10, executed: bool = True, late: int = 0) -> dict:
    durations = {"triggerExecution": 250, "latestOffset": 5} | ({"addBatch": 200} if executed else {})
    return {
        "batchId": batch,
        "timestamp": f"2024-05-01T00:00:{batch:02d}.000Z",
        "numInputRows": rows,
        "inputRowsPerSecond": 12.3456,
        "processedRowsPerSecond": float("nan"),
        "durationMs": durations,
        "eventTime": {"watermark": "2024-05-01T00:00:00.000Z"},
        "stateOperators": [
            {"numRowsTotal": 3, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": late},
            {"numRowsTotal": 4, "memoryUsedBytes": 50, "numRowsDroppedByWatermark": 1},
        ],
        "sources": [{"description": "RateStreamV2[x", "endOffset": 1, "latestOffset": 1}],
        "sink": {"description": "Noop"},
    }


def a_status(message: str = "Processing new data", *, active: bool = True) -> dict:
    return {"message": message, "isTriggerActive": active, "isDataAvailable": True}


def test_before_the_first_batch_nothing_is_made_up():
    status = to_status(VIEW, clock_offset=0)
    assert status["committedBatch"] is None
    assert status["inputRows"] is None
    assert status["stateRows"] is None
    assert status["lag"] == {
        "known": False,
        "rows": None,
        "files": None,
        "why": "no batch has ended yet",
        "behindSince": None,
        "offsets": None,
        "lookout": {"able": False, "why": "its sources are not noted yet"},
    }
    json.dumps(status)


def test_progress_adds_up():
    view = with_progress(with_progress(VIEW, a_progress(0, late=2)), a_progress(1, rows=5))
    status = to_status(view, clock_offset=0)
    assert status["committedBatch"] == 1
    assert status["totalInputRows"] == 15
    assert status["lateRowsDropped"] == 4
    assert status["stateRows"] == 7
    assert status["stateBytes"] == 150
    assert status["watermark"] == "2024-05-01T00:00:00.000Z"
    assert status["lastProgressAt"] == "2024-05-01T00:00:01.250Z"
    assert status["inputRowsPerSecond"] == 12.346
    assert status["processedRowsPerSecond"] is None
    assert "NaN" not in json.dumps(status)


def test_a_trigger_that_found_nothing_is_no_batch():
    view = with_progress(VIEW, a_progress(3))
    idle = with_progress(view, a_progress(4, rows=0, executed=False))
    assert idle.committed_batch == 3
    assert idle.totals == view.totals
    assert to_status(idle, clock_offset=0)["batchDurationMs"] == 250
    assert with_progress(VIEW, a_progress(0, executed=False)).committed_batch is None


def test_the_watermark_of_1970_is_none_at_all():
    progress = a_progress(0) | {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}
    assert with_progress(VIEW, progress).watermark is None


def test_a_batch_that_runs_is_the_next_one_and_has_a_begin():
    view = with_status(with_progress(VIEW, a_progress(3)), a_status(), now=100.0)
    view = with_status(view, a_status(), now=107.0)
    status = to_status(view, clock_offset=1_700_000_000.0)
    assert (status["batch"], status["committedBatch"]) == (4, 3)
    assert status["batchStartedAt"] == "2023-11-14T22:15:00.000Z"


def test_being_busy_begins_anew_with_each_batch_and_message():
    view = with_status(VIEW, a_status(), now=1.0)
    assert with_status(view, a_status(), now=2.0).busy_since == 1.0
    assert with_status(view, a_status("Getting offsets from x"), now=2.0).busy_since == 2.0
    assert with_status(view, a_status(active=False), now=2.0).busy_since is None
    assert with_status(with_progress(view, a_progress(0)), a_status(), now=2.0).busy_since == 2.0


def test_the_watchdog_finds_the_batch_that_hangs_and_only_it():
    hangs = with_status(with_progress(VIEW, a_progress(3)), a_status(), now=100.0)
    waits = with_status(replace(VIEW, name="idle"), a_status("Getting offsets from x"), now=100.0)
    ended = replace(hangs, name="ended", active=False)
    found = stuck_queries([hangs, waits, ended], now=111.0, last_look=110.5, timeout_seconds=10)
    assert [stuck.query for stuck in found] == ["orders"]
    assert found[0].sentence == "query orders has been at it for 11 s: batch 4"
    assert not stuck_queries([hangs, waits], now=109.0, last_look=109.0, timeout_seconds=10)


def test_the_watchdog_sees_a_source_that_never_answers_but_not_an_idle_query():
    asks = with_status(VIEW, a_status("Getting offsets from KafkaV2[x]"), now=100.0)
    assert not stuck_queries([asks], now=120.0, last_look=120.0, timeout_seconds=10)
    (found,) = stuck_queries([asks], now=126.0, last_look=126.0, timeout_seconds=10)
    assert "KafkaV2[x]" in found.sentence


def test_a_jvm_that_does_not_answer_is_stuck():
    (found,) = stuck_queries([VIEW], now=111.0, last_look=100.0, timeout_seconds=10)
    assert "the JVM does not answer" in found.sentence


def a_source(**fields: object) -> dict:
    return {"description": "KafkaV2[Subscribe[orders]]", **fields}


def test_kafkas_lag_is_counted_over_all_partitions():
    source = a_source(
        endOffset={"orders": {"0": 10, "1": 20}}, latestOffset={"orders": {"0": 15, "1": 20, "2": 7}}
    )
    assert offsets_behind(source, "why").known is False  # a partition that was never read
    source["endOffset"] = {"orders": {"0": 10, "1": 20, "2": 0}}
    lag = offsets_behind(source, "why")
    assert (lag.known, lag.rows, lag.files, lag.why) == (True, 12, None, "why")
    assert lag.offsets is not None and set(lag.offsets.partitions) == {"orders/0", "orders/1", "orders/2"}


@pytest.mark.parametrize(
    "source",
    [
        a_source(endOffset={"orders": {"0": 1}}, latestOffset=None),
        a_source(endOffset="abc", latestOffset="abd"),
        {"description": "RateStreamV2[rowsPerSecond=1", "endOffset": 5, "latestOffset": 5},
        {
            "description": "FileStreamSource[s3a://bucket/in]",
            "endOffset": {"logOffset": 1},
            "latestOffset": None,
        },
        {"description": "something.Else@1f", "endOffset": 5, "latestOffset": 5},
        {"description": None},
    ],
)
def test_what_cannot_be_known_is_unknown_with_a_reason(source, tmp_path):
    lag = LagMeter().measure("orders", {"sources": [source]})
    assert (lag.known, lag.rows, lag.files) == (False, None, None)
    assert lag.why


def test_one_unknown_source_makes_the_whole_unknown(tmp_path):
    known = {
        "description": "x.PythonMicroBatchStream@1",
        "endOffset": {"o": 900},
        "latestOffset": {"o": 1000},
    }
    meter = LagMeter()
    assert meter.measure("q", {"sources": [known]}).rows == 100
    assert not meter.measure("q", {"sources": [known, {"description": "RateStreamV2[x"}]}).known


def test_metrics_say_nothing_about_what_is_unknown():
    run_file = parse_run_file(json.dumps(GOOD))
    view = with_progress(VIEW, a_progress(3))
    text = render_metrics(run_file, [view], spark_version="4.2.1").decode()
    labels = '{job="orders",namespace="shop",query="orders"}'
    assert f"headrace_query_input_rows_total{labels} 10.0" in text
    assert f"headrace_query_batch_duration_seconds{labels} 0.25" in text
    assert f"headrace_query_lag_known{labels} 0.0" in text
    assert "headrace_query_lag_rows{" not in text
    assert "headrace_query_lag_files{" not in text
    known = replace(view, lag=Lag(known=True, rows=7, files=None, why=""))
    text = render_metrics(run_file, [known], spark_version="4.2.1").decode()
    assert f"headrace_query_lag_rows{labels} 7.0" in text
    assert 'headrace_attempt_info{attempt="2",epoch="7",job="orders"' in text


def stateful(batch: int, **event_time: str) -> dict:
    progress = a_progress(batch)
    progress["durationMs"] |= {"walCommit": 30, "commitOffsets": 70}
    progress["eventTime"] |= event_time
    for operator, size in zip(progress["stateOperators"], (600, 400), strict=True):
        custom = {"rocksdbSstFileSize": size, "rocksdbBytesCopied": size // 2}
        operator |= {"commitTimeMs": 80, "numShufflePartitions": 4, "customMetrics": custom}
    return progress


def test_what_a_checkpoint_took_and_holds():
    status = to_status(with_progress(VIEW, stateful(0)), clock_offset=0)
    assert status["logCommitMs"] == 100
    assert status["stateCommitMs"] == 40  # 80 / 4 partitions, for each of two operators
    assert (status["stateFileBytes"], status["snapshotUploadBytes"]) == (1000, 500)


def test_a_checkpoint_of_which_spark_tells_nothing_is_unknown():
    status = to_status(with_progress(VIEW, a_progress(0)), clock_offset=0)
    unknown = ("logCommitMs", "stateCommitMs", "stateFileBytes", "snapshotUploadBytes", "eventLatencySeconds")
    assert [status[key] for key in unknown] == [None] * len(unknown)


def test_before_its_first_snapshot_the_size_of_the_state_is_unknown():
    progress = stateful(0)
    for operator in progress["stateOperators"]:
        operator["customMetrics"] = {"rocksdbSstFileSize": 0, "rocksdbBytesCopied": 0}
    assert to_status(with_progress(VIEW, progress), clock_offset=0)["stateFileBytes"] is None


def test_latency_is_from_the_event_to_the_commit_and_ends_when_no_rows_come():
    events = {"avg": "2024-04-30T23:59:58.250Z", "min": "2024-04-30T23:59:50.250Z"}
    view = with_progress(VIEW, stateful(0, **events))
    status = to_status(view, clock_offset=0)
    assert (status["eventLatencySeconds"], status["eventLatencyWorstSeconds"]) == (2.0, 10.0)
    # A batch that only moves the watermark says nothing of events.
    view = with_progress(view, stateful(1))
    assert to_status(view, clock_offset=0)["eventLatencySeconds"] == 2.0
    view = with_progress(view, a_progress(2, rows=0, executed=False))
    assert to_status(view, clock_offset=0)["eventLatencySeconds"] is None


def test_an_idle_query_has_nothing_to_commit_but_its_last_commit_grows_old():
    view = with_progress(VIEW, a_progress(3))
    idle = with_progress(view, a_progress(50, rows=0, executed=False) | {"batchDuration": 4})
    status = to_status(idle, clock_offset=0)
    assert status["lastCommitAt"] == "2024-05-01T00:00:03.250Z"
    assert status["lastProgressAt"] == "2024-05-01T00:00:50.004Z"
    assert (status["batchDurationMs"], status["triggerDurationMs"]) == (250, 4)
