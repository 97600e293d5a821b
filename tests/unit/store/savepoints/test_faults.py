"""The store refuses, stalls, fills up, dies; the process dies between any two steps. Never a savepoint that
says it is one and cannot be restored; nothing that stays for ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace_jobs.store import Copy, Store, is_seeded, last_batches
from headrace_jobs.store.errors import NoRightsError, NoSpaceError, StoreError, UnavailableError
from headrace_jobs.store.savepoints import (
    collect,
    delete_savepoint,
    find_manifest,
    list_savepoints,
    orphans,
    restore_savepoint,
    verify_savepoint,
)
from tests.unit.store.savepoints.checkpoints import HERE, FakeQuery, Faults, FaultyStore, Killed, take

LIMIT = timedelta(days=1)


def later(days: int) -> datetime:
    """By the clock of the store, which is the real one here."""
    return datetime.now(UTC) + timedelta(days=days)


def a_query(store: Store) -> FakeQuery:
    query = FakeQuery(store=store).batches(3)
    query.snapshot(2)
    query.transform_with_state()
    query.begin()
    query.write_state()
    return query


def assert_good_or_none(store: Store) -> bool:
    """The promise. Tells whether there is one."""
    (found,) = list_savepoints(store) or (None,)
    if found is None or found.manifest is None:
        return False
    assert verify_savepoint(store, HERE, level="State").problems == ()
    restore_savepoint(store, savepoint=HERE, run="proof", lineage="keep")
    assert last_batches(store, "proof") == {"orders": (3, 2)}
    store.delete_tree("proof")
    return True


def assert_nothing_stays(store: Store) -> None:
    """Two collections: the first leaves a tombstone against copiers that come back, the second takes it."""
    collect(store, older_than=LIMIT, now=later(2))
    collect(store, older_than=LIMIT, now=later(4))
    if find_manifest(store, HERE) is None:
        assert store.children("_savepoints") == []
    else:
        data = [name for name in store.children(HERE) if name.startswith("data-")]
        assert len(data) == 1


def steps_of(root: Path, action: Callable[[Store], object]) -> int:
    faults = Faults()
    action(FaultyStore(root, faults))
    return faults.steps


def test_killed_between_any_two_steps_of_taking_it(tmp_path: Path) -> None:
    def prepared(number: object) -> Path:
        root = tmp_path / f"store-{number}"
        a_query(FaultyStore(root, Faults()))
        return root

    total = steps_of(prepared("whole"), take)
    assert total > 20
    finished = 0
    for at in range(total):
        root = prepared(at)
        faults = Faults(at)
        faults.act = faults.kill
        with pytest.raises(Killed):
            take(FaultyStore(root, faults))
        store = FaultyStore(root, Faults())
        finished += assert_good_or_none(store)
        if at % 2:  # whoever comes next either gives up on it, or tries again
            assert take(store).queries[0].batch == 2
            assert assert_good_or_none(store)
        assert_nothing_stays(store)
        assert_good_or_none(store)
    assert finished >= 1, "no kill came after the manifest: the test shows less than it says"


def test_killed_between_any_two_steps_of_restoring_it(tmp_path: Path) -> None:
    root = tmp_path / "store"
    a_query(FaultyStore(root, Faults()))
    take(FaultyStore(root, Faults()))
    total = steps_of(root, lambda store: restore_savepoint(store, savepoint=HERE, run=99, lineage="keep"))
    for at in range(total):
        faults = Faults(at)
        faults.act = faults.kill
        with pytest.raises(Killed):
            restore_savepoint(FaultyStore(root, faults), savepoint=HERE, run=f"at-{at}", lineage="keep")
        store = FaultyStore(root, Faults())
        if not is_seeded(store, f"at-{at}"):
            restore_savepoint(store, savepoint=HERE, run=f"at-{at}", lineage="keep")
        assert last_batches(store, f"at-{at}") == {"orders": (3, 2)}


def test_killed_between_any_two_steps_of_removing_it(tmp_path: Path) -> None:
    def prepared(number: object) -> Path:
        root = tmp_path / f"store-{number}"
        a_query(FaultyStore(root, Faults()))
        take(FaultyStore(root, Faults()))
        return root

    total = steps_of(prepared("whole"), lambda store: delete_savepoint(store, HERE, why="test"))
    for at in range(total):
        root = prepared(at)
        faults = Faults(at)
        faults.act = faults.kill
        with pytest.raises(Killed):
            delete_savepoint(FaultyStore(root, faults), HERE, why="test")
        store = FaultyStore(root, Faults())
        assert_good_or_none(store)
        assert_nothing_stays(store)
        delete_savepoint(store, HERE, why="test")
        assert store.children("_savepoints") == []


@pytest.mark.parametrize(
    "error",
    [NoRightsError("copy", "there", needed="rights"), UnavailableError("s3", "503"), NoSpaceError("there")],
    ids=lambda error: error.reason,
)
def test_an_error_at_any_step_surfaces_and_leaves_nothing_that_looks_whole(
    tmp_path: Path, error: StoreError
) -> None:
    a_query(FaultyStore(tmp_path / "whole", Faults()))
    total = steps_of(tmp_path / "whole", take)
    for at in range(0, total, 3):
        root = tmp_path / f"store-{at}"
        a_query(FaultyStore(root, Faults()))

        asked: list[str] = []

        def fail(_: str, key: str, asked: list[str] = asked) -> None:
            asked.append(key)
            raise error

        store = FaultyStore(root, Faults(at, fail))
        try:
            take(store)
        except StoreError as raised:
            assert raised is error
            # The space is free again at once, not when somebody collects; but for the last step, whose
            # answer may be what was lost: then there is a savepoint.
            if at > 5 and not asked[0].endswith("manifest.json"):
                assert not [name for name in store.children(HERE) if name.startswith("data-")]
        else:
            assert find_manifest(store, HERE) is not None  # it hit the sweeping after the manifest
        assert_good_or_none(store)
        assert_nothing_stays(store)


@pytest.mark.parametrize("what", ["vanishes", "is cut off", "grows"])
def test_an_object_that_changes_on_its_way_is_noticed(tmp_path: Path, what: str) -> None:
    """A copy that went wrong without an error: only the look afterwards can tell."""

    class Lying(FaultyStore):
        done = False

        def copy(self, copy: Copy) -> None:
            super().copy(copy)
            if not self.done and copy.target.endswith(".changelog"):
                type(self).done = True
                path = tmp_path / "store" / copy.target
                content = path.read_bytes()
                path.unlink()
                if what != "vanishes":
                    path.write_bytes(content[:-1] if what == "is cut off" else content + b"!")

    store = Lying(tmp_path / "store", Faults())
    a_query(store)
    take(store)
    assert Lying.done
    assert_good_or_none(FaultyStore(tmp_path / "store", Faults()))


def test_a_copier_that_comes_back_after_its_copy_was_collected_finishes_nothing(tmp_path: Path) -> None:
    plain = FaultyStore(tmp_path / "store", Faults())
    a_query(plain)

    class Asleep(FaultyStore):
        """Frozen for days right before its last step."""

        def put_if_absent(self, key: str, content: bytes) -> bool:
            if key.endswith("manifest.json"):
                (orphan,) = orphans(plain, older_than=LIMIT, now=later(2))
                assert (orphan.path, orphan.unfinished) == (HERE, True)
                assert collect(plain, older_than=LIMIT, now=later(2)) == [orphan]
            return super().put_if_absent(key, content)

    with pytest.raises(StoreError, match="was removed while it was copied"):
        take(Asleep(tmp_path / "store", Faults()))
    assert find_manifest(plain, HERE) is None
    assert_nothing_stays(plain)


@pytest.mark.parametrize("moment", ["while it copies", "before the manifest"])
def test_a_copier_whose_savepoint_is_deleted_meanwhile_finishes_nothing(tmp_path: Path, moment: str) -> None:
    """A keeper on a lost node, or `delete` beside `create`: nobody knows of a savepoint that came after."""
    plain = FaultyStore(tmp_path / "store", Faults())
    a_query(plain)
    deleted: list[bool] = []

    class Deleted(FaultyStore):
        def copy(self, copy: Copy) -> None:
            super().copy(copy)
            if moment == "while it copies" and copy.source.key.endswith("commits/2"):
                self._delete()

        def put_if_absent(self, key: str, content: bytes) -> bool:
            if moment == "before the manifest" and key.endswith("manifest.json"):
                self._delete()
            return super().put_if_absent(key, content)

        def _delete(self) -> None:
            if not deleted:
                deleted.append(True)
                delete_savepoint(plain, HERE, why="test")

    with pytest.raises(StoreError, match="was removed while it was copied"):
        take(Deleted(tmp_path / "store", Faults()))
    assert deleted
    assert list_savepoints(plain) == []
    # It has said that it is over: now the name is free.
    delete_savepoint(plain, HERE, why="again")
    assert plain.children("_savepoints") == []


def test_what_a_killed_copier_left_is_deleted_but_for_the_tombstone(tmp_path: Path) -> None:
    """Dead or asleep: nobody can tell."""
    plain = FaultyStore(tmp_path / "store", Faults())
    a_query(plain)
    faults = Faults(12)
    faults.act = faults.kill
    with pytest.raises(Killed):
        take(FaultyStore(tmp_path / "store", faults))
    delete_savepoint(plain, HERE, why="test")
    assert plain.children(HERE) == ["_claims/", "manifest.json"]
    assert list_savepoints(plain) == []
    assert_nothing_stays(plain)


def test_a_try_that_failed_leaves_nothing_when_it_is_deleted(tmp_path: Path) -> None:
    def fail(*_: str) -> None:
        raise NoSpaceError("there")

    store = FaultyStore(tmp_path / "store", Faults(12, fail))
    a_query(FaultyStore(tmp_path / "store", Faults()))
    with pytest.raises(NoSpaceError):
        take(store)
    assert [found.problem for found in list_savepoints(store)] == ["it was never finished"]
    delete_savepoint(store, HERE, why="test")
    assert store.children("_savepoints") == []


def test_a_copier_that_is_faster_than_the_collector_keeps_its_savepoint(tmp_path: Path) -> None:
    plain = FaultyStore(tmp_path / "store", Faults())
    a_query(plain)
    faults = Faults(3)
    faults.act = faults.kill
    with pytest.raises(Killed):
        take(FaultyStore(tmp_path / "store", faults))

    class Slow(FaultyStore):
        def put_if_absent(self, key: str, content: bytes) -> bool:
            take(plain)
            return super().put_if_absent(key, content)

    assert collect(Slow(tmp_path / "store", Faults()), older_than=LIMIT, now=later(2)) == []
    assert assert_good_or_none(plain)
