"""A driver without executors: its queries are active, and stand still. So the job is not Ready."""

from __future__ import annotations

import pytest

from headrace.kube.resources import PODS, STATEFUL_SETS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster

EXECUTOR = (PODS.plural, NAMESPACE, "spark-s-clicks-1-0-0")
QUOTA = 'pods "spark-s-clicks-1-0-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1'
SECURITY = 'pods "spark-s-clicks-1-0-0" is forbidden: violates PodSecurity "restricted:latest": privileged'
WEBHOOK = 'admission webhook "images.example.com" denied the request: not from our registry'


def said(cluster: FakeCluster) -> str:
    ready = cluster.status.condition("Ready")
    assert ready is not None
    return ready.message


def pass_by(cluster: FakeCluster, *, seconds: float, steps: int = 6) -> None:
    """A job that waits for executors never settles: it is looked at again and again."""
    for _ in range(steps):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.later(seconds / steps)
    cluster.pass_once()


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (QUOTA, "QuotaExceeded"),
        (SECURITY, "PodSecurity"),
        (WEBHOOK, "AdmissionDenied"),
        ("Pod is invalid: spec.containers[0].image: Required value", "FailedCreate"),
    ],
)
def test_executors_that_the_cluster_refuses_are_a_reason_and_the_job_recovers(refusal: str, reason: str):
    cluster = FakeCluster()
    cluster.executors.refused = refusal
    pass_by(cluster, seconds=60)
    assert cluster.status.state == "Waiting"
    assert cluster.condition("Ready") == ("False", reason)
    assert refusal in said(cluster)
    cluster.executors.refused = None
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.started == [(1, 1, 1)]


def test_a_job_is_not_ready_before_its_first_executor_is():
    cluster = FakeCluster()
    cluster.executors.come_and_go = lambda: None  # they take their time
    while not cluster.api.of(STATEFUL_SETS):
        cluster.pass_once()
        cluster.kubelets_work()
    cluster.pass_once()
    assert cluster.condition("Ready") == ("False", "NoExecutors")
    assert said(cluster) == "the driver runs without an executor. None of the 1 asked for is ready"
    del cluster.executors.come_and_go
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")


def test_an_executor_that_is_replaced_in_time_is_not_worth_a_word(running: FakeCluster):
    writes = len(running.api.writes)
    running.api.remove(EXECUTOR)
    outcome = running.pass_once()
    assert outcome is not None and outcome.recheck_after is not None
    assert running.condition("Ready") == ("True", "Running")
    assert 0 < outcome.recheck_after <= 30
    running.settle()
    assert running.condition("Ready") == ("True", "Running")
    # Their number only.
    assert {write[1] for write in running.api.writes[writes:]} == {"streamjobs"}


def test_a_running_job_that_loses_its_last_executor_for_good_is_not_ready(running: FakeCluster):
    running.executors.refused = QUOTA
    running.api.remove(EXECUTOR)
    running.pass_once()
    assert running.condition("Ready") == ("True", "Running")
    running.kubelets_work()
    running.later(31)
    running.pass_once()
    assert running.condition("Ready") == ("False", "QuotaExceeded")
    running.operator = running.new_operator()
    running.pass_once()
    assert running.condition("Ready") == ("False", "QuotaExceeded")


def test_an_executor_on_a_lost_node_is_not_replaced_and_that_is_said(running: FakeCluster):
    """A StatefulSet makes no second pod of a name as long as nobody knows that the first has ended."""
    stamp = running.moment.isoformat()
    running.api.set(EXECUTOR, {"metadata": {"deletionTimestamp": stamp}})
    running.pass_once()
    running.later(91)
    running.pass_once()
    assert running.condition("Ready") == ("False", "NodeLost")
    assert "spark-s-clicks-1-0-0" in said(running)
    running.api.remove(EXECUTOR)
    running.settle()
    assert running.condition("Ready") == ("True", "Running")


def test_without_their_stateful_set_there_are_none_and_the_way_out_is_said(running: FakeCluster):
    running.api.remove((STATEFUL_SETS.plural, NAMESPACE, "spark-s-clicks-1-0"))
    running.settle()
    running.later(31)
    running.settle()
    assert running.condition("Ready") == ("False", "NoExecutors")
    assert "spec.restartNonce" in said(running)


def test_a_version_whose_executors_are_refused_never_started():
    """As where no node has room for them."""
    cluster = FakeCluster()
    cluster.settle()
    cluster.executors.refused = QUOTA
    cluster.edit(application={"args": ["--x"]})
    pass_by(cluster, seconds=1500, steps=30)
    assert cluster.condition("RolledBack") == ("True", "NeverStarted")
    rolled_back = cluster.status.condition("RolledBack")
    assert rolled_back is not None and "exceeded quota" in rolled_back.message


def test_a_candidate_whose_executors_are_refused_has_no_room():
    cluster = FakeCluster({"application": {"file": "job.py"}, "upgrade": {"strategy": "Rehearsed"}})
    cluster.settle()
    cluster.executors.refused = QUOTA
    cluster.edit(application={"args": ["--x"]})
    cluster.pass_once()
    cluster.pass_once()
    cluster.kubelets_work()
    pod = cluster.api.of(PODS)["clicks-c1"]
    cluster.executors.ask_for(pod, application_id="clicks-c1", count=1)
    cluster.executors.come_and_go()
    cluster.pass_once()
    cluster.later(61)
    cluster.pass_once()
    assert cluster.condition("Rehearsed") == ("Unknown", "NoRoom")
