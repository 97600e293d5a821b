"""A StreamJob as a user sees it: applied, edited, waited for, looked at."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.api.names import attempt_name, candidate_name, candidate_set_name, executor_set_name
from tests.cluster.processes import NotReadyError, wait_until
from tests.cluster.provider import Cluster
from tests.e2e.install import Installed
from tests.e2e.services import BUCKET, Services

Object = dict[str, Any]

# Short-lived JVMs on a small machine: the optimising compiler would cost more than it gives.
_QUICK_JVM = "-XX:TieredStopAtLevel=1"

# The smallest stream there is: rows that the clock makes, and nobody keeps.
TICKS = """
from pyspark.sql import SparkSession
ticks = SparkSession.builder.getOrCreate().readStream.format("rate").load()
ticks.writeStream.queryName("ticks").format("noop").start().awaitTermination()
"""


def edited(code: str, old: str, new: str) -> str:
    """Another version of a job's code. An edit that hits nothing, or more than it means, is a mistake."""
    assert code.count(old) == 1, f"{old!r} stands there {code.count(old)} times"
    return code.replace(old, new)


def a_spec(services: Services, *, code: str, args: list[str] | None = None, **more: Any) -> Object:
    """A small job: its code in a ConfigMap, its state in the cluster's S3."""
    return {
        "application": {"configMap": {"name": code}, "args": args or []},
        "checkpoint": {
            "location": f"s3://{BUCKET}/checkpoints",
            "s3": {"endpoint": services.s3_endpoint, "credentials": {"secret": "s3-keys"}},
        },
        "state": {"partitions": 2},
        "sparkConf": {
            "spark.driver.extraJavaOptions": _QUICK_JVM,
            "spark.executor.extraJavaOptions": _QUICK_JVM,
        },
        "trigger": {"interval": "1s"},
        "restart": {"backoff": {"min": "2s", "max": "10s"}},
        # A second driver beside the first is what test_upgrades.py looks at; here it would only take time.
        "upgrade": {"strategy": "Cold"},
        "driver": {"memory": "1536Mi", "resources": {"requests": {"cpu": "100m"}}},
        "executors": {"memory": "1Gi", "resources": {"requests": {"cpu": "100m"}}},
        **more,
    }


