"""Savepoints on a real cluster: by cron of a running job, and, when every object of it is lost, restored in
another namespace from what lies in the store. What it counted is exact.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.processes import wait_until
from tests.e2e.conftest import RESTORED
from tests.e2e.kafka_counts import COUNT_BY_KEY, Topic, committed, spec_for
from tests.e2e.services import BUCKET, Services
from tests.e2e.streamjobs import Job, Object

pytestmark = pytest.mark.timeout(900, func_only=True)


@pytest.fixture(scope="module")
def topic(topic_named: Callable[[str], Topic]) -> Topic:
    return topic_named("saved")


@pytest.fixture(scope="module")
def job(job_named: Callable[..., Job], services: Services, topic: Topic) -> Job:
    saved = job_named("saved")
    saved.write_code("counts-code", COUNT_BY_KEY)
    topic.produce(2000)
    policy = {"schedule": "* * * * *", "keep": 2}
    # Its checkpoints go with it: what is restored comes from the savepoint, and from nowhere else.
    saved.apply(spec_for(services, topic, savepoints=policy, deletionPolicy="Delete"))
    return saved


def savepoints(job: Job) -> dict[str, Object]:
    path = f"/apis/headrace.dev/v1alpha1/namespaces/{job.namespace}/streamsavepoints"
    items = job.cluster.api.get(path).need()["items"]
    return {one["metadata"]["name"]: one for one in items if one["spec"]["job"]["name"] == job.name}


def condition(savepoint: Object, kind: str) -> Object:
    found = (savepoint.get("status") or {}).get("conditions", [])
    return next((one for one in found if one["type"] == kind), {})


def good(job: Job) -> list[Object]:
    """Oldest first."""
    ready = [one for one in savepoints(job).values() if condition(one, "Ready").get("status") == "True"]
    return sorted(ready, key=lambda one: one["metadata"]["name"])


def prefix(savepoint: Object) -> str:
    return savepoint["status"]["path"].removeprefix(f"s3://{BUCKET}/")


def create_savepoint(job: Job, name: str, spec: Object) -> None:
    manifest = {
        "apiVersion": "headrace.dev/v1alpha1",
        "kind": "StreamSavepoint",
        "metadata": {"name": name, "namespace": job.namespace},
        "spec": {"job": {"name": job.name}, **spec},
    }
    job.cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(manifest))


def lying_below(job: Job, place: str) -> list[Object]:
    """The newest savepoints there, as a keeper of the job finds them."""
    asked = f"list {place}@{job.name}"
    annotation = f"headrace.dev/collect-savepoints={asked}"
    job.cluster.kubectl("annotate", "streamjob", job.name, "-n", job.namespace, annotation, "--overwrite")
    job.wait(
        lambda: (job.status().get("collection") or {}).get("asked") == asked,
        what=f"what lies below {place}",
        seconds=120,
    )
    return job.status()["collection"].get("savepoints") or []


def test_savepoints_are_taken_by_the_clock_while_the_job_runs(job: Job, topic: Topic, services: Services):
    driver = job.wait_ready(seconds=400)
    topic.wait_exact()
    job.wait(lambda: good(job), what="the first scheduled savepoint", seconds=180)
    topic.produce(1000)
    topic.wait_exact()
    run = f"{job.store_prefix()}/run-1"

    def covers_everything() -> bool:
        _, commits = committed(services, run)
        return good(job)[-1]["status"]["batch"] == max(commits)

    job.wait(covers_everything, what="a savepoint of the last batch", seconds=180)
    # Retention needs a pass of its own once the newest is there.
    job.wait(lambda: len(good(job)) == 2, what="no more than are to be kept", seconds=60)
    newest = good(job)[-1]
    status = newest["status"]
    assert condition(newest, "Verified")["reason"] == "Objects"
    assert status["objects"] > 0 and status["bytes"] > 0
    assert status["queries"][0]["offsets"], status
    lying = services.objects(prefix(newest))
    assert "manifest.json" in lying
    assert len([key for key in lying if key.startswith("data-")]) == status["objects"]
    assert job.driver()["metadata"]["uid"] == driver["metadata"]["uid"]  # it never noticed
    job.wait(
        lambda: job.status().get("lastSavepoint") == newest["metadata"]["name"],
        what="its name in the job's status",
        seconds=30,
    )
    line = job.cluster.kubectl("get", "ssp", newest["metadata"]["name"], "-n", job.namespace)
    assert "Ready" in line and "True" in line and status["size"] in line, line


def test_one_on_demand_is_checked_as_far_as_it_is_asked_and_removed_with_its_copy(
    job: Job, services: Services
):
    job.wait_ready(seconds=400)
    create_savepoint(job, "on-demand", {"verify": "State", "maxCopyRate": "100Mi"})
    job.wait(
        lambda: condition(savepoints(job)["on-demand"], "Verified").get("status") == "True",
        what="a verified savepoint",
        seconds=120,
    )
    taken = savepoints(job)["on-demand"]
    assert taken["status"]["verified"]["level"] == "State"
    assert services.objects(prefix(taken))
    # It is looked at again, whatever is known.
    job.cluster.kubectl("annotate", "ssp", "on-demand", "-n", job.namespace, "headrace.dev/verify=Objects@2")
    job.wait(
        lambda: (savepoints(job)["on-demand"]["status"].get("check") or {}).get("asked") == "Objects@2",
        what="the answer of a check",
        seconds=120,
    )
    assert savepoints(job)["on-demand"]["status"]["check"]["level"] == "Objects"
    job.cluster.kubectl("delete", "ssp", "on-demand", "-n", job.namespace, "--timeout=120s")
    assert services.objects(prefix(taken)) == set()


def test_a_job_whose_objects_are_all_lost_is_restored_in_another_namespace(
    job: Job, topic: Topic, services: Services, job_named: Callable[..., Job]
):
    job.wait_ready(seconds=400)
    job.wait(lambda: good(job), what="a scheduled savepoint", seconds=180)
    # No more of them: what is removed now must not be the newest.
    job.edit({"savepoints": {"schedule": None}})
    job.wait(
        lambda: all(
            condition(one, "Reconciling").get("status") == "False" for one in savepoints(job).values()
        ),
        what="no savepoint under way",
        seconds=120,
    )
    newest, run = good(job)[-1], f"{job.store_prefix()}/run-1"
    # The job has gone further than its last savepoint when everything is lost, as jobs do.
    topic.produce(500)
    topic.wait_exact()
    _, commits = committed(services, run)
    assert newest["status"]["batch"] < max(commits)
    place = f"/apis/headrace.dev/v1alpha1/namespaces/{job.namespace}/streamsavepoints"
    kept = f"{place}/{newest['metadata']['name']}"
    job.cluster.api.patch(kept, {"spec": {"deletionPolicy": "Retain"}}).need()
    job.wait(
        lambda: not job.cluster.api.get(kept).need()["metadata"].get("finalizers"),
        what="one that can go by itself",
        seconds=30,
    )
    before = job.store_prefix()
    job.delete()
    assert services.objects(before) == set()
    job.cluster.kubectl("delete", "ssp", "--all", "-n", job.namespace, "--timeout=120s")
    assert savepoints(job) == {}
    assert "manifest.json" in services.objects(prefix(newest))

    restored = job_named("saved", namespace=RESTORED)
    restored.write_code("counts-code", COUNT_BY_KEY)
    restored.apply(spec_for(services, topic, suspend=True))
    found = lying_below(restored, newest["status"]["path"].partition("/_savepoints/")[0])
    assert found[0]["path"] == newest["status"]["path"]  # nobody had to remember it
    assert found[0]["batches"] == {"counts": newest["status"]["batch"]}
    create_savepoint(restored, "imported", {"path": found[0]["path"], "verify": "Restore"})
    topic.produce(1000)
    restored.apply(spec_for(services, topic, startFrom={"savepoint": "imported"}))
    restored.wait_ready(seconds=400)
    topic.wait_exact()
    restored.wait(
        lambda: _level(savepoints(restored)["imported"]) == "Restore", what="a restored savepoint", seconds=60
    )
    assert restored.status()["run"]["seededFrom"] == newest["status"]["path"]
    restored.delete()
    # Imported, it is somebody else's: nobody removes it.
    restored.cluster.kubectl("delete", "ssp", "imported", "-n", RESTORED, "--timeout=60s")
    assert wait_until(lambda: savepoints(restored) == {}, seconds=30, every=1)
    assert "manifest.json" in services.objects(prefix(newest))


def _level(savepoint: Object) -> Any:
    return (savepoint.get("status") or {}).get("verified", {}).get("level")
