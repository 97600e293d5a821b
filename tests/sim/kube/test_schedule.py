"""A finite job with a schedule on a cluster. The moment at which all begins is 1 January 2026, 00:00 UTC."""

import copy
from datetime import UTC, datetime

import pytest

from headrace.kube.resources import PODS
from tests.sim.kube.cluster import FakeCluster

NIGHTLY = {
    "application": {"file": "job.py"},
    "trigger": {"mode": "AvailableNow", "schedule": "30 1 * * *", "timeZone": "Europe/Berlin"},
}
FIRST, SECOND = (
    datetime(2026, 1, 1, 0, 30, tzinfo=UTC),
    datetime(2026, 1, 2, 0, 30, tzinfo=UTC),
)


def completed() -> FakeCluster:
    cluster = FakeCluster(NIGHTLY)
    cluster.settle()
    cluster.end_driver(cluster.driver_place(), "Completed", 0)
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Completed")
    return cluster


def test_the_operator_looks_again_at_the_time_of_the_next_start():
    cluster = completed()
    assert cluster.status.next_start_at == FIRST
    outcome = cluster.pass_once()
    assert outcome is not None
    assert outcome.recheck_after == (FIRST - cluster.moment).total_seconds()
    cluster.moment = FIRST
    cluster.settle()
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]
    driver = cluster.api.of(PODS)["clicks-r1-a2"]["spec"]["containers"][0]
    assert driver["image"] == "spark@sha256:abc"
    cluster.end_driver(cluster.driver_place(), "Completed", 0)
    cluster.settle()
    assert cluster.status.next_start_at == SECOND


def test_an_operator_that_was_away_starts_it_once():
    cluster = completed()
    cluster.later(5 * 86_400)
    cluster.operator = cluster.new_operator()
    cluster.settle()
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]


def test_an_end_counts_from_when_the_kubelet_saw_it():
    cluster = FakeCluster(NIGHTLY)
    cluster.settle()
    place = cluster.driver_place()
    cluster.end_driver(place, "Completed", 0)
    status = copy.deepcopy(cluster.api.objects[place]["status"])
    status["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = "2026-01-01T00:05:00Z"
    cluster.api.set(place, {"status": status})
    cluster.later(86_400)
    cluster.settle()
    assert cluster.status.completed_at == datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]


@pytest.mark.parametrize("writes", range(8))
def test_killed_around_a_start_it_starts_once(writes: int):
    cluster = completed()
    cluster.moment = FIRST
    cluster.api.writes_left = writes
    cluster.settle()
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]
    assert cluster.condition("Ready") == ("True", "Running")


def test_an_unknown_zone_is_refused_before_anything_starts_and_changes_nothing_later():
    bad = {**NIGHTLY, "trigger": {**NIGHTLY["trigger"], "timeZone": "Europe/Atlantis"}}
    cluster = FakeCluster(bad)
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "UnknownTimeZone")
    assert cluster.started == []
    cluster = completed()
    cluster.edit(trigger={"timeZone": "Europe/Atlantis"})
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "UnknownTimeZone")
    assert cluster.status.next_start_at == FIRST
    cluster.moment = FIRST
    cluster.settle()
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]


def test_a_job_that_completes_as_it_is_suspended_is_completed_when_it_is_resumed():
    """It was done before anybody asked it to stop: its next start is the schedule's, not the resume."""
    cluster = FakeCluster(NIGHTLY)
    cluster.settle()
    cluster.end_driver(cluster.driver_place(), "Completed", 0)
    cluster.edit(suspend=True)
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Suspended")
    cluster.edit(suspend=False)
    cluster.settle()
    assert cluster.started == [(1, 1, 1)]
    assert cluster.condition("Ready") == ("True", "Completed")
    assert cluster.status.next_start_at is not None
