"""From standby to writer: what can fail leaves the candidate as it was, until the claim."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from headrace_jobs.harness.activation import Activation, told_batch
from headrace_jobs.harness.assignment import Assignment
from headrace_jobs.harness.control import Fenced
from headrace_jobs.harness.endings import ApplicationEnded, ending_for
from headrace_jobs.harness.failure import UserCode
from headrace_jobs.harness.orders import NotInStandby, Order
from headrace_jobs.harness.runfile import Rehearsal as Terms
from headrace_jobs.harness.runfile import parse_run_file
from headrace_jobs.harness.termination import Reason
from headrace_jobs.store import is_seeded, open_store, seed_run
from tests.unit.harness.samples import REHEARSAL
from tests.unit.store.savepoints.checkpoints import FakeQuery

ORDER = Order(run=4, attempt=1, epoch=8)


@dataclass
class FakeControl:
    log: list[str]
    fenced: bool = False

    def claim(self, run_file: Any, body: str) -> None:
        if self.fenced:
            raise Fenced("attempt 2 already holds it")
        self.log.append(f"claim {run_file.directory} {run_file.attempt}")
        assert json.loads(body)["sparkVersion"] == Session.version

    def guard(self, run_file: Any) -> None:
        self.log.append(f"guard {run_file.directory}")


class Session:
    version = "4.2.1"


@dataclass
class Resting:
    query_name: str = "orders"
    isActive: bool = True  # noqa: N815 - Spark's name
    java: Any = None


class FakeJava:
    def lastProgress(self) -> Any:
        return self

    def batchId(self) -> int:
        return 6

    def json(self) -> str:
        return json.dumps({"batchId": 6, "durationMs": {}, "stateOperators": []})


@dataclass
class FakeRegistry:
    log: list[str]
    fault: Exception | None = None

    def resting(self) -> list[Resting]:
        return [Resting()]

    def active(self) -> list[Resting]:
        return [Resting(java=FakeJava())]

    def activate(self, query: Resting) -> None:
        if self.fault is not None:
            raise self.fault
        self.log.append(f"start {query.query_name}")


@dataclass
class FakeRehearsal:
    store: Any
    log: list[str] = field(default_factory=list)
    phase: str = "Standby"
    changed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.control = FakeControl(self.log)
        self.registry = FakeRegistry(self.log)
        self.assignment = Assignment(parse_run_file(json.dumps(REHEARSAL)))

    fetched = "rehearsal-4/candidate-2"
    session = Session()

    @property
    def terms(self) -> Terms:
        terms = self.assignment.run_file.rehearsal
        assert terms is not None
        return terms

    def leave_standby(self, phase: str) -> bool:
        was, self.phase = self.phase, phase if self.phase == "Standby" else self.phase
        return was == "Standby"

    def back_to_standby(self) -> None:
        self.phase = "Standby"

    def keep_meanings(self) -> None:
        self.log.append("meanings")


@pytest.fixture
def rehearsal(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_RUN", "")
    store = open_store(str(tmp_path))
    FakeQuery(store=store, run="run-3").batches(6)
    return FakeRehearsal(store)


def run(rehearsal, order=ORDER):
    told: list[Any] = []
    activation = Activation(rehearsal, told.append)
    activation.ask(order)
    for thread in threading.enumerate():
        if thread.name == "headrace-activation":
            thread.join(10)
    return activation, told


def test_it_copies_claims_points_and_starts_in_this_order(rehearsal):
    activation, told = run(rehearsal)
    assert rehearsal.log == ["claim run-4 1", "guard run-4", "start orders", "meanings"]
    assert is_seeded(rehearsal.store, 4)
    assert (activation.state, activation.first_batches, told) == ("Done", {"orders": 6}, [])
    assert rehearsal.assignment.run_file.run_path.endswith("/run-4")
    assert not rehearsal.assignment.rehearsing


def test_a_fault_that_nobody_foresaw_ends_the_candidate_and_is_not_the_versions(rehearsal, monkeypatch):
    def claim(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(rehearsal.control, "claim", claim)
    activation, (event,) = run(rehearsal)
    assert activation.state == "Failed"
    assert isinstance(event, ApplicationEnded)
    ending = ending_for(event, application_ended=True, active=1, own=UserCode())
    assert ending is not None
    assert (ending.reason, "can't start new thread" in ending.message) == (Reason.INTERNAL_ERROR, True)


def test_the_files_of_the_program_become_those_of_the_run(rehearsal):
    """An attempt that follows gets the same, whatever lies at their addresses by then."""
    for name in ("pinned.json", "abc/job.py"):
        rehearsal.store.put(f"{rehearsal.fetched}/_code/{name}", b"print()")
    run(rehearsal)
    assert rehearsal.store.get("run-4/_code/abc/job.py") == b"print()"
    assert rehearsal.store.get("run-4/_code/pinned.json") == b"print()"


def test_a_query_that_would_begin_from_nothing_in_silence_is_refused(rehearsal):
    """As a driver refuses it: the job begins with this state, and none of its queries has moved since."""
    seed_run(rehearsal.store, "run-3", "run-5", begins=True)
    run_file = rehearsal.assignment.run_file
    rehearsal.assignment.run_file = replace(run_file, rehearsal=replace(rehearsal.terms, from_run=5))
    rehearsal.registry.resting = lambda: [Resting("orders"), Resting("others")]
    activation, told = run(rehearsal, Order(run=6, attempt=1, epoch=8))
    assert activation.state == "Failed" and "others" in str(activation.message)
    assert isinstance(told[0], ApplicationEnded) and rehearsal.log == []


def test_the_same_order_again_changes_nothing_and_another_one_is_refused(rehearsal):
    activation, _ = run(rehearsal)
    log = list(rehearsal.log)
    activation.ask(ORDER)
    assert rehearsal.log == log
    with pytest.raises(NotInStandby, match="Active"):
        activation.ask(Order(run=4, attempt=2, epoch=9))


def test_before_standby_it_is_refused(rehearsal):
    rehearsal.phase = "Rehearsing"
    with pytest.raises(NotInStandby, match="Rehearsing"):
        Activation(rehearsal, lambda _: None).ask(ORDER)


def test_a_pending_batch_stops_it_before_the_claim_unless_it_is_accepted(rehearsal):
    query = FakeQuery(store=rehearsal.store, run="run-3", begun=5, committed=5)
    query.begin()
    activation, told = run(rehearsal)
    assert (activation.state, rehearsal.phase, rehearsal.log, told) == ("Failed", "Standby", [], [])
    assert "PendingBatch: batch 6 of query orders" in str(activation.message)
    assert not is_seeded(rehearsal.store, 4), "its run may go on"
    activation, _ = run(rehearsal, Order(run=4, attempt=1, epoch=8, accept_pending=True))
    assert activation.state == "Done"


def test_a_store_that_fails_stops_it_before_the_claim(rehearsal):
    rehearsal.store.put("run-4/_attempts/1", b"{}")
    activation, _ = run(rehearsal)
    assert (activation.state, rehearsal.phase) == ("Failed", "Standby")
    assert "in use by attempt 1" in str(activation.message)


def test_who_finds_the_attempt_taken_ends(rehearsal):
    rehearsal.control.fenced = True
    _, told = run(rehearsal)
    (event,) = told
    assert isinstance(event, ApplicationEnded)
    assert isinstance(event.error, Fenced)


def test_what_fails_after_the_claim_ends_the_attempt_as_any_other(rehearsal):
    rehearsal.registry.fault = RuntimeError("no such table")
    activation, told = run(rehearsal)
    (event,) = told
    assert event.error is rehearsal.registry.fault
    assert activation.state == "Starting"
    assert not rehearsal.assignment.rehearsing


def test_where_the_time_of_the_first_batch_went_is_told():
    loads = [{"rocksdbNumReplayChangelogFiles": files, "rocksdbLoadLatencyMs": 400} for files in (40, 2)]
    progress = {
        "batchId": 7,
        "durationMs": {"queryPlanning": 120, "addBatch": 2300, "triggerExecution": 2500, "getBatch": 0},
        "stateOperators": [{"customMetrics": load, "commitTimeMs": 30} for load in loads] + [{}],
    }
    assert told_batch(progress) == (
        "batch 7 took triggerExecution 2.50 s, addBatch 2.30 s, queryPlanning 0.12 s; state: loaded in "
        "0.80 s, 42 changelogs replayed, committed in 0.06 s"
    )
