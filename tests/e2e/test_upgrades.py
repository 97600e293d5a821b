"""Upgrades on a real cluster, with Kafka and S3: rehearsed, promoted, refused, rolled back; exact every time.

The tests share a job, in this order: each finds it Ready and stable, and leaves it so. Records come in all
the time.
"""

import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.install import Installed
from tests.e2e.kafka_counts import COUNT_BY_KEY, Topic, spec_for
from tests.e2e.nodes import own_nodes
from tests.e2e.services import Services
from tests.e2e.streamjobs import Job, edited

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200, func_only=True)]

REHEARSED = {"strategy": "Rehearsed", "verifyWindow": "20s", "startTimeout": "5m"}
OTHER = edited(COUNT_BY_KEY, 'F.struct("*")', 'F.struct("*", F.lit("two").alias("by"))')
FAILS_AT_START = "import no_such_module\n" + COUNT_BY_KEY
UNFIT = edited(
    COUNT_BY_KEY, 'F.sum("i").alias("total")', 'F.sum("i").alias("total"), F.avg("i").alias("mean")'
)
# Its plan is good and its state fits: only its sink is not there, which no rehearsal can see.
NO_SINK = edited(
    COUNT_BY_KEY,
    '"kafka.bootstrap.servers", bootstrap).option("topic"',
    '"kafka.bootstrap.servers", "nowhere:9092").option("kafka.max.block.ms", "3000").option("topic"',
)


@pytest.fixture(scope="module")
def topic(topic_named: Callable[[str], Topic]) -> Topic:
    return topic_named("upgraded")


@pytest.fixture(scope="module")
def job(job_named: Callable[..., Job], services: Services, topic: Topic) -> Job:
    job = job_named("upgraded")
    job.write_code("counts-code", COUNT_BY_KEY)
    topic.produce(500)
    job.apply(spec_for(services, topic, upgrade=REHEARSED))
    job.wait_ready(seconds=400)
    job.wait_stable(1)
    return job


@pytest.fixture(autouse=True)
def no_more_records(topic: Topic) -> Iterator[Callable[[], None]]:
    """Records come in until the test, or its end, calls this."""
    ended = threading.Event()

    def produce() -> None:
        while not ended.wait(2):
            topic.produce(20)

    thread = threading.Thread(target=produce)
    thread.start()

    def stop() -> None:
        ended.set()
        thread.join()

    yield stop
    stop()


def history(job: Job) -> list[tuple[int, str]]:
    return [(entry["run"], entry["outcome"]) for entry in job.status().get("history", [])]


def test_what_a_rehearsal_finds_leaves_the_driver_alone(job: Job):
    before = job.driver()["metadata"]["uid"]
    job.write_code("counts-code", FAILS_AT_START)
    job.wait_reason("RehearsalFailed", kind="Stalled", seconds=300)
    assert "no_such_module" in job.condition("Rehearsed")["message"]
    job.write_code("counts-code", UNFIT)
    job.wait(lambda: "STATE_STORE" in job.reason("Rehearsed"), what="a refusal by Spark", seconds=300)
    assert job.is_ready()
    assert job.driver()["metadata"]["uid"] == before
    assert job.live_drivers() == ["upgraded-r1-a1"]
    assert history(job) == [(2, "Refused"), (2, "Refused")]


def test_the_fix_is_rehearsed_and_takes_over_though_the_operator_is_killed(job: Job, operator: Installed):
    job.write_code("counts-code", OTHER)
    job.wait(lambda: job.pods("candidate"), what="a candidate", seconds=120)
    leader = operator.leader()
    assert leader is not None
    own_nodes(job.cluster).signal_container(leader, "operator", signal.SIGKILL)
    job.wait_stable(2)
    assert job.condition("Rehearsed")["status"] == "True"
    assert job.pods("candidate") == []


def test_what_no_rehearsal_finds_is_rolled_back(job: Job):
    job.write_code("counts-code", NO_SINK)
    job.wait(lambda: job.condition("RolledBack").get("status") == "True", what="a rollback", seconds=600)
    job.wait_stable(4)
    assert job.reason("Stalled") == "RolledBack"
    assert history(job)[0] == (3, "RolledBack")


def test_by_hand_and_back_again_and_all_of_it_is_exact(
    job: Job, topic: Topic, no_more_records: Callable[[], None]
):
    job.write_code("counts-code", COUNT_BY_KEY)
    job.wait_stable(5)
    job.cluster.kubectl("annotate", "streamjob", job.name, "-n", job.namespace, "headrace.dev/rollback=5")
    job.wait_stable(6)
    assert job.reason("RolledBack") == "Requested"
    no_more_records()
    topic.wait_exact()
