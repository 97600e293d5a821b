"""The store on real S3 servers: the contract, faults, and each way to be told no."""

from __future__ import annotations

import datetime
import logging
import os
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from headrace_jobs.store import Copy, Store, open_store, s3
from headrace_jobs.store.errors import (
    BadCredentialsError,
    ClockSkewError,
    NoBucketError,
    NoConditionalPutError,
    NoRightsError,
    SourceChangedError,
    StoreError,
    TlsError,
    UnavailableError,
    WrongEndpointError,
    WrongRegionError,
)
from headrace_jobs.store.retry import RetryPolicy
from headrace_jobs.store.s3 import S3Store
from headrace_jobs.store.s3_options import S3Options
from tests.spark.checkpoint.faultproxy import Fault, FaultProxy, fault_proxy
from tests.spark.s3server import (
    ACCESS_KEY,
    ENVIRONMENT,
    SECRET_KEY,
    S3Server,
    add_user,
    by_operation,
    minio,
    versitygw,
)
from tests.unit.store.contract import PROMISES

pytestmark = pytest.mark.full

MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module", params=[versitygw, minio], ids=["versitygw", "minio"])
def start(request: pytest.FixtureRequest) -> Callable[..., AbstractContextManager[S3Server]]:
    return request.param


@pytest.fixture(scope="module")
def server(
    start: Callable[..., AbstractContextManager[S3Server]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[S3Server]:
    with start(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(autouse=True)
def _keys_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def store(server: S3Server) -> Store:
    return open_store(f"s3://{server.new_bucket()}/some/prefix", server.options())


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_contract(promise: Callable[[Store], None], store: Store) -> None:
    promise(store)


def test_listings_go_on_past_the_first_page(store: Store) -> None:
    store.put("source", b"x")
    (source,) = store.list()
    store.copy_many(Copy(source, f"many/{number:05}") for number in range(2100))
    assert [entry.key for entry in store.list("many/")] == [f"many/{number:05}" for number in range(2100)]
    assert len(store.children("many")) == 2100
    store.delete_many(entry.key for entry in list(store.list("many/")))
    assert list(store.list("many/")) == []


def test_large_objects_are_copied_in_parts_with_the_same_precondition(server: S3Server) -> None:
    bucket = server.new_bucket()
    store = S3Store(bucket, "", server.options(), single_copy_bytes=5 * MEBIBYTE)
    content = os.urandom(12 * MEBIBYTE)
    store.put("large", content)
    (source,) = store.list()
    store.copy(Copy(source, "copy"))
    assert store.get("copy") == content
    store.put("large", content + b"changed")
    with pytest.raises(SourceChangedError):
        store.copy(Copy(source, "second copy"))
    assert [entry.key for entry in store.list()] == ["copy", "large"]
    assert server.open_uploads(bucket) == []


def test_uploads_that_were_broken_off_are_found_and_aborted_and_those_of_others_are_not(
    server: S3Server,
) -> None:
    bucket, client = server.new_bucket(), server.client()
    store = open_store(f"s3://{bucket}/ns/job", server.options())
    assert store.open_uploads() == []
    keys = ("ns/job/_savepoints/s/data-1/large ü", "ns/job/uid/run-1/x", "ns/job-2/y")
    uploads = {key: client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"] for key in keys}
    for number, size in ((1, 5 * MEBIBYTE), (2, 100)):
        client.upload_part(
            Bucket=bucket, Key=keys[0], UploadId=uploads[keys[0]], PartNumber=number, Body=bytes(size)
        )
    found = {one.key: one for one in store.open_uploads()}
    assert {key: one.size for key, one in found.items()} == {
        "_savepoints/s/data-1/large ü": 5 * MEBIBYTE + 100,
        "uid/run-1/x": 0,
    }
    assert all(abs(one.last_sign - time.time()) < 60 for one in found.values())
    for one in found.values():
        store.abort_upload(one)
        store.abort_upload(one)  # somebody was faster
    assert store.open_uploads() == []
    assert [one["Key"] for one in server.open_uploads(bucket)] == ["ns/job-2/y"]


def test_a_tree_is_deleted_with_the_markers_of_its_directories(store: S3Store) -> None:
    for key in ("run-1/queries/q/offsets/", "run-1/queries/q/offsets/0", "run-10/x"):
        store.put(key, b"")
    assert [entry.key for entry in store.list()] == ["run-1/queries/q/offsets/0", "run-10/x"]
    store.delete_tree("run-1")
    assert [item["Key"] for page in store._pages("") for item in page["Contents"]] == ["some/prefix/run-10/x"]


def test_no_bucket(server: S3Server) -> None:
    with pytest.raises(NoBucketError, match="the bucket never-made does not exist"):
        open_store("s3://never-made/x", server.options()).probe()


def test_wrong_keys(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = server.new_bucket()
    for name, value in (("AWS_SECRET_ACCESS_KEY", "wrong"), ("AWS_ACCESS_KEY_ID", "nobody")):
        monkeypatch.setenv(name, value)
        with pytest.raises(BadCredentialsError, match="check the keys"):
            open_store(f"s3://{bucket}/x", server.options()).put("a", b"")


@pytest.mark.parametrize("wrong", ["secret", "bucket"])
def test_keys_are_part_of_no_error_and_of_no_log(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    secret = "a-secret-that-is-wrong" if wrong == "secret" else SECRET_KEY
    bucket = "never-made" if wrong == "bucket" else server.new_bucket()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StoreError) as raised:
        open_store(f"s3://{bucket}/x", server.options()).probe()
    assert "botocore" in {record.name.partition(".")[0] for record in caplog.records}
    assert secret not in caplog.text
    assert secret not in "".join(traceback.format_exception(raised.value)) + repr(raised.value)


def test_a_clock_that_is_wrong(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = server.new_bucket()
    now = datetime.datetime.now(datetime.UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda **_: now - datetime.timedelta(hours=2))
    with pytest.raises(ClockSkewError, match="set the clock"):
        open_store(f"s3://{bucket}/x", server.options()).put("a", b"")


@pytest.mark.parametrize("region", ["us-west-2", None])
def test_a_wrong_region_is_told_with_the_right_one(
    start: Callable[..., AbstractContextManager[S3Server]], tmp_path: Path, region: str | None
) -> None:
    """boto3 would put it right by itself and let the probe pass; the JVM would not, and its driver fails."""
    with start(tmp_path, region="eu-central-1") as server:
        bucket = server.new_bucket()
        open_store(f"s3://{bucket}/x", replace(server.options(), region="eu-central-1")).probe()
        elsewhere = open_store(f"s3://{bucket}/x", replace(server.options(), region=region))
        for attempt in (lambda: elsewhere.put("a", b""), elsewhere.probe):
            with pytest.raises(WrongRegionError, match=r"set checkpoint\.s3\.region to eu-central-1"):
                attempt()


def test_something_else_listens_at_the_endpoint(server: S3Server) -> None:
    quick = RetryPolicy(deadline_seconds=1)
    with pytest.raises(TlsError, match="is not trusted"):
        secure = replace(server.options(), endpoint=server.endpoint.replace("http:", "https:"))
        S3Store("b", "x", secure, policy=quick).put("a", b"")
    with pytest.raises(WrongEndpointError, match="its name is not known"):
        S3Store("b", "x", S3Options(endpoint="http://nowhere.invalid:1", path_style=True), policy=quick).put(
            "a", b""
        )
    with pytest.raises(UnavailableError, match="does not answer"):
        S3Store("b", "x", S3Options(endpoint="http://127.0.0.1:9", path_style=True), policy=quick).put(
            "a", b""
        )


# --- one server is enough for the rest ---------------------------------------------------------------------


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with fault_proxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def through_proxy(s3_server: S3Server, proxy: FaultProxy) -> S3Store:
    options = s3_server.options(endpoint=proxy.endpoint)
    return S3Store(s3_server.new_bucket(), "p", options, policy=RetryPolicy(deadline_seconds=20))


@pytest.mark.parametrize(
    "fault", [Fault.RESET, Fault.SERVER_ERROR, Fault.SLOW_DOWN, Fault.LOSE_ANSWER, Fault.AWAY]
)
def test_every_operation_survives_passing_faults(
    through_proxy: S3Store, proxy: FaultProxy, fault: Fault
) -> None:
    proxy.on("PUT .*/one", fault, times=2)
    assert through_proxy.put_if_absent("one", b"1")
    assert not through_proxy.put_if_absent("one", b"2")
    proxy.on("GET", fault, times=2)
    assert through_proxy.get("one") == b"1"
    proxy.on("GET .*list-type", fault, times=2)
    (entry,) = through_proxy.list()
    proxy.on("PUT .*/two", fault, times=2)
    through_proxy.copy(Copy(entry, "two"))
    proxy.on("POST", fault, times=2)
    through_proxy.delete_many(["one"])
    assert [entry.key for entry in through_proxy.list()] == ["two"]
    assert all(rule.hits == 2 for rule in proxy.rules)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same behaviour in less time: silence is given up on sooner."""
    monkeypatch.setattr(s3, "SILENCE_SECONDS", 1)


@pytest.mark.usefixtures("impatient")
def test_requests_that_stall_are_made_again(s3_server: S3Server, proxy: FaultProxy) -> None:
    options = s3_server.options(endpoint=proxy.endpoint)
    store = S3Store(s3_server.new_bucket(), "p", options, policy=RetryPolicy(deadline_seconds=60))
    proxy.on("PUT .*/one", Fault.STALL)
    assert store.put_if_absent("one", b"1")
    (entry,) = store.list()
    proxy.on("PUT .*/two", Fault.STALL, times=2)
    store.copy(Copy(entry, "two"))
    proxy.on("GET .*/two", Fault.STALL)
    assert store.get("two") == b"1"
    assert [rule.hits for rule in proxy.rules] == [1, 2, 1]


@pytest.mark.usefixtures("impatient")
def test_a_copy_that_stalls_for_good_ends_at_the_deadline(s3_server: S3Server, proxy: FaultProxy) -> None:
    options = s3_server.options(endpoint=proxy.endpoint)
    store = S3Store(s3_server.new_bucket(), "p", options, policy=RetryPolicy(deadline_seconds=3))
    store.put("one", b"1")
    (entry,) = store.list()
    stalled = proxy.on("PUT .*/two", Fault.STALL, times=10_000)
    with pytest.raises(UnavailableError, match="one does not answer"):
        store.copy(Copy(entry, "two"))
    assert stalled.hits > 1
    assert [entry.key for entry in store.list()] == ["one"]


def test_a_lasting_fault_ends_at_the_deadline(s3_server: S3Server, proxy: FaultProxy) -> None:
    options = s3_server.options(endpoint=proxy.endpoint)
    store = S3Store(s3_server.new_bucket(), "", options, policy=RetryPolicy(deadline_seconds=3))
    proxy.on("PUT .*/one", Fault.SLOW_DOWN, times=10_000)
    began = time.monotonic()
    with pytest.raises(UnavailableError, match="503 SlowDown"):
        store.put("one", b"")
    assert time.monotonic() - began < RetryPolicy().deadline_seconds / 2, "longer than it was told"


STALLING: dict[str, tuple[str, Callable[[S3Store], object]]] = {
    "put": ("PUT", lambda store: store.put("one", b"")),
    "create": ("PUT", lambda store: store.put_if_absent("two", b"")),
    "get": ("GET", lambda store: store.get("one")),
    "list": ("GET", lambda store: list(store.list())),
    "delete": ("POST", lambda store: store.delete_many(["one"])),
    "probe": ("PUT", lambda store: store.probe()),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("operation", STALLING)
def test_whatever_stalls_for_good_ends_at_the_deadline(
    s3_server: S3Server, proxy: FaultProxy, operation: str
) -> None:
    method, act = STALLING[operation]
    options = s3_server.options(endpoint=proxy.endpoint)
    store = S3Store(s3_server.new_bucket(), "p", options, policy=RetryPolicy(deadline_seconds=3))
    store.put("one", b"1")
    stalled = proxy.on(f"^{method} ", Fault.STALL, times=10_000)
    began = time.monotonic()
    with pytest.raises(UnavailableError, match=r"does not answer .*check the store and the network"):
        act(store)
    # The deadline, and the silence of the last try; the probe has two operations of its own.
    assert time.monotonic() - began < 2 * (3 + 1) + 5
    assert stalled.hits > 1, "it was never tried again"


def test_a_server_that_ignores_the_condition_is_found_by_the_probe(
    s3_server: S3Server, through_proxy: S3Store, proxy: FaultProxy
) -> None:
    through_proxy.probe()
    rule = proxy.on("^PUT .*/_probe/", Fault.IGNORE_CONDITION, times=10_000)
    with pytest.raises(NoConditionalPutError, match="does not heed If-None-Match on PUT"):
        through_proxy.probe()
    assert rule.hits > 1
    assert list(through_proxy.list()) == [], "the probe has left something behind"


def test_an_unrepeated_refusal_costs_no_second_request(s3_server: S3Server) -> None:
    store = open_store(f"s3://{s3_server.new_bucket()}/x", s3_server.options())
    store.put_if_absent("one", b"")
    begin = s3_server.log_position()
    assert not store.put_if_absent("one", b"")
    assert by_operation(s3_server.requests(begin, s3_server.log_position())) == {"PutObject": 1}


def test_a_user_without_rights_is_told_which_are_needed(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3_server.new_bucket()
    user = add_user(s3_server, "stranger")
    for name, value in user.items():
        monkeypatch.setenv(name, value)
    store = open_store(f"s3://{bucket}/x", s3_server.options())
    for attempt in (
        lambda: store.put("a", b""),
        lambda: store.get("a"),
        lambda: list(store.list()),
        store.probe,
    ):
        with pytest.raises(NoRightsError, match=r"s3:GetObject, s3:PutObject"):
            attempt()


def test_keys_are_rotated_without_a_restart(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    bucket = s3_server.new_bucket()
    keys = tmp_path / "credentials"
    profile = "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n"
    keys.write_text(profile.format(ACCESS_KEY, "the old secret"))
    store = open_store(f"s3://{bucket}/x", replace(s3_server.options(), credentials_file=keys))
    with pytest.raises(BadCredentialsError):
        store.put("a", b"")
    fresh = tmp_path / "fresh"
    fresh.write_text(profile.format(ACCESS_KEY, SECRET_KEY))
    fresh.replace(keys)
    store.put("a", b"rotated")
    assert store.get("a") == b"rotated"


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = directory / "server.crt", directory / "server.key"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=s3"]
    request += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(request, check=True, capture_output=True)
    with versitygw(directory / "server", certificate=(certificate, key)) as server:
        yield server


def test_a_private_authority_is_trusted_only_when_given(tls_server: S3Server) -> None:
    bucket = tls_server.new_bucket()
    store = open_store(f"s3://{bucket}/x", tls_server.options())
    store.probe()
    stranger = S3Store(bucket, "x", replace(tls_server.options(), ca_file=None))
    with pytest.raises(TlsError, match=r"give its authority in checkpoint\.s3\.ca"):
        stranger.put("a", b"")
    assert list(store.list()) == []
