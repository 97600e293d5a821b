"""Keys to S3 as a Secret is mounted: a file for each, all swapped at once. Rotated, they need no restart."""

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
from tests.unit.store.test_s3_options import MountedSecret

pytestmark = pytest.mark.full


def as_files(user: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix("AWS_").lower(): value for name, value in user.items()}


def test_a_rotated_secret_is_taken_up_by_a_running_jvm_and_by_the_store(
    s3_server: S3Server, s3_gateway: Any, tmp_path: Path
) -> None:
    bucket = s3_server.new_bucket()
    before, after = (add_user(s3_server, name) for name in ("mounted-before", "mounted-after"))
    secret = MountedSecret(tmp_path / "keys")
    secret.hold(**as_files(before))
    s3_server.allow(bucket, "mounted-before")
    options = replace(s3_server.options(), credentials_file=secret.directory)
    files = JvmFiles(s3_gateway, s3_place(bucket, options))
    store = open_store(f"s3://{bucket}/ns/job/uid", options)
    files.create("run-1/a")
    store.put("run-1/b", b"")
    secret.hold(**as_files(after))
    s3_server.allow(bucket, "mounted-after")
    files.create("run-1/c")
    store.put("run-1/d", b"")
    secret.hold(**as_files(before))
    with pytest.raises(Py4JJavaError, match="AccessDenied"):
        files.create("run-1/e")
    found = open_store(f"s3://{bucket}", s3_server.options()).list()
    assert [entry.key for entry in found] == [f"ns/job/uid/run-1/{name}" for name in "abcd"]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "access_key_id is missing"),
        ({"access_key_id": "hunter2"}, "secret_access_key is missing"),
        ({"access_key_id": "hunter2", "secret_access_key": "\n"}, "secret_access_key is empty"),
    ],
)
def test_a_key_that_is_not_in_the_secret_is_named(
    s3_server: S3Server, s3_gateway: Any, tmp_path: Path, files: dict[str, str], says: str
) -> None:
    secret = MountedSecret(tmp_path / "keys")
    secret.hold(**files)
    options = replace(s3_server.options(), credentials_file=secret.directory)
    with pytest.raises(Py4JJavaError, match=says) as raised:
        JvmFiles(s3_gateway, s3_place(s3_server.new_bucket(), options)).create("run-1/a")
    assert "hunter2" not in str(raised.value)