@dataclass(frozen=True)
class Job:
    """One StreamJob of the cluster, by name."""

    cluster: Cluster
    operator: Installed
    namespace: str
    name: str

    # ---- what a user does ------------------------------------------------------------------------------

    def apply(self, spec: Object) -> None:
        manifest = {
            "apiVersion": "headrace.dev/v1alpha1",
            "kind": "StreamJob",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": spec,
        }
        self.cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(manifest))

    def edit(self, spec: Object) -> None:
        """A merge patch of the spec, as `kubectl edit` would send."""
        self.cluster.api.patch(self.path, {"spec": spec}).need()

    def delete(self, *, wait: bool = True) -> None:
        self.cluster.kubectl(
            "delete",
            "streamjob",
            self.name,
            "-n",
            self.namespace,
            "--ignore-not-found",
            f"--wait={str(wait).lower()}",
        )

    def write_code(self, name: str, text: str) -> None:
        """The ConfigMap of the code; under the job's label, so that an edit is noticed at once."""
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {"headrace.dev/job": self.name},
            },
            "data": {"job.py": text},
        }
        self.cluster.api.apply(f"/api/v1/namespaces/{self.namespace}/configmaps/{name}", manifest).need()

    # ---- what a user sees ------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        return f"/apis/headrace.dev/v1alpha1/namespaces/{self.namespace}/streamjobs/{self.name}"

    def manifest(self) -> Object:
        return self.cluster.api.get(self.path).need()

    def status(self) -> Object:
        return self.manifest().get("status") or {}

    def condition(self, kind: str) -> Object:
        """Empty where it is not there, or was judged by an older spec."""
        manifest = self.manifest()
        found = [one for one in (manifest.get("status") or {}).get("conditions", []) if one["type"] == kind]
        current = [one for one in found if one["observedGeneration"] == manifest["metadata"]["generation"]]
        return current[0] if current else {}

    def is_ready(self) -> bool:
        return self.condition("Ready").get("status") == "True"

    def reason(self, kind: str = "Ready") -> str:
        return self.condition(kind).get("reason", "")

    def epoch(self) -> int:
        return self.status().get("epoch", 0)

    def driver(self) -> Object:
        """The pod of the attempt that the status names."""
        run, candidate = self.status()["run"], self._candidate()
        own = attempt_name(self.name, run["number"], run["attempt"]["number"])
        return self.pod(own if candidate is None else candidate_name(self.name, candidate))

    def _candidate(self) -> int | None:
        """The one that took over as the attempt, where it did."""
        return self.status()["run"]["attempt"].get("activation", {}).get("candidate")

    def pod(self, name: str) -> Object:
        return self.cluster.api.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}").need()

    def pods(self, role: str | None = None) -> list[Object]:
        selector = f"headrace.dev/job={self.name}" + (f",headrace.dev/role={role}" if role else "")
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        return self.cluster.api.get(path, labelSelector=selector).need()["items"]

    def live_drivers(self) -> list[str]:
        """Whose container runs: a pod's phase comes a little later."""

        def runs(pod: Object) -> bool:
            statuses = pod["status"].get("containerStatuses", [])
            return any("running" in one["state"] for one in statuses if one["name"] == "driver")

        return [pod["metadata"]["name"] for pod in self.pods("driver") if runs(pod)]

    def executors_ready(self) -> int:
        candidate = self._candidate()
        name = (
            executor_set_name(self.name, self.epoch())
            if candidate is None
            else candidate_set_name(self.name, candidate)
        )
        path = f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets/{name}"
        answer = self.cluster.api.get(path)
        return answer.body["status"].get("readyReplicas", 0) if answer.ok else 0

    def report(self) -> Object:
        """What the driver's agent says of its one query."""
        (query,) = self.agent_says("/v1/status")["queries"]
        return query

    def agent_says(self, path: str) -> Object:
        asked = ["python3", "-m", "headrace_jobs.harness.ask", "--run-file", "/etc/headrace/run/run.json"]
        return json.loads(self.in_driver(*asked, path))

    def in_driver(self, *command: str) -> str:
        inside = ["exec", "-n", self.namespace, self.driver()["metadata"]["name"], "-c", "driver", "--"]
        return self.cluster.kubectl(*inside, *command)

    def batches_on(self, executors: int) -> set[int]:
        """The newest committed batches at whose end so many executors were registered with the driver."""
        return {number for number, _, _, there, _ in self.report()["batches"] if there == executors}

    def events(self) -> list[Object]:
        path = f"/api/v1/namespaces/{self.namespace}/events"
        selector = f"involvedObject.kind=StreamJob,involvedObject.name={self.name}"
        return self.cluster.api.get(path, fieldSelector=selector).need()["items"]

    def store_prefix(self) -> str:
        """The job's place in the bucket."""
        return f"checkpoints/{self.namespace}/{self.name}/{self.manifest()['metadata']['uid']}"

    # ---- waiting ---------------------------------------------------------------------------------------

    def wait_ready(self, *, seconds: float = 240) -> Object:
        """Its driver pod, once the job is Ready under the spec as it stands."""
        self.wait(self.is_ready, what="Ready", seconds=seconds)
        return self.driver()

    def wait_stable(self, run: int, *, seconds: float = 600) -> None:
        """Until that run has proven itself, and is Ready."""
        self.wait(
            lambda: (self.status().get("lastStable") or {}).get("run") == run and self.is_ready(),
            what=f"run {run} to be stable",
            seconds=seconds,
        )

    def wait_reason(self, *reasons: str, kind: str = "Ready", seconds: float = 120) -> str:
        """The condition's message, once it has one of these reasons."""
        self.wait(
            lambda: self.reason(kind) in reasons, what=f"{kind}: {' or '.join(reasons)}", seconds=seconds
        )
        return self.condition(kind)["message"]

    def wait(self, condition: Callable[[], object], *, what: str, seconds: float) -> None:
        if not wait_until(lambda: bool(condition()), seconds=seconds, every=0.5):
            raise AssertionError(f"{self.name}: not in {seconds:.0f} s: {what}\n{self.picture()}")

    def wait_other_driver(self, before: Object, *, seconds: float = 180) -> None:
        """Than this one: of another attempt or run, and not ended."""

        def there() -> bool:
            live = [pod for pod in self.pods("driver") if pod["status"]["phase"] in ("Pending", "Running")]
            return any(pod["metadata"]["uid"] != before["metadata"]["uid"] for pod in live)

        self.wait(there, what=f"another driver than {before['metadata']['name']}", seconds=seconds)

    def picture(self) -> str:
        """All that explains why something did not happen."""
        parts = [json.dumps(self.cluster.api.get(self.path).body.get("status"), indent=1)]
        parts += [f"event {one['reason']}: {one['message']}" for one in self.events()]
        for pod in self.pods():
            name = pod["metadata"]["name"]
            parts.append(f"--- pod {name}: {json.dumps(pod['status'].get('containerStatuses'))[:1500]}")
            parts.append(self._log(name))
        return "\n".join([*parts, self.operator.log()])

    def _log(self, pod: str) -> str:
        try:
            return self.cluster.kubectl("logs", "-n", self.namespace, pod, "--tail=40", "--all-containers")
        except NotReadyError as error:
            return str(error)
