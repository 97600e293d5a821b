"""One attempt of a job, as a process that can be killed: `python -m tests.spark.checkpoint.driver SPEC`.

The part of the harness that a checkpoint needs (the settings, the claim, one query), and a sink that keeps
every batch it was given, so that a test can compare what a replay wrote with what was there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headrace_jobs.jvm import FILE_MANAGER_CLASS, java_environment
from headrace_jobs.store import open_store
from headrace_jobs.store.s3_options import options_in
from tests.spark.checkpoint.jobs import JOBS

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class Spec:
    """What the process is told. `kill` names a point in a batch at which it kills itself, hard; `freeze` one
    at which it stands still until somebody wakes it."""

    run_uri: str
    attempt: int
    input: str
    output: str
    jars: list[str]
    job: str = "sums"
    queries: list[str] = field(default_factory=lambda: ["q"])
    format_version: int = 2
    master: str = "local[1]"
    conf: dict[str, str] = field(default_factory=dict)
    kill: tuple[str, int] | None = None
    freeze: tuple[str, int] | None = None
    actions: int = 1
    fail_first_task: bool = False
    slow_first_task: bool = False
    continuous: bool = False
    repartition: int | None = None

    @property
    def scratch(self) -> Path:
        """For what a killed JVM leaves: 15 MB of native libraries each time, and Spark's local files."""
        return Path(self.output) / f"scratch-{self.attempt}"

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(asdict(self)))
        return path


def session(spec: Spec) -> Any:
    os.environ.update(java_environment())
    from pyspark.sql import SparkSession

    scratch = spec.scratch
    scratch.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.master(spec.master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Djava.io.tmpdir={scratch}",
        "spark.local.dir": str(scratch),
        "spark.sql.shuffle.partitions": "2",
        "spark.jars": ",".join(spec.jars),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER_CLASS,
        "spark.hadoop.headrace.run.path": spec.run_uri,
        "spark.hadoop.headrace.attempt": str(spec.attempt),
        "spark.hadoop.headrace.writer.id": f"attempt-{spec.attempt}",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.checkpointFormatVersion": str(spec.format_version),
        **spec.conf,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Sink:
    """Keeps each batch as a file named by its number; a replay must bring what was there."""

    def __init__(self, spec: Spec, query: str, jvm_pid: int) -> None:
        self._spec = spec
        self._directory = Path(spec.output) / query
        self._directory.mkdir(parents=True, exist_ok=True)
        self._jvm_pid = jvm_pid
        self._poison = Path(spec.output) / "poison"

    def __call__(self, frame: Any, batch: int) -> None:
        self._reach("after-offsets", batch)
        if self._spec.kill == ("after-one-changelog", batch):
            self._poison.touch()
        for _ in range(self._spec.actions - 1):
            frame.count()
        rows = sorted([list(row) for row in frame.collect()], key=json.dumps)
        self._reach("after-state", batch)
        self._keep(rows, batch)
        self._reach("after-sink", batch)

    def _keep(self, rows: list[list[Any]], batch: int) -> None:
        self._log("calls", {"batch": batch, "attempt": self._spec.attempt})
        path = self._directory / f"{batch}.json"
        if path.exists() and json.loads(path.read_text()) != rows:
            self._log("differences", {"batch": batch, "before": json.loads(path.read_text()), "after": rows})
        fresh = path.with_suffix(".tmp")
        fresh.write_text(json.dumps(rows))
        fresh.replace(path)

    def _log(self, name: str, record: dict[str, Any]) -> None:
        with (self._directory / name).open("a") as log:
            log.write(json.dumps(record) + "\n")

    def _reach(self, point: str, batch: int) -> None:
        for reached, how in ((self._spec.kill, signal.SIGKILL), (self._spec.freeze, signal.SIGSTOP)):
            if reached == (point, batch):
                os.kill(self._jvm_pid, how)
                os.kill(os.getpid(), how)


def wait_for_line(line: str, path: Path, seconds: float = 60) -> None:
    """Goes on when the time is up: who counts the lines afterwards finds that it is not there."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not (path.exists() and line in path.read_text().splitlines()):
        time.sleep(0.02)


def with_faults(spec: Spec, frame: Any, jvm_pid: int) -> Any:
    """Puts a step after the state that kills the JVM, or fails its task, in the second partition."""
    names = ("poison", "taken", "speculated", "retried")
    poison, taken, speculated, retried = (str(Path(spec.output) / name) for name in names)
    fail_first_task, slow_first_task, spec_attempt = spec.fail_first_task, spec.slow_first_task, spec.attempt

    def step(batches: Any) -> Any:
        from pyspark import TaskContext

        task = TaskContext.get()
        second = task is not None and task.partitionId() == 1
        first_try = task is not None and task.attemptNumber() == 0
        if second and Path(poison).exists():
            Path(poison).rename(taken)
            os.kill(jvm_pid, signal.SIGKILL)
        yield from batches
        # The input is at its end, so the state store has committed.
        if second and fail_first_task:
            if first_try:
                raise RuntimeError("this task fails after its state was committed")
            with Path(retried).open("a") as log:
                log.write("again\n")
        if second and slow_first_task:
            copy = f"{spec_attempt} {task.stageId()}"
            if first_try:
                wait_for_line(copy, Path(speculated))
            else:
                with Path(speculated).open("a") as log:
                    log.write(f"{copy}\n")

    if fail_first_task or slow_first_task or (spec.kill and spec.kill[0] == "after-one-changelog"):
        return frame.mapInPandas(step, frame.schema)
    return frame


def split(spark: Any, spec: Spec) -> None:
    """As the harness does it, before a query starts."""
    from headrace_jobs.harness.repartition import Repartition

    place, _, run = spec.run_uri.rpartition("/")
    store = open_store(place.replace("s3a://", "s3://"), options_in(spec.conf))
    try:
        Repartition(
            spark, store, run, lambda query: f"{spec.run_uri}/queries/{query}", spec.repartition
        ).run()
    except Exception as error:
        (Path(spec.output) / f"error-{spec.attempt}").write_text(f"{type(error).__name__}: {error}")
        os._exit(3)


def main(path: str) -> None:
    told = json.loads(Path(path).read_text())
    points = {name: tuple(told[name]) for name in ("kill", "freeze") if told[name]}
    spec = Spec(**(told | points))
    spark = session(spec)
    jvm_pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    (Path(spec.output) / f"pids-{spec.attempt}").write_text(json.dumps([os.getpid(), jvm_pid]))
    (Path(spec.output) / "spark-version").write_text(spark.version)
    spark._jvm.dev.headrace.CheckpointControl.claim(
        spec.run_uri, spec.attempt, "{}", spark._jsc.hadoopConfiguration()
    )
    if spec.repartition is not None:
        split(spark, spec)
    job = JOBS[spec.job]
    queries = []
    for name in spec.queries:
        frame = with_faults(spec, job.build(spark, spec.input), jvm_pid)
        writer = frame.writeStream.outputMode(job.output).queryName(name)
        writer = writer.option("checkpointLocation", f"{spec.run_uri}/queries/{name}")
        if not spec.continuous:
            writer = writer.trigger(availableNow=True)
        queries.append(writer.foreachBatch(Sink(spec, name, jvm_pid)).start())
    try:
        for query in queries:
            query.awaitTermination()
    except Exception as error:
        cause = getattr(error, "_cause", None)
        (Path(spec.output) / f"error-{spec.attempt}").write_text(f"{cause}\n{error}")
        os._exit(3)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
