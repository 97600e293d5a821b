"""A small job on a directory of files, and `headrace dev` as a person would run it: as a command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

HEADRACE = Path(sys.executable).parent / "headrace"
WAIT_SECONDS = 90.0

MANIFEST = """\
apiVersion: headrace.dev/v1alpha1
kind: StreamJob
metadata: {name: counts}
spec:
  application: {file: job.py, args: [--tag, one]}
  state: {partitions: 2}
  restart: {backoff: {min: 1s, max: 2s}}
  executors: {count: 1, cores: 2}
"""

JOB = """\
import argparse, json, os
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--tag")
tag = parser.parse_args().tag

spark = SparkSession.builder.getOrCreate()
events = spark.readStream.schema("id LONG, key STRING").option("maxFilesPerTrigger", 1).json("in")
counts = events.groupBy("key").agg(F.count("*").alias("n"), F.sum("id").alias("total"))


def write(frame, batch):
    rows = [row.asDict() for row in frame.collect()]
    with open("calls.jsonl", "a") as calls:
        calls.write(json.dumps({"batch": batch, "tag": tag, "rows": rows}) + "\\n")


counts.writeStream.queryName("counts").outputMode("update").foreachBatch(write).start().awaitTermination()
"""


class Project:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.manifest = home / "job.yaml"
        self.manifest.write_text(MANIFEST)
        (home / "job.py").write_text(JOB)
        (home / "in").mkdir()
        self._files = 0
        self.expected: dict[str, list[int]] = {}

    def add_files(self, count: int, rows: int = 20) -> None:
        for _ in range(count):
            self._files += 1
            ids = range(self._files * 1000, self._files * 1000 + rows)
            events = [{"id": number, "key": f"k{number % 3}"} for number in ids]
            for event in events:
                self.expected.setdefault(event["key"], []).append(event["id"])
            hidden = self.home / "in" / f".{self._files:05d}.json"
            hidden.write_text("".join(json.dumps(event) + "\n" for event in events))
            hidden.rename(self.home / "in" / f"{self._files:05d}.json")

    @property
    def calls(self) -> list[dict]:
        path = self.home / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def last_rows(self) -> dict[str, tuple[int, int]]:
        """What the sink was last told of each key: the state, seen from outside."""
        return {row["key"]: (row["n"], row["total"]) for call in self.calls for row in call["rows"]}

    @property
    def expected_rows(self) -> dict[str, tuple[int, int]]:
        return {key: (len(ids), sum(ids)) for key, ids in self.expected.items()}

    @property
    def repeated_batches(self) -> list[int]:
        return [batch for batch, times in Counter(call["batch"] for call in self.calls).items() if times > 1]

    @property
    def streamjob(self) -> dict:
        return json.loads((self.home / ".headrace/counts/streamjob.json").read_text())

    def dev(self, *args: str, manifest: str = "job.yaml") -> Dev:
        return Dev(self, args, manifest)

    def savepoint(self, verb: str, *args: str, manifest: str = "job.yaml") -> Any:
        """`headrace savepoint VERB`, as typed in another terminal; the JSON where it was asked for."""
        ran = subprocess.run(
            [HEADRACE, "savepoint", verb, manifest, *args],
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout) if "json" in args else ran.stdout

    def drivers(self) -> list[dict]:
        """Those of attempts, also where one was a candidate first."""
        runs = self.home / ".headrace/counts/runs"
        activated = (note.parent for note in runs.glob("run-*/candidate-*/activated.json"))
        files = [home / "process.json" for home in (*runs.glob("run-*/attempt-*"), *activated)]
        return [json.loads(path.read_text()) for path in files if path.exists()]

    def live_pids(self) -> list[int]:
        """Of whatever was started: attempts and candidates."""
        files = (self.home / ".headrace/counts/runs").glob("run-*/*-*/process.json")
        drivers = [json.loads(path.read_text()) for path in files]
        pids = [pid for driver in drivers for pid in (driver["pid"], driver["jvmPid"]) if pid]
        return [pid for pid in pids if _alive(pid)]


class Dev:
    """`headrace dev job.yaml` in its own process, stopped at the end whatever happens."""

    def __init__(self, project: Project, args: tuple[str, ...], manifest: str = "job.yaml") -> None:
        self._project, self._args, self._manifest = project, args, manifest
        self.lines: list[str] = []

    def __enter__(self) -> Dev:
        self._out = (self._project.home / "dev.out").open("a+")
        self._out.seek(0, 2)
        self._start = self._out.tell()
        self.process = subprocess.Popen(
            [HEADRACE, "dev", self._manifest, *self._args],
            cwd=self._project.home,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._out.close()

    @property
    def output(self) -> str:
        with (self._project.home / "dev.out").open() as out:
            out.seek(self._start)
            return out.read()

    def until(self, what: str, done: Callable[[], object], *, ends: bool = False) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not done():
            assert ends or self.process.poll() is None, (
                f"headrace dev ended waiting for {what}:\n{self.output}"
            )
            assert time.monotonic() < deadline, f"waited in vain for {what}:\n{self.output}"
            time.sleep(0.1)

    def says(self, text: str) -> None:
        self.until(repr(text), lambda: text in self.output)

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def wait(self) -> int:
        return self.process.wait(WAIT_SECONDS)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
