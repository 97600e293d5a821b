"""The stage of bench/upgrade.py: a real cluster, the job under Headrace, the same under plain Spark."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from images import build
from tests.cluster.processes import wait_until
from tests.cluster.provider import Cluster, running_cluster
from tests.e2e.install import installed
from tests.e2e.ledger import JOB, Ledger
from tests.e2e.services import ACCESS_KEY, BUCKET, SECRET_KEY, Services, start_services
from tests.e2e.streamjobs import Job
from tests.e2e.testimages import LEDGER, SERVICES, product_image

from headrace.core.manifests import Platform

JOBS, PLAIN = "bench-jobs", "bench-plain"
CODE = "measured-code"
# So many batches after a start, a job is taken for steady.
STEADY_BATCHES = 10
# A busy machine is slow: then the figures say little, but what is under way is not cut.
WAIT_SECONDS = 900.0
_ASK = "python3 -m headrace_jobs.harness.ask --run-file=/etc/headrace/run/run.json /v1/status"


@dataclass
class Timeline:
    """What happened when, by the clock of this machine, which is that of every pod and of the database."""

    events: dict[str, float] = field(default_factory=dict)

    def mark(self, name: str, at: float | None = None) -> None:
        self.events.setdefault(name, time.time() if at is None else at)

    def since(self, name: str) -> dict[str, float]:
        zero = self.events[name]
        ordered = sorted(self.events.items(), key=lambda one: one[1])
        return {event: round(at - zero, 2) for event, at in ordered}


@dataclass(frozen=True)
class Stage:
    cluster: Cluster
    services: Services
    job: Job
    image: str


@contextmanager
def prepared_stage() -> Iterator[Stage]:
    """Both images of a job are on the nodes before anything is measured."""
    with tempfile.TemporaryDirectory() as scratch, running_cluster(Path(scratch)) as cluster:
        spark, operator = product_image(build.SPARK), product_image(build.OPERATOR)
        ledger, services_image = LEDGER.to_load(), SERVICES.to_load()
        for image in (spark, operator, ledger, services_image):
            cluster.load(image)
        platform = Platform(
            job_image=spark.reference, headrace_image=operator.reference, image_pull_policy="IfNotPresent"
        )
        made = ["bench-services", JOBS, PLAIN]
        try:
            for namespace in made:
                cluster.kubectl("create", "namespace", namespace)
            services = start_services(cluster, made[0], services_image.reference)
            services.copy_keys(JOBS)
            with installed(cluster, platform, job_namespaces=[JOBS]) as running:
                job = Job(cluster, running, JOBS, "measured")
                try:
                    yield Stage(cluster, services, job, ledger.reference)
                finally:
                    # While there is an operator: without one the job and its savepoints would stay.
                    job.delete()
                    cluster.kubectl("delete", "namespace", JOBS, "--timeout=180s")
        finally:
            cluster.kubectl("delete", "namespace", *made, "--ignore-not-found", "--timeout=180s")


class Steady:
    """The batches of a ledger: is a job under way, and how long was it not?"""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def epoch(self) -> int:
        return max((one.epoch for one in self.ledger.noted()), default=0)

    def wait(self, *, after_epoch: int = 0, batches: int = STEADY_BATCHES) -> int:
        """Until a driver of a later epoch has written so many batches; its epoch."""
        sql = f"SELECT epoch, count(*) FROM {self.ledger.name}.ledger GROUP BY 1 ORDER BY 1 DESC LIMIT 1"

        def steady() -> bool:
            newest = [(int(epoch), int(count)) for epoch, count in self.ledger.services.sql(sql)]
            return bool(newest) and newest[0][0] > after_epoch and newest[0][1] >= batches

        # Seldom: to ask costs a process in two pods, and the moments are the database's own.
        if not wait_until(steady, seconds=WAIT_SECONDS, every=2):
            raise SystemExit(f"no {batches} batches after epoch {after_epoch}: {self.ledger.noted()[-3:]}")
        return self.epoch()

    def gap(self, before: int) -> tuple[float, float]:
        """When the last batch of an epoch was written, and the first of the next one that wrote."""
        noted = self.ledger.noted()
        return (
            max(one.written_at for one in noted if one.epoch == before),
            min(one.written_at for one in noted if one.epoch > before),
        )


# ---- under Headrace


def measured_spec(stage: Stage, ledger: Ledger) -> dict[str, Any]:
    spec = ledger.spec(code=CODE, image=stage.image)
    # Nothing that a user would not set: the tests' own shortcuts are left out.
    del spec["sparkConf"]
    return {**spec, "upgrade": {"strategy": "Cold", "verifyWindow": "10s", "startTimeout": "5m"}}


def start_measured(stage: Stage, ledger: Ledger) -> None:
    stage.job.write_code(CODE, JOB)
    stage.job.apply(measured_spec(stage, ledger))
    wait_stable(stage.job)


def wait_stable(job: Job, *, after_run: int = 0) -> int:
    def stable() -> bool:
        status = job.status()
        run = (status.get("lastStable") or {}).get("run", 0)
        return run > after_run and run == status["run"]["number"] and not status.get("operation")

    job.wait(lambda: stable() and job.is_ready(), what="a stable run", seconds=WAIT_SECONDS)
    return job.status()["run"]["number"]


def watch_steps(job: Job, timeline: Timeline, *, after_run: int) -> None:
    """Marks each step as the status shows it, until the new run is stable."""

    def ended() -> bool:
        status = job.status()
        operation = status.get("operation") or {}
        if operation:
            candidate = (operation.get("candidate") or {}).get("state", "")
            timeline.mark(f"status: {operation['step']}")
            if candidate == "Standby":
                timeline.mark("status: Standby")
        return not operation and (status.get("lastStable") or {}).get("run", 0) > after_run

    # What counts is in the drivers' logs: the API server has better things to do in the gap.
    if not wait_until(ended, seconds=WAIT_SECONDS, every=0.5):
        raise SystemExit(f"the upgrade does not end\n{job.picture()}")
    timeline.mark("promoted")


@contextmanager
def followed_log(job: Job, pod: str) -> Iterator[Path]:
    """A driver's log, also when its pod is gone."""
    with tempfile.NamedTemporaryFile("w+", suffix=".log") as log:
        command = [*job.cluster.kubectl_command, "logs", "-f", "-n", job.namespace, pod, "-c", "driver"]
        follower = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield Path(log.name)
        finally:
            follower.terminate()
            follower.wait()


