"""The life of a StreamSavepoint: taken, checked, imported, failed. Only the cluster is not real."""

import pytest

from headrace.core.savepoint_access import spec_with_access
from headrace.kube.resources import EVENTS, PODS, STREAM_JOBS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster
from tests.sim.kube.saved import (
    ELSEWHERE,
    GOOD,
    SPEC,
    conditions,
    finalizers,
    keepers,
    message,
    passes,
    refuse_pods,
    running,
    uid,
)

# ---- taken --------------------------------------------------------------------------------------------


def test_a_savepoint_of_a_running_job_says_all_that_it_holds():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    status = cluster.savepoint("manual")
    job_uid = cluster.api.objects[cluster.job_place]["metadata"]["uid"]
    assert status.path == f"s3://streams/checkpoints/shop/clicks/_savepoints/manual-{uid(cluster)[:8]}"
    assert status.source == f"{job_uid}/run-1"
    assert (status.state, status.batch, status.size, status.objects) == ("Ready", 41, "3.3Mi", 12)
    assert (status.run, status.spark_version, status.verified.level) == (1, "4.2.1", "Objects")
    query = status.queries[0]
    assert (query.lineage, query.partitions, query.offsets) == ("l-1", 2, {"0": {"clicks": {"0": 7}}})
    assert query.watermark is not None and query.watermark.year == 2026
    assert conditions(cluster) == GOOD
    assert {one.observed_generation for one in status.conditions} == {1} == {status.observed_generation}
    assert cluster.live_drivers() == ["clicks-r1-a1"]  # it never noticed
    assert cluster.status.last_savepoint == "manual"
    assert not keepers(cluster)
    told = [event for event in cluster.api.of(EVENTS).values() if event["reason"] == "Taken"]
    assert [(event["type"], event["involvedObject"]["kind"]) for event in told] == [
        ("Normal", "StreamSavepoint")
    ]


def test_once_taken_it_costs_no_write():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    before = list(cluster.api.writes)
    for _ in range(10):
        cluster.later(600)
        cluster.pass_once()
    assert cluster.api.writes == before


def test_the_intent_is_in_the_status_before_a_keeper_begins():
    cluster = running()
    cluster.create_savepoint("manual")
    writes = len(cluster.api.writes)
    cluster.pass_once()
    kinds = [write[:2] for write in cluster.api.writes[writes:]]
    assert kinds == [("patch", "streamsavepoints"), ("patch", "streamsavepoints"), ("create", "pods")]
    status = cluster.savepoint("manual")
    assert status.path and status.source and status.started_at
    assert conditions(cluster)["Reconciling"] == ("True", "Taking")


def test_the_keeper_is_told_the_limits_and_runs_as_the_job_does():
    cluster = running({**SPEC, "driver": {"serviceAccount": "clicks", "nodeSelector": {"pool": "streams"}}})
    cluster.create_savepoint("manual", maxCopyRate="100Mi", timeLimit="10m", cause="Manual")
    cluster.pass_once()
    (name,) = keepers(cluster)
    pod = cluster.api.of(PODS)[name]
    command = pod["spec"]["containers"][0]["command"]
    assert "--max-bytes-per-second=104857600" in command
    assert "--time-limit-seconds=600" in command
    assert f"--owner={uid(cluster)}" in command
    assert pod["spec"]["serviceAccountName"] == "clicks"
    assert pod["spec"]["nodeSelector"] == {"pool": "streams"}
    assert pod["spec"]["activeDeadlineSeconds"] == 630
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "StreamSavepoint"


def test_how_far_it_is_is_told_in_tens_and_in_few_writes():
    cluster = running()
    cluster.create_savepoint("manual")
    passes(cluster, 1)
    cluster.savepoint_store.frozen = True
    cluster.pass_once()
    assert cluster.savepoint("manual").copied_percent is None
    before = len(cluster.api.writes)
    for percent in range(1, 100):
        cluster.savepoint_store.percent = percent
        cluster.pass_once()
        assert cluster.savepoint("manual").copied_percent == percent // 10 * 10
    cluster.savepoint_store.percent = None  # it does not answer: as far as it was
    cluster.pass_once()
    assert message(cluster, "Ready") == "copying: 90%"
    assert len(cluster.api.writes) - before == 10
    cluster.savepoint_store.frozen = False
    cluster.settle()
    assert conditions(cluster) == GOOD and cluster.savepoint("manual").copied_percent is None


