"""Upgrades with real Spark and `headrace dev`: good ones are promoted, bad ones go back, output exact."""

import pytest

from tests.spark.dev.project import JOB, MANIFEST, Dev, Project

UPGRADE = "  upgrade: {strategy: Cold, verifyWindow: 3s, startTimeout: 60s}\n"
# Fails in the third batch that it makes, before it has written anything of it.
FAILS_LATER = JOB.replace(
    "    rows = [", "    made.append(batch)\n    assert len(made) < 3, 'the third is too many'\n    rows = ["
).replace("def write(", "made = []\n\n\ndef write(")
FAILS_AT_START = "import no_such_module\n" + JOB
# The types of the state are others: Spark refuses it in the first batch.
OTHER_STATE = JOB.replace(
    'F.sum("id").alias("total")', 'F.avg("id").alias("mean"), F.sum("id").alias("total")'
)


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.manifest.write_text(MANIFEST + UPGRADE)
    return project


def status(project: Project) -> dict:
    return project.streamjob["status"]


def condition(project: Project, kind: str) -> dict:
    return next((one for one in status(project)["conditions"] if one["type"] == kind), {})


def save(project: Project, code: str) -> None:
    (project.home / "job.py").write_text(code)


def is_stable(dev: Dev, project: Project, run: int) -> None:
    dev.until(f"run {run} to be stable", lambda: status(project).get("lastStable", {}).get("run") == run)


def works(dev: Dev, project: Project, files: int) -> None:
    project.add_files(files)
    dev.until("the results", lambda: project.last_rows == project.expected_rows)


@pytest.mark.timeout(1200)
def test_good_ones_are_promoted_and_bad_ones_go_back(project):
    """One story, since Spark starts slowly: a good edit, one that fails at its start, one that fails after
    two batches, one whose state does not fit, and at last a good one again."""
    project.add_files(2)
    with project.dev() as dev:
        dev.until("the first results", lambda: project.last_rows == project.expected_rows)
        is_stable(dev, project, 1)

        save(project, JOB.replace('"tag": tag', '"tag": tag + "!"'))
        is_stable(dev, project, 2)
        works(dev, project, 1)
        assert project.calls[-1]["tag"] == "one!"
        assert [entry["outcome"] for entry in status(project)["history"]] == ["Replaced"]

        save(project, FAILS_AT_START)
        dev.until("a rollback", lambda: condition(project, "RolledBack").get("status") == "True")
        is_stable(dev, project, 4)
        works(dev, project, 2)
        assert project.calls[-1]["tag"] == "one!"
        assert "no_such_module" in condition(project, "RolledBack")["message"]
        assert "the last of run 2" in condition(project, "RolledBack")["message"]  # the handover point
        assert condition(project, "Stalled")["reason"] == "RolledBack"

        # The next edit goes on by itself. It makes two batches of the four files, and fails in the third.
        # On a busy machine the third batch may take its time to come.
        project.manifest.write_text(MANIFEST + UPGRADE.replace("verifyWindow: 3s", "verifyWindow: 80s"))
        save(project, FAILS_LATER)
        dev.until("run 5", lambda: status(project)["run"]["number"] == 5)
        assert condition(project, "RolledBack")["status"] == "False"
        project.add_files(4)
        dev.until("run 6", lambda: status(project)["run"]["number"] == 6)
        project.manifest.write_text(MANIFEST + UPGRADE)
        is_stable(dev, project, 6)
        dev.until("the results", lambda: project.last_rows == project.expected_rows)
        assert sum(call["tag"] == "one" for call in project.calls) >= 2
        assert "the last of run 5" in condition(project, "RolledBack")["message"]  # forward

        save(project, OTHER_STATE)
        dev.until("run 7", lambda: status(project)["run"]["number"] == 7)
        project.add_files(1)
        is_stable(dev, project, 8)
        works(dev, project, 1)
        assert condition(project, "RolledBack")["status"] == "True"
        assert (
            "STATE_STORE" in status(project)["rejected"]["message"]
            or "state" in condition(project, "RolledBack")["message"]
        )

        save(project, JOB.replace('"tag": tag', '"tag": tag + "?"'))
        is_stable(dev, project, 9)
        works(dev, project, 1)
        assert project.calls[-1]["tag"] == "one?"
        assert condition(project, "RolledBack")["status"] == "False"
        assert dev.interrupt() == 0
    assert project.repeated_batches == []
    outcomes = [(entry["run"], entry["outcome"]) for entry in status(project)["history"]]
    assert outcomes == [
        (8, "Replaced"),
        (7, "RolledBack"),
        (6, "Replaced"),
        (5, "RolledBack"),
        (4, "Replaced"),
        (3, "RolledBack"),
        (2, "Replaced"),
        (1, "Replaced"),
    ]


@pytest.mark.timeout(900)
def test_a_rollback_by_hand_and_one_without_state(project):
    project.add_files(2)
    with project.dev() as dev:
        dev.until("the first results", lambda: project.last_rows == project.expected_rows)
        save(project, JOB.replace('"tag": tag', '"tag": tag + "!"'))
        is_stable(dev, project, 2)
        manifest = project.manifest.read_text()
        asked = '{name: counts, annotations: {headrace.dev/rollback: "2"}}'
        project.manifest.write_text(manifest.replace("{name: counts}", asked))
        is_stable(dev, project, 3)
        works(dev, project, 1)
        assert project.calls[-1]["tag"] == "one"
        assert condition(project, "RolledBack")["reason"] == "Requested"
        assert project.repeated_batches == []

        # On purpose, and only then: everything is read again, from nothing.
        project.manifest.write_text(
            manifest.replace("strategy: Cold", "strategy: Stateless").replace("--tag, one", "--tag, anew")
        )
        dev.says("WITHOUT the state")
        dev.until(
            "all of it again", lambda: project.calls[-1]["tag"] == "anew!" and project.calls[-1]["batch"] == 2
        )
        assert status(project)["run"]["seededFrom"] == "none"
        dev.until("the results", lambda: project.last_rows == project.expected_rows)
