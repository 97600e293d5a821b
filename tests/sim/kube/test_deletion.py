"""A deleted job: whose checkpoints are removed, when, by whom, and how to get out of it."""

import copy
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from headrace.api import FINALIZER
from headrace.kube.resources import CONFIG_MAPS, EVENTS, PODS, STREAM_JOBS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import NAMESPACE, PLATFORM, FakeCluster
from tests.sim.kube.troubles import Troubles

SPEC = {"application": {"file": "job.py"}, "deletionPolicy": "Delete"}
RETAINED = {"application": {"file": "job.py"}}


def running(spec: dict = SPEC) -> FakeCluster:
    cluster = FakeCluster(spec)
    cluster.settle()
    assert cluster.status.state == "Running"
    return cluster


def finalizers(cluster: FakeCluster) -> list[str]:
    return cluster.api.objects[cluster.job_place]["metadata"].get("finalizers") or []


def message(cluster: FakeCluster) -> str:
    stalled = cluster.status.condition("Stalled")
    assert stalled is not None and stalled.status == "True"
    return stalled.message


def nothing_is_left(cluster: FakeCluster) -> bool:
    """But what is told of it, and savepoints: those have a policy of their own."""
    stays = (EVENTS.plural, STREAM_SAVEPOINTS.plural)
    return not [place for place in cluster.api.objects if place[0] not in stays]


def passes(cluster: FakeCluster, number: int = 6) -> None:
    for _ in range(number):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.collect_garbage()


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


# ---- a store that refuses, and the ways out -----------------------------------------------------------


def test_a_store_that_refuses_keeps_the_job_and_says_why_and_what_to_do():
    cluster = running()
    cluster.deletion_fails = "not allowed to delete s3://streams"
    cluster.delete_job()
    for _ in range(20):
        passes(cluster, 1)
    assert cluster.condition("Stalled") == ("True", "DeletionFailed")
    assert "not allowed to delete s3://streams" in message(cluster)
    assert "set spec.deletionPolicy: Retain" in message(cluster)
    events = [event["reason"] for event in cluster.api.of(EVENTS).values()]
    assert events.count("DeletionFailed") == 1
    tried = [name for verb, _, name in cluster.api.writes if verb == "create" and "delete" in name]
    assert len(tried) == 1  # no time has passed
    cluster.deletion_fails = None
    cluster.later(60)
    cluster.settle()
    assert nothing_is_left(cluster)
    assert len(cluster.removed) == 1


def test_retain_lets_a_job_go_whose_store_refuses():
    cluster = running()
    cluster.deletion_fails = "no"
    cluster.delete_job()
    for _ in range(8):
        passes(cluster, 1)
    cluster.edit(deletionPolicy="Retain")
    cluster.settle()
    assert nothing_is_left(cluster)
    assert cluster.removed == []


def test_retain_in_the_middle_of_the_removal_stops_it_before_the_job_goes():
    cluster = running()
    cluster.delete_job()
    while not [pod for name, pod in cluster.api.of(PODS).items() if "delete" in name and "status" in pod]:
        passes(cluster, 1)
    cluster.edit(deletionPolicy="Retain")
    cluster.pass_once()
    assert cluster.exists  # until the keeper has ended
    cluster.settle()
    assert nothing_is_left(cluster)
    assert cluster.removed == []


def test_a_pod_that_the_platform_refuses_is_told_in_its_words():
    cluster = running()
    cluster.delete_job()
    while cluster.live_drivers():
        passes(cluster, 1)
    create = cluster.api.create

    async def full(resource, namespace, body):
        if resource is PODS:
            cluster.api.faults = ["quota"]
        return await create(resource, namespace, body)

    cluster.api.create = full
    for _ in range(3):
        cluster.pass_once()
    assert cluster.condition("Stalled") == ("True", "DeletionFailed")
    assert "exceeded quota" in message(cluster)
    cluster.api.create = create
    cluster.settle()
    assert nothing_is_left(cluster)


def test_a_paused_job_says_what_it_waits_for():
    cluster = running()
    cluster.api.set(cluster.job_place, {"metadata": {"annotations": {"headrace.dev/paused": "true"}}})
    cluster.delete_job()
    passes(cluster)
    reconciling = cluster.status.condition("Reconciling")
    assert reconciling is not None and "headrace.dev/paused" in reconciling.message
    assert cluster.removed == [] and cluster.live_drivers() == ["clicks-r1-a1"]
    cluster.edit(deletionPolicy="Retain")
    cluster.settle()
    assert not cluster.exists and cluster.removed == []


