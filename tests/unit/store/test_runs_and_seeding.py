from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace_jobs.store import (
    Copy,
    Store,
    claim_attempt,
    is_seeded,
    last_batches,
    newest_claim,
    open_store,
    query_names,
    read_claim,
    seed_run,
)
from headrace_jobs.store.directory import DirectoryStore
from headrace_jobs.store.errors import SourceChangedError
from headrace_jobs.store.runs import batches_in, tell_sink
from headrace_jobs.store.seed import SeedError


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "ns/job/uid"))


def a_checkpoint(
    store: Store, run: str = "run-1", query: str = "orders", *, offsets: int = 3, commits: int = 3
) -> None:
    root = f"{run}/queries/{query}"
    store.put(f"{root}/metadata", b'{"id":"q-1"}')
    for batch in range(offsets + 1):
        store.put(f"{root}/offsets/{batch}", b"v1\n{}\n%d" % batch)
        store.put(f"{root}/state/0/0/{batch + 1}_uuid.changelog", b"s%d" % batch)
    for batch in range(commits + 1):
        store.put(f"{root}/commits/{batch}", b"v1\n{}")
    store.put(f"{root}/sources/0/9.compact", b"v1\n[]")


def contents(store: Store, run: str) -> dict[str, bytes]:
    prefix = f"{run}/queries/"
    return {entry.key.removeprefix(prefix): store.get(entry.key) for entry in store.list(prefix)}


def test_last_batches_tell_a_clean_stop_from_a_pending_batch(store: Store) -> None:
    a_checkpoint(store, query="clean")
    a_checkpoint(store, query="cut off", offsets=4, commits=3)
    store.put("run-1/queries/never started/metadata", b"{}")
    found = last_batches(store, 1)
    assert found == {"clean": (3, 3), "cut off": (4, 3), "never started": (None, None)}
    assert {name: batches.pending for name, batches in found.items()} == {
        "clean": False,
        "cut off": True,
        "never started": False,
    }
    assert query_names(store, 1) == ["clean", "cut off", "never started"]


def test_the_keys_of_a_run_tell_the_same(store: Store) -> None:
    a_checkpoint(store, query="clean", offsets=12, commits=12)
    a_checkpoint(store, query="cut off", offsets=4, commits=3)
    store.put("run-1/queries/compacted/offsets/19.compact", b"v1")
    store.put("run-1/queries/never started/metadata", b"{}")
    store.put("run-1/queries/a stray file", b"")
    keys = [entry.key.removeprefix("run-1/queries/") for entry in store.list("run-1/queries/")]
    assert batches_in(keys) == last_batches(store, 1)
    assert batches_in(keys)["compacted"] == (19, None)


def test_who_refuses_where_the_source_has_stopped_finds_nothing_copied(store: Store) -> None:
    a_checkpoint(store, offsets=4, commits=3)
    heard: list[object] = []

    def refuse(batches: object) -> None:
        heard.append(batches)
        raise ValueError("not at a boundary")

    with pytest.raises(ValueError, match="not at a boundary"):
        seed_run(store, 1, 2, check=refuse)
    assert heard == [{"orders": (4, 3)}]
    assert list(store.list("run-2/")) == []


def test_a_run_has_one_holder_and_claims_only_go_up(store: Store) -> None:
    assert newest_claim(store, 1) is None
    assert claim_attempt(store, 1, 2, {"uid": "a"})
    assert not claim_attempt(store, 1, 2, {"uid": "b"})
    assert not claim_attempt(store, 1, 1, {"uid": "b"})
    assert claim_attempt(store, 1, 10, {"uid": "c"})
    assert newest_claim(store, 1) == 10
    assert read_claim(store, 1, 2) == {"uid": "a"}
    assert read_claim(store, 1, 3) is None


def test_seeding_copies_everything_with_the_pending_batch_and_marks_it_last(store: Store) -> None:
    a_checkpoint(store, offsets=4, commits=3)
    store.put("run-1/_code/job.py", b"print()")
    claim_attempt(store, 1, 1, {})
    assert not is_seeded(store, 2)
    seed = seed_run(store, 1, 2)
    assert contents(store, "run-2") == contents(store, "run-1")
    assert seed.from_run == "run-1"
    assert seed.batches == {"orders": (4, 3)}
    assert is_seeded(store, 2)
    assert store.children("run-2") == ["_seed.json", "queries/"]
    assert seed_run(store, 1, 2) == seed


def test_seeding_an_empty_run_is_a_run_from_nothing(store: Store) -> None:
    seed = seed_run(store, 1, 2)
    assert (seed.objects, seed.batches) == (0, {})
    assert is_seeded(store, 2)


def test_a_run_whose_queries_left_nothing_is_no_run_from_nothing(store: Store) -> None:
    """Its checkpoints lie elsewhere: a copy of nothing would lose the state in silence."""
    claim_attempt(store, 1, 1, {})
    tell_sink(store, 1, "orders", "ForeachBatchSink")
    with pytest.raises(SeedError, match="ran the queries orders and holds no checkpoint of any"):
        seed_run(store, 1, 2)
    assert not is_seeded(store, 2)


