"""Drain: no query is stopped in the middle of a batch."""

import threading

from headrace_jobs.harness.control import Batches, StoreUnavailable
from headrace_jobs.harness.drain import drain


class FakeQuery:
    """Ends when it is cut, or when its last batch was committed under a drain."""

    def __init__(self, name):
        self.query_name = name
        self.isActive = True
        self.cut_at = None
        self.log = None

    def cut(self):
        self.cut_at = self.log(self.query_name)
        self.isActive = False


class FakeRegistry:
    def __init__(self, *queries):
        self.queries = list(queries)
        self.draining = threading.Event()

    def all(self):
        return self.queries

    def active(self):
        return [query for query in self.queries if query.isActive]

    def wait_until_ended(self, queries, timeout):
        deadline = threading.Event()
        for _ in range(20):
            if not any(query.isActive for query in queries):
                return True
            deadline.wait(timeout / 20)
        return False


class FakeControl:
    """Tells one set of batches after the other; the last one stays. None: the store does not answer."""

    def __init__(self, registry, *looks):
        self.registry = registry
        self.looks = list(looks)
        self.drained = False
        for query in registry.queries:
            query.log = lambda name: self.now()[name]

    def now(self):
        return self.looks[0]

    def drain(self, _seconds):
        self.drained = True
        return True

    def batches(self):
        assert self.drained, "batches can be trusted only when no batch begins any more"
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if look is None:
            raise StoreUnavailable("s3 is away")
        return look


def run_drain(registry, control, *, timeout=5.0, hurry=None, leave_out=frozenset()):
    return drain(
        registry, control, timeout_seconds=timeout, hurry=hurry or threading.Event(), leave_out=leave_out
    )


def test_an_idle_query_is_stopped_at_once():
    query = FakeQuery("q")
    registry = FakeRegistry(query)
    result = run_drain(registry, FakeControl(registry, {"q": Batches(4, 4)}))
    assert result.clean
    assert query.cut_at == Batches(4, 4)
    assert registry.draining.is_set()


def test_a_query_without_any_batch_yet_is_at_a_boundary():
    registry = FakeRegistry(FakeQuery("q"))
    result = run_drain(registry, FakeControl(registry, {"q": Batches(-1, -1)}))
    assert result.clean


def test_a_batch_that_runs_is_waited_for():
    query = FakeQuery("q")
    registry = FakeRegistry(query)
    running, committed = {"q": Batches(5, 4)}, {"q": Batches(5, 5)}
    result = run_drain(registry, FakeControl(registry, running, running, running, committed))
    assert result.clean
    assert query.cut_at == Batches(5, 5)
    assert result.batches["q"] == Batches(5, 5)


def test_each_query_ends_in_its_own_time():
    quick, slow = FakeQuery("quick"), FakeQuery("slow")
    registry = FakeRegistry(quick, slow)
    first = {"quick": Batches(2, 2), "slow": Batches(7, 6)}
    then = {"quick": Batches(2, 2), "slow": Batches(7, 7)}
    result = run_drain(registry, FakeControl(registry, first, first, then))
    assert result.clean
    assert slow.cut_at == Batches(7, 7)


def test_a_batch_that_takes_too_long_is_named():
    query = FakeQuery("slow")
    registry = FakeRegistry(query)
    result = run_drain(registry, FakeControl(registry, {"slow": Batches(5, 4)}), timeout=0.2)
    assert not result.clean
    assert query.cut_at is None
    assert result.cut["slow"].startswith("batch 5 of query slow did not finish within")


def test_hurry_gives_up_at_once():
    hurry = threading.Event()
    hurry.set()
    registry = FakeRegistry(FakeQuery("slow"))
    result = run_drain(registry, FakeControl(registry, {"slow": Batches(5, 4)}), timeout=600, hurry=hurry)
    assert "was told to stop at once" in result.cut["slow"]


def test_a_query_beyond_help_is_not_waited_for_but_told():
    stuck, fine = FakeQuery("stuck"), FakeQuery("fine")
    registry = FakeRegistry(stuck, fine)
    looks = {"stuck": Batches(5, 4), "fine": Batches(1, 1)}
    result = run_drain(registry, FakeControl(registry, looks), timeout=600, leave_out=frozenset({"stuck"}))
    assert list(result.cut) == ["stuck"]
    assert stuck.cut_at is None
    assert fine.cut_at == Batches(1, 1)


def test_a_store_that_is_away_for_a_moment_is_looked_at_again():
    query = FakeQuery("q")
    registry = FakeRegistry(query)
    running, committed = {"q": Batches(5, 4)}, {"q": Batches(5, 5)}
    result = run_drain(registry, FakeControl(registry, None, running, None, committed))
    assert result.clean
    assert query.cut_at == Batches(5, 5)


def test_a_store_that_stays_away_stops_no_query_and_is_told():
    query = FakeQuery("q")
    registry = FakeRegistry(query)
    result = run_drain(registry, FakeControl(registry, None), timeout=0.2)
    assert query.cut_at is None
    assert not result.clean
    assert result.batches == {}
    assert result.cut == {
        "q": "whether the last batch of query q was committed is not known: s3 is away",
    }
