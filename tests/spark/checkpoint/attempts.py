"""Starts attempts of a job as processes and judges what they left: the test's side of driver.py."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace_jobs.jvm import jar_path
from headrace_jobs.jvm.jars import connector_jars
from headrace_jobs.store import last_batches
from tests.spark.checkpoint.driver import Spec
from tests.spark.checkpoint.jobs import JOBS, Row, outcome, write_input
from tests.spark.checkpoint.places import Place
from tests.spark.s3server import die_with_parent

# A store that stalls is waited for again and again before it is given up: three minutes on a quiet machine.
ATTEMPT_SECONDS = 400
ROOT = Path(__file__).parents[3]


@dataclass
class Trial:
    """One run of a job through any number of attempts."""

    place: Place
    directory: Path
    rows: list[Row]
    job: str = "sums"
    run: str = "run-1"
    attempt: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    # Python packages that come before those of this environment: another Spark.
    packages: Path | None = None

    @property
    def input(self) -> Path:
        return self.directory / "input"

    @property
    def output(self) -> Path:
        return self.directory / "output"

    def spec(self, **changes: Any) -> Spec:
        jars = [jar_path(), *(connector_jars("s3a") if self.place.uri.startswith("s3a:") else ())]
        settings = {"job": self.job, **self.settings, **changes}
        settings["conf"] = {**self.place.conf, **settings.get("conf", {})}
        return Spec(
            run_uri=f"{self.place.uri}/{self.run}",
            attempt=self.attempt,
            input=str(self.input),
            output=str(self.output),
            jars=[str(jar) for jar in jars],
            **settings,
        )

    def start(self, **changes: Any) -> subprocess.Popen[bytes]:
        self.attempt += 1
        self.output.mkdir(parents=True, exist_ok=True)
        (self.output / "taken").unlink(missing_ok=True)
        spec = self.spec(**changes).write(self.directory / f"spec-{self.attempt}.json")
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.spark.checkpoint.driver", spec],
                cwd=ROOT,
                env=environment_for(self.place, self.packages),
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,  # noqa: PLW1509  (one system call, nothing that takes a lock)
            )

    def add_input(self, files: int) -> None:
        """More of the same input, under the eyes of a running driver."""
        there = len(list(self.input.iterdir()))
        self.rows = write_input(self.directory / "more", there + files)
        for path in sorted((self.directory / "more").iterdir())[there:]:
            path.rename(self.input / path.name)

    def run_to_end(self, **changes: Any) -> int:
        process = self.start(**changes)
        try:
            return process.wait(timeout=ATTEMPT_SECONDS)
        finally:
            self.kill(process)

    def run_until_killed(self, point: str, batch: int, **changes: Any) -> None:
        code = self.run_to_end(kill=(point, batch), **changes)
        assert code != 0, f"the attempt was to be killed {point} of batch {batch}, but ended well"
        if point == "after-one-changelog":
            # Here the JVM is killed from inside; the Python process goes down by what that does to it.
            assert (self.output / "taken").exists(), self.log.read_text()[-3000:]
        else:
            assert code == -signal.SIGKILL, self.log.read_text()[-3000:]

    @property
    def log(self) -> Path:
        return self.directory / f"attempt-{self.attempt}.log"

    def pids(self, attempt: int) -> list[int]:
        path = self.output / f"pids-{attempt}"
        await_condition(lambda: path.exists() and path.read_text(), f"attempt {attempt} tells its pids")
        return json.loads(path.read_text())

    def error(self, attempt: int) -> str:
        path = self.output / f"error-{attempt}"
        return path.read_text() if path.exists() else ""

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Leaves nothing running, whatever the test did before."""
        pids = self.output / f"pids-{self.attempt}"
        for pid in json.loads(pids.read_text()) if pids.exists() else []:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.kill()
        process.wait(timeout=30)
        shutil.rmtree(self.spec().scratch, ignore_errors=True)

    def calls(self, query: str = "q") -> list[dict[str, int]]:
        path = self.output / query / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def batches(self, query: str = "q") -> dict[int, list[list[Any]]]:
        found = (self.output / query).glob("*.json")
        return dict(sorted((int(path.stem), json.loads(path.read_text())) for path in found))

    def speculated(self) -> int:
        """How many tasks ran a second time beside the first."""
        return self._marks("speculated")

    def retried(self) -> int:
        """How many tasks ran to their end after a first try that had failed."""
        return self._marks("retried")

    def _marks(self, name: str) -> int:
        path = self.output / name
        return len(path.read_text().splitlines()) if path.exists() else 0

    def spark_version(self) -> str:
        """Of the last attempt that came so far."""
        return (self.output / "spark-version").read_text()

    def assert_exact(self, query: str = "q") -> None:
        """Every row counted once, replays equal to what they repeated, both logs at the same batch."""
        job = JOBS[self.job]
        differences = self.output / query / "differences"
        assert not differences.exists(), differences.read_text()
        assert outcome(self.batches(query).values(), job.output) == job.expected(self.rows)
        offsets, commits = last_batches(self.place.store, self.run)[query]
        assert offsets == commits
        assert list(self.batches(query)) == list(range(max(self.batches(query)) + 1))


def environment_for(place: Place, packages: Path | None = None) -> dict[str, str]:
    """Only the place's own keys, and Python workers that are this Python and find the jobs."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    path = os.pathsep.join(str(one) for one in (packages, ROOT) if one is not None)
    return inherited | place.environment | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}


def await_condition(condition: Any, what: str, seconds: float = ATTEMPT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for this: {what}"
        time.sleep(0.02)
