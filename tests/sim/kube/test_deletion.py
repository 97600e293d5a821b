"""A deleted job: whose checkpoints are removed, when, and by whom."""

from dataclasses import replace

import pytest

from headrace.api import FINALIZER
from headrace.kube.resources import CONFIG_MAPS, PODS, STREAM_JOBS
from tests.sim.kube.cluster import NAMESPACE, PLATFORM, FakeCluster
from tests.sim.kube.deletions import RETAINED, SPEC, finalizers, message, nothing_is_left, passes, running

# ---- the finalizer ----------------------------------------------------------------------------------


def test_only_a_job_whose_checkpoints_go_is_held():
    assert finalizers(running(SPEC)) == [FINALIZER]
    assert finalizers(running(RETAINED)) == []


def test_the_job_is_held_before_anything_of_it_starts():
    cluster = FakeCluster(SPEC)
    cluster.settle()
    held = cluster.api.writes.index(("patch", "streamjobs", "clicks"))
    kinds = [plural for verb, plural, _ in cluster.api.writes if verb == "create"]
    assert "pods" in kinds
    assert held < cluster.api.writes.index(("create", "pods", "clicks-r1-a1"))


def test_the_finalizer_follows_the_policy_and_leaves_those_of_others_alone():
    cluster = running(RETAINED)
    cluster.api.set(cluster.job_place, {"metadata": {"finalizers": ["example.com/other"]}})
    cluster.edit(deletionPolicy="Delete")
    cluster.settle()
    assert finalizers(cluster) == ["example.com/other", FINALIZER]
    cluster.edit(deletionPolicy="Retain")
    cluster.settle()
    assert finalizers(cluster) == ["example.com/other"]


def test_a_paused_job_that_is_retained_again_can_be_deleted_without_an_operator():
    cluster = running()
    cluster.api.set(cluster.job_place, {"metadata": {"annotations": {"headrace.dev/paused": "true"}}})
    cluster.edit(deletionPolicy="Retain")
    cluster.settle()
    assert finalizers(cluster) == []


def test_a_job_that_changes_while_it_is_being_held_is_looked_at_again():
    cluster = FakeCluster(SPEC)
    get = cluster.api.get

    async def edited_meanwhile(resource, namespace, name):
        found = await get(resource, namespace, name)
        if resource is STREAM_JOBS and not cluster.api.of(CONFIG_MAPS):
            cluster.api.get = get
            cluster.edit(deletionPolicy="Retain")
        return found

    cluster.api.get = edited_meanwhile
    assert cluster.pass_once() is None
    assert finalizers(cluster) == []
    cluster.settle()
    assert finalizers(cluster) == []
    assert cluster.status.state == "Running"


# ---- deletion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("foreground", [False, True])
def test_the_driver_drains_then_the_checkpoints_go_then_the_job(foreground: bool):
    cluster = running()
    uid = cluster.api.objects[cluster.job_place]["metadata"]["uid"]
    cluster.delete_job(foreground=foreground)
    cluster.settle()
    assert nothing_is_left(cluster)
    assert cluster.removed == [f"--store=s3://streams/checkpoints/shop/clicks --lineage={uid}"]
    assert cluster.started == [(1, 1, 1)]


def test_a_running_driver_is_asked_to_drain_and_never_cut_short():
    cluster = running()
    cluster.delete_job()
    cluster.pass_once()
    assert cluster.agent().drains
    assert cluster.status.state == "Deleting"
    assert cluster.condition("Reconciling") == ("True", "Deleting")
    assert ("delete", "pods", "clicks-r1-a1") not in cluster.api.writes
    assert cluster.removed == []


def test_retained_checkpoints_are_never_removed():
    cluster = running(RETAINED)
    cluster.delete_job()
    assert nothing_is_left(cluster)
    passes(cluster)
    assert cluster.removed == []


