"""Objects of other people that have the names of a job's own: never changed, deleted or taken over."""

from __future__ import annotations

import copy
from typing import Any

from headrace.kube.resources import CONFIG_MAPS, PODS, SECRETS, SERVICES, STATEFUL_SETS, Resource
from tests.sim.kube.cluster import JOB, NAMESPACE, FakeCluster
from tests.sim.kube.fake_api import Object, Place

BODIES: dict[str, Object] = {
    CONFIG_MAPS.plural: {"data": {"prices.csv": "1,2"}},
    SERVICES.plural: {"spec": {"selector": {"app": "shop"}, "ports": [{"port": 80}]}},
    SECRETS.plural: {"stringData": {"password": "x"}},
    PODS.plural: {"spec": {"containers": [{"name": "shop"}]}, "status": {"phase": "Running"}},
    STATEFUL_SETS.plural: {"spec": {"replicas": 7, "template": {"metadata": {"labels": {"app": "shop"}}}}},
}
KINDS = (CONFIG_MAPS, SERVICES, SECRETS, PODS)


def put(cluster: FakeCluster, resource: Resource, name: str, **metadata: Any) -> Object:
    meta = {"name": name, "namespace": NAMESPACE, **metadata}
    return cluster.api.put_new(resource, {"metadata": meta, **copy.deepcopy(BODIES[resource.plural])})


class Strangers:
    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.theirs: dict[Place, Object] = {}

    def come(self, resource: Resource, name: str, **metadata: Any) -> None:
        """Unless the name is taken already."""
        place = (resource.plural, NAMESPACE, name)
        if place not in self.cluster.api.objects:
            self.theirs[place] = put(self.cluster, resource, name, **metadata)

    def go(self) -> None:
        """By the hand of whoever made them."""
        for place in self.theirs:
            self.cluster.api.remove(place)
        self.theirs.clear()

    def are_as_they_were(self) -> None:
        for place, before in self.theirs.items():
            assert self.cluster.api.objects.get(place) == before, f"{place}: somebody else's was touched"


def names_to_come(cluster: FakeCluster) -> list[str]:
    """Such as the job may need next: of runs, attempts, candidates, keepers."""
    run = cluster.status.run
    number = run.number if run is not None else 0
    attempt = run.attempt.number if run is not None and run.attempt is not None else 0
    return [
        f"{JOB}-r{number + 1}",
        f"{JOB}-r{number + 1}-a1",
        f"{JOB}-r{number}-a{attempt + 1}",
        f"{JOB}-r{number}-a{attempt}",
        f"{JOB}-c1",
        f"{JOB}-c2",
        f"{JOB}-seed-{number + 1}-1",
    ]
