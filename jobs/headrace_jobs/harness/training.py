"""The job whose classes go into the class archive: a bit of everything that jobs use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession, functions

from headrace_jobs.harness.conf import PINNED_SESSION_CONF
from headrace_jobs.harness.driver_jvm import Gateway
from headrace_jobs.harness.session import open_session

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


def run_training_job(gateway: Gateway, scratch: Path) -> None:
    session = open_session(gateway)
    for key, (value, _) in PINNED_SESSION_CONF.items():
        if key != _FILE_MANAGER:  # its jar is loaded by Spark's own loader, which archives know nothing of
            session.conf.set(key, value)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    source = scratch / "in"
    source.mkdir()
    rows = [{"k": f"k{i % 3}", "v": i, "ts": f"2024-01-01T00:00:{i:02d}Z"} for i in range(30)]
    (source / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _windowed(session, scratch, str(source))
    _keyed(session, scratch, str(source))
    session.read.parquet(str(scratch / "out")).orderBy("n").collect()
    session.stop()


def _windowed(session: SparkSession, scratch: Path, source: str) -> None:
    events = session.readStream.schema("k string, v long, ts timestamp").json(source)
    counts = (
        events.withWatermark("ts", "5 seconds")
        .dropDuplicatesWithinWatermark(["k", "v"])
        .groupBy(functions.window("ts", "10 seconds"), "k")
        .agg(functions.sum("v").alias("v"), functions.count("*").alias("n"))
    )
    query = (
        counts.select("k", "v", "n", functions.col("window.start").alias("start"))
        .writeStream.outputMode("append")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(scratch / "windowed"))
        .start(str(scratch / "out"), format="parquet")
    )
    query.awaitTermination()


def _keyed(session: SparkSession, scratch: Path, source: str) -> None:
    def write(frame: Any, _batch: int) -> None:
        frame.persist()
        frame.write.mode("append").json(str(scratch / "json"))
        frame.unpersist()

    double = functions.udf(lambda v: v * 2, "long")
    values = session.readStream.schema("k string, v long").json(source).withColumn("v", double("v"))
    query = (
        values.groupBy("k")
        .agg(functions.max("v").alias("v"))
        .writeStream.outputMode("update")
        .foreachBatch(write)
        .trigger(availableNow=True)
        .option("checkpointLocation", str(scratch / "keyed"))
        .start()
    )
    query.awaitTermination()
