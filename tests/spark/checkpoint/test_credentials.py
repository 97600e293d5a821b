"""Keys to S3 reach the driver and nothing that others can read: arguments, logs, errors, Spark's UI."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from headrace_jobs.store import open_store
from tests.spark.checkpoint.attempts import Trial, await_condition
from tests.spark.checkpoint.jobs import write_input
from tests.spark.checkpoint.jvmfiles import JvmFiles
from tests.spark.checkpoint.places import s3_place
from tests.spark.s3server import ENVIRONMENT, SECRET_KEY, S3Server, add_user

pytestmark = pytest.mark.full


def arguments_of(pids: list[int]) -> str:
    return "\n".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in pids)


def pages_of(ui: str) -> dict[str, str]:
    def page(path: str) -> str:
        with urllib.request.urlopen(f"{ui}{path}", timeout=30) as answer:
            return answer.read().decode()

    (application,) = json.loads(page("/api/v1/applications"))
    paths = (
        "/environment/",
        f"/api/v1/applications/{application['id']}/environment",
        "/StreamingQuery/",
        "/jobs/",
    )
    return {path: page(path) for path in paths}


def test_keys_are_seen_nowhere_while_a_job_runs(s3_server: S3Server, tmp_path: Path) -> None:
    place = s3_place(s3_server.new_bucket(), s3_server.options())
    rows = write_input(tmp_path / "input", files=3)
    trial = Trial(
        place, tmp_path, rows, settings={"conf": {"spark.ui.enabled": "true", "spark.ui.port": "0"}}
    )
    process = trial.start(continuous=True)
    try:
        await_condition(lambda: len(trial.calls()) >= 3 or process.poll() is not None, "all input is read")
        assert process.poll() is None, trial.log.read_text()[-3000:]
        ui = (trial.output / "ui-1").read_text()
        seen = {"arguments": arguments_of(trial.pids(1)), "log": trial.log.read_text(), **pages_of(ui)}
        assert any("spark.hadoop.fs.s3a.endpoint" in text for text in seen.values()), (
            "settings are shown there"
        )
        assert [where for where, text in seen.items() if SECRET_KEY in text] == []
        # The process itself does have it; otherwise this test would look for something that is nowhere.
        assert SECRET_KEY in Path(f"/proc/{trial.pids(1)[1]}/environ").read_text()
    finally:
        trial.kill(process)


def test_keys_are_not_part_of_errors(s3_server: S3Server, tmp_path: Path) -> None:
    wrong = "a-secret-that-is-wrong"
    place = s3_place(s3_server.new_bucket(), s3_server.options())
    place = replace(place, environment=ENVIRONMENT | {"AWS_SECRET_ACCESS_KEY": wrong})
    trial = Trial(place, tmp_path, write_input(tmp_path / "input", files=1))
    assert trial.run_to_end() != 0
    said = trial.log.read_text() + trial.error(1)
    assert "SignatureDoesNotMatch" in said or "AccessDenied" in said
    assert wrong not in said


def write_profile(path: Path, user: dict[str, str]) -> None:
    """Replaces the file at once, as Kubernetes does with a mounted Secret."""
    fresh = path.with_name("fresh")
    lines = [f"{name.lower()} = {value}\n" for name, value in user.items()]
    fresh.write_text("".join(["[default]\n", *lines]))
    fresh.replace(path)


def test_rotated_keys_are_taken_up_by_a_running_jvm(
    s3_server: S3Server, s3_gateway: Any, tmp_path: Path
) -> None:
    bucket = s3_server.new_bucket()
    before, after = (add_user(s3_server, name) for name in ("before", "after"))
    keys = tmp_path / "credentials"
    write_profile(keys, before)
    s3_server.allow(bucket, "before")
    files = JvmFiles(s3_gateway, s3_place(bucket, replace(s3_server.options(), credentials_file=keys)))
    files.create("run-1/a")
    write_profile(keys, after)
    s3_server.allow(bucket, "after")
    files.create("run-1/b")
    keys.unlink()
    files.create("run-1/c")
    write_profile(keys, before)
    with pytest.raises(Py4JJavaError, match="AccessDenied"):
        files.create("run-1/d")
    assert [entry.key for entry in open_store(f"s3://{bucket}", s3_server.options()).list()] == [
        f"ns/job/uid/run-1/{name}" for name in "abc"
    ]


@pytest.mark.parametrize(
    "content", [None, "[default]\naws_secret_access_key = hunter2\n", "not a profile hunter2"]
)
def test_a_bad_credentials_file_is_named_without_its_content(
    s3_server: S3Server, s3_gateway: Any, tmp_path: Path, content: str | None
) -> None:
    keys = tmp_path / "credentials"
    if content is not None:
        keys.write_text(content)
    place = s3_place(s3_server.new_bucket(), replace(s3_server.options(), credentials_file=keys))
    with pytest.raises(Py4JJavaError, match=f"the credentials file {keys}") as raised:
        JvmFiles(s3_gateway, place).create("run-1/a")
    assert "hunter2" not in str(raised.value)
