"""The end of a StreamSavepoint and of its copy, and what no object knows of any more."""

import pytest

from headrace.api import SAVEPOINT_FINALIZER
from headrace.kube.resources import EVENTS, PODS, STREAM_JOBS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import JOB, NAMESPACE, FakeCluster
from tests.sim.kube.saved import (
    ELSEWHERE,
    GOOD,
    SPEC,
    conditions,
    edit_savepoint,
    finalizers,
    keepers,
    message,
    passes,
    put_starter,
    put_starter_elsewhere,
    refuse_pods,
    running,
)

# ---- deleted ------------------------------------------------------------------------------------------


def test_the_copy_goes_with_the_savepoint_and_it_is_held_before_there_is_one():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    assert finalizers(cluster) == [SAVEPOINT_FINALIZER]
    writes = cluster.api.writes
    held = writes.index(("patch", "streamsavepoints", "manual"))
    assert held < next(k for k, write in enumerate(writes) if "-take-1" in write[2])
    cluster.delete_savepoint("manual")
    cluster.settle()
    assert not cluster.api.of(STREAM_SAVEPOINTS)
    assert not cluster.savepoint_store.saved
    assert not keepers(cluster)


def test_what_is_retained_can_be_deleted_without_an_operator():
    cluster = running()
    cluster.create_savepoint("manual", deletionPolicy="Retain")
    cluster.settle()
    assert finalizers(cluster) == []
    edit_savepoint(cluster, deletionPolicy="Delete")
    cluster.settle()
    assert finalizers(cluster) == [SAVEPOINT_FINALIZER]
    edit_savepoint(cluster, deletionPolicy="Retain")
    cluster.settle()
    cluster.delete_savepoint("manual")
    assert not cluster.api.of(STREAM_SAVEPOINTS)
    assert cluster.savepoint_store.saved


def test_one_that_is_being_taken_is_stopped_first():
    cluster = running()
    cluster.create_savepoint("manual")
    passes(cluster, 1)
    (taker,) = keepers(cluster)
    cluster.delete_savepoint("manual")
    cluster.pass_once()
    assert keepers(cluster) == [taker]  # it is told to go, and nothing else begins
    cluster.settle()
    assert not cluster.api.of(STREAM_SAVEPOINTS) and not keepers(cluster)
    assert not cluster.savepoint_store.saved
    assert [task for task, _ in cluster.savepoint_store.done] == ["discard"]


def test_one_in_use_is_not_removed():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    put_starter(cluster, {})
    cluster.delete_savepoint("manual")
    passes(cluster)
    assert "in use by fork" in message(cluster, "Reconciling")
    assert cluster.savepoint_store.saved
    cluster.api.remove((STREAM_JOBS.plural, NAMESPACE, "fork"))
    cluster.settle()
    assert not cluster.savepoint_store.saved


def test_a_job_of_another_namespace_holds_up_retention_and_not_whoever_deletes_it():
    cluster = running({**SPEC, "savepoints": {"keep": 1}})
    for name in ("first", "second", "third"):
        cluster.create_savepoint(name, cause="Schedule")
        if name != "third":
            cluster.settle()
            cluster.later(3600)
        if name == "first":
            put_starter_elsewhere(cluster, cluster.savepoint("first").path or "", {})
    cluster.settle()
    assert savepoints(cluster) == ["first", "third"]
    assert cluster.savepoint("first").in_use_by == ("elsewhere/fork",)
    cluster.delete_savepoint("first")
    cluster.settle()
    assert savepoints(cluster) == ["third"]


def savepoints(cluster: FakeCluster) -> list[str]:
    return sorted(cluster.api.of(STREAM_SAVEPOINTS))


def test_a_store_that_refuses_keeps_it_and_retain_lets_it_go():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    cluster.savepoint_store.fails = {"reason": "StoreUnavailable", "message": "not allowed to delete"}
    cluster.delete_savepoint("manual")
    passes(cluster, 10)
    assert conditions(cluster)["Stalled"] == ("True", "DeletionFailed")
    assert "not allowed to delete" in message(cluster, "Stalled")
    assert "set spec.deletionPolicy: Retain" in message(cluster, "Stalled")
    edit_savepoint(cluster, deletionPolicy="Retain")
    cluster.settle()
    assert not cluster.api.of(STREAM_SAVEPOINTS) and not keepers(cluster)
    assert cluster.savepoint_store.saved


def test_a_namespace_that_is_deleted_is_not_held_up():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    refuse_pods(cluster, "terminating")
    cluster.delete_savepoint("manual")
    passes(cluster)
    assert not cluster.api.of(STREAM_SAVEPOINTS)
    assert cluster.savepoint_store.saved
    told = [
        event["message"] for event in cluster.api.of(EVENTS).values() if event["reason"] == "CopyRetained"
    ]
    assert len(told) == 1 and "it stays" in told[0]


def test_one_that_never_began_goes_at_once():
    cluster = running()
    cluster.create_savepoint("manual", job="clocks")
    passes(cluster)
    assert finalizers(cluster) == [SAVEPOINT_FINALIZER]
    cluster.delete_savepoint("manual")
    cluster.pass_once()
    assert not cluster.api.of(STREAM_SAVEPOINTS)
    assert not keepers(cluster)


