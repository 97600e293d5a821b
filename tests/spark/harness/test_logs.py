"""What stays of an attempt for those who look back: the end of its log, and Spark's event log."""

import json
from pathlib import Path

from tests.spark.harness.test_endings import script

FAILING = script(
    """
    spark._jvm.System.out.println("a word of the JVM")
    print("a word of the job")

    @F.udf("long")
    def share(value):
        return 100 // (value - 70)

    ticks.select(share("value").alias("v")).writeStream.queryName("shares").format("noop").start()
    """
)


def test_the_log_of_a_failed_attempt_is_kept_in_the_store(drive):
    driver = drive(FAILING, attempt=4, piped=True)
    end = driver.end()
    assert end["reason"] == "QueryFailed", driver.log()
    kept = driver.run / "_logs" / "attempt-4.log"
    assert end["logFile"] == f"file://{kept}"
    text = kept.read_text()
    for word in (
        "a word of the JVM",
        "a word of the job",
        "ZeroDivisionError",
        "the driver ends: QueryFailed",
    ):
        assert word in text
        assert word in driver.log()
    # Nothing of it is lost on its way to the pod's log; Spark's workers may have had a word after it.
    assert text in driver.log()


def test_an_attempt_that_ends_well_leaves_no_log_there(drive):
    driver = drive(script('print("done")'), piped=True)
    end = driver.end()
    assert (end["reason"], end["logFile"]) == ("Completed", None)
    assert "the driver ends: Completed" in driver.log()
    assert not (driver.run / "_logs").exists()


def event_log(driver) -> list[dict]:
    (log,) = (driver.run / "_events").glob("eventlog_v2_*")
    assert [path.name for path in log.glob("appstatus_*")], "no status file"
    assert not list(log.glob("*.inprogress")), "the log was not closed"
    files = sorted(path for path in log.glob("events_*"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def events_of(store: Path) -> dict[str, str]:
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{store}/run-1/_events",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.compress": "false",  # readable here without a codec
    }


def test_sparks_event_log_is_whole_also_after_a_failure(drive, tmp_path):
    driver = drive(FAILING, spark_conf=events_of(tmp_path / "store"))
    end = driver.end()
    assert end["reason"] == "QueryFailed", driver.log()
    kinds = [event["Event"].rpartition(".")[2] for event in event_log(driver)]
    assert "SparkListenerApplicationStart" in kinds
    assert "StreamingQueryListener$QueryStartedEvent" in kinds
    assert kinds[-1] == "SparkListenerApplicationEnd"
