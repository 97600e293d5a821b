"""A savepoint brought from another place is one only when it is whole, whatever lay there before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headrace_jobs.store import Store, last_batches, open_store
from headrace_jobs.store.errors import SavepointDamagedError, SavepointError
from headrace_jobs.store.savepoints import (
    Manifest,
    delete_savepoint,
    find_manifest,
    import_savepoint,
    list_savepoints,
    restore_savepoint,
    verify_savepoint,
)
from tests.unit.store.savepoints.checkpoints import HERE, FakeQuery, Faults, FaultyStore, Killed, take

THERE = "_savepoints/n"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Store:
    """Two savepoints of one job, "s1" and "s2", the second with fewer files."""
    store = open_store(str(tmp_path / "elsewhere"))
    query = FakeQuery(store=store).batches(4)
    query.transform_with_state()
    take(store)
    query.snapshot(4)
    take(store, "_savepoints/s2")
    return store


def bring(elsewhere: Store, store: Store, path: str = HERE) -> Manifest:
    return import_savepoint(elsewhere, path, store, THERE)


def assert_good(store: Store) -> None:
    assert verify_savepoint(store, THERE, level="State").problems == ()
    restore_savepoint(store, savepoint=THERE, run="proof", lineage="keep")
    assert last_batches(store, "proof") == {"orders": (3, 3)}
    store.delete_tree("proof")


def test_it_is_as_good_as_one_that_was_taken_here(elsewhere: Store, store: Store, tmp_path: Path) -> None:
    manifest = bring(elsewhere, store)
    shutil.rmtree(tmp_path / "elsewhere")
    assert manifest == find_manifest(store, THERE)
    assert manifest.url == f"{store.url}/{THERE}"
    assert "moved" not in verify_savepoint(store, THERE, level="Objects").message, "etags are compared"
    text = store.get(f"{THERE}/{manifest.data}/queries/orders/state/0/_metadata/v2/0").decode()
    assert f"{THERE}/{manifest.data}/queries/orders/state/0/_stateSchema/" in text
    assert_good(store)


def test_a_name_that_is_taken_is_refused(elsewhere: Store, store: Store) -> None:
    bring(elsewhere, store)
    for path in (HERE, "_savepoints/s2"):
        with pytest.raises(SavepointError, match=r"there is a savepoint at .*: choose another name"):
            bring(elsewhere, store, path)
    assert_good(store)


def test_killed_between_any_two_steps_it_is_repeated_or_deleted(elsewhere: Store, tmp_path: Path) -> None:
    faults = Faults()
    bring(elsewhere, FaultyStore(tmp_path / "whole", faults))
    for at in range(faults.steps):
        root, dying = tmp_path / f"store-{at}", Faults(at)
        dying.act = dying.kill
        with pytest.raises(Killed):
            bring(elsewhere, FaultyStore(root, dying))
        store = open_store(str(root))
        if find_manifest(store, THERE) is not None:
            assert_good(store)
            continue
        bring(elsewhere, store)
        assert_good(store)
        data = [name for name in store.children(THERE) if name.startswith("data-")]
        assert len(data) == 1, "what was broken off is swept away"


def test_what_another_import_left_is_not_mixed_in(elsewhere: Store, store: Store, tmp_path: Path) -> None:
    dying = Faults(12)
    dying.act = dying.kill
    with pytest.raises(Killed):
        bring(elsewhere, FaultyStore(tmp_path / "store", dying))
    with pytest.raises(SavepointError, match=r"another owner \(import of .*/s1\): choose another name"):
        bring(elsewhere, store, "_savepoints/s2")
    assert [found.manifest for found in list_savepoints(store)] == [None]


def test_two_at_once_make_one(elsewhere: Store, tmp_path: Path) -> None:
    plain = open_store(str(tmp_path / "store"))
    second: list[Manifest] = []

    class Slow(FaultyStore):
        def put_if_absent(self, key: str, content: bytes) -> bool:
            if key.endswith("manifest.json") and not second:
                second.append(bring(elsewhere, plain))
            return super().put_if_absent(key, content)

    assert bring(elsewhere, Slow(tmp_path / "store", Faults())) == second[0]
    assert_good(plain)


@pytest.mark.parametrize("part", ["commits/3", ".changelog", ".crc"])
def test_a_damaged_one_is_not_imported(elsewhere: Store, store: Store, tmp_path: Path, part: str) -> None:
    """Moved by hand on its way, so that no etag tells."""
    shutil.copytree(tmp_path / "elsewhere" / HERE, tmp_path / "backup/s1", copy_function=shutil.copyfile)
    backup = open_store(str(tmp_path / "backup"))
    found = next(entry for entry in backup.list("s1/data-1/") if entry.key.endswith(part))
    content = bytearray(backup.get(found.key))
    content[0] ^= 1
    backup.put(found.key, bytes(content))
    with pytest.raises(SavepointDamagedError, match=r"cannot be imported: .*Use another savepoint"):
        import_savepoint(backup, "s1", store, THERE)
    assert find_manifest(store, THERE) is None
    assert store.children(THERE) == ["_claims/"]
    delete_savepoint(store, THERE, why="test")
    assert store.children("_savepoints") == []
