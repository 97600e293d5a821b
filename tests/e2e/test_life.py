"""One job through its whole life on a real cluster. The tests share it, in this order: each finds it Ready,
and leaves it so. What it counted is exact after every one of them.
"""

import signal
import threading
from collections.abc import Callable

import pytest

from headrace.api.names import executor_set_name
from tests.cluster.api import Api
from tests.cluster.processes import NotReadyError, wait_until
from tests.e2e.install import NAMESPACE, Installed
from tests.e2e.kafka_counts import COUNT_BY_KEY, KEYS, Topic, committed, spec_for
from tests.e2e.nodes import own_nodes
from tests.e2e.services import BUCKET, Services
from tests.e2e.streamjobs import Job, Object, edited

pytestmark = pytest.mark.timeout(900, func_only=True)

MISSING_IMAGE = "headrace.local/no-such-image:1"


@pytest.fixture(scope="module")
def topic(topic_named: Callable[[str], Topic]) -> Topic:
    return topic_named("clicks")


@pytest.fixture(scope="module")
def job(job_named: Callable[..., Job], services: Services, topic: Topic) -> Job:
    counts = job_named("counts")
    counts.write_code("counts-code", COUNT_BY_KEY)
    topic.produce(2000)
    counts.apply(spec_for(services, topic))
    return counts


def test_a_job_becomes_ready_and_says_what_it_does(job: Job, topic: Topic):
    driver = job.wait_ready(seconds=400)
    topic.wait_exact()
    assert driver["metadata"]["name"] == "counts-r1-a1"
    line = job.cluster.kubectl("get", "sj", "counts", "-n", job.namespace)
    assert "Running" in line and "True" in line, line
    told = {event["reason"]: event["message"] for event in job.events()}
    assert "run 1, attempt 1: the first run of the job" in told["Starting"]


def test_the_operator_has_no_way_to_a_jobs_secrets_or_into_its_pods(job: Job, operator: Installed):
    may = ["auth", "can-i", f"--as={operator.account}", "-n", job.namespace]
    assert job.cluster.kubectl(*may, "create", "pods").strip() == "yes"
    into_pods = ("create pods --subresource=exec", "get pods --subresource=log")
    for wish in ("get secrets", "list secrets", *into_pods):
        with pytest.raises(NotReadyError):
            job.cluster.kubectl(*may, *wish.split())


def test_a_platform_team_finds_the_jobs_numbers_in_the_operators_metrics(
    job: Job, operator: Installed, services: Services
):
    leader = operator.leader()
    assert leader is not None
    page = f"http://{leader['status']['podIP']}:8080/metrics"
    mine = f'{{job="counts",namespace="{job.namespace}"'

    def told() -> dict[str, float]:
        lines = [line for line in services.http_text(page).splitlines() if mine in line]
        return {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in lines}

    # The driver looks at the broker now and then, not with every batch.
    caught_up = {"headrace_job_lag_rows": 0, "headrace_job_state_rows": KEYS}
    job.wait(lambda: caught_up.items() <= told().items(), what="all rows in the metrics", seconds=90)
    numbers = told()
    assert numbers["headrace_job_committed_batch"] >= 0
    assert numbers["headrace_job_ready"] == 1
    assert numbers["headrace_job_executors_ready"] == 1


def test_scaling_keeps_the_driver_and_misses_no_batch(job: Job, topic: Topic, services: Services):
    before = job.driver()["metadata"]["uid"]
    stop = threading.Event()

    def steadily() -> None:
        while not stop.is_set():
            topic.produce(500, rate=100)

    load = threading.Thread(target=steadily)
    load.start()
    try:
        for replicas in (3, 1):
            job.cluster.kubectl("scale", "sj", "counts", "-n", job.namespace, f"--replicas={replicas}")
            job.wait(
                lambda wanted=replicas: job.executors_ready() == wanted,
                what=f"{replicas} executors",
                seconds=240,
            )
            job.wait(
                lambda wanted=replicas: job.status()["executors"]["ready"] == wanted,
                what=f"{replicas} executors in the status",
                seconds=60,
            )
    finally:
        stop.set()
        load.join()
    topic.wait_exact()
    assert job.driver()["metadata"]["uid"] == before
    offsets, commits = committed(services, f"{job.store_prefix()}/run-1")
    assert commits == set(range(min(commits), max(commits) + 1))
    assert max(offsets) - max(commits) <= 1


