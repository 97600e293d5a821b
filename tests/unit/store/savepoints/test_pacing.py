"""The rate of a copy is kept, in bytes and in requests, by all that it asks of the store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from headrace_jobs.store import Store, open_store
from headrace_jobs.store.interface import Copy, Entry
from headrace_jobs.store.savepoints import Pace, Progress, find_manifest, restore_savepoint
from headrace_jobs.store.savepoints.pacing import REQUEST_BYTES, paced
from headrace_jobs.store.savepoints.transfer import paced_copy
from tests.unit.store.savepoints.checkpoints import HERE, FakeQuery, Faults, FaultyStore, take


class Time:
    """Passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        self._lock = threading.Lock()

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self.now += seconds

    def pace(self, **limits: float) -> Pace:
        return Pace(**limits, clock=self.clock, sleep=self.sleep)


@pytest.fixture
def time() -> Time:
    return Time()


def test_each_waits_for_what_the_one_before_it_costs(time: Time) -> None:
    pace = time.pace(bytes_per_second=4 * REQUEST_BYTES)
    for size in (0, 1, 3 * REQUEST_BYTES, 0):
        pace.wait_for(size)
    assert time.slept == [0.25, 0.25, 0.75], "a request counts as if it had bytes, a large one as it has"


def test_requests_can_be_capped_by_themselves(time: Time) -> None:
    pace = time.pace(objects_per_second=4)
    for size in (0, 100 * REQUEST_BYTES, 0):
        pace.wait_for(size)
    assert time.slept == [0.25, 0.25]


def test_nothing_is_saved_up_for_a_burst(time: Time) -> None:
    pace = time.pace(objects_per_second=4)
    pace.wait_for(0)
    time.now += 60
    for _ in range(3):
        pace.wait_for(0)
    assert time.slept == [0.25, 0.25]


def test_without_a_cap_nobody_waits(time: Time, store: Store) -> None:
    time.pace().wait_for(10**12)
    assert time.slept == []
    assert paced(store, time.pace()) is store and paced(store, None) is store


def _requests_of(root: Path, work: Callable[[Store], object]) -> int:
    """Deletes left out: on a directory those of nothing count as one, too."""
    asked: list[str] = []
    faults = Faults()
    faults.step = lambda operation, key: asked.append(operation)  # type: ignore[method-assign]
    work(FaultyStore(root, faults))
    return sum(operation != "delete" for operation in asked)


def test_looking_reading_and_copying_keep_the_rate_together(store: Store, tmp_path: Path, time: Time) -> None:
    FakeQuery(store=store).batches(6).snapshot(4)
    began = time.now
    pace = time.pace(bytes_per_second=10 * REQUEST_BYTES)
    asked = _requests_of(tmp_path / "store", lambda counted: take(counted, pace=pace))
    copies = len(list(store.list(f"{HERE}/data-1/")))
    assert asked > copies + 10, "listings, logs, snapshots, the claim, the manifest"
    assert (asked - 1) / 10 <= time.now - began + 0.001


def test_a_restore_keeps_the_rate_also_into_another_store(store: Store, tmp_path: Path, time: Time) -> None:
    FakeQuery(store=store).batches(3)
    take(store)
    began = time.now
    pace = time.pace(bytes_per_second=10 * REQUEST_BYTES)

    def restore(into: Store) -> None:
        restore_savepoint(store, savepoint=HERE, run=7, lineage="new", into=into, pace=pace)

    asked = _requests_of(tmp_path / "elsewhere", restore)
    assert asked > 3 and list(open_store(str(tmp_path / "elsewhere")).list("run-7/_seed.json"))
    assert (asked - 1) / 10 <= time.now - began + 0.001


def test_a_listing_of_many_pages_waits_for_each(store: Store, time: Time) -> None:
    class Long:
        def list(self, prefix: str) -> object:
            return (Entry(f"{prefix}{number}", 1, "e", 0) for number in range(2500))

    listed = paced(Long(), time.pace(objects_per_second=1)).list("r/")  # type: ignore[arg-type]
    next(listed)
    assert time.slept == []
    assert len(list(listed)) == 2499
    assert sum(time.slept) == 2


def test_a_long_wait_is_told_of_and_can_be_ended(store: Store, time: Time) -> None:
    """A large object takes its time at a low rate; whoever watches must not take it for dead."""
    for name in ("a", "b"):
        store.put(f"from/{name}", b"x" * 2 * REQUEST_BYTES)
    copies = [Copy(entry, entry.key.replace("from", "to")) for entry in store.list("from/")]
    told: list[float] = []

    def tell(_: Progress) -> None:
        told.append(time.now)
        if time.now > 130:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        paced_copy(store, copies, pace=time.pace(bytes_per_second=REQUEST_BYTES / 100), tell=tell)
    assert 130 < time.now < 135, "not at its end, after 200 s"
    assert max(later - sooner for sooner, later in pairwise(told)) <= 5
    assert [entry.key for entry in store.list("to/")] == ["to/a"]


def test_a_savepoint_whose_time_is_up_while_it_waits_is_none(store: Store, time: Time) -> None:
    FakeQuery(store=store).batches(40)

    def tell(_: Progress) -> None:
        if time.now > 400:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        take(store, tell=tell, pace=time.pace(objects_per_second=1))
    assert find_manifest(store, HERE) is None
