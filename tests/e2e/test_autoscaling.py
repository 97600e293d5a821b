"""Executors follow the load of a real topic under one driver, and stay when nobody can tell the load."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli.kubectl import main as kubectl_streamjob
from tests.cluster.processes import wait_until
from tests.e2e.hpa import ExternalMetric, autoscaler
from tests.e2e.kafka_counts import Topic
from tests.e2e.nodes import own_nodes
from tests.e2e.services import Services
from tests.e2e.spark_books import executors_in_books
from tests.e2e.streamjobs import Job, a_spec

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800, func_only=True)]

MOST, OBJECTIVE_SECONDS = 3, 60
# How long the rows go on after what was waited for.
STEP_SECONDS = 20
# Each row takes its core 20 ms, and next to no CPU: three executors are three times as fast on any machine.
SLOW_COUNT = """
import sys
from pyspark.sql import SparkSession, functions as F

bootstrap, topic = sys.argv[1:3]
spark = SparkSession.builder.getOrCreate()
records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap) \\
    .option("subscribe", topic).option("startingOffsets", "earliest").load()
parsed = F.from_json(F.col("value").cast("string"), "i long, key string")
events = records.select(parsed.alias("e")).select("e.*")
slow = events.where("coalesce(reflect('java.lang.Thread', 'sleep', 20L), '') != 'never'")
counts = slow.groupBy("key").agg(F.count("*").alias("n"), F.sum("i").alias("total"))
counts.select(F.to_json(F.struct("*")).alias("value")).writeStream.queryName("counts").outputMode("update") \\
    .format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic + "-counts") \\
    .start().awaitTermination()
