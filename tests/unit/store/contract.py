"""What every store must do, whatever it is made of. One function per promise; each is given an empty store.

Used by the directory tests here and by the S3 tests, against each server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headrace_jobs.store import Copy, Store
from headrace_jobs.store.errors import NotFoundError, SourceChangedError
from headrace_jobs.store.interface import PIECE_BYTES
from headrace_jobs.store.runs import claim_attempt, newest_claim, read_claim


def an_empty_store_lists_nothing(store: Store) -> None:
    assert list(store.list()) == []
    assert store.children("run-1") == []


def what_was_put_is_got(store: Store) -> None:
    store.put("run-1/a b+ü", b"one")
    assert store.get("run-1/a b+ü") == b"one"
    store.put("run-1/a b+ü", b"two")
    assert store.get("run-1/a b+ü") == b"two"


def what_is_not_there_is_said_so(store: Store) -> None:
    with pytest.raises(NotFoundError, match="run-1/nothing does not exist"):
        store.get("run-1/nothing")


def listings_are_whole_and_in_key_order(store: Store) -> None:
    keys = ["r/a", "r/a-b", "r/a.c/x", "r/a0", "r/b/1", "r/b-1", "other/z"]
    for key in keys:
        store.put(key, key.encode())
    assert [entry.key for entry in store.list("r/")] == sorted(key for key in keys if key.startswith("r/"))
    assert [entry.key for entry in store.list("r/b")] == ["r/b-1", "r/b/1"]
    assert [entry.size for entry in store.list("other/")] == [len("other/z")]


def children_are_the_next_level_only(store: Store) -> None:
    for key in ("r/queries/q1/offsets/0", "r/queries/q2/offsets/0", "r/queries/notes"):
        store.put(key, b"x")
    assert store.children("r/queries") == ["notes", "q1/", "q2/"]
    assert store.children("r") == ["queries/"]
    assert store.children("") == ["r/"]


def a_second_create_is_refused_and_changes_nothing(store: Store) -> None:
    assert store.put_if_absent("r/_attempts/1", b"first")
    assert not store.put_if_absent("r/_attempts/1", b"second")
    assert store.get("r/_attempts/1") == b"first"


def of_sixteen_racing_creators_one_wins(store: Store) -> None:
    for race in range(10):
        start = threading.Barrier(16)

        def create(racer: int, race: int = race, start: threading.Barrier = start) -> bool:
            start.wait(timeout=30)
            return store.put_if_absent(f"race/{race}", b"%d" % racer)

        with ThreadPoolExecutor(16) as pool:
            won = [racer for racer, win in enumerate(pool.map(create, range(16))) if win]
        assert [store.get(f"race/{race}")] == [b"%d" % racer for racer in won]


def a_run_is_claimed_by_newer_attempts_only(store: Store) -> None:
    assert newest_claim(store, 1) is None
    assert read_claim(store, 1, 1) is None
    assert claim_attempt(store, 1, 9, {"sparkVersion": "4.2.1"})
    for older_or_same in (9, 8, 1):
        assert not claim_attempt(store, 1, older_or_same, {})
    # By number, not by name, and each run for itself: run-1 is a prefix of run-10.
    assert claim_attempt(store, 1, 10, {})
    assert claim_attempt(store, 10, 2, {})
    assert (newest_claim(store, 1), newest_claim(store, 10)) == (10, 2)
    assert read_claim(store, 1, 9) == {"sparkVersion": "4.2.1"}


def of_sixteen_racing_claims_of_an_attempt_one_wins(store: Store) -> None:
    start = threading.Barrier(16)

    def claim(racer: int) -> bool:
        start.wait(timeout=30)
        return claim_attempt(store, 1, 3, {"racer": racer})

    with ThreadPoolExecutor(16) as pool:
        won = [racer for racer, win in enumerate(pool.map(claim, range(16))) if win]
    assert [read_claim(store, 1, 3)] == [{"racer": racer} for racer in won]


def a_copy_equals_its_source(store: Store) -> None:
    store.put("from/a", b"content" * 1000)
    (source,) = store.list("from/")
    store.copy(Copy(source, "to/a"))
    (target,) = store.list("to/")
    assert store.get("to/a") == b"content" * 1000
    assert (target.size, target.etag) == (source.size, source.etag)


def a_copy_of_what_never_changes_outlives_its_source(store: Store) -> None:
    store.put("from/a", b"old")
    (old,) = store.list("from/")
    store.put("from/a", b"content")
    (source,) = store.list("from/")
    with pytest.raises(SourceChangedError):
        store.copy(Copy(old, "to/a", immutable=True))
    store.copy(Copy(source, "to/a", immutable=True))
    store.put("from/a", b"another")
    store.delete_many(["from/a"])
    assert store.get("to/a") == b"content"


def a_changed_source_is_not_copied(store: Store) -> None:
    store.put("from/a", b"old")
    (source,) = store.list("from/")
    store.put("from/a", b"newer")
    with pytest.raises(SourceChangedError, match="from/a changed or vanished"):
        store.copy(Copy(source, "to/a"))
    store.delete_many(["from/a"])
    with pytest.raises(SourceChangedError):
        store.copy(Copy(source, "to/a"))
    assert list(store.list("to/")) == []


def many_copies_go_at_once_and_an_error_surfaces(store: Store) -> None:
    for number in range(100):
        store.put(f"from/{number:03}", b"%d" % number)
    sources = list(store.list("from/"))
    store.copy_many(Copy(entry, entry.key.replace("from", "to")) for entry in sources)
    assert [store.get(f"to/{number:03}") for number in range(100)] == [
        b"%d" % number for number in range(100)
    ]
    store.delete_many(["from/050"])
    with pytest.raises(SourceChangedError):
        store.copy_many(Copy(entry, entry.key.replace("from", "again")) for entry in sources)


def deleting_is_idempotent_and_takes_only_what_was_named(store: Store) -> None:
    for key in ("d/1", "d/2", "d/3"):
        store.put(key, b"x")
    store.delete_many(["d/1", "d/2", "d/never-was"])
    store.delete_many(["d/1"])
    assert [entry.key for entry in store.list()] == ["d/3"]


def a_good_place_passes_the_probe_and_is_left_clean(store: Store) -> None:
    store.probe()
    assert list(store.list()) == []


def files_go_up_once_and_come_down_whole(store: Store) -> None:
    content = bytes(range(256)) * 20_000
    with TemporaryDirectory() as directory:
        here, there = Path(directory) / "here", Path(directory) / "there"
        here.write_bytes(content)
        assert store.upload_if_absent("run-1/_code/x/lib.zip", here)
        store.download("run-1/_code/x/lib.zip", there)
        assert there.read_bytes() == content
        here.write_bytes(b"newer")
        assert not store.upload_if_absent("run-1/_code/x/lib.zip", here)
        assert store.get("run-1/_code/x/lib.zip") == content
        with pytest.raises(NotFoundError, match="run-1/nothing does not exist"):
            store.download("run-1/nothing", there)


def what_goes_in_in_pieces_comes_out_whole(store: Store) -> None:
    whole = bytes(range(256)) * (2 * PIECE_BYTES // 256) + b"the rest"
    for name, content in (("large", whole), ("one piece", b"small"), ("nothing", b"")):
        cut = [content[first : first + PIECE_BYTES] for first in range(0, len(content), PIECE_BYTES)]
        store.put_pieces(f"r/{name}", iter(cut))
        (entry,) = store.list(f"r/{name}")
        assert entry.size == len(content)
        read = list(store.pieces(entry))
        assert b"".join(read) == content
        assert max(map(len, read), default=0) <= PIECE_BYTES
    store.put_pieces("r/large", [b"replaced"])
    assert store.get("r/large") == b"replaced"


def pieces_are_of_what_was_listed(store: Store) -> None:
    for key in ("r/changed", "r/gone"):
        store.put(key, b"listed")
    changed, gone = store.list("r/")
    store.put("r/changed", b"other contents")
    store.delete_many(["r/gone"])
    for entry in (changed, gone):
        with pytest.raises(SourceChangedError):
            list(store.pieces(entry))


def pieces_that_end_in_an_error_leave_what_was_there(store: Store) -> None:
    def broken(whole_ones: int) -> Iterator[bytes]:
        yield from (bytes(PIECE_BYTES) for _ in range(whole_ones))
        raise SourceChangedError("the source")

    store.put("r/there", b"before")
    for whole_ones in (0, 1, 2):
        for key in ("r/there", "r/new"):
            with pytest.raises(SourceChangedError, match="the source"):
                store.put_pieces(key, broken(whole_ones))
    assert [(entry.key, store.get(entry.key)) for entry in store.list()] == [("r/there", b"before")]


PROMISES: tuple[Callable[[Store], None], ...] = (
    an_empty_store_lists_nothing,
    what_was_put_is_got,
    what_is_not_there_is_said_so,
    listings_are_whole_and_in_key_order,
    children_are_the_next_level_only,
    a_second_create_is_refused_and_changes_nothing,
    of_sixteen_racing_creators_one_wins,
    a_run_is_claimed_by_newer_attempts_only,
    of_sixteen_racing_claims_of_an_attempt_one_wins,
    files_go_up_once_and_come_down_whole,
    what_goes_in_in_pieces_comes_out_whole,
    pieces_are_of_what_was_listed,
    pieces_that_end_in_an_error_leave_what_was_there,
    a_copy_equals_its_source,
    a_copy_of_what_never_changes_outlives_its_source,
    a_changed_source_is_not_copied,
    many_copies_go_at_once_and_an_error_surfaces,
    deleting_is_idempotent_and_takes_only_what_was_named,
    a_good_place_passes_the_probe_and_is_left_clean,
)
