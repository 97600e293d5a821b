"""The keeper's work on a real S3 server, with TLS by a private authority, and what Java makes of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from headrace_jobs.jvm import jar_path
from headrace_jobs.jvm.build import spark_jars
from headrace_jobs.jvm.gateway import small_jvm
from headrace_jobs.jvm.jars import connector_jars
from headrace_jobs.keeper.main import main
from headrace_jobs.store import Store, open_store
from headrace_jobs.store.s3_options import spark_conf
from tests.spark.s3server import ENVIRONMENT, S3Server, versitygw

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = directory / "server.crt", directory / "server.key"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=s3"]
    request += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(request, check=True, capture_output=True)
    with versitygw(directory / "server", certificate=(certificate, key)) as server:
        yield server


@pytest.fixture(autouse=True)
def _keys_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def keeper(server: S3Server, tmp_path: Path, task: str, *flags: str) -> tuple[int, dict[str, Any]]:
    result = tmp_path / "result.json"
    how = [f"--s3-endpoint={server.endpoint}", "--s3-path-style", f"--s3-ca={server.ca_file}"]
    code = main([task, f"--result={result}", *how, *flags])
    return code, json.loads(result.read_text())


def place(server: S3Server) -> tuple[str, Store]:
    url = f"s3://{server.new_bucket()}/checkpoints/shop/clicks"
    return url, open_store(url, server.options())


def test_the_runs_of_a_deleted_job_go_and_its_savepoints_stay(server: S3Server, tmp_path: Path) -> None:
    url, store = place(server)
    for key in (
        "own/run-1/queries/q/offsets/0",
        "own/run-2/_attempts/1",
        "own/savepoints/s/a",
        "old/run-1/a",
    ):
        store.put(key, b"x")
    assert keeper(server, tmp_path, "delete", f"--store={url}", "--lineage=own")[0] == 0
    assert [entry.key for entry in store.list()] == ["old/run-1/a", "own/savepoints/s/a"]


def test_code_of_another_bucket_is_pinned_for_the_run(server: S3Server, tmp_path: Path) -> None:
    url, _ = place(server)
    bucket = server.new_bucket()
    sources = open_store(f"s3://{bucket}", server.options())
    sources.put("jobs/job.py", b"print(1)")
    source = ["--source", "spec.application.file", "file/job.py", f"s3://{bucket}/jobs/job.py"]
    where = [f"--store={url}", "--lineage=own", "--run=1", f"--to={tmp_path / 'pod'}"]
    for _ in range(2):
        assert keeper(server, tmp_path, "fetch", *where, *source)[0] == 0
        assert (tmp_path / "pod/file/job.py").read_bytes() == b"print(1)"
        sources.put("jobs/job.py", b"print(2)")
        (tmp_path / "pod/file/job.py").unlink()
    missing = [*source[:3], f"s3://{bucket}/jobs/none.py"]
    code, result = keeper(
        server, tmp_path, "fetch", f"--store={url}", "--lineage=own", "--run=2", where[3], *missing
    )
    assert (code, result["reason"], result["errorClass"]) == (69, "StoreUnavailable", "NotFound")
    assert result["message"].startswith(f"spec.application.file: s3://{bucket}/jobs/none.py does not exist")
    nowhere = [*source[:3], f"s3://{bucket}-none/job.py"]
    code, result = keeper(
        server, tmp_path, "fetch", f"--store={url}", "--lineage=own", "--run=3", where[3], *nowhere
    )
    assert (code, result["errorClass"]) == (69, "NoBucket")
    assert result["message"].startswith(
        f"spec.application.file: there is no bucket for s3://{bucket}-none/job.py"
    )


def test_java_trusts_the_private_authority_by_the_store_that_the_keeper_makes(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust = tmp_path / "authorities.jks"
    assert keeper(server, tmp_path, "trust", f"--to={trust}") == (
        0,
        {"reason": "Completed", "message": "", "authorities": 1},
    )
    bucket = server.new_bucket()
    assert "PKIX path building failed" in _list_by_java(server, bucket)
    options = f"-Djavax.net.ssl.trustStore={trust} -Djavax.net.ssl.trustStoreType=JKS"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    assert _list_by_java(server, bucket) == "listed"


def _list_by_java(server: S3Server, bucket: str) -> str:
    """What came of it, in the words of a JVM that is gone by then."""
    with small_jvm(spark_jars(), [jar_path(), *connector_jars("s3a")]) as gateway:
        conf = gateway.jvm.org.apache.hadoop.conf.Configuration()
        for key, value in spark_conf(server.options()).items():
            conf.set(key.removeprefix("spark.hadoop."), value)
        conf.set("fs.s3a.retry.limit", "0")
        conf.set("fs.s3a.attempts.maximum", "1")
        root = gateway.jvm.org.apache.hadoop.fs.Path(f"s3a://{bucket}/")
        try:
            root.getFileSystem(conf).listStatus(root)
        except Py4JJavaError as error:
            return str(error)
        return "listed"
