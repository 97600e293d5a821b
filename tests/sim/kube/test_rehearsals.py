"""Rehearsals on a cluster: a candidate pod beside the driver, which does not notice."""

import json

import pytest

from headrace.kube.resources import CONFIG_MAPS, PODS, SECRETS, SERVICES
from tests.sim.kube.cluster import NAMESPACE, FakeCluster

SPEC = {"application": {"file": "job.py"}, "upgrade": {"strategy": "Rehearsed"}}
COLD = {"strategy": "Rehearsed", "standby": {"enabled": False}}


def running(**more: object) -> FakeCluster:
    cluster = FakeCluster({**SPEC, **more})
    cluster.settle()
    assert cluster.status.last_stable is not None
    return cluster


def becomes(cluster: FakeCluster, argument: str) -> None:
    cluster.edit(application={"args": [argument]})
    cluster.settle(200)


NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}


def to_candidate(cluster: FakeCluster, argument: str) -> None:
    cluster.edit(application={"args": [argument]})
    for _ in range(6):
        cluster.pass_once()
        if candidates(cluster):
            return
    raise AssertionError("no candidate came")


def candidates(cluster: FakeCluster) -> list[str]:
    return [name for name in cluster.api.of(PODS) if name.startswith("clicks-c")]


def is_quiet(cluster: FakeCluster) -> None:
    writes = list(cluster.api.writes)
    for _ in range(5):
        cluster.later(600)
        cluster.pass_once()
    assert cluster.api.writes == writes


def test_a_candidate_is_told_what_to_do():
    cluster = running()
    to_candidate(cluster, "--x")
    pod = cluster.api.of(PODS)["clicks-c1"]
    told = json.loads(cluster.api.of(CONFIG_MAPS)["clicks-c1"]["data"]["run.json"])
    assert (told["mode"], told["run"], told["epoch"]) == ("rehearse", 2, 0)
    assert told["rehearsal"] == {
        "fromRun": 1,
        "batches": 3,
        "timeLimitSeconds": 600.0,
        "callForeachBatch": False,
        "stateCompatible": False,
        "standbySeconds": 1800.0,
    }
    assert told["sparkConf"]["spark.app.id"] == "clicks-c1"
    assert told["application"]["args"] == ["--x"]
    assert "headrace.dev/attempt" not in pod["metadata"]["labels"]
    assert cluster.condition("Ready") == ("True", "Running")
    cluster.settle(200)
    assert cluster.status.last_stable.run == 2
    assert cluster.condition("Rehearsed") == ("True", "Passed")


def test_one_that_does_not_wait_leaves_nothing_behind():
    cluster = running(upgrade=COLD)
    to_candidate(cluster, "--x")
    told = json.loads(cluster.api.of(CONFIG_MAPS)["clicks-c1"]["data"]["run.json"])
    assert told["rehearsal"]["standbySeconds"] is None
    cluster.settle(200)
    assert cluster.live_drivers() == ["clicks-r2-a1"]
    assert cluster.condition("Rehearsed") == ("True", "Passed")
    for kind in (PODS, SERVICES, SECRETS, CONFIG_MAPS):
        assert not [name for name in cluster.api.of(kind) if name.startswith("clicks-c")]
    is_quiet(cluster)


def test_the_files_of_a_candidate_are_kept_apart_from_those_of_the_run():
    """Another edit of the same run would find the files of the one before it."""
    cluster = running(application={"file": "s3://acme/job.py"}, upgrade=COLD)
    to_candidate(cluster, "--x")
    containers = cluster.api.of(PODS)["clicks-c1"]["spec"]["initContainers"]
    (fetch,) = [one["command"] for one in containers if "fetch" in one["command"]]
    assert {"--run=2", "--candidate=1"} <= set(fetch)
    cluster.settle(200)
    containers = cluster.api.of(PODS)["clicks-r2-a1"]["spec"]["initContainers"]
    (fetch,) = [one["command"] for one in containers if "fetch" in one["command"]]
    assert not [flag for flag in fetch if flag.startswith("--candidate")]


@pytest.mark.parametrize("bad", ["crash", "never"])
def test_a_bad_one_is_refused_and_the_driver_does_not_notice(bad: str):
    cluster = running()
    before = cluster.api.of(PODS)["clicks-r1-a1"]["metadata"]["uid"]
    becomes(cluster, bad)
    assert cluster.live_drivers() == ["clicks-r1-a1"]
    assert cluster.api.of(PODS)["clicks-r1-a1"]["metadata"]["uid"] == before
    assert cluster.agents.drain_limits == []
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.condition("Stalled") == ("True", "RehearsalFailed")
    assert cluster.condition("Rehearsed")[0] == "False"
    assert candidates(cluster) == []
    is_quiet(cluster)
    becomes(cluster, "--fixed")
    assert cluster.status.last_stable.run == 2
    assert cluster.condition("Stalled") == ("False", "Settled")


