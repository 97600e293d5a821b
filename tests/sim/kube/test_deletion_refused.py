"""A deleted job whose checkpoints cannot be removed: what it says, and the ways out."""

from headrace.kube.resources import EVENTS, PODS
from tests.sim.kube.cluster import NAMESPACE
from tests.sim.kube.deletions import message, nothing_is_left, passes, running


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
