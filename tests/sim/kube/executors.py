"""The executors of a fake cluster: Spark asks for a StatefulSet, and its controller keeps the pods."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.manifests.ownership import CANDIDATE_DRIVER_LABEL, ROLE_LABEL
from headrace.kube.resources import EVENTS, PODS, STATEFUL_SETS
from tests.sim.kube.fake_api import FakeApi, Object

READY = {"type": "Ready", "status": "True"}


@dataclass
class Executors:
    api: FakeApi
    # Why the platform makes no executor pod; the controller says so in an Event.
    refused: str | None = None

    def ask_for(self, driver: Object, *, application_id: str, count: int) -> None:
        """As Spark does when its session starts; a candidate has had them since it rehearsed."""
        metadata = driver["metadata"]
        name = f"spark-s-{application_id}-0"
        if name in self.api.of(STATEFUL_SETS):
            return
        labels = {**metadata["labels"], ROLE_LABEL: "executor"}
        labels.pop(CANDIDATE_DRIVER_LABEL, None)
        meta = {
            "name": name,
            "namespace": metadata["namespace"],
            "ownerReferences": [{"uid": metadata["uid"]}],
        }
        spec = {"replicas": count, "template": {"metadata": {"labels": labels}}}
        self.api.put_new(STATEFUL_SETS, {"metadata": meta, "spec": spec})

    def come_and_go(self) -> None:
        pods = self.api.of(PODS)
        for name, owner in self.api.of(STATEFUL_SETS).items():
            namespace, wanted = owner["metadata"]["namespace"], owner["spec"]["replicas"]
            for number in range(wanted):
                self._keep(pods, owner, f"{name}-{number}")
            own = [pod for pod in pods if pod.rpartition("-")[0] == name]
            for pod in own:
                leaving = pods[pod]["metadata"].get("deletionTimestamp")
                if int(pod.rpartition("-")[2]) >= wanted and not leaving:
                    self.api.remove((PODS.plural, namespace, pod))

    def _keep(self, pods: dict[str, Object], owner: Object, name: str) -> None:
        """One that is about to go keeps its name, and so is not replaced before it is gone."""
        namespace = owner["metadata"]["namespace"]
        if name in pods:
            return
        if self.refused is not None:
            self._say_so(owner, f"create Pod {name} in StatefulSet failed error: {self.refused}")
            return
        meta = {
            "name": name,
            "namespace": namespace,
            "labels": owner["spec"]["template"]["metadata"]["labels"],
            "ownerReferences": [{"uid": owner["metadata"]["uid"]}],
        }
        self.api.put_new(PODS, {"metadata": meta, "status": {"phase": "Running", "conditions": [READY]}})

    def _say_so(self, owner: Object, message: str) -> None:
        """Once: more of the same are counted."""
        uid = owner["metadata"]["uid"]
        name = f"refused.{uid}"
        if name not in self.api.of(EVENTS):
            meta = {"name": name, "namespace": owner["metadata"]["namespace"]}
            about = {"uid": uid, "kind": "StatefulSet"}
            told = {"involvedObject": about, "reason": "FailedCreate", "message": message}
            self.api.put_new(EVENTS, {"metadata": meta, **told})
