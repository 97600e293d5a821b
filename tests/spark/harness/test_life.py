"""The life of a driver: an unmodified script, two queries, the agent, drain, and the next attempt."""

import contextlib
import json
import signal

import psutil
import pytest

from tests.spark.harness.conftest import TOKEN, wait_for

SECRET = "a-key-nobody-should-see"

# Rows from a directory, so that the test decides when a batch begins; each batch leaves a line in a file.
TWO_QUERIES = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
from headrace_jobs import run

place = Path(sys.argv[1])
spark = SparkSession.builder.master("local[7]").appName("mine").getOrCreate()

def write(frame, batch_id):
    total = frame.agg(F.sum("count")).first()[0] or 0
    with (place / "batches.txt").open("a") as out:
        out.write(f"{run.epoch} {batch_id} {run.batch_id} {run.lineage()} {total}\\n")
    while (place / "hold").exists():
        (place / "held").touch()
        time.sleep(0.02)

while not (place / "in").exists():
    (place / "reached").touch()
    time.sleep(0.02)
rows = spark.readStream.schema("k string").option("pathGlobFilter", "*.json").json(str(place / "in"))
counts = rows.groupBy("k").count()
counts.writeStream.queryName("counts").outputMode("update").foreachBatch(write).start()
ticks = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
tick = ticks.writeStream.queryName("ticks").format("noop").start()