def test_of_a_job_in_the_foreground_that_is_retained_nothing_is_removed():
    cluster = running(RETAINED)
    cluster.delete_job(foreground=True)
    cluster.settle()
    assert nothing_is_left(cluster)
    assert cluster.removed == []


def test_a_job_that_never_had_a_run_goes_at_once():
    cluster = FakeCluster({"application": {"configMap": {"name": "nowhere"}}, "deletionPolicy": "Delete"})
    cluster.settle()
    assert finalizers(cluster) == [FINALIZER]
    cluster.delete_job()
    cluster.pass_once()
    assert not cluster.exists
    assert not [name for _, plural, name in cluster.api.writes if plural == "pods"]


def test_a_job_whose_spec_cannot_be_read_and_that_never_ran_goes_at_once():
    cluster = FakeCluster({"application": {}, "deletionPolicy": "Delete"})
    cluster.api.set(cluster.job_place, {"metadata": {"finalizers": [FINALIZER]}})
    cluster.delete_job()
    cluster.pass_once()
    assert not cluster.exists


def test_an_upgrade_under_way_ends_and_its_copy_does_not_write_behind_the_removal():
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    while not [name for name in cluster.api.of(PODS) if "seed" in name]:
        passes(cluster, 1) if cluster.live_drivers() else cluster.pass_once()
    cluster.delete_job()
    cluster.settle()
    assert nothing_is_left(cluster)
    assert len(cluster.removed) == 1
    assert [run for run, _, _ in cluster.started] == [1]


def test_executors_are_waited_for_they_write_state_too():
    cluster = running()
    place = cluster.driver_place()
    labels = {**cluster.api.objects[place]["metadata"]["labels"], "headrace.dev/role": "executor"}
    cluster.api.put_new(PODS, {"metadata": {"name": "executor", "namespace": NAMESPACE, "labels": labels}})
    cluster.delete_job()
    passes(cluster)
    assert cluster.live_drivers() == []
    reconciling = cluster.status.condition("Reconciling")
    assert reconciling is not None and "waiting for executor" in reconciling.message
    assert not [name for name in cluster.api.of(PODS) if "delete" in name]
    cluster.api.remove((PODS.plural, NAMESPACE, "executor"))
    cluster.settle()
    assert nothing_is_left(cluster)


def test_a_driver_that_was_orphaned_is_waited_for():
    """`kubectl delete --cascade=orphan` takes the driver from the job, and it runs on."""
    cluster = running()
    cluster.api.set(cluster.driver_place(), {"metadata": {"ownerReferences": []}})
    cluster.delete_job()
    for _ in range(4):
        cluster.pass_once()
    assert cluster.exists and not [name for name in cluster.api.of(PODS) if "delete" in name]
    reconciling = cluster.status.condition("Reconciling")
    assert reconciling is not None and "clicks-r1-a1" in reconciling.message


def test_a_driver_on_a_lost_node_is_waited_for_and_there_is_a_way_out():
    cluster = running()
    cluster.agent().deaf = True
    stamp = cluster.moment.isoformat().replace("+00:00", "Z")
    cluster.api.set(cluster.driver_place(), {"metadata": {"deletionTimestamp": stamp}})
    cluster.delete_job()
    cluster.pass_once()
    cluster.later(300)
    for _ in range(5):
        cluster.pass_once()
    assert cluster.condition("Stalled") == ("True", "NodeLost")
    assert cluster.removed == []
    assert "spec.deletionPolicy: Retain" in message(cluster)


def test_where_the_platform_has_another_store_by_now_the_old_place_is_removed():
    cluster = running()
    substrate = cluster.operator.substrate
    elsewhere = replace(substrate, platform=replace(PLATFORM, checkpoint_location="s3://other/place"))
    cluster.operator = replace(cluster.operator, substrate=elsewhere)
    cluster.delete_job(foreground=True)
    cluster.collect_garbage()  # and with it the pins that named the place
    assert not cluster.pins()
    cluster.settle()
    assert cluster.removed[0].startswith("--store=s3://streams/checkpoints/shop/clicks ")