def test_a_killed_executor_is_replaced_under_the_same_driver(job: Job, topic: Topic):
    before = job.driver()["metadata"]["uid"]
    executor = job.pods("executor")[0]
    job.cluster.kubectl(
        "delete", "pod", executor["metadata"]["name"], "-n", job.namespace, "--grace-period=0", "--force"
    )
    topic.produce(1000)
    topic.wait_exact()
    assert job.driver()["metadata"]["uid"] == before


def test_what_somebody_deletes_or_edits_by_hand_is_repaired(job: Job, api: Api):
    driver = job.driver()
    service = f"/api/v1/namespaces/{job.namespace}/services/{driver['metadata']['name']}"
    before = api.get(service).need()
    api.delete(service).need()
    job.wait(
        lambda: (
            api.get(service).ok and api.get(service).need()["metadata"]["uid"] != before["metadata"]["uid"]
        ),
        what="a new Service",
        seconds=30,
    )
    api.patch(service, {"spec": {"selector": {"headrace.dev/role": "somebody-else"}}}).need()
    job.wait(
        lambda: api.get(service).need()["spec"]["selector"]["headrace.dev/role"] == "driver",
        what="the selector put back",
        seconds=30,
    )
    assert job.driver()["metadata"]["uid"] == driver["metadata"]["uid"]


def test_an_operator_that_dies_is_replaced_and_no_driver_notices(job: Job, operator: Installed, topic: Topic):
    before, leader = job.driver()["metadata"]["uid"], operator.leader()
    assert leader is not None
    holder = operator.lease()["spec"]["holderIdentity"]
    job.cluster.kubectl(
        "delete", "pod", leader["metadata"]["name"], "-n", NAMESPACE, "--grace-period=0", "--force"
    )
    job.wait(
        lambda: operator.lease()["spec"].get("holderIdentity") not in ("", None, holder),
        what="another leader",
        seconds=60,
    )
    # An edit shows that the new one works; the driver is the old one.
    job.edit({"drainTimeout": "1m"})
    job.wait(
        lambda: (
            job.is_ready() and job.status()["observedGeneration"] == job.manifest()["metadata"]["generation"]
        ),
        what="the edit is seen",
        seconds=60,
    )
    topic.produce(500)
    topic.wait_exact()
    assert job.driver()["metadata"]["uid"] == before
    assert len(job.live_drivers()) == 1


def test_an_edit_that_the_state_does_not_survive_is_refused_and_touches_nothing(job: Job, topic: Topic):
    before = job.driver()["metadata"]["uid"]
    server = job.manifest()["spec"]["checkpoint"]["s3"]["endpoint"]
    job.edit({"checkpoint": {"s3": {"endpoint": "http://elsewhere:7070"}}})
    message = job.wait_reason("StateChange", kind="Stalled")
    assert "spec.checkpoint.s3.endpoint" in message
    assert job.condition("Ready")["status"] == "True"
    with pytest.raises(AssertionError, match="trigger"):
        job.edit({"trigger": {"schedule": "0 * * * *"}})
    topic.produce(500)
    topic.wait_exact()
    job.edit({"checkpoint": {"s3": {"endpoint": server}}})
    job.wait(lambda: job.condition("Stalled").get("status") == "False", what="no longer Stalled", seconds=60)
    assert job.driver()["metadata"]["uid"] == before


def test_a_killed_driver_is_followed_by_the_next_attempt_from_the_checkpoint(job: Job, topic: Topic):
    driver = job.driver()
    own_nodes(job.cluster).signal_container(driver, "driver", signal.SIGKILL)
    topic.produce(1500)
    job.wait(
        lambda: job.driver()["metadata"]["uid"] != driver["metadata"]["uid"],
        what="another attempt",
        seconds=60,
    )
    after = job.wait_ready()
    assert after["metadata"]["name"] == "counts-r1-a2"
    topic.wait_exact()
    last = job.status()["lastTermination"]
    assert (last["reason"], last["attempt"]) == ("Killed", 1), last


