"""Objects that have the names of a job's own and are somebody else's: never deleted, never taken over."""

from __future__ import annotations

import copy

import pytest

from headrace.api.names import executor_set_name
from headrace.kube.resources import CONFIG_MAPS, SECRETS, SERVICES, STATEFUL_SETS, Resource
from tests.sim.kube.cluster import JOB, NAMESPACE, FakeCluster
from tests.sim.kube.strangers import KINDS, Strangers, names_to_come, put


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


def test_a_stateful_set_of_somebody_else_is_never_scaled():
    """Spark could not make its own, so there is nobody to do the work; and that is said."""
    cluster = FakeCluster()
    theirs = put(cluster, STATEFUL_SETS, executor_set_name(JOB, 1))
    passes(cluster)
    cluster.edit(executors={"count": 3})
    passes(cluster)
    assert cluster.api.of(STATEFUL_SETS)[executor_set_name(JOB, 1)] == theirs
    assert cluster.condition("Ready") == ("False", "NoExecutors")


@pytest.mark.parametrize("resource", KINDS)
def test_whatever_name_is_taken_what_is_there_stays_as_it_is(resource: Resource):
    """Through a crash and an upgrade with a rehearsal; when the names are free again, the job goes on."""
    cluster = FakeCluster()
    cluster.settle()
    strangers = Strangers(cluster)
    for name in names_to_come(cluster):
        strangers.come(resource, name)
    cluster.edit(application={"args": ["--x"]}, upgrade={"strategy": "Rehearsed"})
    passes(cluster)
    if cluster.live_drivers():
        cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    passes(cluster)
    strangers.are_as_they_were()
    strangers.go()
    cluster.later(600)
    cluster.settle(200)
    assert cluster.condition("Ready") == ("True", "Running")