(place / "started.txt").write_text(f"{__name__} {sys.argv[1:]} {spark.sparkContext.master}")
spark.streams.awaitAnyTermination()
(place / "after.txt").write_text(str(tick.exception()))
spark.stop()
"""


def add_rows(place, name, *keys):
    fresh = place / f".{name}"
    fresh.write_text("".join(json.dumps({"k": key}) + "\n" for key in keys))
    fresh.rename(place / "in" / f"{name}.json")


def batches(place):
    lines = (place / "batches.txt").read_text().splitlines()
    return [(int(epoch), int(batch), int(total)) for epoch, batch, _, _, total in map(str.split, lines)]


def test_from_start_to_drain_and_on_with_the_next_attempt(drive, tmp_path):
    driver = drive(TWO_QUERIES, spark_conf={"spark.hadoop.fs.s3a.secret.key": SECRET})

    # The agent answers before there is a JVM. What has no query yet does not run, however long its code does.
    assert driver.status()["phase"] == "Starting"
    driver.wait_for_file(tmp_path / "reached")
    assert driver.status()["phase"] == "Starting"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.json.md5").write_text("a file that the source leaves alone does not wait")
    add_rows(tmp_path, "one", "a", "a", "b")
    counts = driver.wait_for_batch("counts")
    driver.wait_for_batch("ticks")
    assert (tmp_path / "started.txt").read_text() == f"__main__ {[str(tmp_path)]} local[2]"

    status = wait_for(
        lambda: (s := driver.status())["queries"][1]["committedBatch"] is not None and s, "ticks"
    )
    assert status["phase"] == "Running"
    assert status["sparkVersion"].startswith("4.")
    assert status["application"] == {"finished": False}
    assert counts["totalInputRows"] == 3
    assert counts["stateRows"] == 2
    assert wait_for(lambda: driver.query("counts")["lag"]["known"], "lag of the files")
    assert driver.query("counts")["lag"]["files"] == 0
    assert driver.query("ticks")["lag"]["known"] is False

    # Only who holds the token of this attempt is answered.
    assert driver.call("GET", "/healthz", Authorization="")[0] == 200
    assert driver.call("GET", "/v1/status", Authorization="Bearer wrong")[0] == 401
    assert driver.call("POST", "/v1/drain", **{"X-Headrace-Uid": "another"})[0] == 409
    metrics = driver.call("GET", "/metrics")[1].decode()
    assert 'headrace_query_input_rows_total{job="job",namespace="tests",query="counts"} 3.0' in metrics

    # Credentials and the token are in nobody's arguments, and the token is not in the JVM's environment.
    jvm = psutil.Process(driver.jvm_pid())
    for process in (psutil.Process(driver.process.pid), jvm, *jvm.children(recursive=True)):
        # A worker may have ended since it was found: then it has no arguments any more.
        with contextlib.suppress(psutil.NoSuchProcess):
            assert not {SECRET, TOKEN} & set(" ".join(process.cmdline()).replace("=", " ").split())
    assert TOKEN not in jvm.environ().values()
    assert SECRET not in driver.log()

    # A drain in the middle of a batch: the batch ends first. The other query is drained meanwhile.
    (tmp_path / "hold").touch()
    add_rows(tmp_path, "two", "a")
    driver.wait_for_file(tmp_path / "held")
    assert driver.call("POST", "/v1/drain")[0] == 202
    assert driver.call("POST", "/v1/drain")[0] == 202
    wait_for(lambda: not driver.query("ticks")["active"], "ticks does not end")
    assert driver.status()["phase"] == "Draining"
    assert driver.process.poll() is None
    assert driver.offsets("counts") == [0, 1]
    assert driver.commits("counts") == [0]
    (tmp_path / "hold").unlink()

    end = driver.end()
    assert (end["reason"], end["clean"]) == ("Drained", True), driver.log()
    assert end["queries"]["counts"]["batch"] == 1
    for query in ("counts", "ticks"):
        assert driver.offsets(query) == driver.commits(query)
    assert batches(tmp_path) == [(1, 0, 3), (1, 1, 3)]
    assert end["queries"]["counts"]["id"] in (tmp_path / "batches.txt").read_text()
    assert (tmp_path / "after.txt").read_text() == "None"

    # The next attempt of the same run goes on with batch 2 and the state; a signal drains it.
    (tmp_path / "after.txt").unlink()
    add_rows(tmp_path, "three", "a")
    second = drive(attempt=2)
    second.wait_for_batch("counts", 2)
    second.process.send_signal(signal.SIGTERM)
    assert second.end()["reason"] == "Drained"
    assert batches(tmp_path) == [(1, 0, 3), (1, 1, 3), (2, 2, 4)]
    assert (tmp_path / "after.txt").read_text() == "None"

    # An attempt that is not newer may not start.
    late = drive(attempt=2).end()
    assert late["reason"] == "Fenced"
    assert "attempt 2" in late["message"]


def test_a_module_whose_parent_goes_away_is_drained(drive, tmp_path):
    (tmp_path / "in").mkdir()
    add_rows(tmp_path, "one", "a")
    package = tmp_path / "lib" / "shop_of_tests"
    package.mkdir(parents=True)
    script = TWO_QUERIES.replace("import sys, time", "import sys, time\nfrom .naming import GREETING")
    for name, text in {"__init__.py": "", "naming.py": "GREETING = 1\n", "job.py": script}.items():
        (package / name).write_text(text)
    application = {"file": None, "module": "shop_of_tests.job", "pyFiles": [str(package.parent)]}
    driver = drive(application=application)
    driver.wait_for_batch("counts")
    driver.process.stdin.close()
    end = driver.end()
    assert end["reason"] == "Drained", driver.log()
    assert "parent" in end["message"]
    assert driver.offsets("counts") == driver.commits("counts") == [0]


def test_a_killed_driver_leaves_no_jvm_and_loses_nothing(drive, tmp_path):
    (tmp_path / "in").mkdir()
    add_rows(tmp_path, "one", "a")
    driver = drive(TWO_QUERIES)
    driver.wait_for_batch("counts")
    (tmp_path / "hold").touch()
    add_rows(tmp_path, "two", "b")
    driver.wait_for_file(tmp_path / "held")
    jvm = psutil.Process(driver.jvm_pid())
    workers = jvm.children(recursive=True)
    driver.process.kill()
    gone, alive = psutil.wait_procs([jvm, *workers], timeout=60)
    assert not alive
    assert jvm in gone
    assert not (driver.directory / "termination.json").exists()
    (tmp_path / "hold").unlink()

    second = drive(attempt=2)
    second.wait_for_batch("counts", 1)
    second.process.send_signal(signal.SIGINT)
    assert second.end()["clean"] is True
    # The batch that was cut is repeated, with the same number: the sink can tell.
    assert batches(tmp_path) == [(1, 0, 1), (1, 1, 1), (2, 1, 1)]


@pytest.mark.full
def test_a_jvm_that_dies_is_the_end(drive, tmp_path):
    (tmp_path / "in").mkdir()
    driver = drive(TWO_QUERIES)
    driver.wait_for_batch("ticks")
    psutil.Process(driver.jvm_pid()).kill()
    end = driver.end()
    assert end["reason"] == "InternalError"
    assert "was killed" in end["message"]


@pytest.mark.full
def test_a_second_signal_ends_the_driver_at_once(drive, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "hold").touch()
    add_rows(tmp_path, "one", "a")
    driver = drive(TWO_QUERIES)
    driver.wait_for_file(tmp_path / "held")
    driver.process.send_signal(signal.SIGTERM)
    wait_for(lambda: driver.status()["phase"] == "Draining", "the drain does not begin")
    driver.process.send_signal(signal.SIGTERM)
    end = driver.end()
    assert (end["reason"], end["clean"]) == ("Drained", False)
    assert "batch 0 of query counts" in end["message"]


@pytest.mark.full
def test_a_jvm_that_is_frozen_cannot_keep_a_driver_that_was_told_to_end(drive, tmp_path):
    (tmp_path / "in").mkdir()
    driver = drive(TWO_QUERIES)
    driver.wait_for_batch("ticks")
    psutil.Process(driver.jvm_pid()).suspend()
    driver.process.send_signal(signal.SIGTERM)
    wait_for(lambda: driver.status()["phase"] == "Draining", "the drain does not begin")
    driver.process.send_signal(signal.SIGTERM)
    end = driver.end()
    assert (end["reason"], end["clean"]) == ("Drained", False)
    assert "The JVM did not answer" in end["message"]


@pytest.mark.full
def test_a_drain_that_takes_too_long_says_which_query(drive, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "hold").touch()
    add_rows(tmp_path, "one", "a")
    driver = drive(TWO_QUERIES, drainTimeoutSeconds=2)
    driver.wait_for_file(tmp_path / "held")
    driver.process.send_signal(signal.SIGTERM)
    end = driver.end()
    assert (end["reason"], end["clean"], end["exitCode"]) == ("Drained", False, 0)
    assert "batch 0 of query counts did not finish within 2 s" in end["message"]
    assert driver.offsets("counts") == [0]
    assert driver.commits("counts") == []
