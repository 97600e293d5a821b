"""The stage of bench/soak.py: the cluster of the end-to-end tests, one job, and eyes on it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.soak_compare import Sample
from images import build
from tests.cluster.processes import NotReadyError
from tests.cluster.provider import running_cluster
from tests.e2e.install import installed
from tests.e2e.kafka_counts import Topic
from tests.e2e.services import Services, start_services
from tests.e2e.streamjobs import Job, a_spec
from tests.e2e.test_autoscaling import SLOW_COUNT
from tests.e2e.testimages import SERVICES, product_image

from headrace.core.manifests import Platform

NAMESPACE = "soak-jobs"
_ASK = ["python3", "-m", "headrace_jobs.harness.ask", "--run-file", "/etc/headrace/run/run.json"]


@dataclass(frozen=True)
class Stage:
    job: Job
    topic: Topic
    services: Services

    def driver_uid(self) -> str:
        return self.job.driver()["metadata"]["uid"]

    def produce(self, rates: tuple[float, ...], step_seconds: float) -> None:
        self.topic.produce_at(rates, step_seconds=step_seconds)

    def sample(self, at: float) -> Sample | None:
        """None where the cluster does not answer: the next look is near."""
        try:
            executors, numbers = self.job.status().get("executors", {}), self._metrics()
        except NotReadyError:
            return None
        return Sample(
            at=at,
            rows_per_second=numbers.get("headrace_job_arrival_rows_per_second"),
            lag_seconds=numbers.get("headrace_job_lag_seconds"),
            asked=executors.get("target") or 1,
            ready=executors.get("ready", 0),
        )

    def batches(self) -> list[tuple[int, float, int, int]]:
        """Finished ones: number, seconds, rows, executors."""
        driver = self.job.driver()["metadata"]["name"]
        asked = ["exec", "-n", self.job.namespace, driver, "-c", "driver", "--", *_ASK, "/v1/status"]
        try:
            (query,) = json.loads(self.job.cluster.kubectl(*asked))["queries"]
        except NotReadyError:
            return []
        return [(one[0], one[1], one[2], one[3]) for one in query["batches"] if one[3]]

    def decisions(self) -> tuple[str, ...]:
        driver = self.job.driver()["metadata"]["name"]
        asked = ["exec", "-n", self.job.namespace, driver, "-c", "driver", "--", *_ASK, "/v1/scaling"]
        ring = json.loads(self.job.cluster.kubectl(*asked))
        return tuple(one["message"] for one in ring["decisions"])

    def wait_exact(self) -> bool:
        try:
            self.topic.wait_exact(seconds=600)
        except AssertionError:
            return False
        return True

    def _metrics(self) -> dict[str, float]:
        leader = self.job.operator.leader()
        if leader is None:
            return {}
        page = self.services.http_text(f"http://{leader['status']['podIP']}:8080/metrics")
        mine = f'{{job="{self.job.name}",namespace="{self.job.namespace}"'
        lines = [line for line in page.splitlines() if mine in line]
        return {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in lines}


@contextmanager
def stage(
    scratch: Path,
    *,
    max_executors: int,
    cores: int,
    partitions: int,
    trigger: str,
    objective: str,
    seconds_per_row: float,
) -> Iterator[Stage]:
    """Ready to begin: the job has read its first rows."""
    subprocess.run([sys.executable, "-m", "tests.e2e"], check=True)  # the images
    with running_cluster(scratch) as cluster:
        spark, operator = product_image(build.SPARK), product_image(build.OPERATOR)
        image = SERVICES.to_load()
        for one in (spark, operator, image):
            cluster.load(one)
        for name in (NAMESPACE, "soak-services"):
            cluster.api.apply(f"/api/v1/namespaces/{name}", _namespace(name)).need()
        services = start_services(cluster, "soak-services", image.reference)
        services.copy_keys(NAMESPACE)
        platform = Platform(
            job_image=spark.reference, headrace_image=operator.reference, image_pull_policy="IfNotPresent"
        )
        with installed(cluster, platform, job_namespaces=[NAMESPACE]) as running:
            job, topic = (
                Job(cluster, running, NAMESPACE, "soak"),
                Topic(services, "soak", partitions=partitions),
            )
            job.write_code("soak-code", SLOW_COUNT.replace("20L", f"{round(1000 * seconds_per_row)}L"))
            spec = a_spec(services, code="soak-code", args=[services.bootstrap, topic.name])
            job.apply(
                {
                    **spec,
                    "trigger": {"interval": trigger},
                    "executors": {**spec["executors"], "cores": cores},
                    "autoscaling": {"max": max_executors, "lagObjective": objective},
                }
            )
            job.wait_ready(seconds=600)
            topic.produce(200)
            topic.wait_exact(seconds=600)
            yield Stage(job, topic, services)
            job.delete()
        for name in (NAMESPACE, "soak-services"):
            cluster.kubectl("delete", "namespace", name, "--timeout=180s")


def _namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
