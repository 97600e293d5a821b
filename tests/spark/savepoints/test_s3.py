"""Savepoints on a real S3 server, without Spark: the same promises, and what only a network does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace_jobs.store import Store, last_batches, open_store, s3
from headrace_jobs.store.errors import LineageError, NoRightsError, UnavailableError
from headrace_jobs.store.interface import PIECE_BYTES
from headrace_jobs.store.retry import RetryPolicy
from headrace_jobs.store.s3 import S3Store
from headrace_jobs.store.savepoints import (
    collect,
    delete_savepoint,
    find_manifest,
    find_savepoints,
    restore_savepoint,
    verify_savepoint,
)
from tests.spark.checkpoint.faultproxy import Fault, fault_proxy
from tests.spark.s3server import S3Server, by_operation
from tests.unit.store.savepoints.checkpoints import HERE, FakeQuery, take

pytestmark = pytest.mark.full

SHORT = RetryPolicy(deadline_seconds=3)


@pytest.fixture
def store(s3_server: S3Server) -> Store:
    return open_store(f"s3://{s3_server.new_bucket()}/checkpoints", s3_server.options())


def a_query(store: Store, run: str = "shop/clicks/uid/run-1") -> FakeQuery:
    query = FakeQuery(store=store, run=run).batches(5)
    query.snapshot(3)
    query.transform_with_state()
    query.begin()
    query.write_state()
    return query


def test_the_whole_life_of_a_savepoint(store: Store) -> None:
    query = a_query(store)
    here = "shop/clicks/_savepoints/s1"
    manifest = take(store, here, run=query.run)
    assert verify_savepoint(store, here, level="State").problems == ()
    assert [found.path for found in find_savepoints(store)] == [here]

    restore_savepoint(store, savepoint=here, run="shop/clicks/uid/run-2", lineage="keep")
    assert last_batches(store, "shop/clicks/uid/run-2") == {"orders": (5, 4)}
    moved = store.get("shop/clicks/uid/run-2/queries/orders/state/0/_metadata/v2/0").decode()
    assert "/checkpoints/shop/clicks/uid/run-2/queries/orders/state/0/_stateSchema/" in moved
    query.commit()
    query.batches(1)
    with pytest.raises(LineageError, match="batch 6"):
        restore_savepoint(store, savepoint=here, run="shop/clicks/uid/run-3", lineage="keep")

    store.put(f"{here}/{manifest.data}/queries/orders/commits/4", b"v2\n{}")
    assert "commits/4" in verify_savepoint(store, here, level="Objects").message
    delete_savepoint(store, here, why="test")
    assert store.children("shop/clicks/_savepoints") == []
    assert list(store.list("shop/clicks/_savepoints/")) == []


def test_at_the_root_of_a_bucket(s3_server: S3Server) -> None:
    """Where the keys have no prefix at all."""
    store = open_store(f"s3://{s3_server.new_bucket()}", s3_server.options())
    a_query(store, "run-1").commit()
    take(store)
    assert [found.path for found in find_savepoints(store)] == [HERE]
    FakeQuery(store=store, run="run-2").batches(9)
    with pytest.raises(LineageError, match="run-2"):
        restore_savepoint(store, savepoint=HERE, run=3, lineage="keep")


def test_contents_stay_on_the_server_and_requests_are_few(s3_server: S3Server, store: Store) -> None:
    a_query(store, "run-1")
    begin = s3_server.log_position()
    manifest = take(store)
    asked = by_operation(s3_server.requests(begin, s3_server.log_position()))
    rewritten = 1
    assert asked["CopyObject"] == len(manifest.objects) - rewritten
    assert asked["GetObject"] <= 15  # logs, snapshots and the manifest: never a state file


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.SERVER_ERROR, Fault.SLOW_DOWN, Fault.LOSE_ANSWER])
@pytest.mark.parametrize("request_line", ["PUT .*changelog", "PUT .*manifest.json", "PUT .*_claims", "GET "])
def test_passing_faults_pass(s3_server: S3Server, store: Store, fault: Fault, request_line: str) -> None:
    a_query(store, "run-1")
    with fault_proxy(s3_server.endpoint) as proxy:
        behind = open_store(store.url, s3_server.options(endpoint=proxy.endpoint))
        rule = proxy.on(request_line, fault)
        take(behind)
        assert rule.hits == 1
    assert verify_savepoint(store, HERE, level="State").problems == ()


def test_copies_that_stall_are_begun_again(
    s3_server: S3Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "SILENCE_SECONDS", 1)
    a_query(store, "run-1")
    with fault_proxy(s3_server.endpoint) as proxy:
        behind = open_store(store.url, s3_server.options(endpoint=proxy.endpoint))
        stalled = proxy.on("PUT .*changelog", Fault.STALL, times=3)
        take(behind)
        assert stalled.hits == 3
    assert verify_savepoint(store, HERE, level="State").problems == ()


def test_a_server_that_stalls_for_good_ends_it_and_leaves_nothing_that_looks_whole(
    s3_server: S3Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "SILENCE_SECONDS", 1)
    a_query(store, "run-1")
    bucket = store.url.split("/")[2]
    with fault_proxy(s3_server.endpoint) as proxy:
        behind = S3Store(bucket, "checkpoints", s3_server.options(endpoint=proxy.endpoint), policy=SHORT)
        proxy.on("PUT .*changelog", Fault.STALL, times=1000)
        with pytest.raises(UnavailableError, match="does not answer"):
            take(behind)
    assert find_manifest(store, HERE) is None
    assert [name for name in store.children(HERE) if name.startswith("data-")] == []


def test_from_another_bucket_large_files_come_in_parts(s3_server: S3Server, store: Store) -> None:
    query = FakeQuery(store=store).batches(2)
    query.snapshot(2, content=bytes(range(256)) * (2 * PIECE_BYTES // 256) + b"the rest")
    take(store)
    bucket = s3_server.new_bucket()
    other = open_store(f"s3://{bucket}/x", s3_server.options())
    begin = s3_server.log_position()
    restore_savepoint(store, savepoint=HERE, run="run-1", lineage="new", into=other)
    asked = by_operation(s3_server.requests(begin, s3_server.log_position()))
    assert asked["UploadPart"] == 2 * 3, "two files of three pieces"
    sst = next(entry for entry in other.list() if entry.key.endswith(".sst"))
    assert other.get(sst.key).endswith(b"the rest")
    assert last_batches(other, 1) == {"orders": (1, 1)}
    assert s3_server.open_uploads(bucket) == []


def test_a_server_that_dies_before_the_last_step_leaves_no_savepoint(
    s3_server: S3Server, store: Store
) -> None:
    """Everything is copied, and then nothing works any more, not even cleaning up."""
    a_query(store, "run-1")
    bucket = store.url.split("/")[2]
    with fault_proxy(s3_server.endpoint) as proxy:
        behind = S3Store(bucket, "checkpoints", s3_server.options(endpoint=proxy.endpoint), policy=SHORT)
        proxy.on("PUT .*manifest.json", Fault.RESET, times=1000)
        proxy.on("(DELETE|POST) ", Fault.RESET, times=1000)
        with pytest.raises(UnavailableError):
            take(behind)
    assert find_manifest(store, HERE) is None
    assert [name for name in store.children(HERE) if name.startswith("data-")], "the test shows nothing"
    assert take(store).queries[0].batch == 4
    assert verify_savepoint(store, HERE, level="State").problems == ()
    assert len([name for name in store.children(HERE) if name.startswith("data-")]) == 1


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault.FORBIDDEN, NoRightsError), (Fault.SERVER_ERROR, UnavailableError)]
)
def test_lasting_faults_end_it_and_leave_nothing_that_looks_whole(
    s3_server: S3Server, store: Store, fault: Fault, error: type[Exception]
) -> None:
    a_query(store, "run-1")
    bucket = store.url.split("/")[2]
    with fault_proxy(s3_server.endpoint) as proxy:
        options = s3_server.options(endpoint=proxy.endpoint)
        behind = S3Store(bucket, "checkpoints", options, policy=SHORT)
        proxy.on("PUT .*changelog", fault, times=1000)
        with pytest.raises(error):
            take(behind)
    assert find_manifest(store, HERE) is None
    assert [name for name in store.children(HERE) if name.startswith("data-")] == []
    long_after = datetime.now(UTC) + timedelta(days=3)
    for _ in range(2):
        collect(store, older_than=timedelta(days=1), now=long_after)
    assert list(store.list("_savepoints/")) == []
    assert s3_server.open_uploads(bucket) == []
