"""When a rehearsal is over, and how: without Spark, with a clock that only the test moves."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from headrace_jobs.harness import rehearsal as module
from headrace_jobs.harness.assignment import Assignment
from headrace_jobs.harness.endings import QueryEnd, RehearsalOver
from headrace_jobs.harness.failure import Failure
from headrace_jobs.harness.meaning_notes import Comparison
from headrace_jobs.harness.rehearsal import OtherSources, Rehearsal
from headrace_jobs.harness.runfile import parse_run_file
from headrace_jobs.harness.termination import Reason
from headrace_jobs.store import open_store
from headrace_jobs.store.rehearsals import Fork
from tests.unit.harness.samples import REHEARSAL
from tests.unit.store.savepoints.checkpoints import FakeQuery

LIMIT = 600


class Java:
    def __init__(self, query: Any) -> None:
        self._query = query

    def stop(self) -> None:
        self._query.resting = True


@dataclass
class Query:
    query_name: str = "orders"
    resting: bool = False
    isActive: bool = True  # noqa: N815 - Spark's name
    end: QueryEnd | None = None

    @property
    def java(self) -> Java:
        return Java(self)


@dataclass
class Replay:
    fork: Fork
    done: bool = False

    def to_json(self) -> dict[str, Any]:
        return {}

    def doing(self) -> str:
        return "in batch 5"


@dataclass
class World:
    """The registry, the clock, and what changes while somebody waits."""

    queries: list[Query] = field(default_factory=list)
    awaited: bool = False
    finished: bool = False
    now: float = 0.0
    events: list[Any] = field(default_factory=list)
    steps: list[Any] = field(default_factory=list)

    def all(self) -> list[Query]:
        return self.queries

    def resting(self) -> list[Query]:
        return [query for query in self.queries if query.resting]

    def wait_for_change(self, _timeout: float) -> None:
        self.now += 1
        if self.steps:
            self.steps.pop(0)(self)

    def clock(self) -> float:
        return self.now


@dataclass
class Meanings:
    comparison: Comparison = field(default_factory=lambda: Comparison(complete=True))

    others: list[str] = field(default_factory=list)

    def compare(self, *_: Any) -> Comparison:
        return self.comparison

    def other_sources(self, *_: Any) -> list[str]:
        return self.others


@pytest.fixture
def world():
    return World()


@pytest.fixture
def rehearsal(tmp_path, world, monkeypatch):
    # No thread: each test runs the watching itself.
    monkeypatch.setattr(Rehearsal, "_begin_watching", lambda _self: None)
    store = open_store(str(tmp_path))
    FakeQuery(store=store, run="run-3").batches(2)
    run_file = parse_run_file(json.dumps(REHEARSAL))
    assert run_file.rehearsal is not None
    terms = replace(run_file.rehearsal, time_limit_seconds=LIMIT, standby_seconds=None)
    made = Rehearsal(
        Assignment(replace(run_file, rehearsal=terms)),
        world,
        control=None,  # type: ignore[arg-type]
        session=None,
        store=store,
        readers=None,  # type: ignore[arg-type]
        meanings=Meanings(),  # type: ignore[arg-type]
        tell=world.events.append,
        application_finished=lambda: world.finished,
        clock=world.clock,
    )
    made.begin()
    return made


def start(rehearsal, world, name="orders", **fork):
    query = Query(name)
    world.queries.append(query)
    rehearsal._replays[name] = Replay(Fork(query=name, base=4, planned=(5,), **fork))
    return query


def rest(query):
    def do(_world):
        query.resting = True

    return do


def outcome(world):
    (event,) = world.events
    assert isinstance(event, RehearsalOver)
    return event.reason


def test_a_script_that_waits_starts_no_more(rehearsal, world):
    query = start(rehearsal, world)
    world.awaited = True
    world.steps = [lambda _: None, rest(query)]
    rehearsal._watch()
    assert (outcome(world), world.now) == (Reason.REHEARSED, 2)


def test_a_script_with_a_loop_of_its_own_gets_a_moment(rehearsal, world):
    query = start(rehearsal, world)
    world.steps = [rest(query)]
    rehearsal._watch()
    assert outcome(world) is Reason.REHEARSED
    assert world.now > module._QUIET_SECONDS


def test_what_the_incumbent_runs_is_waited_for(rehearsal, world):
    rehearsal._expected = {"orders", "totals"}
    query = start(rehearsal, world)
    late = [lambda _: None] * 30 + [lambda world: rest(start(rehearsal, world, "totals"))(world)]
    world.steps = [rest(query), *late]
    rehearsal._watch()
    assert outcome(world) is Reason.REHEARSED
    assert set(rehearsal._replays) == {"orders", "totals"}


def test_a_fork_that_takes_long_is_part_of_it(rehearsal, world):
    query = start(rehearsal, world)
    world.awaited = True

    def launched(_world):
        rehearsal._launching = 0

    rehearsal._launching = 1
    world.steps = [rest(query), *[lambda _: None] * 20, launched]
    rehearsal._watch()
    assert world.now > 20


def test_too_slow(rehearsal, world):
    start(rehearsal, world)
    rehearsal._watch()
    assert outcome(world) is Reason.REHEARSAL_TIMEOUT
    assert "query orders was in batch 5" in world.events[0].message


def test_a_script_that_never_starts_a_query_is_too_slow(rehearsal, world):
    rehearsal._watch()
    assert "the script starts no query" in world.events[0].message


def test_a_script_that_goes_on_for_ever_is_judged_by_its_queries(rehearsal, world):
    rehearsal._expected = {"orders", "gone"}
    rest(start(rehearsal, world))(world)
    rehearsal._watch()
    assert outcome(world) is Reason.REHEARSED


def test_the_first_batch_of_a_new_query_may_take_longer(rehearsal, world):
    start(rehearsal, world, is_new=True)
    world.awaited = True
    rehearsal._watch()
    assert outcome(world) is Reason.REHEARSED
    assert "is new: its first batch was still running" in rehearsal.result()["notes"][0]


@pytest.mark.parametrize("end", [QueryEnd(failure=Failure("BOOM", "boom")), QueryEnd(jvm_lost=True)])
def test_a_failure_is_told_by_the_conductor(rehearsal, world, end):
    query = start(rehearsal, world)
    query.isActive, query.end = False, end
    world.awaited = True
    rehearsal._watch()
    assert world.events == []


@pytest.mark.parametrize(
    ("compatible", "reason"), [(False, Reason.MEANING_CHANGED), (True, Reason.REHEARSED)]
)
def test_another_meaning_needs_a_word(rehearsal, world, compatible, reason):
    run_file = rehearsal.assignment.run_file
    terms = replace(run_file.rehearsal, state_compatible=compatible)
    rehearsal.assignment.run_file = replace(run_file, rehearsal=terms)
    rehearsal.meanings.comparison = Comparison(complete=True, differences=["query q: sum became max"])
    rest(start(rehearsal, world))(world)
    world.awaited = True
    rehearsal._watch()
    assert outcome(world) is reason
    assert rehearsal.result()["differences"] == ["query q: sum became max"]
    if not compatible:
        assert "upgrade.stateCompatible: true" in world.events[0].message


def test_other_sources_are_told_before_anything_of_the_old_ones_is_repeated(rehearsal, world):
    assert not rehearsal._other_sources("q")
    rehearsal.meanings.others = ["query q: its sources were files in /a; they are files in /b"]
    with pytest.raises(OtherSources, match="files in /a"):
        rehearsal._other_sources("q")
    assert outcome(world) is Reason.MEANING_CHANGED
    assert "they are files in /b. Spark" in world.events[0].message
    assert rehearsal.result()["differences"] == rehearsal.meanings.others
    run_file = rehearsal.assignment.run_file
    rehearsal.assignment.run_file = replace(
        run_file, rehearsal=replace(run_file.rehearsal, state_compatible=True)
    )
    assert rehearsal._other_sources("q"), "and nothing is repeated"


def in_standby(rehearsal, world, seconds=60.0):
    run_file = rehearsal.assignment.run_file
    terms = replace(run_file.rehearsal, standby_seconds=seconds)
    rehearsal.assignment.run_file = replace(run_file, rehearsal=terms)
    rest(start(rehearsal, world))(world)
    world.awaited = True


def test_standby_copies_ahead_again_and_again_and_ends(rehearsal, world):
    in_standby(rehearsal, world)
    query = FakeQuery(store=rehearsal.store, run="run-3", begun=1, committed=1)
    world.steps = [lambda _: query.batches(1)]
    rehearsal._watch()
    assert outcome(world) is Reason.STANDBY_EXPIRED
    assert rehearsal.phase == "Expired"
    copied = {entry.key for entry in rehearsal.store.list("run-4/queries/orders/state/")}
    assert copied == {
        f"run-4/queries/orders/{query.file(version, part, 'changelog')}{suffix}"
        for version in (1, 2, 3)
        for part in (0, 1)
        for suffix in ("", ".crc")
    }


def test_of_two_who_want_it_to_leave_standby_one_does(rehearsal, world):
    in_standby(rehearsal, world)
    world.steps = [lambda _: None, lambda _: rehearsal.leave_standby("Activating")]
    rehearsal._watch()
    assert rehearsal.phase == "Activating"
    assert world.events == []
    assert not rehearsal.leave_standby("Expired")


def test_a_query_that_comes_in_standby_is_rehearsed_as_well(rehearsal, world):
    in_standby(rehearsal, world)
    world.steps = [lambda _: rehearsal.takes()]
    rehearsal._watch()
    assert rehearsal.phase == "Rehearsing"
    world.steps = [lambda _: rehearsal.leave_standby("Activating")]
    rehearsal._watch()
    assert rehearsal.phase == "Activating"