def test_a_run_that_has_lost_what_it_was_seeded_with_seeds_no_other(store: Store) -> None:
    a_checkpoint(store)
    seed_run(store, 1, 2)
    store.delete_tree("run-2/queries")
    with pytest.raises(SeedError, match="run-2 ran the queries orders"):
        seed_run(store, 2, 3)


def test_a_broken_off_seeding_goes_on_and_drops_what_was_purged_meanwhile(store: Store) -> None:
    a_checkpoint(store, offsets=3, commits=3)
    for entry in list(store.list("run-1/queries/"))[:5]:
        store.copy(Copy(entry, entry.key.replace("run-1", "run-2")))
    # The incumbent went on: one more batch, the oldest one purged, one state file replaced.
    a_checkpoint(store, offsets=4, commits=4)
    store.delete_many(["run-1/queries/orders/commits/0", "run-1/queries/orders/offsets/0"])
    store.put("run-1/queries/orders/state/0/0/1_uuid.changelog", b"other")
    seed_run(store, 1, 2)
    assert contents(store, "run-2") == contents(store, "run-1")


class Interrupted(DirectoryStore):
    """Dies after some copies, as a killed process does."""

    copies_left = 4

    def copy(self, copy: Copy) -> None:
        if self.copies_left == 0:
            raise KeyboardInterrupt
        self.copies_left -= 1
        super().copy(copy)


def test_an_interrupted_seeding_leaves_no_marker_and_can_be_repeated(store: Store, tmp_path: Path) -> None:
    a_checkpoint(store)
    with pytest.raises(KeyboardInterrupt):
        seed_run(Interrupted(tmp_path / "ns/job/uid"), 1, 2)
    assert not is_seeded(store, 2)
    seed_run(store, 1, 2)
    assert contents(store, "run-2") == contents(store, "run-1")


def test_a_run_in_use_is_never_seeded_over(store: Store) -> None:
    a_checkpoint(store)
    claim_attempt(store, 2, 1, {})
    with pytest.raises(SeedError, match="in use by attempt 1"):
        seed_run(store, 1, 2)
    assert store.children("run-2") == ["_attempts/"]


def test_a_run_is_seeded_from_one_run_only(store: Store) -> None:
    a_checkpoint(store, "run-1")
    a_checkpoint(store, "run-2")
    seed_run(store, 1, 3)
    with pytest.raises(SeedError, match="already seeded from run-1"):
        seed_run(store, 2, 3)


def test_a_keeper_finds_what_a_driver_has_seeded(store: Store, tmp_path: Path) -> None:
    """It sees all lineages of the job, and calls a run by its whole path."""
    a_checkpoint(store)
    done = seed_run(store, 1, 2)
    lineages = DirectoryStore(tmp_path / "ns/job")
    assert seed_run(lineages, "uid/run-1", "uid/run-2") == done
    with pytest.raises(SeedError, match="already seeded from run-1"):
        seed_run(lineages, "other/run-1", "uid/run-2")


def test_a_source_that_still_changes_is_not_declared_seeded(store: Store, tmp_path: Path) -> None:
    a_checkpoint(store)

    class StillRunning(DirectoryStore):
        def copy_many(self, copies: object) -> None:
            super().copy_many(copies)  # type: ignore[arg-type]
            self.put("run-1/queries/orders/offsets/4", b"v1")

    with pytest.raises(SeedError, match="its driver must be stopped first"):
        seed_run(StillRunning(tmp_path / "ns/job/uid"), 1, 2)
    assert not is_seeded(store, 2)

    class Purging(DirectoryStore):
        def copy_many(self, copies: object) -> None:
            self.delete_many(["run-1/queries/orders/offsets/0"])
            super().copy_many(copies)  # type: ignore[arg-type]

    with pytest.raises(SourceChangedError):
        seed_run(Purging(tmp_path / "ns/job/uid"), 1, 3)
    assert not is_seeded(store, 3)


def tws_metadata(root: Path, run: str) -> bytes:
    schema = f"file:{root}/ns/job/uid/{run}/queries/orders/state/0/_stateSchema/default/0_uuid"
    return (
        b"v2\n"
        + json.dumps(
            {"operatorInfo": {"operatorId": 0}, "stateStoreInfo": [{"stateSchemaFilePaths": [schema]}]}
        ).encode()
    )


def test_full_paths_in_the_metadata_of_transform_with_state_move_along(store: Store, tmp_path: Path) -> None:
    a_checkpoint(store)
    key = "queries/orders/state/0/_metadata/v2/0"
    store.put(f"run-1/{key}", tws_metadata(tmp_path, "run-1"))
    assert seed_run(store, 1, 2).rewritten == 1
    assert store.get(f"run-2/{key}") == tws_metadata(tmp_path, "run-2")
    seed_run(store, 2, 3)
    assert store.get(f"run-3/{key}") == tws_metadata(tmp_path, "run-3")


def test_full_paths_that_lead_elsewhere_stop_the_seeding(store: Store, tmp_path: Path) -> None:
    a_checkpoint(store)
    store.put("run-1/queries/orders/state/0/_metadata/v2/0", tws_metadata(tmp_path / "elsewhere", "run-1"))
    with pytest.raises(SeedError, match="outside of the run"):
        seed_run(store, 1, 2)
    assert not is_seeded(store, 2)
