"""A job to be deleted, and what can be seen of its end."""

from headrace.kube.resources import EVENTS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import FakeCluster

SPEC = {"application": {"file": "job.py"}, "deletionPolicy": "Delete"}
RETAINED = {"application": {"file": "job.py"}}


def running(spec: dict = SPEC) -> FakeCluster:
    cluster = FakeCluster(spec)
    cluster.settle()
    assert cluster.status.state == "Running"
    return cluster


def finalizers(cluster: FakeCluster) -> list[str]:
    return cluster.api.objects[cluster.job_place]["metadata"].get("finalizers") or []


def message(cluster: FakeCluster) -> str:
    stalled = cluster.status.condition("Stalled")
    assert stalled is not None and stalled.status == "True"
    return stalled.message


def nothing_is_left(cluster: FakeCluster) -> bool:
    """But what is told of it, and savepoints: those have a policy of their own."""
    stays = (EVENTS.plural, STREAM_SAVEPOINTS.plural)
    return not [place for place in cluster.api.objects if place[0] not in stays]


def passes(cluster: FakeCluster, number: int = 6) -> None:
    for _ in range(number):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.collect_garbage()
