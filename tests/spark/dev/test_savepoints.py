"""Savepoints in `headrace dev`, with real Spark: taken while the job runs, restored, forked, adopted."""

from pathlib import Path

import pytest

from tests.spark.dev.project import MANIFEST, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def another_job(project: Project, name: str, start: str) -> str:
    """The same code as another job; its rows carry its name."""
    manifest = MANIFEST.replace("name: counts", f"name: {name}").replace("[--tag, one]", f"[--tag, {name}]")
    (project.home / f"{name}.yaml").write_text(f"{manifest}  startFrom: {start}\n")
    return f"{name}.yaml"


def rows_of(project: Project, tag: str) -> dict[str, tuple[int, int]]:
    calls = [call for call in project.calls if call["tag"] == tag]
    return {row["key"]: (row["n"], row["total"]) for call in calls for row in call["rows"]}


def first_batch(project: Project, tag: str) -> int:
    return min(call["batch"] for call in project.calls if call["tag"] == tag)


def test_taken_from_a_running_job_restored_forked_and_adopted(project: Project) -> None:
    """One story, since Spark starts slowly."""
    project.add_files(3)
    with project.dev() as dev:
        dev.until("the first results", lambda: project.last_rows == project.expected_rows)
        made = project.savepoint("create", "early", "-o", "json")
        assert (made["state"], made["queries"][0]["batch"]) == ("Ready", 2)
        project.add_files(2)
        dev.until("more results", lambda: project.last_rows == project.expected_rows)
        before = len(project.calls)

        # Back to batch 2: what came since is done again, under a new lineage.
        assert "drains counts and starts it from early now" in project.savepoint("restore", "early", "--yes")
        dev.until("run 2", lambda: project.streamjob["status"]["run"]["number"] == 2)
        dev.until("the repeated batches", lambda: len(project.calls) >= before + 2)
        assert [call["batch"] for call in project.calls[before:]] == [3, 4]
        dev.until("the results of run 2", lambda: project.last_rows == project.expected_rows)
        status = project.streamjob["status"]
        assert status["run"]["seededFrom"].endswith("/_savepoints/early")
        late = project.savepoint("create", "late", "-o", "json")
        assert late["queries"][0]["lineage"] != made["queries"][0]["lineage"]
        assert dev.interrupt() == 0
    assert [one["name"] for one in project.savepoint("list", "-o", "json")] == ["early", "late"]
    assert project.savepoint("verify", "late", "-o", "json")["verified"] == "State"

    # Another job starts from it: a fork, at the batch after.
    forked = another_job(project, "forked", "{savepoint: early}")
    with project.dev("--once", manifest=forked) as dev:
        assert dev.wait() == 0, dev.output
    assert rows_of(project, "forked") == project.expected_rows
    assert first_batch(project, "forked") == 3

    # And one adopts the checkpoint of the query itself, as if Spark alone had made it.
    uid = project.streamjob["metadata"]["uid"]
    checkpoint = project.home / f".headrace/counts/store/default/counts/{uid}/run-2/queries/counts"
    before_it = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    adopting = another_job(project, "adopting", f"{{path: '{checkpoint.as_uri()}', query: counts}}")
    project.add_files(1)
    with project.dev("--once", manifest=adopting) as dev:
        assert dev.wait() == 0, dev.output
    assert rows_of(project, "adopting") == {
        key: value for key, value in project.expected_rows.items() if key in rows_of(project, "adopting")
    }
    assert first_batch(project, "adopting") == 5
    assert {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()} == before_it


def test_what_cannot_be_started_from_is_said_and_corrected_by_a_saved_manifest(project: Project) -> None:
    project.add_files(2)
    with project.dev("--once") as dev:
        assert dev.wait() == 0, dev.output
    project.savepoint("create", "good")
    name = another_job(project, "other", "{savepoint: bad}")
    manifest = project.home / name
    with project.dev(manifest=name) as dev:
        dev.says("there is no savepoint bad")
        # A savepoint that does not hold the query of this name.
        code = (project.home / "job.py").read_text()
        (project.home / "job.py").write_text(code.replace('queryName("counts")', 'queryName("count")'))
        manifest.write_text(manifest.read_text().replace("savepoint: bad", "savepoint: good"))
        dev.says("holds the queries counts and none of the name count")
        assert [call for call in project.calls if call["tag"] == "other"] == []
        (project.home / "job.py").write_text(code)
        project.add_files(1)
        dev.until("exact results", lambda: rows_of(project, "other") == project.expected_rows)
        assert first_batch(project, "other") == 2
