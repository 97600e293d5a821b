"""Keys to S3 from a file: taken up when they change, and named without their content when they are wrong.

That nobody else can read them is in tests/spark/harness/test_keys.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from headrace_jobs.store import open_store
from tests.spark.checkpoint.jvmfiles import JvmFiles
from tests.spark.checkpoint.places import s3_place
from tests.spark.s3server import S3Server, add_user

pytestmark = pytest.mark.full


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
