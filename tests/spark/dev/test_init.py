"""A new project runs and passes its own test, as the getting-started page promises."""

import subprocess
import sys
from pathlib import Path

from tests.spark.dev.project import HEADRACE


def test_a_new_project_is_valid_and_passes_its_own_test(tmp_path):
    made = subprocess.run(
        [HEADRACE, "init", "page-views"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    project = tmp_path / "page-views"
    assert {path.name for path in project.iterdir()} == {
        "job.yaml", "job.py", "test_job.py", "Dockerfile", ".gitignore",
    }  # fmt: skip
    valid = subprocess.run(
        [HEADRACE, "validate", "-f", "job.yaml"], cwd=project, capture_output=True, text=True, check=False
    )
    assert "StreamJob page-views: valid" in valid.stdout
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=project, capture_output=True, text=True, check=False
    )
    assert "1 passed" in tested.stdout, tested.stdout + tested.stderr
    assert "/opt/app" in (project / "Dockerfile").read_text()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "job.py").write_text("mine")
    refused = subprocess.run(
        [HEADRACE, "init", "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    (tmp_path / "sub").mkdir()
    refused = subprocess.run(
        [HEADRACE, "init", ".", "--name", "fine"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "job.py exists" in refused.stderr
    assert (tmp_path / "job.py").read_text() == "mine"
    assert not Path(tmp_path / "job.yaml").exists()


def test_a_name_that_cannot_be_is_answered_with_one_that_can(tmp_path):
    refused = subprocess.run(
        [HEADRACE, "init", "My_Job"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "--name my-job" in refused.stderr
