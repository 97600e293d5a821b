"""Events: the same sentence is one Event with a count, whoever tells it and however long ago it was told."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.core.decision import Sentence
from headrace.kube.resources import EVENTS
from headrace.runtime.events import EventRecorder
from tests.sim.kube.fake_api import FakeApi

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
JOB = {
    "apiVersion": "headrace.dev/v1alpha1",
    "kind": "StreamJob",
    "metadata": {"name": "clicks", "namespace": "shop", "uid": "u1", "resourceVersion": "7"},
}
FAILED = Sentence("QueryFailed", "KeyError: 'price'")


@pytest.fixture
def api() -> FakeApi:
    return FakeApi(lambda: BEGIN)


def tell(recorder: EventRecorder, sentence: Sentence = FAILED, *, minutes: float = 0) -> None:
    asyncio.run(recorder.record(JOB, sentence, now=BEGIN + timedelta(minutes=minutes)))


def told(api: FakeApi) -> list[tuple[str, int, str]]:
    return [(one["reason"], one["count"], one["lastTimestamp"]) for one in api.of(EVENTS).values()]


def test_a_repeat_is_counted_and_not_repeated(api: FakeApi):
    recorder = EventRecorder(api, "operator-1")
    for minutes in (0, 6, 12):
        tell(recorder, minutes=minutes)
    assert told(api) == [("QueryFailed", 3, "2026-01-01T00:12:00Z")]
    (event,) = api.of(EVENTS).values()
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["involvedObject"]["uid"] == "u1"


def test_within_five_minutes_it_is_the_same_news(api: FakeApi):
    recorder = EventRecorder(api, "operator-1")
    for minutes in (0, 1, 4.9):
        tell(recorder, minutes=minutes)
    assert [write[0] for write in api.writes] == ["create"]
    assert told(api) == [("QueryFailed", 1, "2026-01-01T00:00:00Z")]


def test_another_sentence_is_another_event(api: FakeApi):
    recorder = EventRecorder(api, "operator-1")
    tell(recorder)
    tell(recorder, Sentence("QueryFailed", "KeyError: 'page'"))
    assert [count for _, count, _ in told(api)] == [1, 1]


def test_another_process_goes_on_counting(api: FakeApi):
    for minutes, instance in enumerate(("operator-1", "operator-2", "operator-3")):
        tell(EventRecorder(api, instance), minutes=minutes)
    assert told(api) == [("QueryFailed", 3, "2026-01-01T00:02:00Z")]


def test_two_processes_that_take_turns_lose_no_count_for_good(api: FakeApi):
    one, two = EventRecorder(api, "operator-1"), EventRecorder(api, "operator-2")
    for minutes in range(0, 60, 12):
        tell(one, minutes=minutes)
        tell(two, minutes=minutes + 6)
    ((_, count, last),) = told(api)
    assert 5 <= count <= 10
    assert last == "2026-01-01T00:54:00Z"


def test_an_event_that_the_server_has_forgotten_is_made_anew(api: FakeApi):
    """It keeps them for an hour."""
    recorder = EventRecorder(api, "operator-1")
    tell(recorder)
    for place in list(api.objects):
        api.remove(place)
    tell(recorder, minutes=90)
    assert told(api) == [("QueryFailed", 1, "2026-01-01T01:30:00Z")]


@pytest.mark.parametrize("fault", ["refused", "busy", "invalid", "quota"])
def test_one_that_could_not_be_written_is_written_the_next_time(api: FakeApi, fault: str, caplog: Any):
    recorder = EventRecorder(api, "operator-1")
    api.faults = [fault]
    tell(recorder)
    assert told(api) == []
    assert "could not be written" in caplog.text
    tell(recorder, minutes=1)
    assert told(api) == [], "a server in trouble is not asked again with every pass"
    tell(recorder, minutes=6)
    assert told(api) == [("QueryFailed", 1, "2026-01-01T00:06:00Z")]


def test_one_whose_answer_was_lost_is_counted_the_next_time(api: FakeApi):
    recorder = EventRecorder(api, "operator-1")
    api.faults = ["lost"]
    tell(recorder)
    tell(recorder, minutes=6)
    assert told(api) == [("QueryFailed", 2, "2026-01-01T00:06:00Z")]
