"""Drains one query again and again under load: `python -m tests.spark.checkpoint.drains SPEC N`.

Prints one JSON line per drain. The query never waits for input, so each drain meets it inside a batch.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.spark.checkpoint.driver import Spec, session

QUERY = "q"


def main(path: str, drains: int) -> None:
    spec = Spec(**json.loads(Path(path).read_text()))
    spark = session(spec)
    control, conf = spark._jvm.dev.headrace.CheckpointControl, spark._jsc.hadoopConfiguration()
    control.claim(spec.run_uri, spec.attempt, "{}", conf)
    calls: list[int] = []
    for number in range(drains):
        query = start(spark, spec, calls)
        await_batches(query, calls, more=3)
        time.sleep(number * 0.03)  # another phase of the batch each time
        began = time.monotonic()
        settled = control.drain(60_000)
        cause = await_drained(query, spec, control, conf)
        seconds = time.monotonic() - began
        longest = max(progress["durationMs"]["triggerExecution"] for progress in query.recentProgress)
        logs = json.loads(control.batches(spec.run_uri, conf))[QUERY]
        control.resume()
        report = {"settled": settled, "seconds": seconds, "longestBatchMs": longest, "cause": cause, **logs}
        print(json.dumps(report), flush=True)  # noqa: T201
    print(json.dumps({"calls": calls}), flush=True)  # noqa: T201
    os._exit(0)


def start(spark: Any, spec: Spec, calls: list[int]) -> Any:
    from pyspark.sql import functions

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 500).load()
    counts = rows.groupBy((functions.col("value") % 50).alias("key")).count()

    def sink(frame: Any, batch: int) -> None:
        frame.collect()
        calls.append(batch)

    writer = counts.writeStream.outputMode("update").queryName(QUERY).foreachBatch(sink)
    return writer.option("checkpointLocation", f"{spec.run_uri}/queries/{QUERY}").start()


def await_batches(query: Any, calls: list[int], more: int) -> None:
    wanted = len(calls) + more
    deadline = time.monotonic() + 120
    while len(calls) < wanted:
        if query.exception() or time.monotonic() > deadline:
            raise RuntimeError(f"the query does not run: {query.exception()}")
        time.sleep(0.005)


def await_drained(query: Any, spec: Spec, control: Any, conf: Any) -> str:
    deadline = time.monotonic() + 120
    while query.isActive:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not drained: {control.batches(spec.run_uri, conf)}")
        time.sleep(0.005)
    return str(query.exception()._cause) if query.exception() else "none"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
