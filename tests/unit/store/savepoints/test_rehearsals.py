"""The fork that a candidate rehearses on, from queries in every condition; and what is removed afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace_jobs.store import Store, last_batches, seed_run
from headrace_jobs.store.errors import CheckpointDamagedError, SeedError
from headrace_jobs.store.rehearsals import Fork, discard_fork, fork_query, lay_down, sweep_rehearsals
from headrace_jobs.store.savepoints.selection import check_same
from headrace_jobs.store.savepoints.take import select_query
from headrace_jobs.store.seed import copy_ahead, newest_run
from tests.unit.store.savepoints.checkpoints import FakeQuery, Faults, FaultyStore

HERE = "rehearsal-2"


def fork(store: Store, batches: int = 3, query: str = "orders") -> Fork:
    return fork_query(store, from_run=1, rehearsal=HERE, query=query, batches=batches)


def logs(store: Store, tree: str = f"{HERE}/queries/orders") -> set[str]:
    keys = {entry.key.removeprefix(f"{tree}/") for entry in store.list(f"{tree}/")}
    return {key for key in keys if not key.startswith("state/")}


def test_the_fork_stands_k_batches_back_and_what_they_read_waits_beside_it(store: Store) -> None:
    query = FakeQuery(store=store).batches(8)
    query.snapshot(3)
    query.snapshot(7)
    query.begin()
    query.write_state()
    made = fork(store)
    assert made == Fork(query="orders", base=4, planned=(5, 6, 7))
    assert last_batches(store, HERE)["orders"] == (4, 4)
    assert store.children(f"{HERE}/_planned/orders") == ["5", "6", "7"]
    root = f"{HERE}/queries/"
    listed = {entry.key.removeprefix(root): entry for entry in store.list(root)}
    assert not any("/7_" in key or "/6_" in key for key in listed), "state of later batches"
    assert {f"sources/0/{number}" for number in range(8)} <= logs(store)
    assert "sources/0/8" not in logs(store), "the incumbent's own next batch"
    selection = select_query(store, listed, "orders", root, 4)
    check_same(
        selection,
        {key.removeprefix("orders/") for key in listed} - {f"orders/sources/0/{n}"[7:] for n in (5, 6, 7)},
    )


def test_the_fork_has_a_lineage_of_its_own_and_the_original_keeps_its(store: Store) -> None:
    FakeQuery(store=store).batches(5)
    before = {entry.key: entry.etag for entry in store.list("run-1/")}
    fork(store)
    assert json.loads(store.get(f"{HERE}/queries/orders/metadata"))["id"] != "q-1"
    assert {entry.key: entry.etag for entry in store.list("run-1/")} == before


def test_a_planned_batch_is_laid_down_as_it_was_recorded(store: Store) -> None:
    FakeQuery(store=store).batches(6)
    made = fork(store)
    lay_down(store, rehearsal=HERE, query="orders", batch=made.planned[0])
    assert last_batches(store, HERE)["orders"] == (3, 2)
    assert store.get(f"{HERE}/queries/orders/offsets/3") == store.get("run-1/queries/orders/offsets/3")


def test_paths_in_the_state_lead_into_the_fork(store: Store) -> None:
    query = FakeQuery(store=store).batches(5)
    query.transform_with_state()
    fork(store)
    assert b"/rehearsal-2/queries/orders/state" in store.get(f"{HERE}/queries/orders/state/0/_metadata/v2/0")


def test_a_young_query_is_repeated_from_its_beginning(store: Store) -> None:
    FakeQuery(store=store).batches(2)
    assert fork(store) == Fork(query="orders", base=-1, planned=(0, 1), fewer="the query has begun 2 so far")
    assert logs(store) == {"metadata", "sources/0/0", "sources/0/1"}


def test_a_first_batch_that_is_not_committed_yet_can_be_repeated(store: Store) -> None:
    FakeQuery(store=store).begin()
    assert fork(store).planned == (0,)


def test_a_query_that_the_incumbent_does_not_have_is_new(store: Store) -> None:
    FakeQuery(store=store).batches(2)
    store.put(f"{HERE}/queries/other/offsets/0", b"left by an earlier try")
    assert fork(store, query="other") == Fork(query="other", base=-1, planned=(), is_new=True)
    assert logs(store, f"{HERE}/queries/other") == set()


@pytest.mark.parametrize(
    ("gone", "base", "what"),
    [
        (["offsets/2", "commits/2"], 4, "offsets/2"),
        (["commits/3"], 4, "commits/3"),
        (["sources/0/4"], 4, "sources/0/4"),
        (["sources/0/6"], 6, "sources/0/6"),
    ],
)
def test_what_is_purged_already_makes_the_replay_shorter(
    store: Store, gone: list[str], base: int, what: str
) -> None:
    query = FakeQuery(store=store).batches(8)
    for version in range(2, 8):
        query.snapshot(version)
    query.put("sources/0/5.compact", b"v1\n{}")
    query.put("sources/0/7.compact", b"v1\n{}")
    query.delete(*gone)
    made = fork(store, batches=4)
    assert made.base >= base
    assert made.planned == tuple(range(made.base + 1, 8)) or made.empty
    assert made.fewer is not None
    assert what in made.fewer


def test_with_nothing_left_to_repeat_one_empty_batch_is_run(store: Store) -> None:
    query = FakeQuery(store=store).batches(6)
    query.snapshot(6)
    query.delete(*(query.file(version, part, "changelog") for version in range(1, 6) for part in (0, 1)))
    made = fork(store)
    assert (made.base, made.planned, made.empty) == (5, (6,), True)
    assert store.get(f"{HERE}/_planned/orders/6") == store.get("run-1/queries/orders/offsets/5")
    assert fork(store, batches=0).empty, "where nothing may be repeated"


def test_an_earlier_try_is_replaced(store: Store) -> None:
    query = FakeQuery(store=store).batches(5)
    fork(store)
    store.put(f"{HERE}/queries/orders/offsets/2", b"laid down")
    store.put(f"{HERE}/queries/orders/commits/2", b"and committed by the candidate that died")
    query.batches(4)
    assert fork(store) == Fork(query="orders", base=5, planned=(6, 7, 8))
    assert last_batches(store, HERE)["orders"] == (5, 5)
    assert store.children(f"{HERE}/_planned/orders") == ["6", "7", "8"]


def test_when_spark_cleans_up_meanwhile_the_fork_begins_again_from_a_newer_batch(tmp_path: Path) -> None:
    faults = Faults()
    store = FaultyStore(tmp_path / "store", faults)
    query = FakeQuery(store=store).batches(6)

    def clean_up(_operation: str, _key: str) -> None:
        faults.act = None
        query.batches(3)
        query.snapshot(9)
        query.delete(*(f"{log}/{batch}" for log in ("offsets", "commits") for batch in range(5)))

    faults.at, faults.act = faults.steps + 4, clean_up
    made = fork(store)
    assert made.base >= 5
    assert made.planned[-1] >= 8


def test_a_damaged_checkpoint_is_told_and_not_tried_for_ever(store: Store) -> None:
    query = FakeQuery(store=store).batches(4)
    query.delete("metadata")
    with pytest.raises(CheckpointDamagedError, match="lacks"):
        fork(store)


def test_only_rehearsals_are_ever_removed(store: Store) -> None:
    FakeQuery(store=store).batches(5)
    fork(store)
    for key in ("rehearsal-1/queries/x/metadata", "rehearsal-3/_attempts/1", "rehearsals/x", "_savepoints/s"):
        store.put(key, b"x")
    assert sweep_rehearsals(store, before=3) == ["rehearsal-1", "rehearsal-2"]
    assert {name.rstrip("/") for name in store.children("")} == {
        "run-1", "rehearsal-3", "rehearsals", "_savepoints",
    }  # fmt: skip
    for name in ("run-1", "rehearsal-1/../run-1", "", "rehearsal-x"):
        with pytest.raises(ValueError, match="not a rehearsal"):
            discard_fork(store, name)
        with pytest.raises(ValueError, match="not a rehearsal"):
            fork_query(store, from_run=1, rehearsal=name, query="orders", batches=1)


def test_a_discarded_fork_leaves_claims_and_logs(store: Store) -> None:
    FakeQuery(store=store).batches(5)
    fork(store)
    store.put(f"{HERE}/_attempts/1", b"{}")
    store.put(f"{HERE}/_logs/attempt-1.log", b"why")
    discard_fork(store, HERE)
    assert {entry.key for entry in store.list(f"{HERE}/")} == {
        f"{HERE}/_attempts/1", f"{HERE}/_logs/attempt-1.log",
    }  # fmt: skip


def test_state_is_copied_ahead_and_the_seed_brings_the_difference(tmp_path: Path) -> None:
    faults = Faults()
    store = FaultyStore(tmp_path / "store", faults)
    query = FakeQuery(store=store).batches(6)
    query.snapshot(4)
    store.put("run-1/_attempts/1", b"{}")
    # 12 changelogs and 2 snapshots, each with its checksum; 2 parts of the snapshots; 3 logs of 6 entries.
    assert copy_ahead(store, 1, 2) == 48
    assert copy_ahead(store, 1, 2) == 0
    assert newest_run(store, "") == 1, "what is copied ahead is no run to go on from"
    query.batches(1)
    copied: list[str] = []
    faults.at, faults.act = None, None
    original, store.copy = store.copy, lambda one: copied.append(one.target) or original(one)
    seeded = seed_run(store, 1, 2)
    assert seeded.batches["orders"] == (6, 6)
    changelogs = (query.file(7, part, "changelog") for part in (0, 1))
    added = {f"{file}{suffix}" for file in changelogs for suffix in ("", ".crc")}
    added |= {f"{log}/6" for log in ("offsets", "commits", "sources/0")}
    told = {key.removeprefix("run-2/queries/orders/") for key in copied}
    assert {key for key in told if key.startswith(("offsets/", "commits/", "sources/", "state/"))} == added
    assert copy_ahead(store, 1, 2) == 0, "the run is seeded"


def test_what_the_source_purged_since_it_was_copied_ahead_does_not_stay(store: Store) -> None:
    query = FakeQuery(store=store).batches(4)
    copy_ahead(store, 1, 2)
    store.delete_many(["run-1/queries/orders/offsets/0", "run-1/queries/orders/commits/0"])
    query.batches(1)
    seed_run(store, 1, 2)
    assert logs(store, "run-2/queries/orders") == logs(store, "run-1/queries/orders")
    assert last_batches(store, 2) == {"orders": (4, 4)}


def test_nothing_is_copied_into_a_run_that_is_in_use(store: Store) -> None:
    FakeQuery(store=store).batches(2)
    store.put("run-2/_attempts/1", b"{}")
    with pytest.raises(SeedError, match="in use"):
        copy_ahead(store, 1, 2)
