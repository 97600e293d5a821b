"""Grows a query's state and prints RocksDB's memory after each batch: `python -m … SPEC BATCHES`."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from tests.spark.checkpoint.driver import Spec, session

ROWS_PER_BATCH = 100_000
WAIT_SECONDS = 240


def main(path: str, batches: int) -> None:
    spec = Spec(**json.loads(Path(path).read_text()))
    spark = session(spec)
    spark._jvm.dev.headrace.CheckpointControl.claim(
        spec.run_uri, spec.attempt, "{}", spark._jsc.hadoopConfiguration()
    )
    from pyspark.sql import functions

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS_PER_BATCH).load()
    rows = rows.withColumn("digest", functions.sha2(functions.col("value").cast("string"), 512))
    unique = rows.dropDuplicates(["value", "digest"])
    writer = unique.writeStream.format("noop").outputMode("append")
    query = writer.option("checkpointLocation", f"{spec.run_uri}/queries/q").start()
    deadline = time.monotonic() + WAIT_SECONDS
    while len(query.recentProgress) < batches:
        if query.exception() or time.monotonic() > deadline:
            raise RuntimeError(f"the query does not run: {query.exception()}")
        time.sleep(0.05)
    operators = [progress["stateOperators"][0] for progress in query.recentProgress[:batches]]
    report = {"rows": operators[-1]["numRowsTotal"], "bytes": [one["memoryUsedBytes"] for one in operators]}
    print(json.dumps(report), flush=True)  # noqa: T201
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
