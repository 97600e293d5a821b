"""What a savepoint costs on S3: the time it takes, and what a running query feels of it.

    savepoint.seconds_10mb, savepoint.seconds_1gb   from the call to the manifest, median of the rounds
    savepoint.copy_rate_ratio_to_bare               bytes per second of the largest state that was measured,
                                                    as a part of a bare parallel copy of the same objects
    savepoint.slowdown_capped_pct                   how much longer batches are while savepoints are taken one
    savepoint.slowdown_uncapped_pct                 after the other, with the copy rate capped and uncapped:
                                                    median of interleaved pairs

Copies and bare copies take turns; so do batches with and without a savepoint. The times are of files as
RocksDB leaves them, one snapshot per partition; the slow-down is of a real query on its own state. Below the
figures, on the error output: the requests of a savepoint, and what each window of the slow-down has seen.

A window is long enough for a whole capped savepoint in all its parts: looking, reading, copying, checking.
It is compared with the mean of the windows before and after it, because the state grows and the JVM warms up.
Savepoints are removed after it, which is no part of taking them. Query, copier and server share the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.checkpoint import await_batches, session  # noqa: E402
from tests.spark.s3server import ENVIRONMENT, S3Server, by_operation, versitygw  # noqa: E402
from tests.unit.store.savepoints.checkpoints import FakeQuery  # noqa: E402

from headrace_jobs.jvm import FILE_MANAGER_CLASS  # noqa: E402
from headrace_jobs.store import Copy, Store, open_store  # noqa: E402
from headrace_jobs.store.savepoints import About, Manifest, Pace, delete_savepoint, take_savepoint  # noqa: E402

RESULTS = ROOT / "bench/results/savepoint.json"
MEGABYTE = 1_000_000
SIZES = {"10mb": 10 * MEGABYTE, "1gb": 1000 * MEGABYTE}
PARTITIONS = 16
# The JVM's compiler is at work for longer than the first batches.
WARM_UP_BATCHES = 40
# With a trigger of a second: longer than a capped savepoint takes, which has some 100 to 400 requests.
BATCHES_PER_WINDOW = 30
# Each look at a query costs its driver something.
LOOK_SECONDS = 0.2
# What `maxCopyRate: 16M` sets, and nothing else: a tenth of what a small server copies, and 15 requests per
# second. A savepoint of a gigabyte then takes a minute or so.
CAP: dict[str, float] = {"bytes_per_second": 16 * MEGABYTE}
GOALS = {
    "savepoint.seconds_10mb": None,
    "savepoint.seconds_1gb": None,
    "savepoint.copy_rate_ratio_to_bare": 0.8,
    "savepoint.slowdown_capped_pct": 5.0,
    "savepoint.slowdown_uncapped_pct": None,
}


@dataclass
class Measured:
    """All rounds of one size."""

    seconds: list[float] = field(default_factory=list)
    bare_seconds: list[float] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)

    @property
    def ratio_to_bare(self) -> float:
        pairs = zip(self.bare_seconds, self.seconds, strict=True)
        return statistics.median(bare / ours for bare, ours in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", nargs="+", choices=[*SIZES, "none"], default=list(SIZES))
    parser.add_argument("--no-slowdown", action="store_true", help="leave out what needs Spark")
    parser.add_argument("--batches", type=int, default=BATCHES_PER_WINDOW, help="of a window")
    arguments = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("")
    with tempfile.TemporaryDirectory() as scratch, versitygw(Path(scratch) / "s3") as server:
        sizes = sorted(set(arguments.sizes) & set(SIZES), key=SIZES.__getitem__)
        largest = None
        for name in sizes:
            largest = measure_size(server, SIZES[name], arguments.rounds)
            figure(f"savepoint.seconds_{name}", statistics.median(largest.seconds), "seconds")
            explain(name, largest, arguments.rounds)
        if largest is not None:
            figure("savepoint.copy_rate_ratio_to_bare", largest.ratio_to_bare, "ratio")
        if not arguments.no_slowdown:
            measure_slowdown(server, arguments.rounds, arguments.batches)


def figure(name: str, value: float, unit: str) -> None:
    """Kept at once: what is measured later may fail."""
    line = json.dumps({"figure": name, "value": round(value, 3), "unit": unit, "goal": GOALS[name]})
    print(line, flush=True)
    with RESULTS.open("a") as results:
        results.write(line + "\n")


def explain(name: str, measured: Measured, rounds: int) -> None:
    asked = ", ".join(f"{count / rounds:.0f} {one}" for one, count in measured.requests.most_common())
    print(
        f"{name}: {asked} per savepoint; bare {statistics.median(measured.bare_seconds):.2f} s",
        file=sys.stderr,
    )


# ---- time


def measure_size(server: S3Server, size_bytes: int, rounds: int) -> Measured:
    store = open_store(f"s3://{server.new_bucket()}/ns/job", server.options())
    query = FakeQuery(store=store, run="uid/run-1", partitions=PARTITIONS).batches(3)
    query.snapshot(4 - 1, content=os.urandom(size_bytes // PARTITIONS))
    query.batches(8)
    measured = Measured()
    for number in range(rounds):
        turns: list[Callable[[], None]] = [
            lambda number=number: measured.seconds.append(timed_savepoint(server, store, number, measured)),
            lambda: measured.bare_seconds.append(timed_bare_copy(store)),
        ]
        for turn in turns if number % 2 else turns[::-1]:
            turn()
    return measured


def timed_savepoint(server: S3Server, store: Store, number: int, measured: Measured) -> float:
    begin, began = server.log_position(), time.monotonic()
    take(store, "uid/run-1", f"_savepoints/{number}")
    seconds = time.monotonic() - began
    measured.requests += by_operation(server.requests(begin, server.log_position()))
    delete_savepoint(store, f"_savepoints/{number}", why="bench")
    return seconds


def timed_bare_copy(store: Store) -> float:
    """The same objects, by the same number of threads, and nothing else: what the server can do."""
    manifest = take(store, "uid/run-1", "_savepoints/bare")
    wanted = {one.key for one in manifest.objects}
    entries = [entry for entry in store.list("uid/run-1/") if entry.key.removeprefix("uid/run-1/") in wanted]
    began = time.monotonic()
    store.copy_many(Copy(entry, entry.key.replace("uid/run-1", "bare")) for entry in entries)
    seconds = time.monotonic() - began
    store.delete_tree("bare")
    delete_savepoint(store, "_savepoints/bare", why="bench")
    return seconds


def take(store: Store, run: str, savepoint: str, pace: Pace | None = None) -> Manifest:
    return take_savepoint(
        store, run=run, savepoint=savepoint, about=About(owner="bench"), now=datetime.now(UTC), pace=pace
    )


# ---- slow-down


def measure_slowdown(server: S3Server, rounds: int, batches: int) -> None:
    spark = session(server)
    bucket = server.new_bucket()
    run = f"s3a://{bucket}/ns/job/uid/run-1"
    spark._jvm.dev.headrace.CheckpointControl.claim(run, 1, "{}", spark._jsc.hadoopConfiguration())
    own = spark.newSession()
    manager = {"spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER_CLASS}
    for key, value in (manager | {"headrace.run.path": run, "headrace.attempt": "1"}).items():
        own.conf.set(key, value)
    query = start(own, f"{run}/queries/q")
    store = open_store(f"s3://{bucket}/ns/job", server.options())
    await_batches(query, WARM_UP_BATCHES, look_seconds=LOOK_SECONDS)
    slower: dict[str, list[float]] = {"capped": [], "uncapped": []}
    before = window(query, batches)
    for number in range(rounds):
        for name, limits in (("capped", CAP), ("uncapped", {})):
            beside = Beside(server, store, limits, f"{name}-{number}")
            with_it, after = beside.window(query, batches), window(query, batches)
            alone = (before + after) / 2
            slower[name].append(100 * (with_it / alone - 1))
            print(
                f"{name}: {with_it:.0f} ms, {before:.0f} before and {after:.0f} after; {beside.seen}",
                file=sys.stderr,
            )
            before = after
    query.stop()
    spark.stop()
    for name, pairs in slower.items():
        figure(f"savepoint.slowdown_{name}_pct", statistics.median(pairs), "percent")


def start(spark: Any, checkpoint: str) -> Any:
    from pyspark.sql import functions

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2000).load()
    padding = functions.repeat(functions.sha2(functions.col("value").cast("string"), 512), 4)
    kept = rows.withColumn("padding", padding).groupBy("value").agg(functions.max("padding"))
    writer = kept.writeStream.outputMode("update").queryName("q").format("noop")
    # As a job has it. Without a pause between them the hundred batches that Spark keeps would be over before
    # a capped copy is.
    return writer.option("checkpointLocation", checkpoint).trigger(processingTime="1 second").start()


def window(query: Any, batches: int) -> float:
    """The median time of the next batches. Not of the one that may have begun already."""
    first = query.lastProgress["batchId"] + 1
    last = await_batches(query, batches, after=first, look_seconds=LOOK_SECONDS)
    times = {one["batchId"]: one["durationMs"]["triggerExecution"] for one in query.recentProgress}
    return statistics.median(took for batch, took in times.items() if first < batch <= last)


class Beside:
    """Savepoints one after the other, without a pause, while a window is measured."""

    def __init__(self, server: S3Server, store: Store, limits: dict[str, float], name: str) -> None:
        self.server, self.store, self.limits, self.name = server, store, limits, name
        self.seen = ""

    def window(self, query: Any, batches: int) -> float:
        begin, began = self.server.log_position(), time.monotonic()
        ended = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            taking = pool.submit(self._take_until, ended)
            try:
                median = window(query, batches)
                end, seconds = self.server.log_position(), time.monotonic() - began
            finally:
                ended.set()
            taken = taking.result()
        for savepoint in taken:
            delete_savepoint(self.store, savepoint, why="bench")
        asked = self.server.requests(begin, end)
        own = sum("_savepoints" in f"{one.key} {one.uri}" for one in asked)
        self.seen = f"{len(taken)} savepoints, {own / seconds:.1f} copies and the like per second"
        return median

    def _take_until(self, ended: threading.Event) -> list[str]:
        taken: list[str] = []
        while not ended.is_set():
            taken.append(f"_savepoints/{self.name}-{len(taken)}")
            take(self.store, "uid/run-1", taken[-1], Pace(**self.limits))
        return taken


if __name__ == "__main__":
    main()
