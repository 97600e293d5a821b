"""Starting from savepoints and checkpoints on a cluster: read once, copied by keepers, never from nothing."""

import json

import pytest

from headrace.kube.resources import CONFIG_MAPS, PODS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster

HERE = "s3://streams/checkpoints/shop/clicks/_savepoints/nightly"


def a_cluster(start: dict) -> FakeCluster:
    return FakeCluster({"application": {"file": "job.py"}, "startFrom": start})


def keepers(cluster: FakeCluster) -> dict[str, list[str]]:
    pods = cluster.api.of(PODS).items()
    return {name: pod["spec"]["containers"][0]["command"] for name, pod in pods if "-seed-" in name}


def message(cluster: FakeCluster, kind: str = "Stalled") -> str:
    condition = cluster.status.condition(kind)
    assert condition is not None
    return condition.message


def until_keeper(cluster: FakeCluster, number: int = 1) -> None:
    for _ in range(10):
        cluster.pass_once()
        if len(keepers(cluster)) >= number:
            return
    raise AssertionError("no keeper")


@pytest.mark.parametrize(("job", "lineage"), [("clicks", "forward"), ("views", "new")])
def test_a_keeper_under_the_jobs_own_rights_restores_it(job: str, lineage: str):
    cluster = a_cluster({"savepoint": "nightly"})
    cluster.add_savepoint("nightly", path=HERE, job=job)
    until_keeper(cluster)
    ((name, command),) = keepers(cluster).items()
    assert name == "clicks-r1-seed-1"
    uid = cluster.api.objects[cluster.job_place]["metadata"]["uid"]
    assert command[3:8] == [
        "restore",
        "--store=s3://streams/checkpoints/shop/clicks",
        f"--to={uid}/run-1",
        f"--from={HERE}",
        f"--lineage={lineage}",
    ]
    assert "--job=shop/clicks" in command
    cluster.settle()
    assert cluster.started == [(1, 1, 1)]
    assert cluster.status.run.seeded_from == HERE
    assert keepers(cluster) == {}


def test_the_savepoint_is_read_when_the_job_starts_and_not_afterwards():
    cluster = a_cluster({"savepoint": "nightly"})
    cluster.add_savepoint("nightly", path=HERE)
    cluster.settle()
    cluster.api.remove((STREAM_SAVEPOINTS.plural, NAMESPACE, "nightly"))
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.settle()
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    assert [(run, attempt) for run, attempt, _ in cluster.started] == [(1, 1), (1, 2), (2, 1)]


def test_one_that_is_not_there_not_ready_or_failed_is_said_and_waited_for():
    cluster = a_cluster({"savepoint": "nightly"})
    outcome = cluster.pass_once()
    assert cluster.condition("Stalled") == ("True", "SavepointNotFound")
    assert outcome is not None and outcome.recheck_after == 15
    place = cluster.add_savepoint("nightly")
    cluster.pass_once()
    assert cluster.condition("Reconciling") == ("True", "SavepointNotReady")
    cluster.api.remove(place)
    place = cluster.add_savepoint("nightly", failed="it took longer than its time limit")
    cluster.pass_once()
    assert cluster.condition("Stalled") == ("True", "SavepointNotReady")
    assert "it took longer than its time limit. Name another one" in message(cluster)
    cluster.api.remove(place)
    cluster.add_savepoint("nightly", path=HERE)
    cluster.settle()
    assert cluster.started == [(1, 1, 1)]