def moment_in(log: str, words: str) -> float | None:
    """When the harness said so, last."""
    found = re.findall(rf"^(\S+ \S+),(\d{{3}}) headrace INFO: .*{words}", log, re.MULTILINE)
    if not found:
        return None
    clock, milliseconds = found[-1]
    at = datetime.strptime(clock, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return at.timestamp() + int(milliseconds) / 1000


def activation_of(job: Job, pod: str) -> dict[str, Any] | None:
    """What the agent tells of a warm handover; None of a driver that was started as one."""
    told = job.cluster.kubectl("exec", "-n", job.namespace, pod, "-c", "driver", "--", *_ASK.split())
    return json.loads(told).get("activation")


# ---- under plain Spark

_STAND_IN = """import os
from types import SimpleNamespace

job = SimpleNamespace(uid="plain")
run = SimpleNamespace(job=job, epoch=int(os.environ["EPOCH"]), lineage=lambda: "plain")"""


def plain_job() -> str:
    """The same job as a user writes it without Headrace: with a checkpoint and a trigger of its own."""
    text = JOB
    for old, new in {
        "from headrace_jobs import run": _STAND_IN,
        ".foreachBatch(write_once)": '.option("checkpointLocation", os.environ["CHECKPOINT"])'
        '.trigger(processingTime="1 second").foreachBatch(write_once)',
    }.items():
        assert old in text
        text = text.replace(old, new)
    return text


class PlainSpark:
    """A driver pod as people run it today: spark-submit in client mode, executors by Spark, all by default.

    What is set says where things are, and as many state partitions and as small requests as the other has.
    """

    def __init__(self, stage: Stage, ledger: Ledger) -> None:
        self._stage, self._ledger, self._epoch = stage, ledger, 0
        objects = [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "spark"}},
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "spark"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
                "subjects": [{"kind": "ServiceAccount", "name": "spark", "namespace": PLAIN}],
            },
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "job"},
                "data": {"job.py": plain_job()},
            },
        ]
        self._create({"apiVersion": "v1", "kind": "List", "items": objects})

    def create(self) -> None:
        self._epoch += 1
        self._create(self._pod())

    def delete(self) -> None:
        self._stage.cluster.kubectl("delete", "pod", "driver", "-n", PLAIN, "--wait=true")

    def phase(self) -> str:
        answer = self._stage.cluster.api.get(f"/api/v1/namespaces/{PLAIN}/pods/driver")
        return answer.body["status"]["phase"] if answer.ok else "Gone"

    def executors(self) -> int:
        path = f"/api/v1/namespaces/{PLAIN}/pods"
        answer = self._stage.cluster.api.get(path, labelSelector="spark-role=executor").need()
        return sum(pod["status"]["phase"] == "Running" for pod in answer["items"])

    def log(self) -> str:
        return self._stage.cluster.kubectl("logs", "-n", PLAIN, "driver", "--tail=40")

    def _create(self, body: dict[str, Any]) -> None:
        self._stage.cluster.kubectl("create", "-n", PLAIN, "-f", "-", stdin=json.dumps(body))

    def _settings(self) -> dict[str, str]:
        return {
            "spark.driver.host": "$(POD_IP)",
            "spark.kubernetes.driver.pod.name": "driver",
            "spark.kubernetes.namespace": PLAIN,
            "spark.kubernetes.container.image": self._stage.image,
            "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
            "spark.kubernetes.executor.request.cores": "100m",
            "spark.executor.instances": "1",
            "spark.sql.shuffle.partitions": "2",
            "spark.hadoop.fs.s3a.endpoint": self._stage.services.s3_endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": ACCESS_KEY,
            "spark.hadoop.fs.s3a.secret.key": SECRET_KEY,
        }

    def _pod(self) -> dict[str, Any]:
        settings = [flag for key, value in self._settings().items() for flag in ("--conf", f"{key}={value}")]
        submit = ["/opt/spark/bin/spark-submit", "--master", "k8s://https://kubernetes.default.svc"]
        environment = {"EPOCH": str(self._epoch), "CHECKPOINT": f"s3a://{BUCKET}/{self._ledger.name}"}
        pod_ip = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        container = {
            "name": "driver",
            "image": self._stage.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [*submit, *settings, "/job/job.py", *self._ledger.args()],
            "env": [pod_ip, *({"name": name, "value": value} for name, value in environment.items())],
            "resources": {"requests": {"cpu": "100m", "memory": "1536Mi"}},
            "volumeMounts": [{"name": "job", "mountPath": "/job"}],
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "driver", "namespace": PLAIN},
            "spec": {
                "serviceAccountName": "spark",
                "restartPolicy": "Never",
                "containers": [container],
                "volumes": [{"name": "job", "configMap": {"name": "job"}}],
            },
        }
