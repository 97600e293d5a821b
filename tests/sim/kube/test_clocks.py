"""The operator's clock is wrong, or is put right: ahead of the server's and the nodes' clocks, or behind.

Nothing may take longer for it than it would by a right clock, and nobody may be given up who was just asked.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from headrace.core.decision import Sentence
from headrace.kube.resources import EVENTS, PODS, STREAM_SAVEPOINTS
from headrace.runtime.events import EventRecorder
from headrace.runtime.lease import LeaderLease
from tests.sim.kube.cluster import FakeCluster
from tests.sim.kube.test_faults import SPEC, UNHARMED, outcome, story

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def running(spec: dict | None = None, *, clock_error: timedelta = timedelta(0)) -> FakeCluster:
    cluster = FakeCluster({**SPEC, **(spec or {})})
    cluster.clock_error = clock_error
    cluster.settle()
    return cluster


def put_right(cluster: FakeCluster) -> datetime:
    """Answers since when the clock is right."""
    cluster.clock_error = timedelta(0)
    return cluster.moment


def ticks(cluster: FakeCluster, count: int, *, seconds: float = 10, kubelets: bool = True) -> None:
    for _ in range(count):
        cluster.pass_once()
        if kubelets:
            cluster.kubelets_work()
        cluster.later(seconds)


@pytest.mark.parametrize("error", [DAY, -DAY, timedelta(seconds=5), timedelta(seconds=-5)])
def test_a_clock_that_is_always_wrong_changes_nothing(error: timedelta):
    cluster = FakeCluster(SPEC)
    cluster.clock_error = error
    story(cluster)
    assert outcome(cluster) == outcome(UNHARMED)
    assert cluster.moment - UNHARMED.moment < timedelta(minutes=10)


def test_the_next_attempt_does_not_wait_for_a_clock_that_was_put_back():
    cluster = running()
    cluster.clock_error = DAY
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.pass_once()
    assert cluster.status.restarts.next_at is not None
    since = put_right(cluster)
    cluster.settle()
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]
    assert cluster.moment - since < timedelta(minutes=10)


@pytest.mark.parametrize("bad", ["hang", "never", "crash-after-1"])
@pytest.mark.parametrize("strategy", ["Cold", "Rehearsed"])
def test_a_trial_does_not_wait_for_a_clock_that_was_put_back(bad: str, strategy: str):
    cluster = running({"upgrade": {"strategy": strategy}})
    cluster.clock_error = DAY
    cluster.edit(application={"args": [bad]})
    ticks(cluster, 8)
    since = put_right(cluster)
    cluster.settle(200)
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.status.rejected is not None and cluster.status.operation is None
    assert cluster.moment - since < 6 * HOUR


def test_a_driver_that_does_not_drain_does_not_wait_for_a_clock_that_was_put_back():
    cluster = running({"drainTimeout": "1m"})
    place = cluster.driver_place()
    cluster.clock_error = DAY
    cluster.edit(suspend=True)
    cluster.pass_once()
    put_right(cluster)
    ticks(cluster, 12, kubelets=False)
    assert "deletionTimestamp" in cluster.api.objects[place]["metadata"]


def test_a_driver_is_given_its_time_to_drain_whatever_the_clock_does():
    cluster = running({"drainTimeout": "10m"})
    place = cluster.driver_place()
    cluster.edit(suspend=True)
    cluster.pass_once()
    cluster.clock_error = DAY
    ticks(cluster, 3, kubelets=False)
    assert "deletionTimestamp" not in cluster.api.objects[place]["metadata"]


@pytest.mark.parametrize("error", [HOUR, DAY])
def test_a_driver_that_was_just_told_to_go_is_not_given_up_by_a_clock_that_is_ahead(error: timedelta):
    """Given up, it would write beside its successor: the worst that a wrong clock could do."""
    cluster = running({"lostNode": "Force"})
    place = cluster.driver_place()
    cluster.api.set(place, {"metadata": {"deletionTimestamp": cluster.moment.isoformat()}})
    cluster.clock_error = error
    ticks(cluster, 3, kubelets=False)
    assert place in cluster.api.objects
    assert cluster.condition("Ready")[1] != "NodeLost"
    ticks(cluster, 12, kubelets=False)  # two minutes: now it is lost
    assert place not in cluster.api.objects


def test_a_lost_driver_is_given_up_by_a_clock_that_is_behind():
    cluster = running({"lostNode": "Force"})
    place = cluster.driver_place()
    cluster.api.set(place, {"metadata": {"deletionTimestamp": cluster.moment.isoformat()}})
    cluster.clock_error = -DAY
    ticks(cluster, 12, kubelets=False)
    assert place not in cluster.api.objects


def test_silence_is_noticed_by_a_clock_that_was_put_back():
    cluster = running()
    cluster.agent().deaf = True
    cluster.clock_error = DAY
    cluster.pass_once()
    put_right(cluster)
    ticks(cluster, 10)
    assert cluster.condition("Ready") == ("False", "AgentSilent")


def test_a_job_is_not_silent_because_the_clock_has_leapt():
    cluster = running()
    cluster.agent().deaf = True
    cluster.pass_once()
    cluster.clock_error = DAY
    cluster.pass_once()
    assert cluster.condition("Ready") == ("True", "Running")


# ---- by schedule


@pytest.mark.parametrize("error", [timedelta(minutes=6), DAY, -DAY])
def test_a_finite_job_starts_as_often_as_its_schedule_says(error: timedelta):
    """Its ends are told in the time of its node."""
    cluster = running({"trigger": {"mode": "AvailableNow", "schedule": "*/5 * * * *"}}, clock_error=error)
    for _ in range(60):
        cluster.pass_once()
        cluster.kubelets_work()
        for agent in list(cluster.agents.by_uid.values()):
            if agent.phase == "Running":
                finish(cluster, agent.pod)
        cluster.later(15)
    assert 3 <= len(cluster.started) <= 5  # in a quarter of an hour


def finish(cluster: FakeCluster, place: tuple[str, str, str]) -> None:
    cluster.end_driver(place, "Completed", 0)
    status = cluster.api.objects[place]["status"]
    state = {"terminated": {**status["containerStatuses"][0]["state"]["terminated"]}}
    state["terminated"]["finishedAt"] = cluster.moment.isoformat().replace("+00:00", "Z")
    cluster.api.set(place, {"status": {"containerStatuses": [{"name": "driver", "state": state}]}})


@pytest.mark.parametrize("error", [timedelta(minutes=6), -timedelta(minutes=6), DAY, -DAY])
def test_savepoints_are_taken_as_often_as_their_schedule_says(error: timedelta):
    """They are dated by the server."""
    cluster = running({"savepoints": {"schedule": "0 * * * *", "keep": 50}}, clock_error=error)
    for _ in range(6):
        cluster.later(3600)
        cluster.savepoint_store.batch += 1
        for agent in cluster.agents.by_uid.values():
            agent.batches += 1
        cluster.settle()
    assert 5 <= len(cluster.api.of(STREAM_SAVEPOINTS)) <= 7


def test_savepoints_go_on_when_a_clock_was_put_back():
    cluster = running({"savepoints": {"schedule": "0 * * * *", "keep": 50}})
    cluster.clock_error = DAY
    for _ in range(2):
        cluster.later(3600)
        cluster.settle()
    before = len(cluster.api.of(STREAM_SAVEPOINTS))
    assert before
    put_right(cluster)
    for _ in range(3):
        cluster.later(3600)
        cluster.settle()
    assert len(cluster.api.of(STREAM_SAVEPOINTS)) >= before + 2


@pytest.mark.parametrize("error", [DAY, -DAY])
def test_a_savepoint_has_the_time_that_its_limit_gives_it(error: timedelta):
    """A leap of the clock would else fail a copy that goes well, and hold the upgrade that waits for it."""
    cluster = running()
    cluster.create_savepoint("manual", timeLimit="10m")
    cluster.savepoint_store.frozen = True
    ticks(cluster, 3)
    cluster.clock_error = error
    ticks(cluster, 3)
    assert cluster.savepoint("manual").failed_at is None
    ticks(cluster, 3, seconds=300)
    assert cluster.savepoint("manual").failed_at is not None


@pytest.mark.parametrize("error", [HOUR, -HOUR])
def test_a_copy_of_state_that_failed_is_tried_again_after_its_wait_and_not_before(error: timedelta):
    """Keepers end in the time of their nodes."""
    cluster = running(clock_error=error)
    cluster.seed_fails = "the store does not answer"
    cluster.edit(application={"args": ["--x"]})
    ticks(cluster, 30, seconds=2)
    keepers = [name for name in cluster.api.of(PODS) if "-seed-" in name]
    assert 2 <= len(keepers) <= 5
    cluster.seed_fails = None
    cluster.later(60)
    since = cluster.moment
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.moment - since < timedelta(minutes=20)


# ---- what else has a clock


def test_events_are_told_again_by_a_clock_that_was_put_back():
    cluster = running()
    recorder = EventRecorder(cluster.api, "operator")
    job = cluster.api.objects[cluster.job_place]

    def record(now: datetime) -> int:
        asyncio.run(recorder.record(job, Sentence("Starting", "a test"), now=now))
        (event,) = [one for one in cluster.api.of(EVENTS).values() if one["message"] == "a test"]
        return event["count"]

    assert record(cluster.moment + DAY) == 1
    assert record(cluster.moment) == 2
    assert record(cluster.moment + timedelta(minutes=1)) == 2


def test_a_leap_of_the_calendar_neither_ends_nor_prolongs_a_lease():
    cluster = FakeCluster(SPEC)
    seconds = [100.0]

    def lease(identity: str) -> LeaderLease:
        return LeaderLease(
            api=cluster.api,
            namespace="headrace",
            name="headrace",
            identity=identity,
            now=cluster.operator_now,
            clock=lambda: seconds[0],
        )

    def renew(one: LeaderLease) -> bool:
        return asyncio.run(one.renew())

    first, second = lease("first"), lease("second")
    assert renew(first) and not renew(second)
    for cluster.clock_error in (DAY, -DAY, 400 * DAY):
        assert first.leads()
        assert not renew(second)
    seconds[0] += 18
    assert not first.leads() and not renew(second)
    seconds[0] += 3
    assert renew(second) and not renew(first)
