"""What a micro-batch costs on S3: Spark's default file manager against Headrace's, in one JVM, in turns.

Two stateful operators with two partitions each, RocksDB with changelogs, state format v2 with its checksums,
a parquet sink whose log is counted in, default retention, and the claim check on. Requests are counted in
the server's own log, in the steady state: each query has run until Spark removes as much as it adds.

    checkpoint.s3_requests_per_batch      requests per micro-batch with Headrace's file manager
    checkpoint.requests_ratio_to_default  the same, as a part of what Spark's default needs
    checkpoint.latency_ratio_to_default   median batch time, as a part of the default's
    checkpoint.list_price_ratio_to_default  what the requests cost at Amazon's list prices, likewise

Below the figures, on the error output: each kind of request, by where it went.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.spark.s3server import ENVIRONMENT, Request, S3Server, versitygw  # noqa: E402

from headrace_jobs.jvm import FILE_MANAGER_CLASS, jar_path, java_environment  # noqa: E402
from headrace_jobs.jvm.jars import connector_jars  # noqa: E402
from headrace_jobs.store.s3_options import spark_conf  # noqa: E402

RESULTS = ROOT / "bench/results/checkpoint.json"
MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"
WARM_UP_BATCHES = 3
# Spark keeps a hundred batches, and lets thirty more of the state pile up before it removes them, once a
# minute. The rounds of each file manager together take some minutes.
STEADY_BATCHES = 140
WAIT_SECONDS = 900
# Amazon S3 Standard, us-east-1, dollars per request; deletes are free.
PRICES = {"PutObject": 5e-6, "CopyObject": 5e-6, "ListObjectsV2": 5e-6, "GetObject": 4e-7, "HeadObject": 4e-7}
GOALS = {
    "checkpoint.s3_requests_per_batch": 32.0,
    "checkpoint.requests_ratio_to_default": 32 / 271,
    "checkpoint.latency_ratio_to_default": 1.0,
    "checkpoint.list_price_ratio_to_default": 0.2,
}


@dataclass
class Measured:
    """All rounds of one file manager."""

    batches: int = 0
    seconds: list[float] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    @property
    def requests_per_batch(self) -> float:
        return len(self.requests) / self.batches

    @property
    def price_per_batch(self) -> float:
        return sum(PRICES.get(request.operation, 0.0) for request in self.requests) / self.batches

    def by_kind(self) -> Counter[str]:
        return Counter(f"{_area(request.path)} {request.operation}" for request in self.requests)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=60, help="per round")
    parser.add_argument("--steady", type=int, default=STEADY_BATCHES, help="batches before the first round")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, versitygw(Path(scratch) / "s3") as server:
        default, ours = measure(server, arguments.rounds, arguments.batches, arguments.steady)
    figures = [
        figure("checkpoint.s3_requests_per_batch", ours.requests_per_batch, "requests"),
        figure(
            "checkpoint.requests_ratio_to_default",
            ours.requests_per_batch / default.requests_per_batch,
            "ratio",
        ),
        figure(
            "checkpoint.latency_ratio_to_default",
            statistics.median(ours.seconds) / statistics.median(default.seconds),
            "ratio",
        ),
        figure(
            "checkpoint.list_price_ratio_to_default", ours.price_per_batch / default.price_per_batch, "ratio"
        ),
    ]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("".join(json.dumps(one) + "\n" for one in figures))
    explain(default, ours)


def figure(name: str, value: float, unit: str) -> dict[str, Any]:
    found = {"figure": name, "value": round(value, 3), "unit": unit, "goal": round(GOALS[name], 3)}
    print(json.dumps(found), flush=True)
    return found


def explain(default: Measured, ours: Measured) -> None:
    print(f"{'per batch':34}{'default':>9}{'ours':>8}", file=sys.stderr)
    before, after = default.by_kind(), ours.by_kind()
    for kind in sorted(before | after):
        was, now = before[kind] / default.batches, after[kind] / ours.batches
        print(f"{kind:34}{was:9.1f}{now:8.1f}", file=sys.stderr)


def measure(server: S3Server, rounds: int, batches: int, steady: int) -> tuple[Measured, Measured]:
    spark = session(server)
    bucket = server.new_bucket()
    run = f"s3a://{bucket}/ns/job/uid/run-1"
    spark._jvm.dev.headrace.CheckpointControl.claim(run, 1, "{}", spark._jsc.hadoopConfiguration())
    default, ours = Measured(), Measured()
    # The claims belong to our manager's session; the default one knows nothing of them.
    sessions = {"default": (spark.newSession(), default), "ours": (spark.newSession(), ours)}
    fenced = {MANAGER_KEY: FILE_MANAGER_CLASS, "headrace.run.path": run, "headrace.attempt": "1"}
    for key, value in fenced.items():
        sessions["ours"][0].conf.set(key, value)
    for name, (own, _) in sessions.items():
        query = start(own, f"{run}/queries/{name}", f"s3a://{bucket}/out-{name}")
        await_batches(query, steady)
        query.stop()
    for number in range(rounds):
        # Who goes first changes, so that a machine that slows down is no argument.
        for name in sorted(sessions, reverse=bool(number % 2)):
            own, measured = sessions[name]
            query = start(own, f"{run}/queries/{name}", f"s3a://{bucket}/out-{name}")
            for request in measure_round(server, query, measured, batches):
                sessions[_owner(request.path) or name][1].requests.append(request)
    spark.stop()
    return default, ours


def session(server: S3Server) -> Any:
    os.environ.update({**java_environment(), **ENVIRONMENT})
    from pyspark.sql import SparkSession

    state = "spark.sql.streaming.stateStore"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.jars": ",".join(map(str, (jar_path(), *connector_jars("s3a")))),
        f"{state}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        f"{state}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{state}.checkpointFormatVersion": "2",
        # As jobs have it. One JVM has one such thread: it is the same for both.
        f"{state}.maintenanceInterval": "30s",
        # The times of a whole round are read at its end.
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        **spark_conf(server.options()),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def measure_round(server: S3Server, query: Any, measured: Measured, batches: int) -> list[Request]:
    """All requests of the round."""
    first = await_batches(query, WARM_UP_BATCHES)
    begin = server.log_position()
    last = await_batches(query, batches, after=first)
    end = server.log_position()
    progress = [one for one in query.recentProgress if first < one["batchId"] <= last]
    query.stop()
    measured.batches += last - first
    measured.seconds += [one["durationMs"]["triggerExecution"] / 1000 for one in progress]
    return server.requests(begin, end)


def start(spark: Any, checkpoint: str, output: str) -> Any:
    from pyspark.sql import functions

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 200)
    rows = rows.option("numPartitions", 2).option("advanceMillisPerBatch", 2000)
    rows = (
        rows.option("startTimestamp", 1_700_000_000_000)
        .load()
        .withColumn("key", functions.expr("value % 10"))
    )
    unique = rows.withWatermark("timestamp", "10 seconds").dropDuplicatesWithinWatermark(["value"])
    windows = unique.groupBy(functions.window("timestamp", "10 seconds"), "key").agg(functions.sum("value"))
    windows = windows.withColumnRenamed("sum(value)", "total")
    writer = (
        windows.writeStream.format("parquet").option("path", output).option("checkpointLocation", checkpoint)
    )
    return writer.outputMode("append").trigger(processingTime="0 seconds").start()


def await_batches(query: Any, count: int, *, after: int | None = None, look_seconds: float = 0.01) -> int:
    """Waits until so many batches have ended after that one, or after the first that ends from now on;
    returns the number of the last."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if query.exception():
            raise query.exception()
        # Not by the first of `recentProgress`: Spark forgets the old ones, and the first moves on.
        progress = query.lastProgress
        if progress and after is None:
            after = progress["batchId"]
        if progress and after is not None and progress["batchId"] - after >= count:
            return progress["batchId"]
        time.sleep(look_seconds)
    raise TimeoutError(f"no {count} batches within {WAIT_SECONDS} s")


def _owner(path: str) -> str | None:
    """Spark clears away behind a query that has stopped, too: in the other's round."""
    found = re.search(r"(?:queries/|out-)(default|ours)\b", path)
    return found[1] if found else None


def _area(path: str) -> str:
    for area in ("_attempts", "offsets", "commits", "state", "sources", "_spark_metadata"):
        if f"/{area}" in path:
            return area
    return "output" if path.startswith("out") else "other"


if __name__ == "__main__":
    main()
