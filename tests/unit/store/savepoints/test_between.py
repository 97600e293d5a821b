"""From one store into another, through a keeper with little memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace_jobs.store import Entry, Store, last_batches
from headrace_jobs.store.directory import DirectoryStore
from headrace_jobs.store.interface import Copy
from headrace_jobs.store.savepoints import between, restore_savepoint, seed_from
from headrace_jobs.store.savepoints.between import copier_between
from headrace_jobs.store.savepoints.transfer import paced_copy
from tests.unit.store.savepoints.checkpoints import HERE, FakeQuery, take

KIBIBYTE = 1024


class Watched(DirectoryStore):
    """Knows how many bytes of it are in somebody's hands."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.held = self.most = 0
        self.lock = threading.Lock()

    def get(self, key: str) -> bytes:
        assert not key.endswith(".sst"), "a state file was read whole"
        return super().get(key)

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        for piece in super().pieces(entry):
            self._hold(len(piece))
            yield piece
            self._hold(-len(piece))

    def _hold(self, size: int) -> None:
        with self.lock:
            self.held += size
            self.most = max(self.most, self.held)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr("headrace_jobs.store.directory.PIECE_BYTES", 8 * KIBIBYTE)
    monkeypatch.setattr(between, "_LARGE_BYTES", KIBIBYTE)
    return Watched(tmp_path / "source")


def test_a_bounded_part_of_large_objects_is_in_memory(source: Watched, tmp_path: Path) -> None:
    for number in range(40):
        source.put(f"large/{number:02}", bytes([number]) * 100 * KIBIBYTE)
        source.put(f"small/{number:02}", bytes([number]) * 100)
    target = DirectoryStore(tmp_path / "target")
    copies = [Copy(entry, entry.key) for entry in source.list()]
    paced_copy(target, copies, copy=copier_between(source, target))
    assert {entry.key: target.get(entry.key) for entry in target.list()} == {
        entry.key: source.get(entry.key) for entry in source.list()
    }
    assert 0 < source.most <= 6 * 8 * KIBIBYTE + 40 * 100


def test_a_savepoint_with_large_files_is_restored_from_another_store_in_pieces(
    source: Watched, tmp_path: Path
) -> None:
    FakeQuery(store=source).batches(3).snapshot(3, content=b"s" * 100 * KIBIBYTE)
    take(source)
    target = DirectoryStore(tmp_path / "target")
    restore_savepoint(source, savepoint=HERE, run=1, lineage="new", into=target)
    assert last_batches(target, 1) == {"orders": (2, 2)}
    assert source.most > 0


def test_the_two_names_of_s3_are_one_place(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    """Or contents would pass through here, which the server could copy."""
    opened: list[str] = []

    def open_it(url: str, _s3: object) -> Store:
        opened.append(url)
        return store

    monkeypatch.setattr("headrace_jobs.store.savepoints.seeding.open_store", open_it)
    FakeQuery(store=store, run="x/queries-of-nobody").batches(1)
    with pytest.raises(Exception, match="neither a savepoint nor a checkpoint"):
        seed_from("s3a://b/old/ckpt", store="s3://b/shop/clicks", run="u/run-1", lineage="auto")
    assert opened == ["s3://b"]
