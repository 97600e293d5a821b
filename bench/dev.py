"""How long until the first result: `headrace dev` against a bare PySpark script doing the same.

Interleaved pairs, so that a noisy machine is noisy for both. A result is a committed row of the sink, seen by
somebody who looks at the sink's files; the clock starts when the command is started. Both start with an empty
cache: the class archive that speeds up later starts is not used. `headrace dev` runs its JVM with the quick
compiler only, which is its default, and the bare script with Spark's defaults.

    dev.first_result_s       median seconds of `headrace dev`
    dev.first_result_ratio   median over the pairs of headrace / bare
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
HEADRACE = Path(sys.executable).parent / "headrace"
WAIT_SECONDS = 180.0

JOB = """
import sys
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.appName("first-result")@BARE_CONF@.getOrCreate()
events = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
counts = events.groupBy((F.col("value") % 10).alias("key")).count()
query = (
    counts.writeStream.queryName("counts").outputMode("update")@BARE_CHECKPOINT@
    .foreachBatch(lambda frame, batch: frame.write.mode("append").json("results"))
    .trigger(processingTime="1 second").start()
)
query.awaitTermination()
"""

MANIFEST = """
apiVersion: headrace.dev/v1alpha1
kind: StreamJob
metadata: {name: first-result}
spec:
  application: {file: job.py}
  state: {partitions: 2}
  executors: {count: 1, cores: 2}
"""

# The bare script gets the same parallelism and state store: what is compared is Headrace, not RocksDB.
BARE_CONF = (
    '.master("local[2]").config("spark.sql.shuffle.partitions", 2)'
    '.config("spark.sql.streaming.stateStore.providerClass",'
    ' "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")'
)


def first_result(command: list[str], work: Path, env: dict[str, str]) -> float:
    started = time.monotonic()
    with (work / "output.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=work,
            env=env,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        while not list(work.glob("results/part-*")):
            if process.poll() is not None or time.monotonic() - started > WAIT_SECONDS:
                raise SystemExit(f"no result from {command}: see {work}/output.log")
            time.sleep(0.02)
        return time.monotonic() - started
    finally:
        end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """With its JVM, which outlives a bare script for a while and would slow down the next start."""
    deadline = time.monotonic() + 30
    signals = [signal.SIGTERM]
    while True:
        process.poll()
        try:
            os.killpg(process.pid, signals.pop() if signals else 0)
        except ProcessLookupError:
            process.wait()
            return
        if time.monotonic() > deadline:
            signals, deadline = [signal.SIGKILL], deadline + 30
        time.sleep(0.05)


def one(kind: str, env: dict[str, str]) -> float:
    work = Path(tempfile.mkdtemp(prefix=f"headrace-bench-{kind}-"))
    bare = kind == "bare"
    job = JOB.replace("@BARE_CONF@", BARE_CONF if bare else "")
    job = job.replace("@BARE_CHECKPOINT@", '.option("checkpointLocation", "checkpoint")' if bare else "")
    (work / "job.py").write_text(job)
    (work / "job.yaml").write_text(MANIFEST)
    command = [sys.executable, "job.py"] if bare else [str(HEADRACE), "dev", "job.yaml"]
    seconds = first_result(command, work, {**env, "XDG_CACHE_HOME": str(work / "cache")})
    shutil.rmtree(work)
    return seconds


def main() -> None:
    from headrace_jobs.jvm import java_environment

    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    env = {**os.environ, **java_environment()}
    pairs = []
    for number in range(args.pairs):
        order = ("bare", "headrace") if number % 2 == 0 else ("headrace", "bare")
        pairs.append({kind: one(kind, env) for kind in order})
        print(
            f"# pair {number + 1}: " + ", ".join(f"{k} {v:.1f} s" for k, v in sorted(pairs[-1].items())),
            file=sys.stderr,
        )
    figures = [
        {
            "figure": "dev.first_result_s",
            "value": round(statistics.median(pair["headrace"] for pair in pairs), 2),
            "unit": "s",
            "goal": None,
        },
        {
            "figure": "dev.first_result_ratio",
            "value": round(statistics.median(pair["headrace"] / pair["bare"] for pair in pairs), 3),
            "unit": "ratio",
            "goal": "<= 1.25",
        },
    ]
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "dev.json").write_text(json.dumps({"figures": figures, "pairs": pairs}, indent=1))
    for figure in figures:
        print(json.dumps(figure))


if __name__ == "__main__":
    main()
