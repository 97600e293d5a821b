"""Starts real drivers: the harness as a process of its own, on a script that the test writes."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

TOKEN = "token-of-the-test"
PATIENCE_SECONDS = 120


def wait_for(what: Callable[[], Any], message: str, seconds: float = PATIENCE_SECONDS) -> Any:
    """The first true value of `what`; fails with the message after the time limit."""
    deadline = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {message}")
        time.sleep(0.05)


class DriverProcess:
    """One attempt."""

    def __init__(self, directory: Path, run_file: dict[str, Any], *, piped: bool = False) -> None:
        self.directory = directory
        self.uid = run_file["uid"]
        self.store = Path(run_file["store"].removeprefix("file://"))
        self.run = self.store / f"run-{run_file['run']}"
        self.log_file = directory / "driver.log"
        (directory / "run.json").write_text(json.dumps(run_file))
        command = [sys.executable, "-m", "headrace_jobs.harness", "--run-file", str(directory / "run.json")]
        with self.log_file.open("wb") as log:
            # As in a container: what is written goes through a pipe to whoever keeps the pod's log.
            reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log) if piped else None
            output = reader.stdin if reader is not None else log
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=directory,
                env={**os.environ, "HEADRACE_AGENT_TOKEN": TOKEN},
                start_new_session=True,
            )
        if reader is not None and reader.stdin is not None:
            reader.stdin.close()
        self._reader = reader

    def process_file(self) -> dict[str, Any] | None:
        path = self.directory / "process.json"
        return json.loads(path.read_text()) if path.exists() else None

    def jvm_pid(self) -> int:
        return wait_for(lambda: (self.process_file() or {}).get("jvmPid"), "no JVM in the process file")

    def call(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        port = wait_for(self.process_file, "no process file")["agentPort"]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        good = {"Authorization": f"Bearer {TOKEN}", "X-Headrace-Uid": self.uid}
        connection.request(method, path, body, headers=good | headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, text

    def status(self) -> dict[str, Any]:
        code, text = self.call("GET", "/v1/status")
        assert code == 200, text
        return json.loads(text)

    def query(self, name: str) -> dict[str, Any] | None:
        return next((query for query in self.status()["queries"] if query["name"] == name), None)

    def wait_for_batch(self, name: str, number: int = 0) -> dict[str, Any]:
        def committed() -> dict[str, Any] | None:
            assert self.process.poll() is None, self.log()
            query = self.query(name)
            done = query and query["committedBatch"] is not None and query["committedBatch"] >= number
            return query if done else None

        return wait_for(committed, f"no batch {number} of {name}")

    def wait_for_file(self, path: Path) -> None:
        def there() -> bool:
            assert self.process.poll() is None or path.exists(), self.log()
            return path.exists()

        wait_for(there, f"{path} does not appear")

    def end(self) -> dict[str, Any]:
        """Waits for the end; the termination message, with the process's own exit code in it."""
        code = self.process.wait(PATIENCE_SECONDS)
        if self._reader is not None:
            self._reader.wait(PATIENCE_SECONDS)
        message = json.loads((self.directory / "termination.json").read_text())
        assert message["exitCode"] == code, self.log()
        assert message["uid"] == self.uid
        jvm = (self.process_file() or {}).get("jvmPid")
        assert jvm is None or not psutil.pid_exists(jvm), "the JVM lives on"
        return message

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def offsets(self, query: str) -> list[int]:
        return self._numbers(query, "offsets")

    def commits(self, query: str) -> list[int]:
        return self._numbers(query, "commits")

    def _numbers(self, query: str, log: str) -> list[int]:
        found = (self.run / "queries" / query / log).glob("*")
        return sorted(int(path.name) for path in found if path.name.isdigit())

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        jvm = (self.process_file() or {}).get("jvmPid")
        if jvm and psutil.pid_exists(jvm):
            psutil.wait_procs([psutil.Process(jvm)], timeout=30)
        if self._reader is not None:
            self._reader.wait(30)


@pytest.fixture
def drive(tmp_path):
    """`drive(script, …)` starts an attempt. Same `store`: the same run."""
    yield from driving(tmp_path)


def driving(tmp_path: Path) -> Iterator[Callable[..., DriverProcess]]:
    """What starts attempts in this directory; those that still live at the end are killed."""
    started: list[DriverProcess] = []

    def start(
        script: str | None = None, *, attempt: int = 1, piped: bool = False, **changes: Any
    ) -> DriverProcess:
        directory = tmp_path / f"attempt-{len(started) + 1}"
        directory.mkdir()
        file = tmp_path / "job.py"
        if script is not None:
            file.write_text(textwrap.dedent(script))
        application = {"file": str(file), "module": None, "args": [str(tmp_path)], "pyFiles": []}
        run_file: dict[str, Any] = {
            "job": {"namespace": "tests", "name": "job", "uid": "j-1"},
            "run": 1,
            "attempt": attempt,
            "epoch": attempt,
            "uid": str(uuid.uuid4()),
            "store": f"file://{tmp_path}/store",
            "application": application | changes.pop("application", {}),
            "sparkConf": {
                "spark.master": "local[2]",
                "spark.ui.enabled": "false",
                "spark.sql.shuffle.partitions": "2",
            }
            | changes.pop("spark_conf", {}),
            "trigger": {"mode": "Continuous", "intervalSeconds": None},
            "kafka": None,
            "start": None,
            "agent": {"host": "127.0.0.1", "port": 0, "tokenFile": None},
            "terminationMessagePath": str(directory / "termination.json"),
            "processFile": str(directory / "process.json"),
            "drainTimeoutSeconds": 60,
            "watchParent": True,
            "watchdog": {"batchTimeoutSeconds": 1800, "action": "Restart"},
            "repartition": None,
            "mode": "active",
            "rehearsal": None,
        }
        process = DriverProcess(directory, run_file | changes, piped=piped)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
