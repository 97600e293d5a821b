"""What a change of the number of state partitions leaves in a checkpoint, and what others make of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace_jobs.store import Store, last_batches, open_store, seed_after_trial, seed_run
from headrace_jobs.store.partitions import is_later, states_of, undo_unfinished
from headrace_jobs.store.rehearsals import fork_query
from headrace_jobs.store.runs import claim_attempt, tell_sink
from headrace_jobs.store.savepoints.selection import select

ID = "0665033e-3267-49a4-aaa8-0b9492467ff1"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "ns/job/uid"))


def entry(batch: int, partitions: int) -> bytes:
    conf = {
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.RocksDBStateStoreProvider",
    }
    return f'v1\n{json.dumps({"conf": conf})}\n{{"logOffset":{batch}}}'.encode()


def begin(store: Store, run: str, batch: int, *, partitions: int = 2, query: str = "q") -> None:
    store.put(f"{run}/queries/{query}/offsets/{batch}", entry(batch, partitions))
    store.put(f"{run}/queries/{query}/sources/0/{batch}", b"v1")


def commit(store: Store, run: str, batch: int, *, partitions: int = 2, query: str = "q") -> None:
    root = f"{run}/queries/{query}"
    ids = {"0": [[ID] for _ in range(partitions)]}
    store.put(f"{root}/commits/{batch}", f"v2\n{json.dumps({'stateUniqueIds': ids})}".encode())
    for partition in range(partitions):
        store.put(f"{root}/state/0/{partition}/{batch + 1}_{ID}.changelog", b"")


def a_run(store: Store, query: str = "q", *, batches: int = 4) -> None:
    store.put(f"run-1/queries/{query}/metadata", json.dumps({"id": f"lineage-{query}"}).encode())
    for batch in range(batches):
        begin(store, "run-1", batch, query=query)
        commit(store, "run-1", batch, query=query)


def split(store: Store, run: str, batch: int, partitions: int, *, committed: bool = True) -> None:
    """As Spark writes it."""
    root = f"{run}/queries/q"
    store.put(f"{root}/offsets/{batch}", entry(batch - 1, partitions))
    store.put(f"{root}/state/0/_metadata/v2/{batch}", b'v2\n{"stateStoreInfo":[]}')
    for partition in range(partitions):
        store.put(f"{root}/state/0/{partition}/{batch + 1}_{ID}.zip", b"")
        store.put(f"{root}/state/0/{partition}/{batch + 1}_{ID}.zip.crc", b"")
    if committed:
        ids = {"0": [[ID] for _ in range(partitions)]}
        store.put(f"{root}/commits/{batch}", f"v2\n{json.dumps({'stateUniqueIds': ids})}".encode())


def content(store: Store, run: int) -> dict[str, bytes]:
    prefix = f"run-{run}/queries/q/"
    return {found.key.removeprefix(prefix): store.get(found.key) for found in store.list(prefix)}


def candidate(store: Store) -> None:
    seed_run(store, 1, 2)
    claim_attempt(store, 2, 1, {})


def roll_back(store: Store, **more):
    return seed_after_trial(store, incumbent=1, candidate=2, to_run=3, **more)


def test_the_number_is_that_of_the_last_commit(store: Store) -> None:
    a_run(store)
    tell_sink(store, 1, "q", "FileSink[/out]")
    (state,) = states_of(store, 1)
    assert (state.name, state.partitions, state.provider) == ("q", 2, "RocksDBStateStoreProvider")
    assert (state.stateful, state.sink, state.last.pending) == (True, "FileSink[/out]", False)
    split(store, "run-1", 4, 5)
    begin(store, "run-1", 5, partitions=5)
    (state,) = states_of(store, 1)
    assert (state.partitions, state.last.pending) == (5, True)


def test_a_query_without_state_or_without_a_batch(store: Store) -> None:
    begin(store, "run-1", 0)
    store.put("run-1/queries/idle/metadata", b"{}")
    (state,) = states_of(store, 1)
    assert (state.name, state.stateful, state.partitions) == ("q", False, 2)


@pytest.mark.parametrize(
    ("key", "later"),
    [
        (f"state/0/0/4_{ID}.changelog", False),
        (f"state/0/0/5_{ID}.zip", True),
        (f"state/0/0/5_{ID}.zip.crc", True),
        ("state/0/3/left-keyToNumValues/5.delta", True),
        ("state/0/_metadata/v2/3", False),
        ("state/0/_metadata/v2/4", True),
        ("state/0/_stateSchema/default/4_" + ID, True),
        ("state/0/_metadata/metadata", False),
        ("state/0/0/SSTs/000012-" + ID + ".sst", False),
        ("offsets/4", False),
    ],
)
def test_what_a_batch_after_the_third_wrote(key: str, later: bool) -> None:
    assert is_later(key, 3) is later


def test_half_of_it_is_undone_without_a_trace_and_a_batch_is_not(store: Store) -> None:
    a_run(store)
    before = content(store, 1)
    assert undo_unfinished(store, 1) == []
    split(store, "run-1", 4, 5, committed=False)
    assert undo_unfinished(store, 1) == ["q"]
    assert content(store, 1) == before
    begin(store, "run-1", 4)
    assert undo_unfinished(store, 1) == []
    assert last_batches(store, 1)["q"].pending


def test_cut_off_while_it_is_undone_it_is_undone_again(store: Store) -> None:
    a_run(store)
    before = content(store, 1)
    split(store, "run-1", 4, 5, committed=False)
    store.delete_many([f"run-1/queries/q/state/0/4/5_{ID}.zip"])
    assert undo_unfinished(store, 1) == ["q"]
    assert content(store, 1) == before


def test_the_next_run_does_not_inherit_half_of_it(store: Store) -> None:
    a_run(store)
    before = content(store, 1)
    split(store, "run-1", 4, 5, committed=False)
    assert seed_run(store, 1, 2).batches == {"q": (3, 3)}
    assert content(store, 2) == before


def test_a_savepoint_leaves_half_of_it_out(store: Store) -> None:
    a_run(store)
    split(store, "run-1", 4, 5, committed=False)
    listed = content(store, 1)
    selection = select(listed, 3, lambda keys: {key: listed[key] for key in keys})
    assert (selection.batch, selection.pending, selection.partitions) == (3, False, 2)
    assert "offsets/4" not in selection.keys


# ---- rollbacks: the table of docs/concepts/upgrades.md


def test_split_and_nothing_else_is_nothing_done(store: Store) -> None:
    a_run(store)
    candidate(store)
    split(store, "run-2", 4, 5)
    seed = roll_back(store)
    assert (seed.ways, seed.batches) == ({"q": "Handover"}, {"q": (3, 3)})
    assert content(store, 3) == content(store, 1)


def test_half_split_is_nothing_done(store: Store) -> None:
    a_run(store)
    candidate(store)
    split(store, "run-2", 4, 5, committed=False)
    assert roll_back(store).ways == {"q": "Handover"}
    assert content(store, 3) == content(store, 1)


def test_a_batch_begun_after_it_is_replayed_under_the_new_number(store: Store) -> None:
    a_run(store)
    candidate(store)
    split(store, "run-2", 4, 5)
    begun = content(store, 2)
    begin(store, "run-2", 5, partitions=5)
    store.put(f"run-2/queries/q/state/0/0/6_{ID}.changelog", b"left behind")
    store.put("run-2/queries/q/state/0/_metadata/v2/5", b"v2\n{}")
    seed = roll_back(store)
    assert (seed.ways, seed.batches) == ({"q": "Forward"}, {"q": (5, 4)})
    moved = {key: value for key, value in content(store, 3).items() if not key.startswith("state/0/_meta")}
    assert moved == {
        **{key: value for key, value in begun.items() if not key.startswith("state/0/_meta")},
        "offsets/5": entry(5, 5),
        "sources/0/5": b"v1",
    }
    assert "state/0/_metadata/v2/5" not in content(store, 3)


def test_what_was_committed_after_it_goes_forward_and_rewound_it_is_the_old_number(store: Store) -> None:
    a_run(store)
    candidate(store)
    split(store, "run-2", 4, 5)
    begin(store, "run-2", 5, partitions=5)
    commit(store, "run-2", 5, partitions=5)
    seed = roll_back(store)
    assert (seed.ways, seed.batches) == ({"q": "Forward"}, {"q": (5, 5)})
    rewound = seed_after_trial(store, incumbent=1, candidate=2, to_run=4, rewind=True)
    assert (rewound.ways, rewound.batches) == ({"q": "Rewound"}, {"q": (3, 3)})
    assert states_of(store, 4)[0].partitions == 2


def test_one_query_may_be_split_and_the_other_not_yet(store: Store) -> None:
    a_run(store)
    a_run(store, "other")
    candidate(store)
    split(store, "run-2", 4, 5)
    assert roll_back(store).ways == {"q": "Handover", "other": "Handover"}


# ---- rehearsals


@pytest.mark.parametrize(("batches", "base"), [(3, 4), (2, 4), (1, 5)])
def test_batches_are_not_repeated_across_it(store: Store, batches: int, base: int) -> None:
    a_run(store)
    split(store, "run-1", 4, 5)
    for batch in (5, 6):
        begin(store, "run-1", batch, partitions=5)
        commit(store, "run-1", batch, partitions=5)
    store.put("run-1/queries/q/sources/0/4", b"v1")
    for partition in range(5):  # a snapshot that can be opened is not what this is about
        store.delete_many([f"run-1/queries/q/state/0/{partition}/5_{ID}.zip"])
        store.put(f"run-1/queries/q/state/0/{partition}/5_{ID}.changelog", b"")
        for version in range(1, 5):
            store.put(f"run-1/queries/q/state/0/{partition}/{version}_{ID}.changelog", b"")
    fork = fork_query(store, from_run="run-1", rehearsal="rehearsal-2", query="q", batches=batches)
    assert (fork.base, fork.planned) == (max(base, 6 - batches), tuple(range(max(base, 6 - batches) + 1, 7)))
    if batches > 2:
        assert fork.fewer == "its state was split into another number of partitions in batch 4"
