"""Checkpoints on S3 through what networks and servers do: a write is there, or it fails the batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.spark.checkpoint.faultproxy import Fault, FaultProxy, fault_proxy
from tests.spark.checkpoint.jvmfiles import ALREADY_EXISTS, FENCED, JvmFiles, classes_in, refused
from tests.spark.checkpoint.places import place_behind
from tests.spark.s3server import S3Server

pytestmark = pytest.mark.full

ENTRY = "run-1/queries/q/offsets/0"
PUT_ENTRY = r"^PUT .*/offsets/0"
MEBIBYTE = 1024 * 1024
# The same behaviour in less time: a silent server is given up on as soon as S3A lets us say, which is after
# 15 s, and three times; parts are as small as S3 allows.
IN_LESS_TIME = (
    ("fs.s3a.connection.timeout", "15s"),
    ("fs.s3a.connection.request.timeout", "15s"),
    ("fs.s3a.retry.limit", "2"),
    ("fs.s3a.retry.interval", "50ms"),
    ("fs.s3a.retry.throttle.interval", "10ms"),
    ("fs.s3a.multipart.size", "5M"),
    ("fs.s3a.multipart.threshold", "5M"),
)


@pytest.fixture
def proxy(each_server: S3Server) -> Iterator[FaultProxy]:
    with fault_proxy(each_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def files(proxy: FaultProxy, each_server: S3Server, s3_gateway: Any) -> JvmFiles:
    return JvmFiles(s3_gateway, place_behind(proxy, each_server), run="run-1", attempt=1, extra=IN_LESS_TIME)


@pytest.fixture
def driver(files: JvmFiles) -> JvmFiles:
    files.claim(1)
    return files


def test_a_lost_answer_is_no_rival(driver: JvmFiles, proxy: FaultProxy) -> None:
    rule = proxy.on(PUT_ENTRY, Fault.LOSE_ANSWER)
    driver.create(ENTRY, b"ours")
    assert rule.hits == 1
    assert driver.place.store.get(ENTRY) == b"ours"


def test_a_conflict_with_our_own_write_that_is_still_under_way_is_no_rival(
    driver: JvmFiles, proxy: FaultProxy
) -> None:
    rule = proxy.on(PUT_ENTRY, Fault.CONFLICT)
    driver.create(ENTRY, b"ours")
    assert rule.hits == 1
    assert driver.place.store.get(ENTRY) == b"ours"


def test_a_rival_is_one_also_when_an_answer_was_lost(driver: JvmFiles, proxy: FaultProxy) -> None:
    stream = driver.begin(ENTRY, b"ours")
    driver.place.store.put(ENTRY, b"theirs")
    proxy.on(PUT_ENTRY, Fault.LOSE_ANSWER)
    with refused(ALREADY_EXISTS):
        stream.close()
    stream.cancel()
    assert driver.place.store.get(ENTRY) == b"theirs"


def test_a_write_that_took_long_is_followed_by_another_look_for_a_successor(
    driver: JvmFiles, proxy: FaultProxy
) -> None:
    rule = proxy.on(PUT_ENTRY, Fault.STALL)
    stream = driver.begin(ENTRY, b"late")

    def claimed_meanwhile() -> None:
        while rule.hits == 0:  # it has looked, and its write is under way
            time.sleep(0.01)
        driver.place.store.put("run-1/_attempts/2", b"{}")

    with ThreadPoolExecutor(1) as pool:
        claiming = pool.submit(claimed_meanwhile)
        with refused(FENCED):
            stream.close()
        claiming.result()
    stream.cancel()
    assert driver.place.store.get(ENTRY) == b"late", "cancelled is what was not written"


def test_the_same_driver_is_its_own_rival_when_it_writes_an_entry_twice(driver: JvmFiles) -> None:
    driver.create(ENTRY, b"once")
    with refused(ALREADY_EXISTS):
        driver.create(ENTRY, b"once")


def test_a_lost_answer_to_a_claim_is_no_rival_either(files: JvmFiles, proxy: FaultProxy) -> None:
    proxy.on(r"^PUT .*/_attempts/1", Fault.LOSE_ANSWER)
    files.claim(1)
    with refused(FENCED):
        files.claim(1)


@pytest.mark.parametrize(
    "fault", [Fault.RESET, Fault.SERVER_ERROR, Fault.SLOW_DOWN, Fault.STALL, Fault.LOSE_ANSWER, Fault.AWAY]
)
@pytest.mark.parametrize(
    "request_kind", [PUT_ENTRY, r"^GET .*_attempts"], ids=["the write", "the look at the claims"]
)
def test_a_passing_fault_is_passed(
    driver: JvmFiles, proxy: FaultProxy, fault: Fault, request_kind: str
) -> None:
    rule = proxy.on(request_kind, fault, times=2)
    driver.create(ENTRY, b"in the end")
    assert rule.hits == 2
    assert driver.place.store.get(ENTRY) == b"in the end"


@pytest.mark.parametrize(
    "fault", [Fault.FORBIDDEN, Fault.RESET, Fault.SERVER_ERROR, Fault.SLOW_DOWN, Fault.STALL, Fault.AWAY]
)
def test_a_lasting_fault_fails_the_write_and_leaves_nothing(
    driver: JvmFiles, proxy: FaultProxy, fault: Fault
) -> None:
    proxy.on(PUT_ENTRY, fault, times=10_000)
    began = time.monotonic()
    with pytest.raises(Py4JJavaError) as raised:
        driver.create(ENTRY)
    assert time.monotonic() - began < 240, "S3A's own patience, which is hours"
    assert ALREADY_EXISTS not in classes_in(raised.value)
    assert driver.place.store.children("run-1/queries") == []


def test_a_driver_that_cannot_look_at_the_claims_does_not_write(driver: JvmFiles, proxy: FaultProxy) -> None:
    proxy.on(r"^GET .*_attempts", Fault.FORBIDDEN, times=10_000)
    with pytest.raises(Py4JJavaError):
        driver.create(ENTRY)
    assert driver.place.store.children("run-1/queries") == []


def test_a_large_cancelled_upload_is_aborted(driver: JvmFiles, each_server: S3Server) -> None:
    stream = driver.begin("run-1/queries/q/state/0/0/1.zip", b"", overwrite=True)
    chunk = bytes(MEBIBYTE)
    for _ in range(12):
        stream.write(chunk)
    bucket = driver.place.uri.split("/")[2]
    stream.cancel()
    assert driver.place.store.children("run-1/queries") == []
    assert each_server.open_uploads(bucket) == []


def test_a_large_file_in_parts_is_created_once_only(driver: JvmFiles, each_server: S3Server) -> None:
    chunk = bytes(MEBIBYTE) * 6
    driver.create("run-1/queries/q/metadata", chunk + b"first")
    with refused(ALREADY_EXISTS):
        driver.create("run-1/queries/q/metadata", chunk + b"other")
    assert driver.place.store.get("run-1/queries/q/metadata").endswith(b"first")
    assert each_server.open_uploads(driver.place.uri.split("/")[2]) == []
