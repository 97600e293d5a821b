"""What lies in a store, and what goes from it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace_jobs.store import Store
from headrace_jobs.store.errors import SavepointError
from headrace_jobs.store.savepoints import (
    collect,
    delete_savepoint,
    find_savepoints,
    list_savepoints,
    orphans,
    record,
    recorded,
    restore_savepoint,
    verify_savepoint,
)
from tests.unit.store.savepoints.checkpoints import HERE, NOW, FakeQuery, take

DAY = timedelta(days=1)


def in_days(days: int) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def test_savepoints_are_found_by_what_lies_there_alone(store: Store) -> None:
    """Another cluster, no objects left: a location, its namespaces and names."""
    for job in ("shop/clicks", "shop/views", "web/clicks"):
        FakeQuery(store=store, run=f"{job}/uid/run-1").batches(2)
        for name in ("monday", "tuesday"):
            take(store, f"{job}/_savepoints/{name}", run=f"{job}/uid/run-1", about={"job": job})
    store.delete_many(entry.key for entry in list(store.list()) if "/uid/" in entry.key)
    found = list(find_savepoints(store))
    assert [one.path for one in found] == [
        f"{job}/_savepoints/{name}"
        for job in ("shop/clicks", "shop/views", "web/clicks")
        for name in ("monday", "tuesday")
    ]
    assert [one.path for one in find_savepoints(store, below="shop/views")] == [
        "shop/views/_savepoints/monday",
        "shop/views/_savepoints/tuesday",
    ]
    restore_savepoint(store, savepoint=found[0].path, run="shop/clicks/uid-2/run-1", lineage="keep")


def test_what_is_no_savepoint_is_listed_with_the_reason_and_never_collected_when_damaged(
    store: Store,
) -> None:
    FakeQuery(store=store).batches(2)
    take(store)
    take(store, "_savepoints/s2")
    store.put(f"{HERE}/manifest.json", b"{")
    store.put("_savepoints/s3/_claims/1", b'{"owner":"x"}')
    problems = {one.path: one.problem for one in list_savepoints(store)}
    assert "cut off or altered" in problems[HERE]
    assert problems["_savepoints/s2"] == ""
    assert problems["_savepoints/s3"] == "it was never finished"
    assert [one.path for one in orphans(store, older_than=DAY, now=in_days(2))] == ["_savepoints/s3"]


def test_a_copy_that_may_still_be_made_is_no_orphan(store: Store) -> None:
    store.put("_savepoints/s1/_claims/1", b"{}")
    assert orphans(store, older_than=DAY, now=datetime.now(UTC)) == []
    (orphan,) = orphans(store, older_than=DAY, now=in_days(2))
    assert (orphan.objects, orphan.size_bytes) == (1, 2)
    assert store.children("_savepoints/s1") == ["_claims/"], "a look removes nothing"


def test_the_age_of_a_copy_is_that_of_its_claim(store: Store, tmp_path: Path) -> None:
    """On a directory copies keep the times of their sources, which may be months old."""
    store.put("_savepoints/s1/_claims/1", b"{}")
    store.put("_savepoints/s1/data-1/queries/q/state/0/0/1.zip", b"old")
    os.utime(tmp_path / "store/_savepoints/s1/data-1/queries/q/state/0/0/1.zip", (1000, 1000))
    assert orphans(store, older_than=DAY, now=datetime.now(UTC)) == []


def test_what_a_slower_copier_left_is_collected_and_the_savepoint_stays(store: Store) -> None:
    FakeQuery(store=store).batches(2)
    take(store)
    store.put(f"{HERE}/_claims/2", b'{"owner":"uid-1"}')
    store.put(f"{HERE}/data-2/queries/orders/metadata", b"late")
    assert orphans(store, older_than=DAY, now=datetime.now(UTC)) == []
    (orphan,) = collect(store, older_than=DAY, now=in_days(2))
    assert (orphan.path, orphan.objects, orphan.size_bytes) == (f"{HERE}/data-2", 1, 4)
    assert verify_savepoint(store, HERE, level="State").problems == ()


def test_a_savepoint_with_a_second_copier_leaves_a_tombstone_for_a_while(store: Store) -> None:
    """The second may be asleep right before its last step: its manifest must find the name taken."""
    FakeQuery(store=store).batches(2)
    take(store)
    store.put(f"{HERE}/_claims/2", b'{"owner":"uid-1"}')
    delete_savepoint(store, HERE, why="test")
    assert store.children(HERE) == ["_claims/", "manifest.json"]
    assert list_savepoints(store) == []
    with pytest.raises(SavepointError, match="being removed: choose another name"):
        take(store)
    collect(store, older_than=DAY, now=in_days(2))
    assert store.children("_savepoints") == []


def test_removing_is_done_once_and_may_be_asked_for_twice(store: Store) -> None:
    FakeQuery(store=store).batches(2)
    take(store)
    for _ in range(2):
        delete_savepoint(store, HERE, why="test")
        assert store.children("_savepoints") == []


def test_how_far_it_was_checked_lies_beside_it(store: Store) -> None:
    FakeQuery(store=store).batches(2)
    take(store)
    assert recorded(store, HERE).level == "None"
    record(store, HERE, verify_savepoint(store, HERE, level="State"), now=NOW)
    assert (recorded(store, HERE).level, recorded(store, HERE).at) == ("State", NOW.isoformat())
    assert verify_savepoint(store, HERE, level="State").problems == ()