def test_a_suspended_job_rests_and_goes_on_where_it_was(job: Job, topic: Topic, services: Services):
    job.edit({"suspend": True})
    job.wait(lambda: job.reason() == "Suspended" and job.is_ready(), what="Suspended", seconds=120)
    assert job.live_drivers() == []
    offsets, commits = committed(services, f"{job.store_prefix()}/run-1")
    assert max(offsets) == max(commits)
    gone = executor_set_name(job.name, job.epoch())
    path = f"/apis/apps/v1/namespaces/{job.namespace}/statefulsets/{gone}"
    job.wait(lambda: job.cluster.api.get(path).status == 404, what="no executors left", seconds=60)
    topic.produce(1000)
    job.edit({"suspend": False})
    job.wait_ready()
    topic.wait_exact()


@pytest.mark.full
def test_code_that_fails_is_rolled_back_and_says_why_and_mended_it_is_a_new_run_from_the_same_state(
    job: Job, topic: Topic, services: Services
):
    broken = edited(
        COUNT_BY_KEY, "spark = SparkSession", "raise RuntimeError('no such table')\nspark = SparkSession"
    )
    job.write_code("counts-code", broken)
    message = job.wait_reason("ApplicationError", kind="RolledBack", seconds=240)
    assert "no such table" in message and "job.py" in message, message
    job.wait(lambda: job.status()["run"]["number"] == 3, what="run 3", seconds=120)
    last = job.status()["lastTermination"]
    assert last["run"] == 2
    assert last["userFrame"]["file"].endswith("job.py")
    # The log outlives its pod.
    kept = last["logFile"].removeprefix(f"s3://{BUCKET}/")
    assert "no such table" in services.read_object(kept)
    # The version before goes on meanwhile.
    topic.produce(1000)
    topic.wait_exact()

    job.write_code("counts-code", f"{COUNT_BY_KEY}\n# mended\n")
    job.wait(lambda: job.status()["run"]["number"] == 4, what="run 4", seconds=180)
    job.wait_ready()
    assert job.condition("RolledBack").get("status") != "True"
    topic.produce(1000)
    topic.wait_exact()


@pytest.mark.full
def test_a_deleted_job_leaves_its_checkpoint_and_nothing_else_and_the_next_asks_what_to_do(
    job: Job, topic: Topic, services: Services, api: Api
):
    prefix, spec = job.store_prefix(), spec_for(services, topic)
    job.delete()
    assert wait_until(lambda: not _left(api, job), seconds=120, every=1), _left(api, job)
    assert any(key.startswith("run-4/queries/counts/commits/") for key in services.objects(prefix))

    # The same code, now from S3.
    services.write_object("code/counts.py", COUNT_BY_KEY)
    spec["application"] = {"file": f"s3://{BUCKET}/code/counts.py", "args": spec["application"]["args"]}
    job.apply(spec)
    message = job.wait_reason("EarlierLineage", kind="Stalled", seconds=120)
    assert "startFrom" in message
    topic.produce(1000)
    job.edit({"startFrom": {"latest": True}})
    job.wait_ready()
    topic.wait_exact()
    pinned = [key for key in services.objects(job.store_prefix()) if "/_code/" in f"/{key}"]
    assert any(key.endswith("counts.py") for key in pinned), pinned


@pytest.mark.full
def test_a_job_that_takes_its_checkpoints_with_it(job: Job, services: Services, api: Api):
    prefix = job.store_prefix()
    job.edit({"deletionPolicy": "Delete"})
    job.wait(
        lambda: job.manifest()["metadata"].get("finalizers") == ["headrace.dev/checkpoints"],
        what="its finalizer",
        seconds=30,
    )
    assert services.objects(prefix)
    job.delete()
    assert services.objects(prefix) == set()
    assert wait_until(lambda: not _left(api, job), seconds=120, every=1), _left(api, job)


def _left(api: Api, job: Job) -> list[str]:
    """What carries the job's label, its code apart."""
    places = {
        "pods": "/api/v1",
        "services": "/api/v1",
        "configmaps": "/api/v1",
        "statefulsets": "/apis/apps/v1",
    }
    found: list[Object] = []
    for kind, root in places.items():
        path = f"{root}/namespaces/{job.namespace}/{kind}"
        found += api.get(path, labelSelector=f"headrace.dev/job={job.name}").need()["items"]
    secrets = api.get(f"/api/v1/namespaces/{job.namespace}/secrets").need()["items"]
    found += [one for one in secrets if one["metadata"]["name"].startswith(f"{job.name}-r")]
    return [one["metadata"]["name"] for one in found if one["metadata"]["name"] != "counts-code"]
