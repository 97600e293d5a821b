"""Objects that have the names of a job's own and are somebody else's: never deleted, never taken over."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from headrace.kube.resources import CONFIG_MAPS, SECRETS, SERVICES, Resource
from tests.sim.kube.cluster import JOB, NAMESPACE, FakeCluster

BODIES: dict[str, dict[str, Any]] = {
    CONFIG_MAPS.plural: {"data": {"prices.csv": "1,2"}},
    SERVICES.plural: {"spec": {"selector": {"app": "shop"}, "ports": [{"port": 80}]}},
    SECRETS.plural: {"stringData": {"password": "x"}},
}


def put(cluster: FakeCluster, resource: Resource, name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": NAMESPACE}
    return cluster.api.put_new(resource, {"metadata": meta, **BODIES[resource.plural]})


def remove(cluster: FakeCluster, resource: Resource, name: str) -> None:
    cluster.api.remove((resource.plural, NAMESPACE, name))


def passes(cluster: FakeCluster, count: int = 8) -> None:
    for _ in range(count):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.later(10)


@pytest.mark.parametrize(
    ("resource", "name", "kind"),
    [
        (CONFIG_MAPS, f"{JOB}-r1", "ConfigMap"),
        (CONFIG_MAPS, f"{JOB}-r1-a1", "ConfigMap"),
        (SERVICES, f"{JOB}-r1-a1", "Service"),
    ],
)
def test_a_first_run_waits_for_the_name_and_names_the_object(resource: Resource, name: str, kind: str):
    cluster = FakeCluster()
    theirs = put(cluster, resource, name)
    passes(cluster)
    assert cluster.api.of(resource)[name] == theirs
    assert cluster.started == []
    assert cluster.condition("Ready") == ("False", "NameTaken")
    assert cluster.condition("Stalled") == ("True", "NameTaken")
    assert cluster.condition("Reconciling")[0] == "False"
    stalled = cluster.status.condition("Stalled")
    assert stalled is not None and f"{kind} {name}" in stalled.message
    remove(cluster, resource, name)
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.condition("Stalled")[0] == "False"


def test_what_an_orphaning_deletion_left_behind_is_named():
    """`kubectl delete --cascade=orphan` takes the owners off."""
    cluster = FakeCluster()
    cluster.settle()
    left = copy.deepcopy(cluster.api.of(CONFIG_MAPS)[f"{JOB}-r1"])
    fresh = FakeCluster()
    left["metadata"].pop("ownerReferences")
    fresh.api.put_new(CONFIG_MAPS, left)
    passes(fresh)
    assert fresh.condition("Stalled") == ("True", "NameTaken")
    assert fresh.started == []


@pytest.mark.parametrize("strategy", ["Cold", "Rehearsed"])
def test_an_edit_waits_for_the_name_of_its_run_while_the_old_run_goes_on(strategy: str):
    cluster = FakeCluster({"application": {"file": "job.py"}, "upgrade": {"strategy": strategy}})
    cluster.settle()
    theirs = put(cluster, CONFIG_MAPS, f"{JOB}-r2")
    cluster.edit(application={"args": ["--x"]})
    passes(cluster)
    assert cluster.api.of(CONFIG_MAPS)[f"{JOB}-r2"] == theirs
    assert cluster.live_drivers() == [f"{JOB}-r1-a1"]
    assert cluster.condition("Stalled") == ("True", "NameTaken")
    remove(cluster, CONFIG_MAPS, f"{JOB}-r2")
    cluster.settle(200)
    assert cluster.status.run is not None and cluster.status.run.number == 2
    assert cluster.condition("Stalled")[0] == "False"


def test_a_service_that_took_the_place_of_ours_is_left_alone():
    cluster = FakeCluster()
    cluster.settle()
    remove(cluster, SERVICES, f"{JOB}-r1-a1")
    theirs = put(cluster, SERVICES, f"{JOB}-r1-a1")
    passes(cluster)
    assert cluster.api.of(SERVICES)[f"{JOB}-r1-a1"] == theirs


def test_no_secret_is_deleted_by_its_name():
    """They cannot be read, so nobody could tell whose it is. Ours go with the ConfigMap that owns them."""
    cluster = FakeCluster()
    cluster.settle()
    remove(cluster, SECRETS, f"{JOB}-r1-a1")
    theirs = put(cluster, SECRETS, f"{JOB}-r1-a1")
    for _ in range(3):
        cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
        cluster.settle()
    assert cluster.api.of(SECRETS)[f"{JOB}-r1-a1"] == theirs
    assert sorted(cluster.api.of(SECRETS)) == [f"{JOB}-r1-a1", f"{JOB}-r1-a3", f"{JOB}-r1-a4"]
    assert ("delete", "secrets") not in cluster.api.rights
