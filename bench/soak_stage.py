"""The stage of bench/soak.py: the cluster of the end-to-end tests, one job, and eyes on it.

Nothing here waits without a limit, and whoever does not answer is asked again at the next look.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from bench.soak_record import Batch, Commit, Executor, Move, Sample
from images import build
from tests.cluster.processes import NotReadyError
from tests.cluster.provider import Cluster, running_cluster
from tests.e2e.install import installed
from tests.e2e.kafka_counts import Topic
from tests.e2e.services import start_services
from tests.e2e.spark_books import executors_in_books
from tests.e2e.streamjobs import Job, a_spec
from tests.e2e.test_autoscaling import SLOW_COUNT
from tests.e2e.testimages import SERVICES, product_image

from headrace.core.manifests import Platform

T = TypeVar("T")

# By this label a later run knows what an earlier one has left.
LABEL = "headrace.dev/bench"
ROWS_BEFORE = 200
LOOK_LIMIT_SECONDS, STEP_LIMIT_SECONDS = 45.0, 420.0
# Refused, not there, too late, cut off, half an answer: all of it may be over at the next look.
UNREACHABLE = (
    NotReadyError,
    AssertionError,
    OSError,
    http.client.HTTPException,
    ValueError,
    KeyError,
    TypeError,
)


@dataclass(frozen=True)
class Limited(Cluster):
    """Whose kubectl gives up."""

    seconds: float = STEP_LIMIT_SECONDS

    @classmethod
    def of(cls, cluster: Cluster, seconds: float) -> Limited:
        return cls(**{one.name: getattr(cluster, one.name) for one in fields(Cluster)}, seconds=seconds)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        command = [*self.kubectl_command, *arguments]
        try:
            done = subprocess.run(
                command, input=stdin, capture_output=True, text=True, check=False, timeout=self.seconds
            )
        except subprocess.TimeoutExpired:
            raise NotReadyError(
                f"`kubectl {' '.join(arguments)}` has not ended after {self.seconds:.0f} s"
            ) from None
        if done.returncode != 0:
            raise NotReadyError(f"`kubectl {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one look at the job gave."""

    sample: Sample
    batches: tuple[Batch, ...]
    move: Move | None
    commit: Commit | None
    # Of each partition: all that ever came.
    partition_rows: tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """`job` and `topic` are asked with little patience."""

    job: Job
    topic: Topic

    @property
    def rows_produced(self) -> int:
        return self.topic.produced

    def driver_uid(self) -> str | None:
        return _or_none("its driver", lambda: self.job.driver()["metadata"]["uid"])

    def produce(self, rates: tuple[float, ...], step_seconds: float) -> None:
        """Takes as long as the day."""
        limit = len(rates) * step_seconds + STEP_LIMIT_SECONDS
        topic, services = copy(self.topic), self.topic.services
        topic.services = replace(services, cluster=Limited.of(services.cluster, limit))
        topic.produce_at(rates, step_seconds=step_seconds)
        self.topic.produced = topic.produced

    def look(self) -> Seen | None:
        """None where the cluster does not answer."""
        return _or_none("the job", self._look)

    def _look(self) -> Seen:
        executors = self.job.status().get("executors", {})
        pods = [one for one in self.job.pods("executor") if one["status"].get("phase") in _THERE]
        report = self.job.agent_says("/v1/status")
        (query,) = report["queries"]
        offsets = query["lag"].get("offsets") or {}
        ends = [one[0] for _, one in sorted((offsets.get("partitions") or {}).items())]
        since = query["lag"].get("behindSince")
        lag_at = offsets.get("at")
        waits = 0.0 if query["lag"]["rows"] == 0 else None
        return Seen(
            sample=Sample(
                at=time.time(),
                asked=executors.get("target") or 1,
                ready=report.get("executors"),
                pods=len(pods),
                lag_at=lag_at,
                lag_seconds=waits if since is None or lag_at is None else max(0.0, lag_at - moment(since)),
                arrived_rows=sum(ends) if ends else None,
            ),
            batches=tuple(
                Batch(one[0], moment(one[4]), one[1], one[2], one[3]) for one in query["batches"] if one[3]
            ),
            move=_move(executors),
            commit=_commit(query),
            partition_rows=tuple(ends),
        )

    def books(self) -> tuple[Executor, ...] | None:
        """All executors there ever were, by Spark's own account."""
        return _or_none("Spark's books", self._books)

    def _books(self) -> tuple[Executor, ...]:
        return tuple(
            Executor(
                one["id"],
                moment(one["addTime"]),
                moment(one["removeTime"]) if one.get("removeTime") else None,
                one["failedTasks"],
                one["completedTasks"],
            )
            for one in executors_in_books(self.job)
        )

    def decisions(self) -> tuple[str, ...] | None:
        def told() -> tuple[str, ...]:
            return tuple(one["message"] for one in self.job.agent_says("/v1/scaling")["decisions"])

        return _or_none("the decisions", told)

    def exact(self, *, seconds: float) -> bool | None:
        """Whether all that was produced is counted, and once. None: nobody could tell in that time."""
        deadline = time.monotonic() + seconds
        while (rest := deadline - time.monotonic()) > 0:
            try:
                self.topic.wait_exact(seconds=rest)
            except AssertionError as wrong:
                sys.stderr.write(f"{wrong}\n")
                return False
            except UNREACHABLE as error:
                sys.stderr.write(f"the counts do not answer: {error}\n")
                time.sleep(5)
            else:
                return True
        return None


