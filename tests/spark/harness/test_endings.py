"""How drivers end: completed, refused, failed, stuck. Each tells why, and names the user's own line."""

import signal
import textwrap

import pytest

from tests.spark.harness.conftest import wait_for

HEAD = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
place = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
ticks = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
"""


def script(body: str) -> str:
    return HEAD + textwrap.dedent(body)


def line_of(text: str, marked: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if marked in line)


def test_a_finite_job_completes_and_needs_no_await(drive, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.json").write_text('{"k": "a"}\n{"k": "b"}\n')
    driver = drive(
        script(
            """
            rows = spark.readStream.schema("k string").json(str(place / "in"))
            rows.writeStream.queryName("copy").start(str(place / "out"), format="json")
            rows.groupBy("k").count().writeStream.queryName("count").outputMode("complete") \\
                .trigger(processingTime="1 hour").format("noop").start()
            spark.stop()
            sys.exit(0)
            """
        ),
        trigger={"mode": "AvailableNow", "intervalSeconds": None},
    )
    end = driver.end()
    assert end["reason"] == "Completed", driver.log()
    assert {name: query["batch"] for name, query in end["queries"].items()} == {"copy": 0, "count": 0}
    written = "".join(path.read_text() for path in (tmp_path / "out").glob("*.json"))
    assert sorted(written.split()) == ['{"k":"a"}', '{"k":"b"}']


def test_a_hard_coded_checkpoint_is_refused_with_the_line_to_change(drive):
    text = script(
        """
        ticks.writeStream.queryName("first").format("noop").start()
        query = (
            ticks.writeStream.queryName("second")
            .option("checkpointLocation", "/tmp/mine")
            .format("noop")
            .start()
        )
        """
    )
    driver = drive(text)
    end = driver.end()
    assert end["reason"] == "Refused", driver.log()
    assert end["userFrame"]["line"] == line_of(text, "checkpointLocation")
    assert end["message"].startswith(
        f"job.py:{end['userFrame']['line']}: the checkpoint location '/tmp/mine'"
    )
    assert "Remove the checkpointLocation option" in end["message"]
    assert list(end["queries"]) == ["first"]
    assert driver.offsets("first") == driver.commits("first")


def test_an_error_in_a_udf_names_the_users_line_and_the_other_query_is_drained(drive):
    text = script(
        """
        @F.udf("long")
        def share(value):
            return 100 // (value - 70)  # the culprit

        ticks.writeStream.queryName("fine").format("noop").start()
        query = ticks.select(share("value")).writeStream.queryName("shares").format("noop").start()
        query.awaitTermination()
        """
    )
    driver = drive(text)
    end = driver.end()
    assert end["reason"] == "QueryFailed", driver.log()
    assert end["errorClass"] == "ZeroDivisionError"
    assert end["userFrame"]["line"] == line_of(text, "the culprit")
    assert end["userFrame"]["code"].startswith("return 100 //")
    assert end["message"].startswith("query shares failed: job.py:")
    assert driver.offsets("fine") == driver.commits("fine")


def test_a_batch_that_hangs_ends_the_driver_with_all_stacks_in_the_log(drive):
    driver = drive(
        script(
            """
            import threading

            def wait_for_godot(frame, batch):
                threading.Event().wait()

            ticks.writeStream.queryName("slow").foreachBatch(wait_for_godot).start().awaitTermination()
            """
        ),
        watchdog={"batchTimeoutSeconds": 8, "action": "Restart"},
    )
    end = driver.end()
    assert end["reason"] == "BatchStuck", driver.log()
    assert "query slow has been at it for" in end["message"]
    assert "its first batch" in end["message"]
    log = driver.log()
    assert "wait_for_godot" in log  # Python's stacks
    assert "stream execution thread for slow" in log  # the JVM's


def test_an_exception_outside_of_a_query_ends_the_job_after_a_drain(drive):
    text = script(
        """
        query = ticks.writeStream.queryName("fine").format("noop").start()
        while query.lastProgress is None:
            query.awaitTermination(1)
        prices = {}
        prices["tea"]
        """
    )
    driver = drive(text)
    end = driver.end()
    assert end["reason"] == "ApplicationError", driver.log()
    assert end["errorClass"] == "KeyError"
    assert end["message"] == f"job.py:{line_of(text, 'prices[')}: KeyError: 'tea'"
    assert len(driver.commits("fine")) > 0
    assert driver.offsets("fine") == driver.commits("fine")


def test_a_syntax_error_needs_no_jvm_to_be_found(drive):
    driver = drive("spark = 1\nif spark\n")
    end = driver.end()
    assert end["reason"] == "ApplicationError"
    assert end["message"] == "job.py:2: SyntaxError: expected ':'"


@pytest.mark.full
def test_a_script_without_any_query_is_a_batch_job(drive, tmp_path):
    driver = drive(script('spark.range(5).write.json(str(place / "out"))'))
    end = driver.end()
    assert (end["reason"], end["queries"]) == ("Completed", {}), driver.log()
    assert (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.full
def test_an_exit_code_of_the_script_is_told(drive):
    text = script("sys.exit(4)")
    end = drive(text).end()
    assert end["reason"] == "ApplicationError"
    assert end["message"] == f"job.py:{line_of(text, 'sys.exit')}: the application called sys.exit(4)"


@pytest.mark.full
def test_a_script_that_handles_signals_itself_is_drained_all_the_same(drive):
    driver = drive(
        script(
            """
            import signal, time
            slow = lambda frame, batch: (frame.count(), time.sleep(0.5))
            query = ticks.writeStream.queryName("slow").foreachBatch(slow).start()
            def leave(*_):
                query.stop()
                sys.exit(1)
            signal.signal(signal.SIGTERM, leave)
            while True:
                time.sleep(1)
            """
        )
    )
    driver.wait_for_batch("slow", 1)
    driver.process.send_signal(signal.SIGTERM)
    end = driver.end()
    assert (end["reason"], end["clean"]) == ("Drained", True), driver.log()
    assert driver.offsets("slow") == driver.commits("slow")


@pytest.mark.full
def test_a_script_that_never_comes_back_is_not_waited_for(drive):
    driver = drive(
        script('ticks.writeStream.queryName("q").format("noop").start()\nimport time\ntime.sleep(9999)')
    )
    driver.wait_for_batch("q", 1)
    driver.process.send_signal(signal.SIGTERM)
    assert driver.end()["reason"] == "Drained"


@pytest.mark.full
def test_a_store_that_breaks_while_a_query_runs_is_told(drive):
    driver = drive(script('ticks.writeStream.queryName("q").format("noop").start()'))
    driver.wait_for_batch("q", 1)
    offsets = driver.run / "queries" / "q" / "offsets"
    offsets.rename(driver.run / "gone")
    offsets.write_text("a file where a directory should be")
    end = driver.end()
    assert end["reason"] == "StoreUnavailable", driver.log()


@pytest.mark.full
def test_a_store_that_cannot_be_written_is_told(drive, tmp_path):
    (tmp_path / "store").write_text("a file, not a directory")
    end = drive(script("")).end()
    assert end["reason"] == "StoreUnavailable"
    assert "cannot be claimed" in end["message"]


def test_an_owned_setting_in_the_manifest_is_refused(drive):
    end = drive(script(""), spark_conf={"spark.sql.streaming.checkpointLocation": "/tmp/x"}).end()
    assert end["reason"] == "Refused"
    assert "spark.sql.streaming.checkpointLocation" in end["message"]


@pytest.mark.full
def test_a_reported_stuck_batch_goes_on(drive):
    driver = drive(
        script(
            """
            import time
            def slow(frame, batch):
                frame.count()
                time.sleep(6 if batch == 1 else 0)
            ticks.writeStream.queryName("slow").foreachBatch(slow).start().awaitTermination()
            """
        ),
        watchdog={"batchTimeoutSeconds": 2, "action": "Report"},
    )
    driver.wait_for_batch("slow", 0)
    wait_for(lambda: driver.query("slow")["stuck"], "it is never called stuck")
    driver.wait_for_batch("slow", 2)
    wait_for(lambda: not driver.query("slow")["stuck"], "it is called stuck for ever")
    driver.process.send_signal(signal.SIGTERM)
    assert driver.end()["reason"] == "Drained"
