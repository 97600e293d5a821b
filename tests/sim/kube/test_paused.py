"""A paused job is left alone, and what is said of it stays true."""

from __future__ import annotations

import pytest

from headrace.kube.resources import PODS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster


@pytest.fixture
def paused() -> FakeCluster:
    cluster = FakeCluster()
    cluster.settle()
    pause(cluster)
    cluster.settle()
    return cluster


def pause(cluster: FakeCluster, value: str | None = "true") -> None:
    cluster.api.set(cluster.job_place, {"metadata": {"annotations": {"headrace.dev/paused": value}}})


def test_one_that_runs_is_ready_all_the_same(paused: FakeCluster):
    assert paused.status.state == "Paused"
    assert paused.condition("Ready") == ("True", "Running")
    writes = len(paused.api.writes)
    paused.settle()
    assert paused.api.writes[writes:] == []


@pytest.mark.parametrize("trace", [True, False])
def test_when_its_driver_dies_it_is_not_ready_and_says_why_nothing_follows(paused: FakeCluster, trace: bool):
    place = paused.driver_place()
    if trace:
        paused.end_driver(place, "QueryFailed", 66, "KeyError: 'price'")
    else:
        paused.api.remove(place)
    paused.settle()
    assert paused.condition("Ready") == ("False", "Paused")
    ready = paused.status.condition("Ready")
    assert ready is not None and "headrace.dev/paused" in ready.message
    assert ("KeyError: 'price'" in ready.message) == trace
    assert paused.started == [(1, 1, 1)]
    pause(paused, None)
    paused.settle()
    assert paused.condition("Ready") == ("True", "Running")
    last = paused.status.last_termination
    assert last is not None and last.reason == ("QueryFailed" if trace else "Unknown")
    assert paused.started == [(1, 1, 1), (1, 2, 2)]


def test_one_that_loses_its_executors_is_not_ready(paused: FakeCluster):
    paused.executors.refused = 'pods "x" is forbidden: exceeded quota: small'
    paused.api.remove((PODS.plural, NAMESPACE, "spark-s-clicks-1-0-0"))
    outcome = paused.pass_once()
    assert outcome is not None and outcome.recheck_after is not None
    paused.kubelets_work()
    paused.later(31)
    paused.pass_once()
    assert paused.condition("Ready") == ("False", "QuotaExceeded")


def test_an_edit_is_not_observed_before_somebody_may_act_on_it(paused: FakeCluster):
    paused.edit(application={"args": ["--x"]})
    paused.settle()
    generation = paused.api.objects[paused.job_place]["metadata"]["generation"]
    assert paused.status.observed_generation == generation - 1
    assert {one.observed_generation for one in paused.status.conditions} == {generation - 1}
    pause(paused, None)
    paused.settle()
    assert paused.status.observed_generation == generation
    assert {one.observed_generation for one in paused.status.conditions} == {generation}


@pytest.mark.parametrize("edit", [{"suspend": True}, {"trigger": {"mode": "AvailableNow"}}])
def test_one_that_has_stopped_as_asked_stays_so(edit: dict[str, object]):
    cluster = FakeCluster()
    cluster.settle()
    cluster.edit(**edit)
    cluster.settle()
    if cluster.live_drivers():
        cluster.end_driver(cluster.driver_place(), "Completed", 0)
        cluster.settle()
    before = cluster.condition("Ready")
    assert before[0] == "True"
    pause(cluster)
    cluster.settle()
    assert cluster.condition("Ready") == before