def test_a_keeper_that_finds_no_node_says_so_and_a_corrected_edit_replaces_it():
    cluster = running()
    cluster.edit(driver={"nodeSelector": {"disk": "sdd"}})
    cluster.settle()
    cluster.delete_job()
    while not (keepers := [name for name in cluster.api.of(PODS) if "delete" in name]):
        cluster.kubelets_work()
        cluster.pass_once()
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}
    waiting = {"phase": "Pending", "conditions": [unschedulable]}
    cluster.api.set((PODS.plural, NAMESPACE, keepers[0]), {"status": waiting})
    passes(cluster)
    assert "0/3" in message(cluster) and "spec.deletionPolicy: Retain" in message(cluster)
    cluster.edit(driver={"nodeSelector": None})
    cluster.settle()
    assert nothing_is_left(cluster)
    assert len(cluster.removed) == 1


def test_retain_stops_the_removal_also_where_the_spec_cannot_be_read_any_more():
    cluster = running()
    cluster.delete_job(foreground=True)  # which takes the pins, too
    while not [pod for name, pod in cluster.api.of(PODS).items() if "delete" in name and "status" in pod]:
        passes(cluster, 1)
    cluster.edit(deletionPolicy="Retain", application={"file": None})
    cluster.settle()
    assert nothing_is_left(cluster)
    assert cluster.removed == []


# ---- the operator's own misfortunes -------------------------------------------------------------------


def told(cluster: FakeCluster, *, foreground: bool) -> FakeCluster:
    cluster.delete_job(foreground=foreground)
    cluster.settle()
    return cluster


WRITES = len(told(running(), foreground=False).api.writes) - len(running().api.writes)


@pytest.mark.parametrize("foreground", [False, True])
@pytest.mark.parametrize("k", range(WRITES + 1))
def test_killed_after_the_kth_write_it_comes_to_the_same_end(k: int, foreground: bool):
    cluster = running()
    cluster.api.writes_left = k
    told(cluster, foreground=foreground)
    assert nothing_is_left(cluster)
    assert cluster.removed


@pytest.mark.parametrize("fault", ["refused", "lost", "conflict"])
@pytest.mark.parametrize("k", range(WRITES))
def test_any_single_write_may_fail(k: int, fault: str):
    cluster = running()
    cluster.api.faults = [*([None] * k), fault]
    told(cluster, foreground=False)
    assert nothing_is_left(cluster)
    assert cluster.removed


def test_an_operator_that_sees_the_past_starts_nothing_behind_a_deletion():
    cluster = FakeCluster(SPEC)
    cluster.pass_once()
    cluster.pass_once()
    snapshot = copy.deepcopy(cluster.api.objects)
    cluster.settle()
    cluster.delete_job()
    passes(cluster, 2)
    cluster.api.stale = snapshot
    for _ in range(3):
        cluster.pass_once()
    cluster.api.stale = None
    cluster.settle()
    assert nothing_is_left(cluster)
    assert cluster.started == [(1, 1, 1)]


class AnyEnd(Troubles):
    """Edits of the policy, faults, kills and deletion in any order."""

    @initialize(policy=st.sampled_from(["Delete", "Retain"]))
    def begin(self, policy):
        self.befall(FakeCluster({**SPEC, "deletionPolicy": policy}))
        self.deleted = False
        self.ever_delete = policy == "Delete"

    @rule()
    def operator_passes(self):
        self.cluster.pass_once()

    @rule()
    def the_cluster_works(self):
        self.cluster.kubelets_work()
        self.cluster.collect_garbage()

    @precondition(lambda self: self.cluster.exists)
    @rule(policy=st.sampled_from(["Delete", "Retain"]))
    def the_policy_is_edited(self, policy):
        self.cluster.edit(deletionPolicy=policy)
        self.ever_delete |= policy == "Delete"

    @precondition(lambda self: self.cluster.exists)
    @rule(args=st.sampled_from([[], ["--a"]]))
    def arguments_are_edited(self, args):
        self.cluster.edit(application={"args": args})

    @precondition(lambda self: self.cluster.exists and not self.deleted)
    @rule(foreground=st.booleans())
    def the_job_is_deleted(self, foreground):
        self.cluster.delete_job(foreground=foreground)
        self.deleted = True

    @rule(problem=st.sampled_from([None, "the store does not answer"]))
    def the_store_fails_or_recovers(self, problem):
        self.cluster.deletion_fails = problem

    @rule(seconds=st.sampled_from([1, 30, 600]))
    def time_passes(self, seconds):
        self.cluster.later(seconds)

    @invariant()
    def only_what_was_to_be_deleted_is_removed(self):
        assert not self.cluster.removed or (self.ever_delete and self.deleted)

    def teardown(self):
        """Left in peace, a deleted job is gone, and what is not deleted runs."""
        self.troubles_end()
        cluster = self.cluster
        cluster.deletion_fails = None
        cluster.later(600)
        cluster.settle(200)
        if self.deleted:
            assert nothing_is_left(cluster)
        else:
            assert cluster.condition("Ready") == ("True", "Running")


AnyEnd.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestAnyEnd = AnyEnd.TestCase
