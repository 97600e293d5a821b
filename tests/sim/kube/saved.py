"""Savepoints of a fake cluster: how tests make them, and what they look at."""

from typing import Any

from headrace.kube.resources import PODS, STREAM_JOBS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster

SPEC = {"application": {"file": "job.py"}}
ELSEWHERE = "s3://backup/shop/old/_savepoints/nightly-1"


def running(spec: dict[str, Any] | None = None) -> FakeCluster:
    cluster = FakeCluster(spec or SPEC)
    cluster.settle()
    assert cluster.status.state == "Running"
    return cluster


def conditions(cluster: FakeCluster, name: str = "manual") -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in cluster.savepoint(name).conditions}


def message(cluster: FakeCluster, kind: Any, name: str = "manual") -> str:
    condition = cluster.savepoint(name).condition(kind)
    assert condition is not None
    return condition.message


def keepers(cluster: FakeCluster) -> list[str]:
    return [
        name for name, pod in cluster.api.of(PODS).items() if "headrace.dev/task" in pod["metadata"]["labels"]
    ]


def finalizers(cluster: FakeCluster, name: str = "manual") -> list[str]:
    return cluster.api.of(STREAM_SAVEPOINTS)[name]["metadata"].get("finalizers") or []


def passes(cluster: FakeCluster, number: int = 6) -> None:
    for _ in range(number):
        cluster.pass_once()
        cluster.kubelets_work()


def uid(cluster: FakeCluster, name: str = "manual") -> str:
    return cluster.api.of(STREAM_SAVEPOINTS)[name]["metadata"]["uid"]


def edit_savepoint(cluster: FakeCluster, name: str = "manual", **spec: Any) -> None:
    place = (STREAM_SAVEPOINTS.plural, NAMESPACE, name)
    generation = cluster.api.objects[place]["metadata"]["generation"] + 1
    cluster.api.set(place, {"spec": spec, "metadata": {"generation": generation}})


GOOD = {
    "Ready": ("True", "Taken"),
    "Reconciling": ("False", "Settled"),
    "Stalled": ("False", "Settled"),
    "Verified": ("True", "Objects"),
}


def refuse_pods(cluster: FakeCluster, why: str = "quota") -> Any:
    create = cluster.api.create

    async def refusing(resource: Any, namespace: str, body: Any) -> Any:
        if resource is PODS:
            cluster.api.faults = [why]
        return await create(resource, namespace, body)

    cluster.api.create = refusing  # type: ignore[method-assign]
    return create


def put_starter_elsewhere(cluster: FakeCluster, path: str, status: dict[str, Any]) -> None:
    """Of another namespace, which can name the copy only."""
    metadata = {"name": "fork", "namespace": "elsewhere"}
    spec = {**SPEC, "startFrom": {"path": path}}
    cluster.api.put_new(STREAM_JOBS, {"metadata": metadata, "spec": spec, "status": status})


def put_starter(cluster: FakeCluster, status: dict[str, Any], **more: Any) -> None:
    metadata = {"name": "fork", "namespace": NAMESPACE, **more}
    spec = {**SPEC, "startFrom": {"savepoint": "manual"}}
    cluster.api.put_new(STREAM_JOBS, {"metadata": metadata, "spec": spec, "status": status})
