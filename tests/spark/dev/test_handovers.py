"""Warm handovers with real Spark and `headrace dev`, and what may befall them: the output stays exact.

A good one is part of test_rehearsals.py, which every change must pass.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psutil
import pytest

from tests.spark.dev.project import JOB, MANIFEST, Dev, Project

pytestmark = pytest.mark.full

UPGRADE = "  upgrade: {strategy: Rehearsed, verifyWindow: 3s, startTimeout: 60s}\n"
EDITED = JOB.replace('"tag": tag', '"tag": tag + "!"')


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.manifest.write_text(MANIFEST + UPGRADE)
    project.add_files(3)
    return project


@contextmanager
def fed(project: Project) -> Iterator[None]:
    """Files come all the time, also while nobody reads."""
    enough = Event()

    def feed() -> None:
        while not enough.wait(0.5):
            project.add_files(1)

    feeder = Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        enough.set()
        feeder.join()


def status(project: Project) -> dict:
    return project.streamjob["status"]


def step(project: Project) -> str:
    return status(project).get("operation", {}).get("step", "")


def is_running(dev: Dev, project: Project, run: int) -> None:
    dev.until("the first results", lambda: project.calls)
    dev.until(f"run {run}", lambda: status(project).get("lastStable", {}).get("run") == run)


def kill_candidate(project: Project) -> None:
    (home,) = (project.home / ".headrace/counts/runs/run-2").glob("candidate-*")
    process = json.loads((home / "process.json").read_text())
    for pid in (process["pid"], process["jvmPid"]):
        psutil.Process(pid).kill()


def is_exact(dev: Dev, project: Project) -> None:
    dev.until("the results", lambda: project.last_rows == project.expected_rows)
    assert project.calls[-1]["tag"] == "one!"
    assert dev.interrupt() == 0
    assert project.live_pids() == []


@pytest.mark.timeout(600)
def test_a_candidate_that_is_killed_as_it_takes_over_is_followed_by_a_driver(project):
    with project.dev() as dev:
        is_running(dev, project, 1)
        with fed(project):
            (project.home / "job.py").write_text(EDITED)
            dev.until("the order", lambda: step(project) == "Activating")
            kill_candidate(project)
            is_running(dev, project, 2)
        attempt = status(project)["run"]["attempt"]
        assert attempt["number"] == 2 and "activation" not in attempt
        is_exact(dev, project)
    # The batch that it was killed in may have reached the sink: it is made again, within the same bounds.
    assert len(project.repeated_batches) <= 1


@pytest.mark.timeout(600)
def test_a_session_that_is_killed_as_it_hands_over_is_taken_up_by_the_next(project):
    with project.dev() as dev:
        is_running(dev, project, 1)
        (project.home / "job.py").write_text(EDITED)
        dev.until("the order", lambda: step(project) == "Activating")
        dev.process.kill()
        dev.process.wait()
    project.add_files(2)
    with project.dev() as dev:
        is_running(dev, project, 2)
        is_exact(dev, project)
    assert len(project.repeated_batches) <= 1


@pytest.mark.timeout(600)
def test_a_candidate_that_is_killed_while_it_rehearses_is_followed_by_another(project):
    with project.dev() as dev:
        is_running(dev, project, 1)
        with fed(project):
            (project.home / "job.py").write_text(EDITED)
            homes = project.home / ".headrace/counts/runs/run-2"
            dev.until("its JVM", lambda: '"jvmPid": null' not in _process(homes / "candidate-1"))
            kill_candidate(project)
            is_running(dev, project, 2)
        assert status(project)["run"]["attempt"]["activation"]["candidate"] == 2
        is_exact(dev, project)
    assert project.repeated_batches == []


def _process(home) -> str:
    path = home / "process.json"
    return path.read_text() if path.exists() else '"jvmPid": null'