def test_without_room_for_both_it_takes_over_cold():
    cluster = running()
    to_candidate(cluster, "--x")
    cluster.api.set(
        (PODS.plural, NAMESPACE, "clicks-c1"), {"status": {"phase": "Pending", "conditions": [NO_NODE]}}
    )
    cluster.pass_once()
    cluster.later(61)
    cluster.settle(200)
    assert cluster.status.last_stable.run == 2
    assert cluster.condition("Rehearsed") == ("Unknown", "NoRoom")
    assert candidates(cluster) == []


def its_executor_finds_no_node(cluster: FakeCluster) -> None:
    labels = {"headrace.dev/job": "clicks", "headrace.dev/role": "executor", "headrace.dev/candidate": "1"}
    executor = {"name": "spark-s-clicks-c1-0-0", "namespace": NAMESPACE, "labels": labels}
    cluster.api.put_new(PODS, {"metadata": executor, "status": {"phase": "Pending", "conditions": [NO_NODE]}})


def test_without_room_for_its_executors_it_takes_over_cold():
    cluster = running()
    to_candidate(cluster, "--x")
    cluster.kubelets_work()
    its_executor_finds_no_node(cluster)
    cluster.pass_once()
    assert cluster.condition("Reconciling") == ("True", "Rehearsing")
    cluster.later(61)
    cluster.pass_once()
    cluster.api.remove((PODS.plural, NAMESPACE, "spark-s-clicks-c1-0-0"))
    cluster.settle(200)
    assert cluster.status.last_stable.run == 2
    assert cluster.condition("Rehearsed") == ("Unknown", "NoRoom")
    assert "0/3 nodes" in cluster.status.condition("Rehearsed").message


def test_an_image_that_was_pulled_for_minutes_is_no_lack_of_room():
    cluster = running()
    to_candidate(cluster, "--x")
    cluster.later(150)  # its image comes to the node; then its executors are asked for, and a node for them
    cluster.kubelets_work()
    its_executor_finds_no_node(cluster)
    cluster.pass_once()
    cluster.later(50)
    cluster.pass_once()
    assert cluster.condition("Reconciling") == ("True", "Rehearsing")
    assert candidates(cluster) == ["clicks-c1"]
    cluster.later(11)
    cluster.pass_once()
    assert cluster.condition("Rehearsed") == ("Unknown", "NoRoom")


@pytest.mark.parametrize("start_timeout", ["10m", "30s"])
def test_a_quota_that_leaves_no_room_for_both_is_no_obstacle(start_timeout: str):
    cluster = running(upgrade={"strategy": "Rehearsed", "startTimeout": start_timeout})
    create = cluster.api.create

    async def full(resource, namespace, body):
        if resource is PODS and body["metadata"]["name"].startswith("clicks-c"):
            cluster.api.faults = ["quota"]
        return await create(resource, namespace, body)

    cluster.api.create = full
    cluster.edit(application={"args": ["--x"]})
    for _ in range(10):
        cluster.pass_once()
        cluster.later(10)
    cluster.settle(200)
    assert cluster.status.last_stable.run == 2
    assert cluster.condition("Rehearsed") == ("Unknown", "NoRoom")
    assert "exceeded quota" in cluster.status.condition("Rehearsed").message


def test_a_deleted_job_takes_its_candidate_along():
    cluster = running()
    cluster.edit(deletionPolicy="Delete")
    cluster.settle()
    to_candidate(cluster, "--x")
    cluster.delete_job()
    cluster.settle()
    assert not cluster.exists
    assert candidates(cluster) == []


@pytest.mark.parametrize("argument", ["--x", "crash"])
def test_killed_after_the_kth_write_it_comes_to_the_same_end(argument: str):
    def outcome(cluster: FakeCluster) -> object:
        pods = sorted(cluster.api.of(PODS))
        maps = sorted(cluster.api.of(CONFIG_MAPS))
        return cluster.started, pods, maps, cluster.condition("Rehearsed"), cluster.status.state

    unharmed = running()
    begun = len(unharmed.api.writes)
    becomes(unharmed, argument)
    for k in range(len(unharmed.api.writes) - begun + 1):
        cluster = running()
        cluster.api.writes_left = k
        becomes(cluster, argument)
        assert outcome(cluster) == outcome(unharmed), f"killed after write {k}"
        assert cluster.stream.sink.repeated() == 0
        is_quiet(cluster)
