"""Where a rollback begins: the table of docs/concepts/upgrades.md, from the logs of two runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace_jobs.keeper.main import main
from headrace_jobs.store import (
    Store,
    is_seeded,
    last_batches,
    open_store,
    read_seed,
    seed_after_trial,
    seed_run,
)
from headrace_jobs.store.errors import LineageError, SeedError
from headrace_jobs.store.runs import claim_attempt, tell_sink


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "ns/job/uid"))


def write(
    store: Store, run: str, query: str, *, offsets: range, commits: range, by: str, sources: int = 1
) -> None:
    root = f"{run}/queries/{query}"
    for batch in offsets:
        ends = "\n".join(f'{{"logOffset":{batch}}}' for _ in range(sources))
        store.put(f"{root}/offsets/{batch}", f'v1\n{{"by":"{by}"}}\n{ends}'.encode())
        store.put(f"{root}/sources/0/{batch}", f"v1\n{by}".encode())
        store.put(f"{root}/state/0/_stateSchema/{batch}", by.encode())
    for batch in commits:
        store.put(f"{root}/commits/{batch}", b"v1\n{}")
        store.put(f"{root}/state/0/0/{batch + 1}.changelog", by.encode())


def incumbent(store: Store, query: str = "q", *, pending: bool = False) -> None:
    store.put(f"run-1/queries/{query}/metadata", json.dumps({"id": f"lineage-{query}"}).encode())
    write(store, "run-1", query, offsets=range(4 + pending), commits=range(4), by="old")


def candidate(store: Store) -> None:
    seed_run(store, 1, 2)
    claim_attempt(store, 2, 1, {})


def content(store: Store, run: int, query: str = "q") -> dict[str, bytes]:
    prefix = f"run-{run}/queries/{query}/"
    return {entry.key.removeprefix(prefix): store.get(entry.key) for entry in store.list(prefix)}


def lineage(store: Store, run: int, query: str = "q") -> str:
    return json.loads(store.get(f"run-{run}/queries/{query}/metadata"))["id"]


def roll_back(store: Store, **more):
    return seed_after_trial(store, incumbent=1, candidate=2, to_run=3, **more)


def test_a_candidate_that_wrote_nothing_leaves_the_handover_point(store: Store) -> None:
    incumbent(store)
    candidate(store)
    store.put("run-2/queries/q/state/0/_stateSchema/4", b"new")  # planned a batch, and died
    seed = roll_back(store)
    assert (seed.ways, seed.batches) == ({"q": "Handover"}, {"q": (3, 3)})
    assert content(store, 3) == content(store, 1)


def test_a_pending_batch_of_the_incumbent_is_no_batch_of_the_candidate(store: Store) -> None:
    incumbent(store, pending=True)
    candidate(store)
    assert roll_back(store).ways == {"q": "Handover"}
    assert last_batches(store, 3) == {"q": (4, 3)}


def test_the_entry_of_a_batch_that_was_begun_is_carried_and_nothing_else(store: Store) -> None:
    incumbent(store)
    candidate(store)
    write(store, "run-2", "q", offsets=range(4, 5), commits=range(0), by="new")
    store.put("run-2/queries/q/state/0/0/5.changelog", b"new")
    seed = roll_back(store)
    assert (seed.ways, seed.batches) == ({"q": "Carried"}, {"q": (4, 3)})
    new = content(store, 2)
    assert content(store, 3) == {
        **content(store, 1),
        "offsets/4": new["offsets/4"],
        "sources/0/4": new["sources/0/4"],  # what the entry points to
    }
    assert lineage(store, 3) == lineage(store, 1)


def test_what_was_committed_is_never_gone_back_behind_under_the_same_lineage(store: Store) -> None:
    incumbent(store)
    candidate(store)
    write(store, "run-2", "q", offsets=range(4, 7), commits=range(4, 6), by="new")
    seed = roll_back(store)
    assert (seed.ways, seed.batches) == ({"q": "Forward"}, {"q": (6, 5)})
    assert content(store, 3) == content(store, 2)


def test_rewound_the_batches_have_another_lineage(store: Store) -> None:
    incumbent(store)
    candidate(store)
    write(store, "run-2", "q", offsets=range(4, 7), commits=range(4, 6), by="new")
    seed = roll_back(store, rewind=True)
    assert (seed.ways, seed.batches) == ({"q": "Rewound"}, {"q": (3, 3)})
    assert lineage(store, 3) != lineage(store, 1)
    without = {key: value for key, value in content(store, 3).items() if key != "metadata"}
    assert without == {key: value for key, value in content(store, 1).items() if key != "metadata"}
    assert roll_back(store, rewind=True) == seed, "repeated, it is the same"


def test_an_entry_of_other_sources_cannot_be_replayed_by_the_old_version(store: Store) -> None:
    incumbent(store)
    candidate(store)
    write(store, "run-2", "q", offsets=range(4, 5), commits=range(0), by="new", sources=2)
    assert roll_back(store).ways == {"q": "Rewound"}
    assert lineage(store, 3) != lineage(store, 1)


def kafka(store: Store, run: int, batch: int, *sources: dict) -> None:
    ends = "\n".join(json.dumps(source) for source in sources)
    store.put(f"run-{run}/queries/q/offsets/{batch}", f'v1\n{{"conf":{{}}}}\n{ends}'.encode())


@pytest.mark.parametrize(
    ("before", "pending", "way"),
    [
        ([{"a": {"0": 5}}], [{"a": {"0": 9}}], "Carried"),
        ([{"a": {"0": 5}}], [{"a": {"0": 9, "1": 3}}], "Carried"),  # the topic got another partition
        ([{"a": {"0": 5}}], [{"b": {"0": 9}}], "Rewound"),
        ([{"a": {"0": 5}}], [{"a": {"0": 9}, "b": {"0": 1}}], "Rewound"),
        ([{"a": {"0": 5}, "b": {"0": 1}}], [{"a": {"0": 9}}], "Rewound"),
        ([{"a": {"0": 5, "1": 5}}], [{"a": {"0": 9}}], "Rewound"),
        ([{"a": {"0": 5}}, {"b": {"0": 1}}], [{"b": {"0": 1}}, {"a": {"0": 9}}], "Rewound"),
        ([{"reservoirId": "x", "index": 1}], [{"reservoirId": "x", "index": 2}], "Carried"),
        ([{"reservoirId": "x", "index": 1}], [{"reservoirId": "y", "index": 2}], "Rewound"),
        ([{"logOffset": 3}], [{"logOffset": 4}], "Carried"),
    ],
)
def test_an_entry_of_other_topics_is_never_carried(store: Store, before, pending, way) -> None:
    """The old version would plan its next batch without them, and Spark calls that data loss, for ever."""
    incumbent(store)
    kafka(store, 1, 3, *before)
    candidate(store)
    kafka(store, 2, 4, *pending)
    assert roll_back(store).ways == {"q": way}
    assert (lineage(store, 3) == lineage(store, 1)) is (way == "Carried")


def test_each_query_is_judged_by_itself(store: Store) -> None:
    for query in ("idle", "begun", "far", "dropped"):
        incumbent(store, query)
    candidate(store)
    store.delete_tree("run-2/queries/dropped")
    write(store, "run-2", "begun", offsets=range(4, 5), commits=range(0), by="new")
    write(store, "run-2", "far", offsets=range(4, 6), commits=range(4, 6), by="new")
    store.put("run-2/queries/added/metadata", b'{"id":"lineage-added"}')
    write(store, "run-2", "added", offsets=range(2), commits=range(2), by="new")
    seed = roll_back(store)
    assert seed.ways == {
        "added": "Forward",
        "begun": "Carried",
        "dropped": "Handover",
        "far": "Forward",
        "idle": "Handover",
    }
    # Only what has gone too far to be read is rewound.
    seed = seed_after_trial(store, incumbent=1, candidate=2, to_run=4, rewind=True)
    assert {query for query, way in seed.ways.items() if way == "Rewound"} == {"begun", "far"}


def test_a_query_that_never_had_a_batch(store: Store) -> None:
    store.put("run-1/queries/q/metadata", b'{"id":"x"}')
    candidate(store)
    write(store, "run-2", "q", offsets=range(1), commits=range(0), by="new")
    assert roll_back(store).ways == {"q": "Carried"}
    assert last_batches(store, 3) == {"q": (0, None)}


def test_another_lineage_is_the_newer_truth(store: Store) -> None:
    """After a rewind, a later candidate is compared with a run of the lineage before it."""
    incumbent(store)
    candidate(store)
    store.put("run-2/queries/q/metadata", b'{"id":"forked"}')
    assert roll_back(store).ways == {"q": "Forward"}


def test_the_file_sink_cannot_be_rewound(store: Store) -> None:
    incumbent(store)
    tell_sink(store, 1, "q", "FileSink[file:/out]")
    candidate(store)
    write(store, "run-2", "q", offsets=range(4, 6), commits=range(4, 6), by="new")
    with pytest.raises(LineageError, match="bound to the query's batch numbers"):
        roll_back(store, rewind=True)
    assert not is_seeded(store, 3)
    assert roll_back(store).ways == {"q": "Forward"}


def test_a_candidate_that_is_not_there_is_no_candidate_that_wrote_nothing(store: Store) -> None:
    incumbent(store)
    with pytest.raises(SeedError, match="there is no"):
        roll_back(store)


def test_the_code_comes_along_byte_by_byte(store: Store) -> None:
    incumbent(store)
    store.put("run-1/_code/abc/job.py", b"print(1)")
    store.put("run-1/_code/pinned.json", b'{"files":{"file/job.py":"abc"}}')
    candidate(store)
    store.put("run-2/_code/pinned.json", b'{"files":{}}')
    roll_back(store, code_of=1)
    assert store.get("run-3/_code/abc/job.py") == b"print(1)"
    assert store.get("run-3/_code/pinned.json") == store.get("run-1/_code/pinned.json")


def test_the_keeper_tells_what_it_did(store: Store, tmp_path: Path) -> None:
    incumbent(store)
    candidate(store)
    write(store, "run-2", "q", offsets=range(4, 7), commits=range(4, 6), by="new")
    result = tmp_path / "result"
    flags = ["--from=uid/run-2", "--incumbent=uid/run-1", "--to=uid/run-3", "--code-of=uid/run-1"]
    code = main(["rollback", f"--store={tmp_path / 'ns/job'}", *flags, f"--result={result}"])
    told = json.loads(result.read_text())
    assert (code, told["reason"]) == (0, "Completed")
    assert told["seed"]["ways"] == {"q": "Forward"}
    assert told["seed"]["batches"] == {"q": [6, 5]}
    kept = read_seed(store, 3)
    assert kept is not None and kept.ways == {"q": "Forward"}
