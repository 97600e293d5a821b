"""Code that fails again and again, with the whole operator: what stands in the status outlives it, and it
looks again by itself."""

from __future__ import annotations

from headrace.core.restarts import FAILURES_UNTIL_STALLED
from tests.sim.kube.cluster import FakeCluster

CLASS = "TABLE_OR_VIEW_NOT_FOUND"


def fail_once(cluster: FakeCluster) -> None:
    """The next attempt starts, and raises before its queries run."""
    due = cluster.status.restarts.next_at
    cluster.moment = due if due is not None else cluster.moment
    for _ in range(6):
        cluster.pass_once()
        cluster.kubelets_work()
        if cluster.live_drivers() and cluster.agents.by_uid:
            break
    cluster.end_driver(cluster.driver_place(), "ApplicationError", 65, "no table `prices`", errorClass=CLASS)
    cluster.pass_once()


def test_it_is_stalled_with_the_error_class_and_recovers_without_help():
    cluster = FakeCluster()
    for _ in range(FAILURES_UNTIL_STALLED):
        cluster.operator = cluster.new_operator()
        fail_once(cluster)
    assert cluster.condition("Stalled") == ("True", CLASS)
    assert cluster.condition("Ready") == ("False", CLASS)
    assert cluster.status.state == "Backoff"
    cluster.settle(200)
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.condition("Stalled")[0] == "False"
    assert cluster.status.restarts.without_progress == 0


def test_while_it_is_tried_somebody_looks_though_nothing_is_reconciling():
    cluster = FakeCluster()
    for _ in range(FAILURES_UNTIL_STALLED):
        fail_once(cluster)
    due = cluster.status.restarts.next_at
    outcome = cluster.pass_once()
    assert due is not None and outcome is not None
    assert outcome.recheck_after == (due - cluster.moment).total_seconds()
    cluster.moment = due
    cluster.pass_once()
    cluster.kubelets_work()
    outcome = cluster.pass_once()
    assert cluster.live_drivers() and cluster.condition("Stalled") == ("True", CLASS)
    assert outcome is not None and outcome.recheck_after is not None and outcome.recheck_after <= 10
    writes = len(cluster.api.writes)
    cluster.later(10)
    cluster.pass_once()
    assert cluster.api.writes[writes:] == []