def test_a_pause_of_its_own_leaves_it_alone():
    cluster = running()
    place = cluster.create_savepoint("manual")
    cluster.api.set(place, {"metadata": {"annotations": {"headrace.dev/paused": "true"}}})
    passes(cluster)
    assert cluster.savepoint("manual").state == "Paused" and not keepers(cluster)
    cluster.api.set(place, {"metadata": {"annotations": {"headrace.dev/paused": None}}})
    cluster.settle()
    assert conditions(cluster) == GOOD


def test_a_job_whose_checkpoints_go_waits_for_the_savepoint_that_reads_them():
    cluster = running({**SPEC, "deletionPolicy": "Delete"})
    cluster.create_savepoint("manual")
    passes(cluster, 1)
    cluster.savepoint_store.frozen = True
    cluster.delete_job()
    passes(cluster)
    assert cluster.exists and cluster.removed == []
    reconciling = cluster.status.condition("Reconciling")
    assert reconciling is not None and "manual" in reconciling.message
    cluster.savepoint_store.frozen = False
    cluster.settle()
    assert not cluster.exists and cluster.removed
    assert conditions(cluster) == GOOD
    assert cluster.savepoint_store.saved


def test_the_name_of_a_job_and_of_a_savepoint_may_be_the_same():
    cluster = running()
    cluster.create_savepoint(JOB)
    cluster.settle()
    assert conditions(cluster, JOB) == GOOD
    assert cluster.condition("Ready") == ("True", "Running")


# ---- orphans ------------------------------------------------------------------------------------------


def annotate(cluster: FakeCluster, value: str) -> None:
    cluster.api.set(
        cluster.job_place, {"metadata": {"annotations": {"headrace.dev/collect-savepoints": value}}}
    )


def collectors(cluster: FakeCluster) -> list[str]:
    return [name for name in cluster.api.of(PODS) if "-collect-" in name]


def test_orphans_are_counted_then_removed_each_time_that_it_is_asked():
    cluster = running()
    for value, said, removed in (
        ("dry-run", "1 orphans would be removed", False),
        ("remove", "1 orphans removed", True),
        ("remove@2", "1 orphans removed", True),
    ):
        annotate(cluster, value)
        cluster.settle()
        found = cluster.status.collection
        assert found is not None and (found.asked, found.message) == (value, said)
        assert cluster.savepoint_store.collected is removed
        assert not collectors(cluster)
    told = [one["message"] for one in cluster.api.of(EVENTS).values() if one["reason"] == "Collected"]
    assert told == ["1 orphans would be removed", "1 orphans removed"]
    assert cluster.condition("Ready") == ("True", "Running")
    before = list(cluster.api.writes)
    passes(cluster)
    assert cluster.api.writes == before


def test_savepoints_that_no_object_names_are_told_and_stay():
    cluster = running()
    cluster.create_savepoint("named")
    cluster.create_savepoint("lost", deletionPolicy="Retain")
    cluster.settle()
    lost = cluster.savepoint("lost").path
    cluster.delete_savepoint("lost")
    annotate(cluster, "remove")
    cluster.settle()
    assert cluster.status.collection is not None
    assert [one.path for one in cluster.status.collection.savepoints] == [lost]
    assert lost in cluster.savepoint_store.saved


@pytest.mark.parametrize("began", [True, False])
def test_savepoints_of_a_store_are_listed_under_the_rights_of_a_job(began: bool):
    """Also of one that has no run: it is there to bring back what is lost."""
    cluster = running() if began else FakeCluster({**SPEC, "suspend": True})
    cluster.settle()
    cluster.savepoint_store.import_from_elsewhere(ELSEWHERE)
    annotate(cluster, "list s3://backup/shop@1")
    cluster.settle()
    found = cluster.status.collection
    assert found is not None and (found.message, len(found.savepoints)) == ("1 savepoints", 1)
    one = found.savepoints[0]
    assert (one.path, one.job, one.batches) == (ELSEWHERE, "shop/old", {"q": 41})
    assert not collectors(cluster)


def test_what_cannot_be_collected_is_told_and_holds_nothing_up():
    cluster = running()
    annotate(cluster, "everything")
    cluster.settle()
    assert cluster.status.collection is not None
    assert "say dry-run, remove or list s3://…, not everything" in cluster.status.collection.message
    annotate(cluster, "list /etc")
    cluster.settle()
    assert "list needs a place" in cluster.status.collection.message
    cluster.savepoint_store.fails = {"reason": "StoreUnavailable", "message": "s3 does not answer"}
    annotate(cluster, "remove")
    cluster.settle()
    assert cluster.status.collection.message == "s3 does not answer"
    cluster.savepoint_store.fails = None
    refuse_pods(cluster)
    annotate(cluster, "remove@2")
    cluster.settle()
    assert "exceeded quota" in cluster.status.collection.message
    assert not cluster.savepoint_store.collected


@pytest.mark.parametrize("k", range(5))
def test_killed_while_it_collects_it_answers_all_the_same(k: int):
    cluster = running()
    annotate(cluster, "remove")
    cluster.api.writes_left = k
    cluster.settle()
    assert cluster.status.collection is not None and cluster.savepoint_store.collected
    assert not collectors(cluster)


@pytest.mark.parametrize("ticks", range(1, 9))
def test_the_savepoint_of_an_upgrade_may_be_deleted_at_any_time(ticks: int):
    """The upgrade waited for it, and it waited for the upgrade that was to use it."""
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    passes(cluster, ticks)
    for name in list(cluster.api.of(STREAM_SAVEPOINTS)):
        cluster.delete_savepoint(name)
    cluster.settle()
    assert cluster.status.run is not None and cluster.status.run.number == 2
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.status.operation is None
