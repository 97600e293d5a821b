"""What an earlier job of the same name has left behind: its checkpoints, and pods that may still write."""

from headrace.kube.resources import PODS
from tests.sim.kube.cluster import JOB, NAMESPACE, FakeCluster
from tests.sim.kube.kubernetes import runs


def test_an_earlier_lineage_waits_for_an_answer_and_is_then_gone_on_from():
    cluster = FakeCluster()
    cluster.earlier = {"uid": "older", "lastRun": 4}
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "EarlierLineage")
    assert cluster.started == []
    cluster.edit(application={"args": ["--other"]})  # no way around it
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "EarlierLineage")
    cluster.edit(startFrom={"latest": True})
    cluster.settle()
    assert cluster.seeds[1] == "older/run-4"
    assert cluster.condition("Ready") == ("True", "Running")
    assert runs(cluster) == [(1, 2), (2, 1)]  # and then the edit that waited


def test_an_earlier_lineage_may_be_left_behind():
    cluster = FakeCluster()
    cluster.earlier = {"uid": "older", "lastRun": 4}
    cluster.settle()
    cluster.edit(startFrom={"none": True})
    cluster.settle()
    assert cluster.seeds == {}
    assert cluster.condition("Ready") == ("True", "Running")


def test_told_from_the_beginning_an_earlier_lineage_is_gone_on_from():
    cluster = FakeCluster({"application": {"file": "job.py"}, "startFrom": {"latest": True}})
    cluster.earlier = {"uid": "older", "lastRun": 4}
    cluster.settle()
    assert cluster.seeds == {1: "older/run-4"}
    assert cluster.condition("Ready") == ("True", "Running")


def test_a_pod_of_an_earlier_job_of_the_same_name_is_waited_for():
    cluster = FakeCluster()
    labels = {
        "headrace.dev/job": JOB,
        "headrace.dev/role": "driver",
        "headrace.dev/run": "3",
        "headrace.dev/attempt": "1",
    }
    owners = [{"uid": "somebody-else"}]
    old = {"name": "clicks-r3-a1", "namespace": NAMESPACE, "labels": labels, "ownerReferences": owners}
    cluster.api.put_new(PODS, {"metadata": old, "status": {"phase": "Running"}})
    for _ in range(6):
        cluster.pass_once()
    assert cluster.condition("Ready") == ("False", "WaitingForWriter")
    assert "clicks-r1-a1" not in cluster.api.of(PODS)
    cluster.api.remove((PODS.plural, NAMESPACE, "clicks-r3-a1"))
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")


def test_a_pod_of_an_earlier_job_that_has_ended_holds_nothing_up():
    """Such as the keeper that removed its checkpoints: nobody owns it, so nobody takes it away."""
    cluster = FakeCluster()
    labels = {"headrace.dev/job": "clicks", "headrace.dev/role": "deletion", "headrace.dev/lineage": "older"}
    keeper = {"metadata": {"name": "clicks-older-delete-1", "namespace": NAMESPACE, "labels": labels}}
    cluster.api.put_new(PODS, keeper)
    place = (PODS.plural, NAMESPACE, "clicks-older-delete-1")
    cluster.api.set(place, {"status": {"phase": "Running"}})
    cluster.pass_once()
    assert cluster.live_drivers() == []
    cluster.api.set(place, {"status": {"phase": "Succeeded"}})
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
