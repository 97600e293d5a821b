"""Before a handover the state gets fresh snapshots, so that who takes over replays next to nothing."""

import re

import pytest

from tests.spark.harness.conftest import DriverProcess

# Each batch counts one number more: what was lost or repeated shows in the totals.
COUNTING = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()

def write(frame, batch_id):
    total = frame.agg(F.sum("count")).first()[0]
    with (Path(sys.argv[1]) / "totals.txt").open("a") as out:
        out.write(f"{batch_id} {total}\\n")

rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
counts = rows.groupBy((F.col("value") % 10).alias("key")).count()
writer = counts.writeStream.queryName("counts").outputMode("update").foreachBatch(write)
writer.start().awaitTermination()
"""
BATCHES = 25


def snapshot_ages(driver: DriverProcess) -> list[int]:
    """How many batches each state store has committed since its newest snapshot."""
    stores = sorted((driver.run / "queries" / "counts" / "state" / "0").glob("[0-9]*"))
    assert len(stores) == 2
    names = [[path.name for path in store.iterdir()] for store in stores]
    newest = [max((version(name) for name in each if name.endswith(".zip")), default=0) for each in names]
    return [driver.commits("counts")[-1] + 1 - one for one in newest]


def version(name: str) -> int:
    found = re.match(r"(\d+)_", name)
    return int(found[1]) if found else 0


def test_a_drain_that_makes_snapshots_leaves_little_to_replay_and_the_next_attempt_is_exact(drive, tmp_path):
    # Spark's own snapshots are an hour away.
    conf = {"spark.sql.streaming.stateStore.maintenanceInterval": "1h"}
    driver = drive(COUNTING, spark_conf=conf)
    driver.wait_for_batch("counts", BATCHES)
    assert driver.call("POST", "/v1/drain?snapshots=true")[0] == 202
    assert driver.end()["reason"] == "Drained"
    assert driver.offsets("counts") == driver.commits("counts")
    assert max(snapshot_ages(driver)) <= 3
    assert "snapshots of the state before the handover" in driver.log()

    following = drive(attempt=2, spark_conf=conf)
    following.wait_for_batch("counts", driver.commits("counts")[-1] + 3)
    assert following.call("POST", "/v1/drain")[0] == 202
    following.end()
    totals = [line.split() for line in (tmp_path / "totals.txt").read_text().splitlines()]
    assert [int(batch) for batch, _ in totals] == list(range(len(totals)))
    assert [int(total) for _, total in totals] == [20 * (number + 1) for number in range(len(totals))]


@pytest.mark.full
def test_a_plain_drain_waits_for_no_snapshot(drive):
    driver = drive(COUNTING, spark_conf={"spark.sql.streaming.stateStore.maintenanceInterval": "1h"})
    driver.wait_for_batch("counts", BATCHES)
    assert driver.call("POST", "/v1/drain")[0] == 202
    assert driver.end()["reason"] == "Drained"
    assert min(snapshot_ages(driver)) >= BATCHES
