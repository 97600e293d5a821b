"""A driver made from core/manifests, without the operator: started, asked, scaled, ended."""

import json
import secrets
import uuid
from dataclasses import dataclass
from typing import Any

from headrace.api import StreamJob
from headrace.api.names import executor_set_name
from headrace.core.manifests import (
    DriverAttempt,
    Platform,
    config_map,
    driver_pod,
    driver_service,
    token_secret,
)
from headrace.core.manifests.places import AGENT_PORT
from tests.cluster.api import Api
from tests.cluster.processes import wait_until
from tests.e2e.services import Services

# Holds a deleted pod until its last words have been read.
WITNESS = {"metadata": {"finalizers": ["tests.headrace.dev/witness"]}}

# What Spark's Kubernetes backend does with the API, and no more.
DRIVER_RULES = [
    {
        "apiGroups": [""],
        "resources": ["pods", "configmaps", "services", "persistentvolumeclaims"],
        "verbs": ["create", "get", "list", "watch", "patch", "update", "delete", "deletecollection"],
    },
    {
        "apiGroups": ["apps"],
        "resources": ["statefulsets"],
        "verbs": ["create", "get", "list", "watch", "patch", "update", "delete", "deletecollection"],
    },
]


@dataclass(frozen=True)
class Driver:
    api: Api
    services: Services
    attempt: DriverAttempt
    token: str

    @property
    def pod_path(self) -> str:
        return f"/api/v1/namespaces/{self.attempt.namespace}/pods/{self.attempt.name}"

    @property
    def executors_path(self) -> str:
        name = executor_set_name(self.attempt.job, self.attempt.epoch)
        return f"/apis/apps/v1/namespaces/{self.attempt.namespace}/statefulsets/{name}"

    def pod(self) -> dict[str, Any]:
        return self.api.get(self.pod_path).need()

    def status(self) -> dict[str, Any]:
        """The agent's own word, asked from inside the cluster."""
        address = self.pod()["status"]["podIP"]
        headers = {"Authorization": f"Bearer {self.token}", "X-Headrace-Uid": self.attempt.uid}
        return self.services.http("GET", f"http://{address}:{AGENT_PORT}/v1/status", headers)

    def query(self, name: str) -> dict[str, Any]:
        found = [query for query in self.status()["queries"] if query["name"] == name]
        return found[0] if found else {"committedBatch": None}

    def scale(self, replicas: int) -> None:
        self.api.patch(f"{self.executors_path}/scale", {"spec": {"replicas": replicas}}).need()

    def ready_executors(self) -> int:
        return self.api.get(self.executors_path).need()["status"].get("readyReplicas", 0)

    def log(self) -> str:
        return str(self.api.get(f"{self.pod_path}/log", tailLines="60").body.get("message", ""))

    def wait_committed(self, query: str, *, beyond: int, seconds: float = 300) -> int:
        """The last committed batch, once it is above `beyond`."""
        last = -1

        def committed() -> bool:
            nonlocal last
            found = self.query(query)["committedBatch"]
            last = -1 if found is None else found
            return last > beyond

        assert wait_until(committed, seconds=seconds, every=2), f"batch {last}\n{self.log()}"
        return last

    def end(self) -> dict[str, Any]:
        """Deletes the pod as a node drain would, and returns the harness's last words."""
        self.api.delete(self.pod_path).need()

        def terminated() -> list[dict[str, Any]]:
            containers = self.pod()["status"]["containerStatuses"]
            return [one["state"]["terminated"] for one in containers if "terminated" in one["state"]]

        assert wait_until(lambda: bool(terminated()), seconds=120, every=0.5), self.log()
        words = terminated()[0]
        self.api.patch(self.pod_path, {"metadata": {"finalizers": None}}).need()
        return {**words, "message": json.loads(words["message"])}


def start_driver(
    api: Api,
    services: Services,
    platform: Platform,
    namespace: str,
    *,
    spec: dict[str, Any],
    code: dict[str, str],
) -> Driver:
    job = _create_job(api, namespace, spec)
    attempt = DriverAttempt(
        namespace=namespace,
        job=job["metadata"]["name"],
        job_uid=job["metadata"]["uid"],
        spec=StreamJob.parse(job).spec,
        run=1,
        attempt=1,
        epoch=1,
        uid=str(uuid.uuid4()),
        store=f"{spec['checkpoint']['location']}/{namespace}/{job['metadata']['name']}/{job['metadata']['uid']}",
        code=code,
    )
    token = secrets.token_hex(16)
    _allow_driver(api, namespace, platform.service_account)
    core = f"/api/v1/namespaces/{namespace}"
    api.create(f"{core}/secrets", token_secret(attempt, token=token)).need()
    api.create(f"{core}/configmaps", config_map(attempt, platform)).need()
    api.create(f"{core}/services", driver_service(attempt)).need()
    api.create(f"{core}/pods", driver_pod(attempt, platform)).need()
    driver = Driver(api, services, attempt, token)
    wait_until(lambda: _settled(driver.pod()), seconds=300, every=0.5)
    assert _ready(driver.pod()), json.dumps(driver.pod()["status"], indent=1) + driver.log()
    return driver


def _create_job(api: Api, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    job = {
        "apiVersion": "headrace.dev/v1alpha1",
        "kind": "StreamJob",
        "metadata": {"name": "counts", "namespace": namespace},
        "spec": spec,
    }
    return api.create(f"/apis/headrace.dev/v1alpha1/namespaces/{namespace}/streamjobs", job).need()


def _allow_driver(api: Api, namespace: str, account: str) -> None:
    group = "rbac.authorization.k8s.io"
    rights = f"/apis/{group}/v1/namespaces/{namespace}"
    metadata = {"name": account, "namespace": namespace}
    api.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts", _object("v1", "ServiceAccount", metadata)
    ).need()
    role = {**_object(f"{group}/v1", "Role", metadata), "rules": DRIVER_RULES}
    api.create(f"{rights}/roles", role).need()
    binding = {
        **_object(f"{group}/v1", "RoleBinding", metadata),
        "roleRef": {"apiGroup": group, "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }
    api.create(f"{rights}/rolebindings", binding).need()


def _object(version: str, kind: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _settled(pod: dict[str, Any]) -> bool:
    return _ready(pod) or pod["status"]["phase"] in ("Failed", "Succeeded")


def _ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
