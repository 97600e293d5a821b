"""`headrace plan`: the job of `headrace dev`, from its state directory."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.api import Attempt, Run, StableRun, StreamJob, StreamJobStatus
from headrace.cli.main import main
from headrace.core.model import Code
from headrace.local.code import observe
from headrace.local.layout import Layout, write_json
from tests.unit.cli.fakes import a_manifest, in_yaml

JOB = {"application": {"file": "job.py"}, "image": "acme/clicks:1"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "job.py").write_text("print(1)\n")
    (tmp_path / "job.yaml").write_text(in_yaml(a_manifest(**JOB)))
    return tmp_path


def ran(project: Path) -> None:
    """As `headrace dev` leaves it: run 1 pinned, and the object it would keep in etcd."""
    spec = StreamJob.parse(a_manifest(**JOB)).spec
    code = observe(spec.application, project)
    assert isinstance(code, Code)
    layout = Layout(project / ".headrace/clicks")
    kept = spec.model_dump(mode="json", exclude_unset=True)
    write_json(layout.pin(1), {"revision": "abc", "code": code.digest, "spec": kept})
    run = Run(number=1, revision="abc", attempt=Attempt(number=1, epoch=1, state="Started"))
    status = StreamJobStatus(state="Running", run=run, last_stable=StableRun(run=1, revision="abc"))
    write_json(layout.streamjob, {"spec": kept, "status": status.to_manifest()})


def plan(project: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["plan", str(project / "job.yaml"), *more], catch_exceptions=False)


def test_a_job_that_has_never_run(project: Path):
    result = plan(project)
    assert result.exit_code == 10 and "a new job" in result.output


def test_nothing_live_new_run_refused(project: Path):
    ran(project)
    assert plan(project).exit_code == 0
    edits = [
        ({"drainTimeout": "1m"}, 0),
        ({"image": "acme/clicks:2"}, 10),
        ({"state": {"partitions": 7}}, 10),
        ({"checkpoint": {"s3": {"endpoint": "https://s3.example.com"}}}, 20),
    ]
    for edit, code in edits:
        (project / "job.yaml").write_text(in_yaml(a_manifest(**{**JOB, **edit})))
        assert plan(project).exit_code == code, edit


def test_new_code_is_a_new_run_and_broken_code_is_refused(project: Path):
    ran(project)
    (project / "job.py").write_text("print(2)\n")
    told = json.loads(plan(project, "-o", "json").output)
    assert told["codeChanged"] and told["verdict"] == "NewRun"
    assert "savepoint" not in [step["name"] for step in told["steps"]]
    (project / "job.py").write_text("print(\n")
    broken = plan(project)
    assert broken.exit_code == 20 and "job.py:1" in broken.output


def test_another_state_directory(project: Path):
    ran(project)
    assert "a new job" in plan(project, "--state-dir", str(project / "elsewhere")).output


def test_a_bad_manifest_shows_its_line(project: Path):
    (project / "job.yaml").write_text(in_yaml(a_manifest(**JOB)).replace('"image"', '"imgae"'))
    result = plan(project)
    assert result.exit_code == 20 and "there is no such field" in result.output