@pytest.mark.parametrize("how", ["suspended", "crashed"])
def test_a_job_need_not_run_to_be_saved(how: str):
    cluster = running(
        {**SPEC, "savepoints": {"onSuspend": False}, "restart": {"backoff": {"min": "1h", "max": "2h"}}}
    )
    if how == "suspended":
        cluster.edit(suspend=True)
        cluster.settle()
    else:
        cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
        passes(cluster, 2)
    cluster.create_savepoint("manual")
    passes(cluster)
    assert cluster.live_drivers() == []
    assert conditions(cluster) == GOOD


def test_a_savepoint_of_a_job_that_is_deleted_meanwhile_is_finished_and_removed_later():
    """What reaches its store is kept with it: names of places, accounts and Secrets, and no values."""
    driver = {
        "serviceAccount": "clicks",
        "env": [
            {"name": "TOKEN", "value": "geheim"},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}},
        ],
    }
    s3 = {"endpoint": "http://s3:9000", "credentials": {"secret": "s3-keys"}}
    checkpoint = {"location": "s3://streams/checkpoints", "s3": s3}
    cluster = running({**SPEC, "driver": driver, "checkpoint": checkpoint})
    cluster.create_savepoint("manual")
    cluster.pass_once()
    cluster.api.remove(cluster.job_place)
    cluster.savepoint_store.fails = {"message": "killed"}
    passes(cluster, 3)
    cluster.savepoint_store.fails = None
    cluster.later(30)
    passes(cluster)
    assert conditions(cluster) == GOOD
    status = cluster.savepoint("manual")
    assert status.access is not None and "geheim" not in str(status.to_manifest())
    spec = spec_with_access(status.access)
    assert (spec.driver.service_account, [one.name for one in spec.driver.env]) == ("clicks", ["KEY"])
    cluster.delete_savepoint("manual")
    cluster.pass_once()
    (name,) = keepers(cluster)
    pod = cluster.api.of(PODS)[name]
    assert pod["spec"]["serviceAccountName"] == "clicks"
    assert "--s3-endpoint=http://s3:9000" in pod["spec"]["containers"][0]["command"]
    passes(cluster)
    assert not cluster.api.of(STREAM_SAVEPOINTS) and not keepers(cluster)
    assert not cluster.savepoint_store.saved


# ---- what is not there --------------------------------------------------------------------------------


def test_without_its_job_it_waits_and_says_for_what():
    cluster = running()
    cluster.create_savepoint("manual", job="clocks")
    passes(cluster)
    assert conditions(cluster)["Reconciling"] == ("True", "JobNotFound")
    assert "there is no StreamJob clocks in this namespace" in message(cluster, "Ready")
    cluster.later(3700)
    passes(cluster)
    assert conditions(cluster)["Stalled"] == ("True", "JobNotFound")
    before = list(cluster.api.writes)
    passes(cluster)
    assert cluster.api.writes == before
    assert not cluster.savepoint("manual").failed_at  # it may come yet


def test_a_job_that_comes_later_is_saved():
    cluster = running()
    job = cluster.api.objects[cluster.job_place]
    cluster.create_savepoint("manual", job="later")
    cluster.later(4000)
    passes(cluster)
    body = {**job, "metadata": {"name": "later", "namespace": NAMESPACE}}
    cluster.api.put_new(STREAM_JOBS, body)
    cluster.settle()
    assert conditions(cluster) == GOOD


def test_a_job_without_a_run_has_nothing_to_save_yet():
    cluster = FakeCluster({"application": {"configMap": {"name": "nowhere"}}})
    cluster.create_savepoint("manual")
    cluster.settle()
    assert conditions(cluster)["Ready"] == ("False", "NothingToSave")
    assert not keepers(cluster)


# ---- failures -----------------------------------------------------------------------------------------


def test_what_cannot_be_saved_fails_at_once_says_why_and_stays_failed():
    cluster = running()
    cluster.savepoint_store.fails = {"reason": "CheckpointDamaged", "message": "offsets/40 is missing"}
    cluster.create_savepoint("manual")
    cluster.settle()
    assert conditions(cluster)["Stalled"] == ("True", "CheckpointDamaged")
    assert conditions(cluster)["Ready"] == ("False", "CheckpointDamaged")
    assert "offsets/40 is missing" in message(cluster, "Ready")
    assert cluster.savepoint("manual").state == "Failed"
    cluster.savepoint_store.fails = None
    before = list(cluster.api.writes)
    for _ in range(5):
        cluster.later(3600)
        passes(cluster, 1)
    assert cluster.api.writes == before
    assert not keepers(cluster)
    assert cluster.status.last_savepoint is None


