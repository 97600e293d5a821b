"""What a savepoint holds, from queries in every condition, and what it does not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace_jobs.store import Copy, Store
from headrace_jobs.store.directory import DirectoryStore
from headrace_jobs.store.errors import CheckpointDamagedError, SavepointError, SeedError
from headrace_jobs.store.runs import tell_sink
from headrace_jobs.store.savepoints import (
    Manifest,
    Progress,
    find_manifest,
    read_manifest,
    verify_savepoint,
)
from tests.unit.store.savepoints.checkpoints import HERE, FakeQuery, take


def keys(manifest: Manifest, query: str = "orders") -> set[str]:
    prefix = f"queries/{query}/"
    return {one.key.removeprefix(prefix) for one in manifest.objects if one.key.startswith(prefix)}


def logs(manifest: Manifest) -> set[str]:
    return {key for key in keys(manifest) if not key.startswith("state/")}


def test_everything_that_the_last_batch_needs_and_nothing_else(store: Store) -> None:
    query = FakeQuery(store=store).batches(6)
    query.snapshot(4)
    manifest = take(store)
    assert keys(manifest) == {
        "metadata",
        *(f"offsets/{batch}" for batch in (3, 4, 5)),
        *(f"commits/{batch}" for batch in (3, 4, 5)),
        *(f"sources/0/{batch}" for batch in range(6)),
        *(query.file(4, part, "zip") for part in (0, 1)),
        *(query.file(4, part, "zip") + ".crc" for part in (0, 1)),
        *(f"state/0/{part}/SSTs/000004-{query.id_of(4, part)}.sst" for part in (0, 1)),
        *(query.file(version, part, "changelog") for version in (5, 6) for part in (0, 1)),
        *(query.file(version, part, "changelog") + ".crc" for version in (5, 6) for part in (0, 1)),
    }
    (told,) = manifest.queries
    assert (told.lineage, told.batch, told.pending, told.watermark_ms) == ("q-1", 5, False, 6000)
    assert (told.offsets, told.partitions, told.state_format) == ({"0": {"logOffset": 5}}, 2, 2)
    assert told.provider == "RocksDBStateStoreProvider"
    assert manifest.size_bytes == sum(one.size for one in manifest.objects)
    assert manifest == read_manifest(store, HERE)
    assert verify_savepoint(store, HERE, level="State").level == "State"


def test_a_pending_batch_is_carried_and_its_state_is_not(store: Store) -> None:
    query = FakeQuery(store=store).batches(3)
    query.begin()
    query.write_state()
    query.snapshot(4)
    query.begin()  # of a driver that plans ahead: not committed, and not the next one either
    query.delete("offsets/4")
    manifest = take(store)
    assert manifest.queries[0].pending
    assert {"offsets/3", "sources/0/3"} <= logs(manifest)
    assert not {"sources/0/4", "commits/3"} & logs(manifest)
    assert not [key for key in keys(manifest) if key.rpartition("/")[2].startswith("4")]
    assert not [key for key in keys(manifest) if "SSTs/000004" in key]


def test_files_of_attempts_that_lost_are_no_base(store: Store) -> None:
    """The newest snapshot by name belongs to an attempt that never committed: what is behind it is needed."""
    query = FakeQuery(store=store).batches(5)
    query.snapshot(2)
    query.snapshot(5, attempt=1)
    query.begun = 4
    query.write_state(attempt=1)
    manifest = take(store)
    assert {query.file(2, 0, "zip"), query.file(3, 0, "changelog")} <= keys(manifest)
    assert query.file(5, 0, "zip", attempt=1) not in keys(manifest)
    assert query.file(5, 0, "changelog", attempt=1) not in keys(manifest)


def test_where_nobody_knows_which_attempt_counted_everything_is_taken(store: Store) -> None:
    query = FakeQuery(store=store).batches(5)
    query.snapshot(2)
    query.delete("commits/2")  # versions 3 are anybody's
    query.put(query.file(3, 0, "changelog", attempt=1), b"lost, perhaps")
    assert {query.file(3, 0, "changelog", attempt=1), query.file(2, 0, "zip")} <= keys(take(store))


def test_the_old_state_format_has_no_ids(store: Store) -> None:
    query = FakeQuery(store=store, format_version=1).batches(6)
    query.snapshot(4)
    query.begin()
    query.write_state()
    query.snapshot(7)
    manifest = take(store)
    assert manifest.queries[0].state_format == 1
    assert {key for key in keys(manifest) if key.startswith("state/0/1/") and "SSTs" not in key} == {
        "state/0/1/4.zip",
        "state/0/1/5.changelog",
        "state/0/1/6.changelog",
    }


def test_partitions_from_before_a_repartition_are_left_behind(store: Store) -> None:
    query = FakeQuery(store=store, partitions=3).batches(3)
    query.partitions = 2
    query.batches(1)
    query.snapshot(4)
    manifest = take(store)
    assert manifest.queries[0].partitions == 2
    assert not [key for key in keys(manifest) if key.startswith("state/0/2/")]


def test_the_log_of_a_file_source_ends_where_the_batch_does(store: Store) -> None:
    query = FakeQuery(store=store).batches(12)
    query.delete(*(f"sources/0/{number}" for number in range(10)))
    query.put("sources/0/9.compact", b"v1")
    query.put("sources/0/19.compact", b"v1\nof a driver that lists far ahead")
    assert {key for key in logs(take(store)) if key.startswith("sources")} == {
        "sources/0/9.compact",
        "sources/0/10",
        "sources/0/11",
    }


def test_what_other_sources_keep_is_taken_whole(store: Store) -> None:
    query = FakeQuery(store=store).batches(2)
    query.put("sources/1/0", b"kafka's first offsets")
    assert "sources/1/0" in keys(take(store))


def test_a_query_before_its_first_commit(store: Store) -> None:
    query = FakeQuery(store=store)
    query.begin()
    query.write_state()
    query.transform_with_state()
    manifest = take(store)
    assert (manifest.queries[0].batch, manifest.queries[0].pending) == (-1, True)
    assert keys(manifest) == {"metadata", "offsets/0", "sources/0/0"}


def test_a_stateless_query(store: Store) -> None:
    query = FakeQuery(store=store, partitions=0).batches(3)
    manifest = take(store)
    assert keys(manifest) == {"metadata", "commits/2", "offsets/1", "offsets/2"} | {
        f"sources/0/{number}" for number in range(query.begun + 1)
    }
    assert manifest.queries[0].state_format is None


def test_several_queries_each_at_its_own_batch(store: Store) -> None:
    FakeQuery(store=store, name="fast", lineage="a").batches(7)
    FakeQuery(store=store, name="slow ü", lineage="b").batches(2)
    manifest = take(store, about={"sinks": {"fast": "FileSink[/out]"}})
    assert [(query.name, query.lineage, query.batch) for query in manifest.queries] == [
        ("fast", "a", 6),
        ("slow ü", "b", 1),
    ]
    assert [query.sink for query in manifest.queries] == ["FileSink[/out]", None]


def test_the_sink_that_the_run_was_told_of_is_remembered(store: Store) -> None:
    FakeQuery(store=store).batches(1)
    tell_sink(store, 1, "orders", "FileSink[/out]")
    assert take(store).queries[0].sink == "FileSink[/out]"


def test_full_paths_inside_point_into_the_copy(store: Store) -> None:
    FakeQuery(store=store).transform_with_state()
    query = FakeQuery(store=store).batches(1)
    key = "queries/orders/state/0/_metadata/v2/0"
    take(store)
    text = store.get(f"{HERE}/data-1/{key}").decode()
    assert f"{HERE}/data-1/queries/orders/state/0/_stateSchema/default/0_schema" in text
    assert "run-1" not in text
    query.put("state/0/_metadata/v2/0", text.replace(HERE, "elsewhere").encode())
    with pytest.raises(SeedError, match="outside of the run"):
        take(store, "_savepoints/s2")
    assert store.children("_savepoints/s2") == ["_claims/"]


def test_a_job_that_has_not_begun_has_nothing_to_save(store: Store) -> None:
    with pytest.raises(SavepointError, match="Start the job first"):
        take(store)


DAMAGE: list[tuple[str, Callable[[FakeQuery], None], str]] = [
    ("offsets of the last batch", lambda query: query.delete("offsets/3"), "orders/offsets/3"),
    ("offsets before it", lambda query: query.delete("offsets/2"), "orders/offsets/2"),
    ("the query's id", lambda query: query.delete("metadata"), "orders/metadata"),
    ("a changelog", lambda query: query.delete(query.file(3, 1, "changelog")), "state/0/1: version 3"),
    (
        "a partition",
        lambda query: query.delete(*(query.file(version, 1, "changelog") for version in range(1, 5))),
        "state/0/1",
    ),
    ("an entry of the file source", lambda query: query.delete("sources/0/1"), "sources/0/1"),
    ("a whole commit", lambda query: query.put("commits/3", b""), "empty or cut off"),
    ("half an entry", lambda query: query.put("offsets/3", b'v1\n{"batchWa'), "offsets/3 is not readable"),
    ("a readable id", lambda query: query.put("metadata", b"{}"), "no query id"),
]


@pytest.mark.parametrize(("what", "damage", "says"), DAMAGE, ids=[what for what, *_ in DAMAGE])
def test_a_checkpoint_that_spark_could_not_start_from_gives_no_savepoint(
    store: Store, what: str, damage: Callable[[FakeQuery], None], says: str
) -> None:
    query = FakeQuery(store=store).batches(4)
    damage(query)
    with pytest.raises(CheckpointDamagedError, match=says):
        take(store)
    assert find_manifest(store, HERE) is None
    assert store.children(HERE) == ["_claims/"], "the broken copy was not removed"


def test_a_damaged_snapshot_gives_no_savepoint(store: Store) -> None:
    query = FakeQuery(store=store).batches(4)
    query.snapshot(3)
    query.put(query.file(3, 0, "zip"), b"PK\x03\x04 cut")
    with pytest.raises(CheckpointDamagedError, match="not a readable snapshot"):
        take(store)
    query.snapshot(3)
    query.delete(f"state/0/1/SSTs/000003-{query.id_of(3, 1)}.sst")
    with pytest.raises(CheckpointDamagedError, match="SSTs/000003"):
        take(store)


class Running(DirectoryStore):
    """A query goes on and cleans up while its savepoint is copied."""

    def __init__(self, root: Path, query: FakeQuery, times: int, retained: int = 2) -> None:
        super().__init__(root)
        self.query, self.times, self.retained = query, times, retained
        # Copies run in parallel; a query does one thing after another.
        self.working = threading.Lock()

    def copy(self, copy: Copy) -> None:
        with self.working:
            if self.times > 0 and "/state/" in copy.source.key:
                self.times -= 1
                self._work()
        super().copy(copy)

    def _work(self) -> None:
        self.query.batches(3)
        oldest = self.query.committed - self.retained
        self.query.snapshot(oldest + 1)
        for number in range(oldest):
            self.query.delete(f"offsets/{number}", f"commits/{number}")
            self.query.delete(*(self.query.file(number + 1, part, "changelog") for part in (0, 1)))


def test_a_query_that_cleans_up_faster_than_the_copy_is_caught_up_with(store: Store, tmp_path: Path) -> None:
    query = FakeQuery(store=store).batches(4)
    running = Running(tmp_path / "store", query, times=2)
    manifest = take(running)
    assert manifest.queries[0].batch == query.committed == 9
    assert verify_savepoint(store, HERE, level="State").problems == ()


def test_a_query_that_is_always_faster_is_given_up_on(store: Store, tmp_path: Path) -> None:
    query = FakeQuery(store=store).batches(4)
    with pytest.raises(SavepointError, match="faster than they could be copied, 3 times: raise"):
        take(Running(tmp_path / "store", query, times=99), tries=3)
    assert store.children(HERE) == ["_claims/"]


def test_taking_it_again_answers_with_what_there_is(store: Store) -> None:
    query = FakeQuery(store=store).batches(2)
    first = take(store)
    query.batches(3)
    assert take(store) == first
    with pytest.raises(SavepointError, match=r"another owner \(uid-1\): choose another name"):
        take(store, owner="uid-2")


def test_of_two_copiers_of_one_savepoint_one_wins_and_both_say_the_same(store: Store, tmp_path: Path) -> None:
    query = FakeQuery(store=store).batches(3)
    second: list[Manifest] = []

    class Slow(DirectoryStore):
        def put_if_absent(self, key: str, content: bytes) -> bool:
            if key.endswith("manifest.json") and not second:
                query.batches(2)
                second.append(take(store))
            return super().put_if_absent(key, content)

    assert take(Slow(tmp_path / "store")) == second[0]
    assert second[0].queries[0].batch == 4
    assert store.children(HERE) == ["_claims/", "data-2/", "manifest.json"]
    assert verify_savepoint(store, HERE, level="State").level == "State"


def test_state_files_are_shared_on_a_directory_and_logs_are_not(store: Store, tmp_path: Path) -> None:
    """A second name, not a second copy: a savepoint of a directory takes no space of its own."""
    query = FakeQuery(store=store).batches(2)
    take(store)
    original = tmp_path / "store/run-1/queries/orders"
    copy = tmp_path / "store" / HERE / "data-1/queries/orders"
    changelog = query.file(2, 0, "changelog")
    assert (copy / changelog).samefile(original / changelog)
    assert not (copy / "commits/1").samefile(original / "commits/1")
    store.delete_tree("run-1")
    assert verify_savepoint(store, HERE, level="State").level == "State"


def test_progress_is_told(store: Store) -> None:
    FakeQuery(store=store).batches(2).snapshot(2, content=b"x" * 5000)
    told: list[Progress] = []
    manifest = take(store, tell=told.append)
    assert (told[-1].objects_done, told[-1].bytes_done) == (told[-1].objects, told[-1].bytes)
    assert told[-1].bytes == manifest.size_bytes


def test_progress_can_end_the_copy(store: Store) -> None:
    FakeQuery(store=store).batches(40)

    class TimeIsUp(Exception):
        pass

    def tell(_: Progress) -> None:
        raise TimeIsUp

    with pytest.raises(TimeIsUp):
        take(store, tell=tell)
    assert find_manifest(store, HERE) is None


def test_a_manifest_that_was_altered_or_cut_is_known(store: Store) -> None:
    FakeQuery(store=store).batches(2)
    take(store)
    whole = store.get(f"{HERE}/manifest.json")
    for content, says in (
        (whole.replace(b'"batch": 1', b'"batch": 0'), "was altered"),
        (whole[:-40], "not a manifest"),
        (b"", "not a manifest"),
        (json.dumps({**json.loads(whole), "format": 9}).encode(), "format 9"),
    ):
        store.put(f"{HERE}/manifest.json", content)
        with pytest.raises(SavepointError, match=says):
            read_manifest(store, HERE)
