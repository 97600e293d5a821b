"""What the metrics are made from, as real Spark tells it: at work, and idle."""

import json
import time

from tests.spark.harness.conftest import wait_for

WITH_A_WATERMARK = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession, functions as F

place = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("k string, t double").json(str(place / "in"))
events = rows.withColumn("at", F.col("t").cast("timestamp")).withWatermark("at", "1 second")
counts = events.groupBy("k", F.window("at", "5 seconds")).count()
counts.writeStream.queryName("counts").outputMode("update").format("noop").trigger(
    processingTime="700 milliseconds"
).start()
spark.streams.awaitAnyTermination()
"""


def test_a_query_at_work_and_idle(drive, tmp_path):
    (tmp_path / "in").mkdir()
    event = time.time() - 60
    (tmp_path / "in/one.json").write_text(json.dumps({"k": "a", "t": event}))
    # Spark looks as often as the trigger says, and tells of looks that found nothing only this often.
    driver = drive(WITH_A_WATERMARK, spark_conf={"spark.sql.streaming.noDataProgressEventInterval": "500ms"})

    # Idle from the first batches on: each look that finds nothing is progress, and no commit.
    idle = wait_for(
        lambda: (
            (q := driver.query("counts"))
            and q["lastProgressAt"] is not None
            and q["lastProgressAt"] != q["lastCommitAt"]
            and q
        ),
        "the query does not become idle",
    )
    later = wait_for(
        lambda: (q := driver.query("counts"))["lastProgressAt"] > idle["lastProgressAt"] and q,
        "an idle query tells no progress",
    )
    assert later["lastCommitAt"] == idle["lastCommitAt"]
    assert later["committedBatch"] == idle["committedBatch"]
    assert later["eventLatencySeconds"] is None
    assert later["triggerDurationMs"] < later["batchDurationMs"]

    # From the code: the manifest says nothing of a trigger.
    assert later["triggerIntervalMs"] == 700
    assert 0 < later["logCommitMs"] < later["batchDurationMs"]
    assert later["stateCommitMs"] > 0

    # Rows come until one look falls between two looks of Spark's that find nothing.
    seen = []

    def latency_after_another_row():
        row = tmp_path / "in" / f".{len(seen)}"
        row.write_text(json.dumps({"k": "a", "t": event}))
        row.rename(row.with_name(f"row-{len(seen)}.json"))
        seen.append(driver.query("counts")["eventLatencySeconds"])
        return seen[-1] is not None

    wait_for(latency_after_another_row, "no latency is told")
    assert 60 <= seen[-1] < 400
    driver.call("POST", "/v1/drain")
    assert driver.end()["reason"] == "Drained"