_THERE = ("Pending", "Running")


def _or_none(what: str, ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except UNREACHABLE as error:
        sys.stderr.write(f"no answer from {what}: {type(error).__name__}: {error}\n")
        return None


def _move(executors: dict[str, Any]) -> Move | None:
    decided = executors.get("decidedAt")
    return Move(moment(decided), executors["target"]) if decided and executors.get("target") else None


def _commit(query: dict[str, Any]) -> Commit | None:
    """Of the newest batch: its two entries in the log, and its state."""
    log_ms, number = query.get("logCommitMs"), query.get("committedBatch")
    if log_ms is None or number is None:
        return None
    return Commit(number, (log_ms + (query.get("stateCommitMs") or 0.0)) / 1000)


def moment(told: str) -> float:
    """Spark's books say GMT, all others Z."""
    return datetime.fromisoformat(told.replace("GMT", "+00:00")).timestamp()


@contextmanager
def stage(
    scratch: Path,
    *,
    max_executors: int,
    cores: int,
    partitions: int,
    shuffle_partitions: int,
    trigger: str,
    objective: str,
    seconds_per_row: float,
) -> Iterator[Stage]:
    """Ready to begin: the job has read its first rows. What cannot be taken down is told, and left."""
    subprocess.run([sys.executable, "-m", "tests.e2e"], check=True)  # the images
    with ExitStack() as down:
        cluster = Limited.of(down.enter_context(running_cluster(scratch)), STEP_LIMIT_SECONDS)
        spark, operator = product_image(build.SPARK), product_image(build.OPERATOR)
        image = SERVICES.to_load()
        for one in (spark, operator, image):
            cluster.load(one)
        clear(cluster)
        down.callback(_tell, lambda: clear(cluster))
        jobs, beside = (_namespace(cluster, name) for name in ("soak-jobs-", "soak-services-"))
        services = start_services(cluster, beside, image.reference)
        services.copy_keys(jobs)
        platform = Platform(
            job_image=spark.reference, headrace_image=operator.reference, image_pull_policy="IfNotPresent"
        )
        release = ExitStack()
        running = release.enter_context(installed(cluster, platform, job_namespaces=[jobs]))
        down.callback(_tell, release.close)
        topic = Topic(services, "soak", partitions=partitions)
        job = Job(cluster, running, jobs, "soak")
        # While there is an operator: without one its finalizer would stay.
        down.callback(_tell, job.delete)
        job.write_code("soak-code", SLOW_COUNT.replace("20L", f"{round(1000 * seconds_per_row)}L"))
        spec = a_spec(services, code="soak-code", args=[services.bootstrap, topic.name])
        job.apply(
            {
                **spec,
                "trigger": {"interval": trigger},
                "state": {"partitions": shuffle_partitions},
                "executors": {**spec["executors"], "cores": cores},
                "autoscaling": {"max": max_executors, "lagObjective": objective},
            }
        )
        job.wait_ready(seconds=600)
        topic.produce(ROWS_BEFORE)
        topic.wait_exact(seconds=600)
        hurried = Limited.of(cluster, LOOK_LIMIT_SECONDS)
        topic.services = replace(services, cluster=hurried)
        yield Stage(replace(job, cluster=hurried), topic)


def clear(cluster: Cluster) -> None:
    """Namespaces of this run or of an earlier one go, whether or not anybody is there to end their jobs."""
    found = cluster.api.get("/api/v1/namespaces", labelSelector=f"{LABEL}=soak").need()["items"]
    for name in (one["metadata"]["name"] for one in found):
        jobs = f"/apis/headrace.dev/v1alpha1/namespaces/{name}/streamjobs"
        for one in cluster.api.get(jobs).body.get("items", []):
            path = f"{jobs}/{one['metadata']['name']}"
            cluster.api.patch(path, {"metadata": {"finalizers": None}})
        cluster.api.delete(f"/api/v1/namespaces/{name}")


def _namespace(cluster: Cluster, prefix: str) -> str:
    """Always another one: an earlier one may still be going."""
    metadata = {"generateName": prefix, "labels": {LABEL: "soak"}}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    return cluster.api.create("/api/v1/namespaces", body).need()["metadata"]["name"]


def _tell(take_down: Callable[[], object]) -> None:
    """What goes wrong after the record is written must not hide it."""
    try:
        take_down()
    except UNREACHABLE as error:
        sys.stderr.write(f"left standing: {type(error).__name__}: {error}\n")
