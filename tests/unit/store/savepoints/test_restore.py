"""A run made from a savepoint: forward with its lineage, as a fork with another, or not at all."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from pathlib import Path

import pytest

from headrace_jobs.store import Store, claim_attempt, is_seeded, last_batches, open_store, remove_runs
from headrace_jobs.store.errors import LineageError, SavepointDamagedError, SavepointError, SeedError
from headrace_jobs.store.savepoints import delete_savepoint, restore_savepoint, verify_savepoint
from tests.unit.store.savepoints.checkpoints import HERE, FakeQuery, Faults, FaultyStore, Killed, take


def tree(store: Store, prefix: str) -> dict[str, bytes]:
    return {entry.key.removeprefix(prefix): store.get(entry.key) for entry in store.list(prefix)}


def a_savepoint(
    store: Store, *, pending: bool = True, sink: str | None = None, run: str = "run-1"
) -> FakeQuery:
    query = FakeQuery(store=store, run=run).batches(4)
    query.snapshot(3)
    query.transform_with_state()
    if pending:
        query.begin()
        query.write_state()
    take(store, run=run, about={"sinks": {"orders": sink}} if sink else {})
    return query


def test_forward_is_a_copy_with_the_same_lineage_and_the_pending_batch(store: Store) -> None:
    a_savepoint(store)
    saved = tree(store, f"{HERE}/data-1/queries/")
    store.delete_tree("run-1")
    seed = restore_savepoint(store, savepoint=HERE, run=2, lineage="keep")
    restored = tree(store, "run-2/queries/")
    moved = "orders/state/0/_metadata/v2/0"
    assert {key: restored[key] for key in restored if key != moved} == {
        key: saved[key] for key in saved if key != moved
    }
    assert b"/run-2/queries/orders/state/0/_stateSchema/" in restored[moved]
    assert last_batches(store, 2) == {"orders": (4, 3)}
    assert (seed.from_run, seed.rewritten, seed.objects) == (HERE, 1, len(saved))
    assert is_seeded(store, 2)
    assert restore_savepoint(store, savepoint=HERE, run=2, lineage="keep") == seed


def test_a_fork_has_ids_of_its_own_which_are_the_same_when_it_is_repeated(store: Store) -> None:
    a_savepoint(store)
    ids = []
    for run in (2, 3):
        restore_savepoint(store, savepoint=HERE, run=run, lineage="new")
        ids.append(json.loads(store.get(f"run-{run}/queries/orders/metadata"))["id"])
    assert len({*ids, "q-1"}) == 3
    store.delete_tree("run-3")
    restore_savepoint(store, savepoint=HERE, run=3, lineage="new")
    assert json.loads(store.get("run-3/queries/orders/metadata"))["id"] == ids[1]


def test_a_fork_that_was_broken_off_leaves_no_id_behind(store: Store) -> None:
    """Ids are of one length, so a listing cannot tell whose one is."""
    own = str(uuid.uuid4())
    FakeQuery(store=store, lineage=own).batches(2)
    take(store)
    restore_savepoint(store, savepoint=HERE, run=2, lineage="new")
    store.delete_many(["run-2/_seed.json"])
    restore_savepoint(store, savepoint=HERE, run=2, lineage="keep")
    assert json.loads(store.get("run-2/queries/orders/metadata"))["id"] == own


def test_what_a_restore_from_another_savepoint_left_is_not_taken_for_ones_own(store: Store) -> None:
    """Two forks have files of the same names and sizes, and not of the same content."""
    for run, lineage in (("one/run-1", "a"), ("two/run-1", "b")):
        FakeQuery(store=store, run=run, lineage=lineage).batches(2)
        store.put(f"{run}/queries/orders/offsets/1", b'v1\n{}\n{"logOffset":1,"of":"%s"}' % lineage.encode())
        take(store, f"_savepoints/{lineage}", run=run)
    restore_savepoint(store, savepoint="_savepoints/b", run=2, lineage="new")
    store.delete_many(["run-2/_seed.json"])
    restore_savepoint(store, savepoint="_savepoints/a", run=2, lineage="new")
    assert b'"of":"a"' in store.get("run-2/queries/orders/offsets/1")


def test_a_run_that_was_restored_does_not_need_its_savepoint_any_more(store: Store) -> None:
    a_savepoint(store)
    seed = restore_savepoint(store, savepoint=HERE, run=2, lineage="keep")
    delete_savepoint(store, HERE, why="test")
    assert restore_savepoint(store, savepoint=HERE, run=2, lineage="keep") == seed


def test_going_back_with_the_same_lineage_is_refused(store: Store) -> None:
    """Sinks would take the new batches for those they have."""
    query = a_savepoint(store, pending=False)
    query.batches(2)
    with pytest.raises(LineageError, match="went on to batch 5 in run-1, what is restored ends at batch 3"):
        restore_savepoint(store, savepoint=HERE, run=2, lineage="keep")
    assert not is_seeded(store, 2)
    restore_savepoint(store, savepoint=HERE, run=2, lineage="new")
    assert is_seeded(store, 2)


def test_a_later_run_of_the_same_lineage_counts_too(store: Store) -> None:
    a_savepoint(store, pending=False, run="uid/run-1")
    FakeQuery(store=store, run="uid/run-2").batches(6)
    with pytest.raises(LineageError, match="batch 5 in uid/run-2"):
        restore_savepoint(store, savepoint=HERE, run="uid/run-3", lineage="keep")
    # Another lineage under the same name says nothing.
    store.delete_tree("uid/run-2")
    FakeQuery(store=store, run="uid/run-2", lineage="other").batches(6)
    restore_savepoint(store, savepoint=HERE, run="uid/run-3", lineage="keep")


def test_going_back_is_also_seen_from_the_root_of_the_location(store: Store, tmp_path: Path) -> None:
    query = a_savepoint(store, pending=False, run="uid/run-1")
    query.batches(1)
    above = open_store(str(tmp_path))
    with pytest.raises(LineageError, match="batch 4 in store/uid/run-1"):
        restore_savepoint(above, savepoint=f"store/{HERE}", run="elsewhere/run-1", lineage="keep")


def test_how_far_a_lineage_went_is_known_when_its_runs_are_gone(store: Store) -> None:
    """A sink remembers the batches of a job that was deleted with its runs; so must who restores it."""
    query = a_savepoint(store, pending=False, run="u1/run-1")
    take(store, "_savepoints/second", run="u1/run-1")
    query.batches(2)
    take(store, "_savepoints/last", run="u1/run-1")
    assert remove_runs(store, "u1") == ["run-1"]
    assert remove_runs(store, "u1") == []
    with pytest.raises(LineageError, match="went on to batch 5 in u1/run-1, which is removed since"):
        restore_savepoint(store, savepoint=HERE, run="u2/run-1", lineage="keep")
    assert restore_savepoint(store, savepoint=HERE, run="u2/run-1", lineage="forward").lineage == "new"
    # Nothing was begun after the last one: it goes on.
    assert restore_savepoint(store, savepoint="_savepoints/last", run="u2/run-2", lineage="keep")


def test_the_furthest_of_all_removals_counts_and_only_of_the_same_lineage(store: Store) -> None:
    a_savepoint(store, pending=False, run="u1/run-1")
    for uid, batches in (("u1", 9), ("u2", 5)):
        FakeQuery(store=store, run=f"{uid}/run-2").batches(batches)
    FakeQuery(store=store, run="u3/run-1", lineage="other").batches(20)
    FakeQuery(store=store, run="u1/rehearsal-3", lineage="fork").batches(30)
    store.put("u1/run-3/queries/orders/metadata", b"cut o")
    for uid in ("u1", "u2", "u3"):
        remove_runs(store, uid)
    with pytest.raises(LineageError, match="went on to batch 8 in u1/run-2"):
        restore_savepoint(store, savepoint=HERE, run="u4/run-1", lineage="keep")
    assert store.children("_lineages") == ["other/", "q-1/"]


def test_removing_runs_is_remembered_whenever_it_is_killed(tmp_path: Path) -> None:
    for at in range(1000):
        root = tmp_path / f"store-{at}"
        store = FaultyStore(root, Faults())
        a_savepoint(store, pending=False, run="u1/run-1").batches(1)
        FakeQuery(store=store, run="u1/run-2").batches(7)
        faults = Faults(at)
        faults.act = faults.kill
        with contextlib.suppress(Killed):
            remove_runs(FaultyStore(root, faults), "u1")
        remove_runs(store, "u1")
        with pytest.raises(LineageError, match="batch 6 in u1/run-2, which is removed"):
            restore_savepoint(store, savepoint=HERE, run="u2/run-1", lineage="keep")
        if not faults.dead:
            break
    assert at > 5


def test_a_file_sink_whose_runs_are_gone_is_not_restored_to_an_earlier_batch(store: Store) -> None:
    query = a_savepoint(store, pending=False, sink="FileSink[/out]", run="u1/run-1")
    query.batches(1)
    remove_runs(store, "u1")
    with pytest.raises(LineageError, match=r"FileSink\[/out\].*Forward is not possible: .*removed since"):
        restore_savepoint(store, savepoint=HERE, run="u2/run-1", lineage="forward")


def test_the_pending_batch_that_was_carried_is_no_step_further(store: Store) -> None:
    query = a_savepoint(store, pending=True)
    query.commit()
    restore_savepoint(store, savepoint=HERE, run=2, lineage="keep")
    assert last_batches(store, 2) == {"orders": (4, 3)}


def test_a_file_sink_cannot_be_forked(store: Store) -> None:
    a_savepoint(store, sink="FileSink[s3a://lake/orders]")
    with pytest.raises(LineageError, match=r"FileSink\[s3a://lake/orders\].*foreachBatch"):
        restore_savepoint(store, savepoint=HERE, run=2, lineage="new")
    assert store.children("run-2") == []
    restore_savepoint(store, savepoint=HERE, run=2, lineage="keep")


def test_a_run_in_use_or_seeded_from_elsewhere_is_not_touched(store: Store) -> None:
    a_savepoint(store)
    claim_attempt(store, 2, 1, {})
    with pytest.raises(SeedError, match="in use by attempt 1"):
        restore_savepoint(store, savepoint=HERE, run=2, lineage="keep")
    restore_savepoint(store, savepoint=HERE, run=3, lineage="keep")
    take(store, "_savepoints/s2")
    with pytest.raises(SeedError, match=f"already seeded from {HERE}"):
        restore_savepoint(store, savepoint="_savepoints/s2", run=3, lineage="keep")


def test_what_is_no_savepoint_is_not_restored(store: Store) -> None:
    with pytest.raises(SavepointError, match="it has no manifest"):
        restore_savepoint(store, savepoint=HERE, run=2, lineage="keep")


@pytest.mark.parametrize("damage", ["missing", "cut", "altered"])
@pytest.mark.parametrize("part", ["offsets/3", "changelog", "sst", "_metadata/v2/0"])
def test_a_damaged_savepoint_is_known_and_not_restored(
    store: Store, tmp_path: Path, damage: str, part: str
) -> None:
    a_savepoint(store)
    found = next(entry for entry in store.list(f"{HERE}/data-1/") if entry.key.endswith(part))
    path = tmp_path / "store" / found.key
    match damage:
        case "missing":
            path.unlink()
        case "cut":
            path.write_bytes(path.read_bytes()[:-1])
        case _:
            path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    found_bad = verify_savepoint(store, HERE, level="State")
    assert found_bad.level == "None"
    assert part.rpartition("/")[2] in found_bad.message
    with pytest.raises(SavepointDamagedError, match="cannot be restored"):
        restore_savepoint(store, savepoint=HERE, run=2, lineage="keep")
    assert not is_seeded(store, 2)


def test_state_that_is_too_new_is_found_by_the_second_level(store: Store) -> None:
    """A manifest that lists it, as a careless copier might write one."""
    from dataclasses import replace

    from headrace_jobs.store.savepoints.manifest import encode, read_manifest, saved

    query = a_savepoint(store)
    source = next(entry for entry in store.list() if entry.key.endswith(query.file(5, 0, "changelog")))
    target = source.key.replace("run-1", f"{HERE}/data-1")
    store.put(target, b"of a later version")
    (entry,) = store.list(target[:-4])
    manifest = read_manifest(store, HERE)
    objects = (*manifest.objects, saved(entry, f"{HERE}/data-1/"))
    store.put(f"{HERE}/manifest.json", encode(replace(manifest, objects=objects)))
    assert verify_savepoint(store, HERE, level="Objects").level == "Objects"
    verification = verify_savepoint(store, HERE, level="State")
    assert (verification.level, len(verification.problems)) == ("Objects", 1)
    assert "does not belong to batch 3" in verification.message


def test_a_savepoint_that_was_moved_is_restored_where_it_lies_now(store: Store, tmp_path: Path) -> None:
    a_savepoint(store)
    elsewhere = tmp_path / "another region/backup/s1"
    # Without metadata: other times, and so other etags.
    shutil.copytree(tmp_path / "store" / HERE, elsewhere, copy_function=shutil.copyfile)
    shutil.rmtree(tmp_path / "store")
    moved = open_store(str(tmp_path / "another region"))
    assert "it was moved" in verify_savepoint(moved, "backup/s1", level="State").message
    restore_savepoint(moved, savepoint="backup/s1", run="ns/job/uid/run-1", lineage="keep")
    text = moved.get("ns/job/uid/run-1/queries/orders/state/0/_metadata/v2/0").decode()
    assert "another region/ns/job/uid/run-1/queries/orders/state/0/_stateSchema/" in text
    (elsewhere / "data-1/queries/orders/commits/3").unlink()
    with pytest.raises(SavepointDamagedError, match="commits/3 is missing"):
        restore_savepoint(moved, savepoint="backup/s1", run="ns/job/uid/run-2", lineage="keep")


@pytest.mark.parametrize("part", [".changelog", ".zip", ".changelog.crc"])
def test_a_moved_savepoint_with_an_altered_file_of_the_same_size_is_known(
    store: Store, tmp_path: Path, part: str
) -> None:
    """Sizes are equal and etags say nothing elsewhere; Spark's own checksums do."""
    a_savepoint(store)
    shutil.copytree(tmp_path / "store" / HERE, tmp_path / "moved/s1", copy_function=shutil.copyfile)
    moved = open_store(str(tmp_path / "moved"))
    assert verify_savepoint(moved, "s1", level="State").level == "State"
    found = next(entry for entry in moved.list("s1/data-1/") if entry.key.endswith(part))
    content = bytearray(moved.get(found.key))
    content[-1] ^= 1
    moved.put(found.key, bytes(content))
    verification = verify_savepoint(moved, "s1", level="State")
    assert (verification.level, len(verification.problems)) == ("Objects", 1)
    assert found.key.removeprefix("s1/data-1/queries/").removesuffix(".crc") in verification.message


def test_checksums_of_an_algorithm_that_is_not_known_are_passed_by(store: Store) -> None:
    query = FakeQuery(store=store).batches(1)
    query.put(query.file(1, 0, "changelog") + ".crc", b'{"algorithm": "XXH3", "value": 1}')
    take(store)
    assert verify_savepoint(store, HERE, level="State").level == "State"


def test_into_another_store(store: Store, tmp_path: Path) -> None:
    a_savepoint(store)
    other = open_store(str(tmp_path / "other"))
    seed = restore_savepoint(store, savepoint=HERE, run="run-1", lineage="new", into=other)
    assert seed.from_run == f"{store.url}/{HERE}"
    assert last_batches(other, 1) == {"orders": (4, 3)}
    restored, saved = tree(other, "run-1/queries/"), tree(store, f"{HERE}/data-1/queries/")
    assert restored.keys() == saved.keys()
    assert [key for key in saved if restored[key] != saved[key]] == [
        "orders/metadata",
        "orders/state/0/_metadata/v2/0",
    ]
