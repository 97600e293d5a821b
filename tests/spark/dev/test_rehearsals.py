"""Rehearsals with real Spark and `headrace dev`: a bad edit does not touch the driver that runs."""

import pytest

from tests.spark.dev.project import JOB, MANIFEST, Dev, Project

UPGRADE = (
    "  upgrade: {strategy: Rehearsed, verifyWindow: 3s, startTimeout: 60s, rehearsal: {timeLimit: 2m}}\n"
)


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.manifest.write_text(MANIFEST + UPGRADE)
    return project


def condition(project: Project, kind: str) -> dict:
    conditions = project.streamjob["status"]["conditions"]
    return next((one for one in conditions if one["type"] == kind), {})


def is_refused(dev: Dev, project: Project, words: str) -> None:
    dev.until(f"a refusal with {words}", lambda: words in condition(project, "Rehearsed").get("message", ""))
    assert condition(project, "Rehearsed")["status"] == "False"
    assert condition(project, "Ready")["status"] == "True"


@pytest.mark.timeout(900)
def test_bad_edits_do_not_touch_what_runs_and_the_fix_takes_over(project):
    project.add_files(4)
    with project.dev() as dev:
        dev.until("the first results", lambda: project.last_rows == project.expected_rows)
        (driver,) = project.drivers()
        job = project.home / "job.py"

        job.write_text("import no_such_module\n" + JOB)
        is_refused(dev, project, "no_such_module")
        project.add_files(1)
        dev.until("results of the old code", lambda: project.last_rows == project.expected_rows)

        aggregates = 'F.sum("id").alias("total")'
        job.write_text(JOB.replace(aggregates, f'F.avg("id").alias("mean"), {aggregates}'))
        is_refused(dev, project, "aggregate")

        # Spark takes this one without a word, and would be wrong from then on.
        job.write_text(JOB.replace(aggregates, 'F.max("id").alias("total")'))
        is_refused(dev, project, "became max")
        assert condition(project, "Rehearsed")["reason"] == "MeaningChanged"

        assert project.drivers() == [driver]
        assert [entry["outcome"] for entry in project.streamjob["status"]["history"]] == ["Refused"] * 3

        # The good one takes over from a driver that is at work, without a driver of its own being started.
        job.write_text(JOB.replace('"tag": tag', '"tag": tag + "!"'))
        dev.until("a candidate", lambda: project.streamjob["status"].get("candidates") == 4)
        project.add_files(3)
        dev.until("run 2", lambda: project.streamjob["status"].get("lastStable", {}).get("run") == 2)
        assert condition(project, "Rehearsed")["status"] == "True"
        assert "HandedOver" in dev.output
        attempt = project.streamjob["status"]["run"]["attempt"]
        assert (attempt["number"], attempt["activation"]["candidate"]) == (1, 4)
        assert len(project.drivers()) == 2 and len(project.live_pids()) == 2
        project.add_files(1)
        dev.until("results of the new code", lambda: project.last_rows == project.expected_rows)
        assert project.calls[-1]["tag"] == "one!"
        assert dev.interrupt() == 0
    assert project.repeated_batches == []
    assert project.live_pids() == []


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_newer_edit_supersedes_and_what_the_spec_vouches_for_goes_on(project):
    project.add_files(4)
    with project.dev() as dev:
        dev.until("the first results", lambda: project.last_rows == project.expected_rows)
        job = project.home / "job.py"
        # The first candidate is still at its start when the next edit comes.
        job.write_text("import time; time.sleep(60)\n" + JOB)
        dev.until("a candidate", lambda: project.streamjob["status"].get("candidates") == 1)
        job.write_text(JOB.replace('F.sum("id").alias("total")', 'F.max("id").alias("total")'))
        is_refused(dev, project, "became max")
        assert project.streamjob["status"]["candidates"] == 2
        assert [entry["outcome"] for entry in project.streamjob["status"]["history"]] == ["Refused"]

        vouched = UPGRADE.replace("upgrade: {", "upgrade: {stateCompatible: true, ")
        project.manifest.write_text(MANIFEST + vouched)
        dev.until("run 2", lambda: project.streamjob["status"].get("lastStable", {}).get("run") == 2)
        assert condition(project, "Rehearsed")["status"] == "True"
        assert project.streamjob["status"]["plan"]["verdict"] == "new run"
        assert dev.interrupt() == 0
    assert project.repeated_batches == []
