"""Another number of state partitions with real Spark and `headrace dev`: an upgrade like any other, exact."""

from __future__ import annotations

import pytest

from headrace_jobs.store import open_store
from headrace_jobs.store.partitions import states_of
from tests.spark.dev.project import JOB, MANIFEST, Project
from tests.spark.dev.test_upgrades import (
    FAILS_AT_START,
    FAILS_LATER,
    condition,
    is_stable,
    save,
    status,
    works,
)

REHEARSED = "  upgrade: {verifyWindow: 3s, startTimeout: 60s, rehearsal: {batches: 2}}\n"
COLD = "  upgrade: {strategy: Cold, verifyWindow: 3s, startTimeout: 60s}\n"


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.manifest.write_text(MANIFEST + REHEARSED)
    return project


def ask_for(project: Project, partitions: int, policy: str) -> None:
    manifest = MANIFEST.replace("partitions: 2", f"partitions: {partitions}")
    project.manifest.write_text(manifest + policy)


def partitions(project: Project, run: int) -> int | None:
    (place,) = (project.home / ".headrace/counts/store").rglob(f"run-{run}/queries")
    (state,) = states_of(open_store(str(place.parent.parent)), run)
    return state.partitions


@pytest.mark.timeout(1200)
def test_the_state_is_split_anew_and_every_way_back_is_exact(project):
    """One story, since Spark starts slowly: a rehearsed split, a bad version beside one, at its start and
    after two batches, and at last the right one."""
    project.add_files(3)
    with project.dev() as dev:
        dev.until("the first results", lambda: project.last_rows == project.expected_rows)
        is_stable(dev, project, 1)

        ask_for(project, 5, REHEARSED)
        is_stable(dev, project, 2)
        assert condition(project, "Rehearsed")["status"] == "True"
        assert "splitting its state into 5 partitions took" in condition(project, "Rehearsed")["message"]
        works(dev, project, 2)
        assert (partitions(project, 1), partitions(project, 2)) == (2, 5)

        # What follows soon after is rehearsed, too: not across the split, which is no batch to repeat.
        save(project, JOB.replace('"tag": tag', '"tag": tag + "!"'))
        is_stable(dev, project, 3)
        assert condition(project, "Rehearsed")["status"] == "True"
        works(dev, project, 1)

        # It ends before it has read anything: run 3 left the state that is gone on from, as it was split.
        ask_for(project, 3, COLD)
        save(project, FAILS_AT_START)
        is_stable(dev, project, 5)
        works(dev, project, 1)
        assert "the last of run 3" in condition(project, "RolledBack")["message"]
        assert (partitions(project, 4), partitions(project, 5)) == (3, 5)

        # It has written two batches: the old code goes on from there, with the number that the state has.
        ask_for(project, 3, COLD.replace("verifyWindow: 3s", "verifyWindow: 80s"))
        save(project, FAILS_LATER)
        dev.until("run 6", lambda: status(project)["run"]["number"] == 6)
        project.add_files(4)
        dev.until("run 7", lambda: status(project)["run"]["number"] == 7)
        assert status(project)["run"]["statePartitions"] == 3
        ask_for(project, 3, COLD)
        is_stable(dev, project, 7)
        works(dev, project, 1)
        assert partitions(project, 7) == 3

        ask_for(project, 4, COLD)
        save(project, JOB)
        is_stable(dev, project, 8)
        works(dev, project, 1)
        assert partitions(project, 8) == 4
        assert "statePartitions" not in status(project)["run"]
        assert dev.interrupt() == 0
    assert project.repeated_batches == []
