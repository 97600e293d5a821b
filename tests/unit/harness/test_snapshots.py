"""Snapshots before a handover: made where they are worth it, never waited for in vain."""

import json
import threading
import time
from types import SimpleNamespace

import pytest

from headrace_jobs.harness import snapshots
from headrace_jobs.harness.snapshots import make_snapshots


class FakeQuery:
    """Ends a batch with every look at it, once it runs."""

    def __init__(self, name="q", *, batch=100, state=True, runs=True):
        self.query_name, self.isActive, self.runs = name, True, runs
        self.batch, self.state = batch, state
        self.java = self

    def lastProgress(self):
        if self.batch is None:
            return None
        told = json.dumps({"stateOperators": [{"operatorName": "dedupe"}] if self.state else []})
        batch, self.batch = self.batch, self.batch + self.runs
        return SimpleNamespace(batchId=lambda: batch, json=lambda: told)

    def status(self):
        return SimpleNamespace(isTriggerActive=lambda: self.runs)


class FakeControl:
    def __init__(self, *, can=True):
        self.can, self.asked = can, 0

    def want_snapshots(self):
        self.asked += 1
        return self.can


def run(*queries, control=None, timeout=120.0, hurry=None):
    registry = SimpleNamespace(active=lambda: [query for query in queries if query.isActive])
    control = control or FakeControl()
    began = time.monotonic()
    make_snapshots(registry, control, timeout_seconds=timeout, hurry=hurry or threading.Event())
    return control.asked, time.monotonic() - began


def test_two_more_batches_are_waited_for():
    query = FakeQuery(batch=100)
    asked, _ = run(query)
    assert asked == 1
    assert query.batch >= 102


@pytest.mark.parametrize(
    "query",
    [FakeQuery(batch=None), FakeQuery(batch=4), FakeQuery(state=False)],
    ids=["no batch yet", "few batches", "no state"],
)
def test_where_there_is_little_to_replay_nothing_is_asked_for(query):
    assert run(query)[0] == 0


def test_a_spark_that_cannot_is_not_waited_for():
    query = FakeQuery(runs=False)
    _, took = run(query, control=FakeControl(can=False))
    assert took < 1


def test_an_idle_query_holds_nothing_up(monkeypatch):
    monkeypatch.setattr(snapshots, "_IDLE_SECONDS", 0.1)
    _, took = run(FakeQuery(runs=False))
    assert 0.1 <= took < 3


def test_a_long_batch_is_not_waited_for_longer_than_a_part_of_the_time_for_the_drain():
    query = FakeQuery(runs=True)
    query.lastProgress = lambda: SimpleNamespace(batchId=lambda: 100, json=lambda: '{"stateOperators": [{}]}')
    _, took = run(query, timeout=0.8)
    assert 0.2 <= took < 3


def test_a_query_that_ends_is_not_waited_for():
    query = FakeQuery(runs=True)
    query.lastProgress = lambda: SimpleNamespace(batchId=lambda: 100, json=lambda: '{"stateOperators": [{}]}')
    threading.Timer(0.1, lambda: setattr(query, "isActive", False)).start()
    _, took = run(query)
    assert took < 4


def test_who_is_in_a_hurry_waits_for_nothing():
    hurry = threading.Event()
    hurry.set()
    _, took = run(FakeQuery(runs=False), hurry=hurry)
    assert took < 1
