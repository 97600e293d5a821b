"""Driver processes of this machine: they cannot outlive us, and they cannot be mistaken.

A pid alone proves nothing (numbers are reused), so a process is a pid with its start time. The harness gets
one end of a pipe as its standard input: when we go, however we go, it sees the end of it and drains.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from headrace.local.layout import AttemptFiles, Layout, read_json

# The harness gives an orphan 20 s to drain; this is that and the exit.
ORPHAN_SECONDS = 30.0

# The harness reads start times from the kernel by itself, psutil in its own way: they differ by a clock tick.
SAME_START_SECONDS = 2.0


@dataclass(frozen=True)
class ProcessIdentity:
    pid: int
    create_time: float

    def alive(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            return (
                abs(process.create_time() - self.create_time) < SAME_START_SECONDS
                and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return False

    def kill(self) -> None:
        if self.alive():
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(self.pid).kill()


@dataclass(frozen=True)
class DriverProcess:
    """What process.json says: the Python driver and its JVM."""

    uid: str
    driver: ProcessIdentity
    jvm: ProcessIdentity | None
    agent_port: int | None

    @staticmethod
    def read(path: Path) -> DriverProcess | None:
        content: dict[str, Any] | None = read_json(path)
        if content is None:
            return None
        jvm = content.get("jvmPid")
        return DriverProcess(
            uid=content["uid"],
            driver=ProcessIdentity(content["pid"], content["createTime"]),
            jvm=ProcessIdentity(jvm, content["jvmCreateTime"]) if jvm else None,
            agent_port=content.get("agentPort"),
        )

    def alive(self) -> bool:
        """Either of the two may still write."""
        return self.driver.alive() or (self.jvm is not None and self.jvm.alive())

    def kill(self) -> None:
        for process in filter(None, (self.driver, self.jvm)):
            process.kill()


def start_driver(files: AttemptFiles, *, cwd: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start the harness in a session of its own, so that Ctrl-C in the terminal reaches only us."""
    with files.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "headrace_jobs.harness", "--run-file", str(files.run_file)],
            cwd=cwd,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_for_orphans(layout: Layout) -> None:
    """Wait for drivers whose parent was killed. They drain by themselves; past their time they are killed."""
    deadline = time.monotonic() + ORPHAN_SECONDS
    files = layout.runs.glob("run-*/*-*/process.json")
    for driver in filter(None, map(DriverProcess.read, files)):
        while driver.alive():
            if time.monotonic() > deadline:
                driver.kill()
            time.sleep(0.1)
