"""Spark's own cluster with executors on two hosts, both of them loopback.

Spark never runs a second copy of a task on the host that runs the first, and `local-cluster` is one host.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyspark

from headrace_jobs.jvm import java_environment
from tests.spark.checkpoint.attempts import await_condition, environment_for
from tests.spark.checkpoint.places import Place
from tests.spark.s3server import die_with_parent

HOSTS = ("127.0.0.1", "127.0.0.2")
SPARK_HOME = Path(pyspark.__file__).parent
_START_SECONDS = 120
_STOP_SECONDS = 30


@contextlib.contextmanager
def two_hosts(place: Place, directory: Path) -> Iterator[str]:
    """The address of a master whose two workers have a core each. Nothing of it outlives the block."""
    directory.mkdir()
    with contextlib.ExitStack() as running:
        log = directory / "master.log"
        running.enter_context(_process(place, log, "master", "--host", HOSTS[0], "--port", "0"))
        master = _said(log, r"Starting Spark master at (spark://\S+)")
        for host in HOSTS:
            log = directory / f"worker-{host}.log"
            told = ["--host", host, "--cores", "1", "--memory", "1g", "--work-dir", str(directory / host)]
            running.enter_context(_process(place, log, "worker", master, *told))
            _said(log, r"Successfully registered with master (\S+)")
        yield master


@contextlib.contextmanager
def _process(place: Place, path: Path, role: str, *told: str) -> Iterator[None]:
    with path.open("wb") as log:
        process = _start(place, role, [*told, "--webui-port", "0"], log)
    try:
        yield
    finally:
        process.terminate()  # a worker takes its executors along
        try:
            process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=_STOP_SECONDS)


def _start(place: Place, role: str, told: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    settings = {"SPARK_HOME": str(SPARK_HOME), "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": HOSTS[0]}
    main_class = f"org.apache.spark.deploy.{role}.{role.capitalize()}"
    return subprocess.Popen(
        [str(SPARK_HOME / "bin/spark-class"), main_class, *told],
        env=os.environ | environment_for(place) | java_environment() | settings,
        stdout=log,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent,  # noqa: PLW1509  (one system call, nothing that takes a lock)
    )


def _said(log: Path, pattern: str) -> str:
    await_condition(lambda: re.search(pattern, log.read_text()), f"{log}: {pattern}", _START_SECONDS)
    found = re.search(pattern, log.read_text())
    assert found is not None
    return found[1]
