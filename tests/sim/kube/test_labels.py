"""Labels that somebody takes off a driver's pod, or changes. The driver does not notice, and writes on."""

from __future__ import annotations

import pytest

from headrace.core.manifests.keeper_pod import TRY_LABEL
from headrace.core.manifests.ownership import (
    ATTEMPT_LABEL,
    CANDIDATE_LABEL,
    EPOCH_LABEL,
    JOB_LABEL,
    ROLE_LABEL,
    RUN_LABEL,
)
from headrace.kube.resources import CONFIG_MAPS, PODS, SERVICES
from tests.sim.kube.cluster import JOB, KEY, NAMESPACE, FakeCluster
from tests.sim.kube.fake_api import Place, at_once

DRIVER: Place = (PODS.plural, NAMESPACE, f"{JOB}-r1-a1")
ALL = (JOB_LABEL, ROLE_LABEL, RUN_LABEL, ATTEMPT_LABEL, EPOCH_LABEL)


def labels(cluster: FakeCluster, place: Place = DRIVER) -> dict[str, str]:
    return dict(cluster.api.objects[place]["metadata"]["labels"])


def pass_for_real(cluster: FakeCluster) -> None:
    """With every error that a pass may end with."""
    cluster.hear()
    at_once(cluster.operator.reconcile(KEY))


@pytest.mark.parametrize("value", [None, "other"])
@pytest.mark.parametrize("key", ALL)
def test_a_driver_without_one_of_its_labels_is_still_the_driver(running: FakeCluster, key: str, value: str):
    before = labels(running)
    running.api.set(DRIVER, {"metadata": {"labels": {key: value}}})
    for _ in range(4):
        pass_for_real(running)
        running.kubelets_work()
        running.later(10)
    running.settle()
    assert running.writers() == [f"{JOB}-r1-a1"]
    assert running.started == [(1, 1, 1)]
    assert running.condition("Ready") == ("True", "Running")
    assert labels(running) == before


def test_without_any_label_and_a_new_operator_there_is_no_second_driver(running: FakeCluster):
    before = labels(running)
    running.api.set(DRIVER, {"metadata": {"labels": dict.fromkeys(before)}})
    running.operator = running.new_operator()
    pass_for_real(running)
    running.settle()
    assert running.started == [(1, 1, 1)]
    assert labels(running).items() >= {key: before[key] for key in ALL}.items()


def test_a_paused_job_is_not_touched_and_its_driver_is_still_known(running: FakeCluster):
    running.api.set(running.job_place, {"metadata": {"annotations": {"headrace.dev/paused": "true"}}})
    running.settle()
    running.api.set(DRIVER, {"metadata": {"labels": {JOB_LABEL: None}}})
    running.settle()
    assert JOB_LABEL not in labels(running)
    running.api.set(running.job_place, {"metadata": {"annotations": None}})
    running.settle()
    assert running.started == [(1, 1, 1)]
    assert labels(running)[JOB_LABEL] == JOB


def test_a_namesake_that_came_after_the_driver_had_gone_is_not_taken_for_it(running: FakeCluster):
    running.api.remove(DRIVER)
    meta = {"name": DRIVER[2], "namespace": NAMESPACE, "labels": {}}
    running.api.put_new(PODS, {"metadata": meta, "spec": {}, "status": {"phase": "Running"}})
    running.settle()
    assert running.started == [(1, 1, 1), (1, 2, 2)]
    assert labels(running) == {}


def test_one_that_ends_without_its_labels_is_followed_by_the_next(running: FakeCluster):
    running.api.set(DRIVER, {"metadata": {"labels": {JOB_LABEL: None, RUN_LABEL: None}}})
    running.end_driver(DRIVER, "QueryFailed", 66, "KeyError: 'price'")
    running.settle()
    last = running.status.last_termination
    assert last is not None and (last.reason, last.message) == ("QueryFailed", "KeyError: 'price'")
    assert running.started == [(1, 1, 1), (1, 2, 2)]


@pytest.mark.parametrize("key", [*ALL, CANDIDATE_LABEL])
def test_a_driver_that_took_over_warm_keeps_its_place_too(key: str):
    cluster = FakeCluster({"application": {"file": "job.py"}, "upgrade": {"strategy": "Rehearsed"}})
    cluster.settle()
    cluster.edit(application={"args": ["--x"]})
    cluster.settle(200)
    place = (PODS.plural, NAMESPACE, f"{JOB}-c1")
    before, started = labels(cluster, place), list(cluster.started)
    cluster.api.set(place, {"metadata": {"labels": {key: None}}})
    for _ in range(4):
        pass_for_real(cluster)
        cluster.later(10)
    cluster.settle()
    assert cluster.started == started
    assert labels(cluster, place) == before


@pytest.mark.parametrize("resource", [SERVICES, CONFIG_MAPS])
@pytest.mark.parametrize("key", [RUN_LABEL, ATTEMPT_LABEL])
def test_labels_of_what_stands_beside_it_end_no_pass(running: FakeCluster, resource, key: str):
    place = (resource.plural, NAMESPACE, DRIVER[2])
    running.api.set(place, {"metadata": {"labels": {key: None}}})
    pass_for_real(running)
    running.end_driver(DRIVER, "QueryFailed", 66)
    running.settle()
    assert running.started == [(1, 1, 1), (1, 2, 2)]


@pytest.mark.parametrize("key", [JOB_LABEL, ROLE_LABEL, RUN_LABEL, TRY_LABEL])
def test_a_keeper_whose_label_is_gone_is_still_the_keeper(running: FakeCluster, key: str):
    running.edit(application={"args": ["--x"]})
    while not (keepers := [name for name in running.api.of(PODS) if "seed" in name]):
        running.pass_once()
        running.kubelets_work()
    running.api.set((PODS.plural, NAMESPACE, keepers[0]), {"metadata": {"labels": {key: None}}})
    if key != JOB_LABEL:
        pass_for_real(running)
    running.settle(200)
    assert running.started == [(1, 1, 1), (2, 1, 2)]
    assert list(running.seeds) == [2]