"""


@pytest.fixture(scope="module")
def topic(services: Services) -> Topic:
    return Topic(services, "ramp", partitions=6)


@pytest.fixture(scope="module")
def job(job_named: Callable[..., Job], services: Services, topic: Topic) -> Job:
    """One for all tests here, in whatever order: what a test changes, it puts back."""
    ramp = job_named("ramp")
    ramp.write_code("ramp-code", SLOW_COUNT)
    spec = a_spec(services, code="ramp-code", args=[services.bootstrap, topic.name])
    ramp.apply(
        {
            **spec,
            "trigger": {"interval": "5s"},
            "executors": {**spec["executors"], "cores": 1},
            "autoscaling": {"max": MOST, "lagObjective": f"{OBJECTIVE_SECONDS}s"},
        }
    )
    ramp.wait_ready(seconds=600)
    return ramp


@contextmanager
def load(topic: Topic, *, rate: float, seconds: float) -> Iterator[None]:
    """Rows come for so long at least, and until what is waited for meanwhile has come: a slow machine takes
    longer, and without rows there is no batch. Whoever leaves waits for the last of them, and hears if they
    did not come."""
    seen = threading.Event()

    def produce() -> None:
        topic.produce(int(rate * seconds), rate=rate)
        while not seen.is_set():
            topic.produce(int(rate * STEP_SECONDS), rate=rate)

    with ThreadPoolExecutor(max_workers=1) as pool:
        producing = pool.submit(produce)
        try:
            yield
        finally:
            seen.set()
        producing.result()


def target(job: Job) -> int:
    return job.status().get("executors", {}).get("target", 0)


def explain(job: Job, *more: str) -> str:
    # The kubeconfig, or the context: the plugin takes the flags that kubectl takes.
    arguments = ["explain", job.name, "-n", job.namespace, *job.cluster.kubectl_command[1:], *more]
    result = CliRunner().invoke(kubectl_streamjob, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_executors_follow_the_load_from_one_to_three_and_back(job: Job, topic: Topic):
    driver, epoch = job.wait_ready(), job.epoch()
    with load(topic, rate=15, seconds=90):
        job.wait_reason("Measured", kind="LagKnown", seconds=400)
    with load(topic, rate=110, seconds=240):
        job.wait(lambda: target(job) == 3, what="a target of three", seconds=400)
        job.wait(lambda: job.executors_ready() == 3, what="three executors", seconds=180)
    up, failed = job.status()["executors"]["reason"], failed_tasks(job)
    with load(topic, rate=5, seconds=420):
        job.wait(lambda: target(job) == 1, what="a target of one", seconds=900)
        job.wait(lambda: len(job.pods("executor")) == 1, what="one executor", seconds=120)
        job.wait(lambda: job.report()["batches"][-1][3] == 1, what="a batch on one executor", seconds=120)
    # What going down cost: no task, and the state that others had to load held no batch up for long.
    assert failed_tasks(job) == failed
    reloading = seconds_after_moves_down(job.report()["batches"])
    assert reloading and max(reloading) < OBJECTIVE_SECONDS, reloading
    topic.wait_exact(seconds=300)
    assert job.driver()["metadata"]["uid"] == driver["metadata"]["uid"]
    assert job.epoch() == epoch
    assert "executors" in up
    ring = json.loads(explain(job, "-o", "json"))
    moves = [(one["asked"], one["target"]) for one in ring["decisions"] if one["asked"] != one["target"]]
    assert moves[0][0] == 1 and max(after for _, after in moves) == 3 and moves[-1][1] == 1, moves
    shown = explain(job, "--lines", "200")
    assert "→ 3 executors: " in shown and "rows/s arrive" in shown
    assert "counts: a batch takes" in shown
    # The ring lies in the job's own store, where no operator goes.
    assert "ring.json" in topic.services.objects(f"{job.store_prefix()}/_scaling")


def failed_tasks(job: Job) -> int:
    """Of all executors there ever were under this driver."""
    return sum(one["failedTasks"] for one in executors_in_books(job))


def seconds_after_moves_down(batches: list[list[Any]]) -> list[float]:
    """What those batches took that ended with fewer executors than the one before them had."""
    return [after[1] for before, after in pairwise(batches) if (after[3] or 0) < (before[3] or 0)]


def test_a_broker_that_is_away_freezes_the_number(job: Job, topic: Topic, services: Services):
    nodes = own_nodes(job.cluster)
    kafka = job.cluster.api.get(f"/api/v1/namespaces/{services.namespace}/pods/kafka").need()
    job.wait_ready()
    # Two executors are needed for this: with an unknown lag taken for none, one would soon be thought enough.
    # It goes on for longer than a word in the status stands (5 min), so that the next one is not held back.
    with load(topic, rate=65, seconds=480):
        job.wait_reason("Measured", kind="LagKnown", seconds=400)
        job.wait(lambda: target(job) >= 2, what="a target of two", seconds=400)
    nodes.signal_container(kafka, "kafka", signal.SIGSTOP)
    try:
        message = job.wait_reason("LagUnknown", kind="LagKnown", seconds=400)
        assert "is not known" in message
        assert job.status()["lag"]["band"] == "Unknown"
        frozen = target(job)
        assert frozen >= 2
        assert not wait_until(lambda: target(job) != frozen, seconds=60, every=1), "it moved"
    finally:
        nodes.signal_container(kafka, "kafka", signal.SIGCONT)
    topic.wait_exact(seconds=300)
    job.edit({"autoscaling": {"max": 1}})
    job.wait(lambda: target(job) == 1, what="a target of one", seconds=120)
    job.edit({"autoscaling": {"max": MOST}})


def test_partitions_that_are_added_are_noticed(job: Job, topic: Topic, services: Services):
    driver = job.wait_ready()
    services.add_partitions(topic.name, partitions=9)
    topic.produce(400)

    def seen() -> set[str]:
        return set(((job.report()["lag"] or {}).get("offsets") or {}).get("partitions") or {})

    wanted = {f"{topic.name}/{number}" for number in range(9)}
    job.wait(lambda: seen() == wanted, what="nine partitions in the driver's report", seconds=120)
    topic.wait_exact(seconds=240)
    assert job.driver()["metadata"]["uid"] == driver["metadata"]["uid"]


def arrival(job: Job, services: Services) -> float | None:
    """As Prometheus would read it from the operator."""
    leader = job.operator.leader()
    assert leader is not None
    page = services.http_text(f"http://{leader['status']['podIP']}:8080/metrics")
    mine = f'headrace_job_arrival_rows_per_second{{job="{job.name}",namespace="{job.namespace}"}}'
    found = [line.rpartition(" ")[2] for line in page.splitlines() if line.startswith(mine)]
    return float(found[0]) if found else None


def test_with_mode_off_a_horizontal_pod_autoscaler_sets_the_number(
    job: Job, topic: Topic, services: Services
):
    metric = ExternalMetric(job.cluster.api, job.namespace, "ramp-arrival")
    metric.define()
    driver = job.wait_ready()
    hpas = f"/apis/autoscaling/v2/namespaces/{job.namespace}/horizontalpodautoscalers"

    def told() -> float | None:
        """The adapter: what the operator says is what the HPA sees."""
        if (value := arrival(job, services)) is not None:
            metric.tell(value)
        return value

    def count() -> int:
        told()
        return job.manifest()["spec"]["executors"]["count"]

    try:
        job.edit({"autoscaling": {"mode": "Off"}})
        job.wait(lambda: told() is not None, what="a number for the HPA", seconds=120)
        manifest = autoscaler(job.name, metric.name, rows_per_executor=40, most=3)
        job.cluster.api.apply(f"{hpas}/{job.name}", manifest).need()
        with load(topic, rate=110, seconds=150):
            job.wait(lambda: count() == 3, what="three executors, by the HPA", seconds=300)
            job.wait(lambda: job.executors_ready() == 3, what="three executors", seconds=180)
        job.wait(lambda: count() == 1, what="one executor, by the HPA", seconds=600)
        job.wait(lambda: len(job.pods("executor")) == 1, what="one executor", seconds=120)
        topic.wait_exact(seconds=300)
        assert job.driver()["metadata"]["uid"] == driver["metadata"]["uid"]
        assert job.reason("ScalingLimited") == "AutoscalingOff"
    finally:
        job.cluster.api.delete(f"{hpas}/{job.name}")
        metric.remove()
        job.edit({"autoscaling": {"mode": "Auto"}, "executors": {"count": 1}})
    job.wait(lambda: job.reason("ScalingLimited") not in ("", "AutoscalingOff"), what="Auto", seconds=120)


def test_without_work_it_sleeps_and_work_wakes_it(job: Job, topic: Topic):
    job.wait_ready()
    # Until a batch has ended nobody knows the lag, and who does not know does not sleep.
    topic.produce(100)
    topic.wait_exact(seconds=300)
    epoch, run = job.epoch(), job.status()["run"]["number"]
    job.edit({"autoscaling": {"idle": {"after": "1m", "lookEvery": "10s"}}})
    try:
        job.wait(lambda: job.reason() == "Sleeping" and job.is_ready(), what="sleep", seconds=400)
        job.wait(lambda: not job.live_drivers() and not job.pods("executor"), what="nobody", seconds=120)

        def looks() -> bool:
            return any(
                "running" in one["state"]
                for pod in job.pods("lookout")
                for one in pod["status"].get("containerStatuses", [])
            )

        job.wait(looks, what="a lookout", seconds=120)
        assert job.condition("Asleep")["status"] == "True"
        assert job.reason("Stalled") == "Sleeping"
        topic.produce(300)
        job.wait(lambda: job.reason() == "Running" and job.is_ready(), what="awake", seconds=300)
        topic.wait_exact(seconds=300)
        assert (job.epoch(), job.status()["run"]["number"]) == (epoch + 1, run)
        woken = [one["message"] for one in job.events() if one["reason"] == "Woken"]
        assert len(woken) == 1 and "rows wait" in woken[0], woken
        job.wait(lambda: job.pods("lookout") == [], what="no lookout", seconds=60)
    finally:
        job.edit({"autoscaling": {"idle": None}})
