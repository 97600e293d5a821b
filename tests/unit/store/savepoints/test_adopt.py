"""Checkpoints that nobody made a savepoint of: adopted by a copy, or refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace_jobs.store import (
    Copy,
    LastBatches,
    Store,
    is_seeded,
    last_batches,
    open_store,
    read_seed,
    remove_runs,
    seed_run,
)
from headrace_jobs.store.errors import (
    BadLocationError,
    CheckpointDamagedError,
    LineageError,
    SavepointError,
    SeedError,
)
from headrace_jobs.store.runs import claim_attempt, tell_sink, told_sinks
from headrace_jobs.store.savepoints import adopt_checkpoint, restore_savepoint, seed_from
from tests.unit.store.savepoints.checkpoints import HERE, FakeQuery, Faults, FaultyStore, Killed, take


def plain(store: Store, directory: str = "old/ckpt", *, batches: int = 4, **more: object) -> FakeQuery:
    """As Spark leaves it by itself: no run around it, and no name of its query."""
    query = FakeQuery(store=store, run="tmp", name="x", **more).batches(batches)  # type: ignore[arg-type]
    query.snapshot(3)
    for entry in list(store.list("tmp/queries/x/")):
        store.put(entry.key.replace("tmp/queries/x", directory), store.get(entry.key))
    store.delete_tree("tmp")
    return query


def lineage_of(store: Store, run: str, query: str = "orders") -> str:
    return json.loads(store.get(f"{run}/queries/{query}/metadata"))["id"]


def tree(store: Store, prefix: str) -> dict[str, bytes]:
    return {entry.key: store.get(entry.key) for entry in store.list(prefix)}


def test_a_plain_checkpoint_keeps_its_lineage_and_gets_a_name(store: Store) -> None:
    plain(store)
    before = tree(store, "old/")
    seed = adopt_checkpoint(store, checkpoint="old/ckpt", run="u/run-1", lineage="auto", query="orders")
    assert last_batches(store, "u/run-1") == {"orders": (3, 3)}
    assert lineage_of(store, "u/run-1") == "q-1"
    assert (seed.binding, seed.lineage, seed.from_run) == (True, "keep", "old/ckpt")
    assert tree(store, "old/") == before, "the original is never written to"
    assert (
        adopt_checkpoint(store, checkpoint="old/ckpt", run="u/run-1", lineage="auto", query="orders") == seed
    )


@pytest.mark.parametrize("removed", [False, True])
def test_a_plain_checkpoint_that_was_gone_on_with_here_is_adopted_again_as_a_fork(
    store: Store, removed: bool
) -> None:
    """The first job went further: with the same lineage its sinks would drop the batches of the second."""
    plain(store)
    how = {"checkpoint": "old/ckpt", "lineage": "auto", "query": "orders"}
    adopt_checkpoint(store, run="u1/run-1", **how)
    FakeQuery(store=store, run="u1/run-1", begun=3, committed=3).batches(2)
    if removed:
        remove_runs(store, "u1")
    assert adopt_checkpoint(store, run="u2/run-1", **how).lineage == "new"
    assert lineage_of(store, "u2/run-1") != "q-1"


@pytest.mark.parametrize("removed", [False, True])
def test_a_plain_checkpoint_of_a_file_sink_is_not_adopted_twice(store: Store, removed: bool) -> None:
    """What it writes to is known from the first time only."""
    plain(store)
    how = {"checkpoint": "old/ckpt", "lineage": "auto", "query": "orders"}
    adopt_checkpoint(store, run="u1/run-1", **how)
    tell_sink(store, "u1/run-1", "orders", "FileSink[/out]")
    FakeQuery(store=store, run="u1/run-1", begun=3, committed=3).batches(2)
    if removed:
        remove_runs(store, "u1")
    with pytest.raises(LineageError, match=r"FileSink\[/out\]"):
        adopt_checkpoint(store, run="u2/run-1", **how)


def test_without_a_name_the_last_part_of_its_path_is_it(store: Store) -> None:
    plain(store, "old/clicks")
    adopt_checkpoint(store, checkpoint="old/clicks", run=1, lineage="auto")
    assert last_batches(store, 1) == {"clicks": (3, 3)}
    plain(store, "old/my clicks")
    with pytest.raises(SavepointError, match=r"'my clicks' is no name for a query: say spec.startFrom.query"):
        adopt_checkpoint(store, checkpoint="old/my clicks", run=2, lineage="auto")


def test_paths_inside_point_into_the_copy(store: Store) -> None:
    query = plain(store)
    schema = "state/0/_stateSchema/default/0_schema"
    store.put(f"old/ckpt/{schema}", b"schema")
    path = f"{store.url.replace('file://', 'file:')}/old/ckpt/{schema}"
    content = b"v2\n" + json.dumps({"stateStoreInfo": [{"stateSchemaFilePaths": [path]}]}).encode()
    store.put("old/ckpt/state/0/_metadata/v2/0", content)
    del query
    adopt_checkpoint(store, checkpoint="old/ckpt", run=1, lineage="auto", query="orders")
    moved = store.get("run-1/queries/orders/state/0/_metadata/v2/0")
    assert b"/run-1/queries/orders/state/0/_stateSchema/default/0_schema" in moved
    elsewhere = content.replace(b"/old/ckpt/", b"/older/ckpt/")
    store.put("old/ckpt/state/0/_metadata/v2/0", elsewhere)
    with pytest.raises(SeedError, match="moved by hand"):
        adopt_checkpoint(store, checkpoint="old/ckpt", run=2, lineage="auto", query="orders")


def test_what_is_newer_than_the_last_commit_is_left_behind_and_the_pending_batch_is_carried(
    store: Store,
) -> None:
    query = FakeQuery(store=store, run="shop/clicks/old/run-3").batches(3)
    query.begin()
    query.write_state()
    query.write_state(attempt=1)
    adopt_checkpoint(
        store, checkpoint=query.run, run="shop/clicks/new/run-1", lineage="auto", job="shop/clicks"
    )
    assert last_batches(store, "shop/clicks/new/run-1") == {"orders": (3, 2)}
    copied = tree(store, "shop/clicks/new/run-1/queries/")
    assert not [key for key in copied if "/4_" in key]


@pytest.mark.parametrize(
    ("job", "kept"), [("shop/clicks", True), ("shop/views", False), ("web/clicks", False)]
)
def test_a_run_of_the_same_job_goes_on_and_one_of_another_is_a_fork(
    store: Store, job: str, kept: bool
) -> None:
    query = FakeQuery(store=store, run="shop/clicks/old/run-3").batches(3)
    seed = adopt_checkpoint(store, checkpoint=query.run, run=f"{job}/new/run-1", lineage="auto", job=job)
    assert (lineage_of(store, f"{job}/new/run-1") == "q-1") is kept
    assert seed.lineage == ("keep" if kept else "new")


def test_a_run_that_others_went_on_from_is_a_fork_whatever_uid_they_had(store: Store) -> None:
    """Sinks that know the lineage would drop the batches that come twice."""
    old = FakeQuery(store=store, run="shop/clicks/u1/run-3").batches(3)
    FakeQuery(store=store, run="shop/clicks/u2/run-1").batches(5)
    seed = adopt_checkpoint(
        store, checkpoint=old.run, run="shop/clicks/u3/run-1", lineage="auto", job="shop/clicks"
    )
    assert seed.lineage == "new"


def test_what_it_writes_to_goes_with_it_and_a_file_sink_is_not_forked(store: Store) -> None:
    query = FakeQuery(store=store, run="shop/clicks/u1/run-1").batches(3)
    tell_sink(store, query.run, "orders", "FileSink[s3a://lake/x]")
    with pytest.raises(LineageError, match=r"FileSink\[s3a://lake/x\]"):
        adopt_checkpoint(
            store, checkpoint=query.run, run="shop/views/u/run-1", lineage="auto", job="shop/views"
        )
    to = "shop/clicks/u2/run-1"
    adopt_checkpoint(store, checkpoint=query.run, run=to, lineage="auto", job="shop/clicks")
    assert told_sinks(store, to) == {"orders": "FileSink[s3a://lake/x]"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("metadata", "neither a savepoint nor a checkpoint"),
        ("offsets/2", "asynchronous progress tracking leaves such gaps"),
        ("offsets/3", "its offsets are not there"),
        ("state/0/1", "is missing"),
    ],
)
def test_what_spark_could_not_start_from_is_refused(store: Store, change: str, words: str) -> None:
    plain(store)
    for entry in list(store.list("old/ckpt/")):
        if entry.key.removeprefix("old/ckpt/").startswith(change):
            store.delete_many([entry.key])
    with pytest.raises((CheckpointDamagedError, SavepointError), match=words):
        adopt_checkpoint(store, checkpoint="old/ckpt", run=1, lineage="auto", query="orders")
    assert not is_seeded(store, 1)


def with_provider(query: FakeQuery, store: Store, provider: str) -> None:
    for entry in list(store.list("old/ckpt/offsets/")):
        content = store.get(entry.key).decode().replace("org.example.RocksDBStateStoreProvider", provider)
        store.put(entry.key, content.encode())
    for entry in list(store.list("old/ckpt/state/")):
        version = entry.key.rpartition("/")[2].partition(".")[0]
        store.delete_many([entry.key])
        if entry.key.endswith(".changelog"):
            store.put(f"{entry.key.rpartition('/')[0]}/{version}.delta", b"changes")
    assert query.format_version == 1


@pytest.mark.parametrize("committed", [True, False])
def test_state_of_another_provider_is_refused_with_the_way_out(store: Store, committed: bool) -> None:
    """Spark itself would start, and fail in its first batch, in every attempt."""
    query = plain(store, format_version=1)
    with_provider(query, store, "org.example.HDFSBackedStateStoreProvider")
    if not committed:
        for entry in list(store.list("old/ckpt/")):
            if "/commits/" in entry.key or entry.key.endswith(("offsets/1", "offsets/2", "offsets/3")):
                store.delete_many([entry.key])
    says = r"old/ckpt keeps its state with HDFSBackedStateStoreProvider; .*spec\.startFrom \{timestamp: …\}"
    with pytest.raises(SavepointError, match=says):
        adopt_checkpoint(store, checkpoint="old/ckpt", run="u/run-1", lineage="auto", query="orders")
    assert store.children("u") == []


def test_state_of_the_old_format_is_refused_with_the_way_out(store: Store) -> None:
    plain(store, format_version=1)
    says = r"keeps its state in format v1; .*spec\.startFrom \{timestamp: …\} or \{offsets: …\}"
    with pytest.raises(SavepointError, match=says):
        adopt_checkpoint(store, checkpoint="old/ckpt", run="u/run-1", lineage="auto", query="orders")
    assert store.children("u") == []


def test_a_query_without_state_is_adopted_whatever_its_provider_was(store: Store) -> None:
    query = plain(store, format_version=1)
    with_provider(query, store, "org.example.HDFSBackedStateStoreProvider")
    store.delete_tree("old/ckpt/state")
    adopt_checkpoint(store, checkpoint="old/ckpt", run=1, lineage="auto", query="orders")
    assert last_batches(store, 1) == {"orders": (3, 3)}


def test_a_checkpoint_that_is_still_written_to_is_not_adopted(store: Store, tmp_path: Path) -> None:
    query = FakeQuery(store=store, run="shop/clicks/u1/run-1").batches(3)

    class Busy(FaultyStore):
        def copy(self, copy: Copy) -> None:
            super().copy(copy)
            if copy.source.key.endswith("commits/2"):
                query.batches(1)

    busy = Busy(tmp_path / "store", Faults())
    with pytest.raises(SeedError, match=r"is still written to .*: stop the query"):
        adopt_checkpoint(busy, checkpoint=query.run, run="u2/run-1", lineage="auto")
    assert not is_seeded(store, "u2/run-1")
    adopt_checkpoint(store, checkpoint=query.run, run="u2/run-1", lineage="auto")
    assert last_batches(store, "u2/run-1")["orders"].commits is not None


@pytest.mark.parametrize("there", [[], ["a.txt", "b/c"]])
def test_what_is_no_checkpoint_says_what_it_is(store: Store, there: list[str]) -> None:
    for key in there:
        store.put(f"somewhere/{key}", b"x")
    words = "it holds a.txt, b/" if there else "there is nothing"
    with pytest.raises(SavepointError, match=words):
        adopt_checkpoint(store, checkpoint="somewhere", run=1, lineage="auto")


def test_a_run_has_names_of_its_own(store: Store) -> None:
    FakeQuery(store=store, run="run-1").batches(1)
    with pytest.raises(SavepointError, match=r"remove spec.startFrom.query"):
        adopt_checkpoint(store, checkpoint="run-1", run=2, lineage="auto", query="orders")


def test_killed_between_any_two_steps_it_is_whole_or_not_there(tmp_path: Path) -> None:
    root = tmp_path / "store"
    plain(FaultyStore(root, Faults()))
    counted = FaultyStore(root, Faults())
    adopt_checkpoint(counted, checkpoint="old/ckpt", run="whole", lineage="auto", query="orders")
    for at in range(counted.faults.steps):
        faults = Faults(at)
        faults.act = faults.kill
        with pytest.raises(Killed):
            adopt_checkpoint(
                FaultyStore(root, faults),
                checkpoint="old/ckpt",
                run=f"at-{at}",
                lineage="auto",
                query="orders",
            )
        store = FaultyStore(root, Faults())
        if not is_seeded(store, f"at-{at}"):
            adopt_checkpoint(store, checkpoint="old/ckpt", run=f"at-{at}", lineage="auto", query="orders")
        assert last_batches(store, f"at-{at}") == {"orders": (3, 3)}


# ---- by URL, and what a run was to begin with ---------------------------------------------------------


def test_a_url_is_a_savepoint_or_a_checkpoint_by_what_lies_there(tmp_path: Path) -> None:
    jobs = open_store(str(tmp_path / "jobs/shop/clicks"))
    other = open_store(str(tmp_path / "elsewhere"))
    FakeQuery(store=jobs, run="u1/run-1").batches(2)
    take(jobs, run="u1/run-1", about={"job": "shop/clicks"})
    plain(other)
    how = {"store": jobs.url, "lineage": "auto", "job": "shop/clicks"}
    assert seed_from(HERE, run="u2/run-1", **how).lineage == "keep"
    assert seed_from(f"{jobs.url}/{HERE}/", run="u2/run-2", **how).batches == {"orders": LastBatches(1, 1)}
    assert seed_from(f"{other.url}/old/ckpt", run="u2/run-3", query="q", **how).batches == {
        "q": LastBatches(3, 3)
    }
    with pytest.raises(BadLocationError, match="a whole store"):
        seed_from("s3://bucket", run="u2/run-4", **how)


@pytest.mark.parametrize(
    ("job", "went_on", "lineage"),
    [("shop/clicks", False, "keep"), ("shop/clicks", True, "new"), ("shop/views", False, "new")],
)
def test_forward_where_sinks_allow_it_and_a_new_lineage_otherwise(
    store: Store, job: str, went_on: bool, lineage: str
) -> None:
    query = FakeQuery(store=store, run="u1/run-1").batches(3)
    take(store, run="u1/run-1", about={"job": "shop/clicks"})
    if went_on:
        query.batches(2)
    seed = restore_savepoint(store, savepoint=HERE, run="u2/run-1", lineage="auto", job=job)
    assert seed.lineage == lineage
    assert (lineage_of(store, "u2/run-1") == "q-1") is (lineage == "keep")


def test_gone_on_with_under_another_uid_counts_too(store: Store) -> None:
    FakeQuery(store=store, run="u1/run-1").batches(3)
    take(store, run="u1/run-1")
    FakeQuery(store=store, run="u2/run-1").batches(4)
    with pytest.raises(LineageError, match="went on to batch 3 in u2/run-1"):
        restore_savepoint(store, savepoint=HERE, run="u3/run-1", lineage="keep")


def test_a_file_sink_that_can_go_neither_way_says_why_for_both(store: Store) -> None:
    query = FakeQuery(store=store, run="u1/run-1").batches(3)
    take(store, run="u1/run-1", about={"sinks": {"orders": "FileSink[x]"}})
    query.batches(1)
    with pytest.raises(LineageError, match=r"foreachBatch. Forward is not possible: query orders went on"):
        restore_savepoint(store, savepoint=HERE, run="u2/run-1", lineage="forward")


def test_another_start_replaces_one_that_nobody_has_begun_with(store: Store) -> None:
    FakeQuery(store=store, run="u1/run-1").batches(3)
    take(store, run="u1/run-1")
    plain(store)
    adopt_checkpoint(store, checkpoint="old/ckpt", run="u2/run-1", lineage="auto", query="x")
    how = {"run": "u2/run-1", "lineage": "new", "replace": True}
    restore_savepoint(store, savepoint=HERE, **how)
    assert last_batches(store, "u2/run-1") == {"orders": (2, 2)}
    claim_attempt(store, "u2/run-1", 1, {})
    with pytest.raises(SeedError, match="in use by attempt 1"):
        adopt_checkpoint(store, checkpoint="old/ckpt", query="x", **how)


def test_names_bind_until_a_query_has_moved(store: Store) -> None:
    """A run that was refused for its names is upgraded: the next one must not begin from nothing either."""
    FakeQuery(store=store, run="u1/run-1").batches(3)
    take(store, run="u1/run-1")
    restore_savepoint(store, savepoint=HERE, run="u2/run-1", lineage="new")
    assert seed_run(store, "u2/run-1", "u2/run-2").binding
    restored = FakeQuery(store=store, run="u2/run-2", lineage="other", begun=2, committed=2)
    restored.batches(1)
    assert not seed_run(store, "u2/run-2", "u2/run-3").binding
    latest = seed_run(store, "u2/run-2", "u3/run-1", begins=True)
    assert latest.binding
    assert read_seed(store, "u3/run-1") == latest