def test_one_that_is_being_deleted_is_not_started_from():
    cluster = a_cluster({"savepoint": "nightly"})
    place = cluster.add_savepoint("nightly", path=HERE)
    leaving = {"finalizers": ["headrace.dev/savepoint"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster.api.set(place, {"metadata": {"finalizers": leaving["finalizers"]}})
    cluster.api.set(place, {"metadata": leaving})
    cluster.pass_once()
    assert "it is being deleted" in message(cluster)
    assert keepers(cluster) == {}


def test_what_the_keeper_finds_wrong_is_said_in_its_words_and_corrected_by_an_edit():
    cluster = a_cluster({"path": "s3://other/savepoints/x"})
    cluster.seed_fails = "not allowed to list s3://other/savepoints/x: s3:ListBucket is needed"
    for _ in range(5):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.later(60)
    assert cluster.condition("Stalled") == ("True", "RestoreFailed")
    assert "not allowed to list s3://other/savepoints/x" in message(cluster)
    assert cluster.started == []
    cluster.seed_fails = None
    cluster.edit(startFrom={"path": HERE})
    cluster.settle()
    assert cluster.seeds == {2: HERE}
    assert cluster.started == [(2, 1, 1)]


def test_a_keeper_of_a_start_that_is_not_wanted_any_more_goes_and_cannot_be_begun_upon():
    cluster = a_cluster({"path": "s3://wrong/x"})
    until_keeper(cluster)
    place = (PODS.plural, NAMESPACE, "clicks-r1-seed-1")
    cluster.api.set(place, {"status": {"phase": "Running"}})
    cluster.edit(startFrom={"path": HERE})
    until_keeper(cluster, 2)
    assert cluster.api.objects[place]["metadata"]["deletionTimestamp"]
    assert set(keepers(cluster)) == {"clicks-r1-seed-1", "clicks-r2-seed-1"}
    cluster.settle()  # it takes its time to go, and copies to its last moment: into a path of its own
    assert cluster.started == [(2, 1, 1)]
    assert cluster.seeds == {2: HERE}


def test_a_driver_that_refuses_its_start_waits_for_another_one():
    cluster = a_cluster({"timestamp": "2026-01-31T08:00:00Z"})
    cluster.settle()
    refusal = "query clicks reads rate, which cannot start at a time"
    cluster.end_driver(cluster.driver_place(), "Refused", 64, refusal, errorClass="StartRefused")
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "Refused")
    assert cluster.started == [(1, 1, 1)]
    cluster.edit(startFrom={"timestamp": None, "none": True})
    cluster.settle()
    assert cluster.started == [(1, 1, 1), (2, 1, 2)]
    assert cluster.status.run.started_from == "none"


def test_an_upgrade_keeps_where_the_job_started_for_queries_that_have_not_begun():
    """A bug before the first batch, fixed: the job must not begin at the end of its topics then."""
    cluster = a_cluster({"timestamp": "2026-01-31T08:00:00Z"})
    cluster.settle()
    cluster.edit(application={"args": ["--fixed"]})
    cluster.settle()
    (name,) = cluster.live_drivers()
    run_file = json.loads(cluster.api.of(CONFIG_MAPS)[name]["data"]["run.json"])
    assert (run_file["run"], run_file["start"]["timestampMillis"]) == (2, 1769846400000)


def test_a_copy_that_was_begun_is_removed_with_the_job():
    cluster = FakeCluster(
        {"application": {"file": "job.py"}, "startFrom": {"path": HERE}, "deletionPolicy": "Delete"}
    )
    cluster.seed_fails = "damaged"
    for _ in range(4):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.later(60)
    for name in keepers(cluster):
        cluster.api.remove((PODS.plural, NAMESPACE, name))
    cluster.delete_job()
    cluster.settle()
    assert len(cluster.removed) == 1
    assert not cluster.exists


def outcome(cluster: FakeCluster) -> object:
    return cluster.started, cluster.seeds, cluster.status.state, sorted(cluster.api.of(PODS))


def told(cluster: FakeCluster) -> FakeCluster:
    """A wrong start, corrected; then an upgrade."""
    cluster.add_savepoint("nightly", path=HERE)
    cluster.seed_fails = "damaged"
    for _ in range(6):
        cluster.pass_once()
        cluster.kubelets_work()
    cluster.seed_fails = None
    cluster.edit(startFrom={"path": None, "savepoint": "nightly"})
    cluster.settle()
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    return cluster


UNHARMED = told(a_cluster({"path": "s3://wrong/x"}))


def test_the_story_is_what_it_should_be():
    assert outcome(UNHARMED)[:2] == ([(2, 1, 1), (3, 1, 2)], {2: HERE, 3: "uid-1/run-2"})


@pytest.mark.parametrize("k", range(len(UNHARMED.api.writes) + 1))
def test_killed_after_the_kth_write_it_comes_to_the_same_end(k: int):
    cluster = a_cluster({"path": "s3://wrong/x"})
    cluster.api.writes_left = k
    told(cluster)
    assert outcome(cluster) == outcome(UNHARMED)


@pytest.mark.parametrize("fault", ["refused", "lost", "conflict"])
def test_any_single_write_may_fail(fault: str):
    for k in range(0, len(UNHARMED.api.writes), 3):
        cluster = a_cluster({"path": "s3://wrong/x"})
        cluster.api.faults = [*([None] * k), fault]
        assert outcome(told(cluster)) == outcome(UNHARMED), f"{fault} at write {k}"


# ---- a job that runs is taken back ---------------------------------------------------------------------


def restored(cluster: FakeCluster) -> FakeCluster:
    cluster.add_savepoint("nightly", path=HERE)
    cluster.settle()
    cluster.api.set(cluster.job_place, {"metadata": {"annotations": {"headrace.dev/restore": "nightly@1"}}})
    cluster.settle()
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.settle()
    return cluster


RESTORED = restored(FakeCluster())


def test_an_annotation_takes_a_job_back_once():
    assert RESTORED.started == [(1, 1, 1), (2, 1, 2), (2, 2, 3)]
    assert RESTORED.seeds == {2: HERE}
    assert RESTORED.status.restored == "nightly@1"


@pytest.mark.parametrize("k", range(len(RESTORED.api.writes) + 1))
def test_killed_after_the_kth_write_it_is_taken_back_once(k: int):
    cluster = FakeCluster()
    cluster.api.writes_left = k
    assert outcome(restored(cluster)) == outcome(RESTORED)


def test_a_savepoint_that_a_job_is_to_go_back_to_is_in_use_until_it_has():
    cluster = FakeCluster()
    cluster.settle()
    place = cluster.create_savepoint("manual")
    cluster.settle()
    assert cluster.savepoint("manual").path is not None
    cluster.seed_fails = "the network is down"
    cluster.api.set(cluster.job_place, {"metadata": {"annotations": {"headrace.dev/restore": "manual"}}})
    for _ in range(8):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.later(20)
    assert cluster.savepoint("manual").in_use_by == ("clicks",)
    cluster.seed_fails = None
    cluster.pass_once()  # from the first look at a try that failed on, the next one is waited for
    cluster.later(600)
    cluster.settle()
    assert cluster.status.restored == "manual"
    assert cluster.savepoint("manual").in_use_by == ()
    assert place in cluster.api.objects