def test_a_store_that_does_not_answer_is_asked_again_patiently():
    cluster = running()
    cluster.savepoint_store.fails = {"reason": "StoreUnavailable", "message": "s3 does not answer"}
    cluster.create_savepoint("manual")
    passes(cluster)
    assert conditions(cluster)["Reconciling"] == ("True", "Taking")
    assert "s3 does not answer" in message(cluster, "Reconciling")
    for _ in range(20):
        cluster.later(60)
        passes(cluster, 3)
    tried = [name for verb, _, name in cluster.api.writes if verb == "create" and "-take-" in name]
    assert 5 < len(tried) < 10
    cluster.savepoint_store.fails = None
    cluster.later(300)
    passes(cluster)
    assert conditions(cluster) == GOOD


@pytest.mark.parametrize("trouble", ["store", "pending", "quota", "hangs"])
def test_after_its_time_limit_it_has_failed_whatever_it_waited_for(trouble: str):
    cluster = running()
    cluster.create_savepoint("manual", timeLimit="10m")
    match trouble:
        case "store":
            cluster.savepoint_store.fails = {"reason": "StoreUnavailable", "message": "the trouble"}
        case "pending":
            cluster.savepoint_store.frozen = True
            cluster.pass_once()
            unschedulable = {"type": "PodScheduled", "status": "False", "message": "the trouble"}
            waiting = {"phase": "Pending", "conditions": [unschedulable]}
            cluster.api.set((PODS.plural, NAMESPACE, keepers(cluster)[0]), {"status": waiting})
        case "quota":
            cluster.pass_once()
            cluster.api.remove((PODS.plural, NAMESPACE, keepers(cluster)[0]))
            refuse_pods(cluster)
        case "hangs":
            cluster.savepoint_store.frozen = True
    passes(cluster, 4)
    assert not cluster.savepoint("manual").failed_at
    cluster.later(601)
    passes(cluster)
    assert conditions(cluster)["Stalled"] == ("True", "TimeLimit")
    assert "spec.timeLimit, 10m" in message(cluster, "Ready")
    assert (
        trouble == "hangs"
        or "quota" in message(cluster, "Ready")
        or "the trouble" in message(cluster, "Ready")
    )
    cluster.savepoint_store.frozen = False
    passes(cluster)
    assert not keepers(cluster)


def test_a_pod_that_the_platform_refuses_is_told_and_tried_again():
    cluster = running()
    create = refuse_pods(cluster)
    cluster.create_savepoint("manual")
    passes(cluster)
    assert "exceeded quota" in message(cluster, "Reconciling")
    cluster.api.create = create  # type: ignore[method-assign]
    passes(cluster)
    assert conditions(cluster) == GOOD


def test_a_keeper_that_vanishes_is_followed_by_another_and_the_store_has_one_savepoint():
    cluster = running()
    cluster.create_savepoint("manual")
    passes(cluster, 2)
    (name,) = keepers(cluster)
    pod = cluster.api.of(PODS)[name]
    cluster.savepoint_store._work(pod)  # it had finished: nobody has heard of it
    cluster.api.remove((PODS.plural, NAMESPACE, name))
    cluster.settle()
    assert conditions(cluster) == GOOD
    assert len(cluster.savepoint_store.saved) == 1


# ---- imported -----------------------------------------------------------------------------------------


def test_what_lies_in_a_store_is_checked_and_adopted():
    cluster = running()
    cluster.savepoint_store.import_from_elsewhere(ELSEWHERE)
    cluster.create_savepoint("manual", path=ELSEWHERE)
    cluster.settle()
    status = cluster.savepoint("manual")
    assert conditions(cluster) == {**GOOD, "Ready": ("True", "Imported")}
    assert (status.path, status.batch, status.source, status.run) == (ELSEWHERE, 41, "elsewhere/run-3", 3)
    assert finalizers(cluster) == []
    assert cluster.status.last_savepoint is None  # it is of another time
    cluster.delete_savepoint("manual")
    passes(cluster)
    assert ELSEWHERE in cluster.savepoint_store.saved


@pytest.mark.parametrize(("there", "reason"), [(False, "SavepointFailed"), (True, "SavepointDamaged")])
def test_what_is_not_there_or_damaged_is_not_adopted(there: bool, reason: str):
    cluster = running()
    if there:
        cluster.savepoint_store.import_from_elsewhere(ELSEWHERE)
        cluster.savepoint_store.damaged.add(ELSEWHERE)
    cluster.create_savepoint("manual", path=ELSEWHERE)
    cluster.settle()
    assert conditions(cluster)["Stalled"] == ("True", reason)
    assert conditions(cluster)["Ready"] == ("False", reason)
