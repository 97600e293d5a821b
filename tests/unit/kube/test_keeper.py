"""The keeper's tasks, on a store that is a directory."""

import json
from pathlib import Path

import pytest

from headrace_jobs.keeper.main import main

OWN, OLD, OLDER = "own", "old", "older"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints/shop"


def keeper(jobs: Path, tmp_path: Path, task: str, *flags: str) -> tuple[int, dict]:
    result = tmp_path / "result.json"
    code = main([task, f"--store={(jobs / 'clicks').as_uri()}", f"--result={result}", *flags])
    return code, json.loads(result.read_text())


def a_run(jobs: Path, uid: str, number: int, *, attempt: int = 1) -> Path:
    """A run with one query that has committed one batch."""
    run = jobs / "clicks" / uid / f"run-{number}"
    for place in ("_attempts", "queries/counts/offsets", "queries/counts/commits"):
        (run / place).mkdir(parents=True)
    (run / "_attempts" / str(attempt)).write_text("{}")
    for log in ("offsets", "commits"):
        (run / "queries/counts" / log / "0").write_text("v1\n{}")
    (run / "queries/counts/metadata").write_text('{"id":"x"}')
    return run


def test_an_empty_store_lets_the_job_begin(jobs: Path, tmp_path: Path):
    assert keeper(jobs, tmp_path, "check", f"--lineage={OWN}", "--run=1")[0] == 0


def test_an_earlier_lineage_is_told_with_what_to_do(jobs: Path, tmp_path: Path):
    a_run(jobs, OLD, 2)
    a_run(jobs, OLD, 10)
    (jobs / "clicks" / OLD / "run-11/_attempts").mkdir(parents=True)  # prepared, never begun
    code, result = keeper(jobs, tmp_path, "check", f"--lineage={OWN}", "--run=1")
    assert (code, result["reason"], result["errorClass"]) == (64, "Refused", "EarlierLineage")
    assert result["earlier"] == {"uid": OLD, "lastRun": 10}
    assert "spec.startFrom {latest: true}" in result["message"]


def test_of_several_lineages_the_newest_counts(jobs: Path, tmp_path: Path):
    import os

    os.utime(a_run(jobs, OLDER, 7) / "_attempts/1", (1000, 1000))
    os.utime(a_run(jobs, OLD, 1) / "_attempts/1", (2000, 2000))
    _, result = keeper(jobs, tmp_path, "check", f"--lineage={OWN}", "--run=1")
    assert result["earlier"]["uid"] == OLD


def test_a_run_that_has_begun_is_not_asked_again(jobs: Path, tmp_path: Path):
    a_run(jobs, OLD, 1)
    a_run(jobs, OWN, 1)
    assert keeper(jobs, tmp_path, "check", f"--lineage={OWN}", "--run=1")[0] == 0


def test_a_seeded_run_continues_the_other_and_may_begin(jobs: Path, tmp_path: Path):
    a_run(jobs, OLD, 3)
    code, result = keeper(jobs, tmp_path, "seed", f"--from={OLD}/run-3", f"--to={OWN}/run-1")
    assert (code, result["seed"]["objects"]) == (0, 3)
    assert (jobs / "clicks" / OWN / "run-1/queries/counts/commits/0").exists()
    assert keeper(jobs, tmp_path, "check", f"--lineage={OWN}", "--run=1")[0] == 0


def test_a_store_that_cannot_be_used_is_told_in_a_sentence(jobs: Path, tmp_path: Path):
    jobs.parent.mkdir(parents=True)
    jobs.write_text("a file where a directory should be")
    code, result = keeper(jobs, tmp_path, "check", f"--lineage={OWN}", "--run=1")
    assert (code, result["reason"]) == (69, "StoreUnavailable")
    assert result["message"]


def test_a_run_in_use_is_not_seeded(jobs: Path, tmp_path: Path):
    a_run(jobs, OWN, 1)
    a_run(jobs, OWN, 2)
    code, result = keeper(jobs, tmp_path, "seed", f"--from={OWN}/run-1", f"--to={OWN}/run-2")
    assert (code, result["errorClass"]) == (69, "SeedFailed")


def test_of_a_deleted_job_the_runs_go_and_the_savepoints_stay(jobs: Path, tmp_path: Path):
    a_run(jobs, OWN, 1)
    a_run(jobs, OWN, 12)
    a_run(jobs, OLD, 1)
    home = jobs / "clicks" / OWN
    for kept in ("savepoints/1/manifest.json", "run-notes/mine.txt"):
        (home / kept).parent.mkdir(parents=True)
        (home / kept).write_text("{}")
    (home / "rehearsal-3/queries").mkdir(parents=True)
    (home / "rehearsal-3/queries/x").write_text("")
    code, result = keeper(jobs, tmp_path, "delete", f"--lineage={OWN}")
    assert (code, result["removed"]) == (0, 3)
    assert sorted(path.name for path in home.iterdir()) == ["run-notes", "savepoints"]
    assert (jobs / "clicks" / OLD / "run-1/_attempts/1").exists()
    assert keeper(jobs, tmp_path, "delete", f"--lineage={OWN}")[1]["removed"] == 0


def test_of_a_job_that_has_nothing_in_the_store_nothing_is_removed(jobs: Path, tmp_path: Path):
    code, result = keeper(jobs, tmp_path, "delete", f"--lineage={OWN}")
    assert (code, result["removed"]) == (0, 0)
