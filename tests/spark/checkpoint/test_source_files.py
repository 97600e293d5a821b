"""The listing of a file source, by Hadoop in a JVM without Spark: on a directory and on S3."""

from __future__ import annotations

import time
from typing import Any

import pytest

from headrace_jobs.harness.file_lag import FileLag, jvm_files
from headrace_jobs.harness.offsets import LookFailed
from tests.spark.checkpoint.jvmfiles import JvmFiles
from tests.spark.checkpoint.places import Place, s3_place
from tests.spark.s3server import S3Server

HERE = ("in/a b.json", "in/day=1/c.json", "in/_hidden.json", "in/.d.json", "in/_tmp/e.json", "out/f.json")


@pytest.fixture
def files(every_place: Place, request: pytest.FixtureRequest) -> JvmFiles:
    gateway: Any = request.getfixturevalue("s3_gateway" if every_place.uri.startswith("s3a:") else "gateway")
    for name in HERE:
        every_place.store.put(name, b"{}")
    return JvmFiles(gateway, every_place)


def listed(files: JvmFiles, where: str) -> dict[str, float]:
    return dict(jvm_files(files.jvm, files.configuration)(f"{files.place.uri}/{where}"))


def test_data_files_are_listed_as_spark_writes_them_in_its_log(files: JvmFiles) -> None:
    found = listed(files, "in")
    assert {url.partition("/in/")[2] for url in found} == {"a%20b.json", "day=1/c.json"}
    assert all(url.startswith(files.place.uri) for url in found)
    assert all(abs(time.time() - changed) < 300 for changed in found.values())


@pytest.mark.parametrize(
    ("where", "names"), [("in/*.json", 1), ("{in,out}", 3), ("nowhere", 0), ("nowhere/*", 0)]
)
def test_patterns_are_those_of_spark(files: JvmFiles, where: str, names: int) -> None:
    assert len(listed(files, where)) == names


def test_a_place_that_hadoop_does_not_know_says_so(files: JvmFiles) -> None:
    with pytest.raises(LookFailed, match="UnsupportedFileSystemException"):
        jvm_files(files.jvm, files.configuration)("nosuch://bucket/in")


@pytest.mark.full
def test_what_was_read_of_a_bucket_does_not_wait(s3_server: S3Server, s3_gateway: Any) -> None:
    place = s3_place(s3_server.new_bucket(), s3_server.options())
    files = JvmFiles(s3_gateway, place)
    for name in HERE:
        place.store.put(name, b"{}")
    first, _ = sorted(listed(files, "in"))
    log = f'v1\n{{"path":"{first}","timestamp":1,"batchId":0}}'
    place.store.put("run-1/queries/q/sources/0/0", log.encode())
    lag = FileLag(lambda: place.store, "run-1", jvm_files(files.jvm, files.configuration))
    assert lag.look("q", 0, f"{place.uri}/in").behind == 1
