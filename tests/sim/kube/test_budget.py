"""Evictions of a driver: drained and followed by another, or blocked by a PodDisruptionBudget."""

import pytest

from headrace.kube.resources import DISRUPTION_BUDGETS, PODS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster

BLOCK = {"application": {"file": "job.py"}, "driver": {"evictions": "Block"}}


def budgets(cluster: FakeCluster) -> list[str]:
    return sorted(cluster.api.of(DISRUPTION_BUDGETS))


def running(spec: dict | None = None) -> FakeCluster:
    cluster = FakeCluster(spec)
    cluster.settle()
    assert cluster.status.state == "Running"
    return cluster


def test_an_evicted_driver_drains_and_the_next_attempt_follows():
    cluster = running()
    assert budgets(cluster) == []
    cluster.api.set(cluster.driver_place(), {"metadata": {"deletionTimestamp": "2026-01-01T00:01:00Z"}})
    cluster.settle()
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]
    assert cluster.status.last_termination.reason == "Drained"
    assert cluster.status.restarts.total == 0


def test_a_budget_covers_every_driver_of_the_job_and_goes_with_the_option():
    cluster = running(BLOCK)
    assert budgets(cluster) == ["clicks-driver"]
    spec = cluster.api.of(DISRUPTION_BUDGETS)["clicks-driver"]["spec"]
    wanted = spec["selector"]["matchLabels"].items()
    assert wanted <= cluster.api.objects[cluster.driver_place()]["metadata"]["labels"].items()
    cluster.edit(driver={"evictions": "Allow"})
    cluster.settle()
    assert budgets(cluster) == []
    assert cluster.started == [(1, 1, 1)]  # live: the driver was not touched


def test_a_budget_that_was_removed_or_edited_by_hand_is_put_back():
    cluster = running(BLOCK)
    place = (DISRUPTION_BUDGETS.plural, NAMESPACE, "clicks-driver")
    cluster.api.remove(place)
    cluster.settle()
    cluster.api.set(place, {"spec": {"minAvailable": 0}})
    cluster.settle()
    assert cluster.api.objects[place]["spec"]["minAvailable"] == 1


def test_a_namesake_of_somebody_else_is_left_alone():
    cluster = FakeCluster(BLOCK)
    foreign = {"metadata": {"name": "clicks-driver", "namespace": NAMESPACE}, "spec": {"minAvailable": 0}}
    cluster.api.put_new(DISRUPTION_BUDGETS, foreign)
    cluster.settle()
    cluster.edit(driver={"evictions": "Allow"})
    cluster.settle()
    assert cluster.api.of(DISRUPTION_BUDGETS)["clicks-driver"]["spec"] == {"minAvailable": 0}


def test_a_new_operator_finds_a_budget_that_is_no_longer_wanted():
    cluster = running(BLOCK)
    cluster.edit(driver={"evictions": "Allow"})
    cluster.operator = cluster.new_operator()
    cluster.settle()
    assert budgets(cluster) == []


def test_a_deleted_job_takes_its_budget_along():
    cluster = running(BLOCK)
    cluster.api.remove(cluster.job_place)
    assert budgets(cluster) == []
    assert cluster.api.of(PODS) == {}


@pytest.mark.parametrize("fault", ["refused", "lost", "conflict"])
@pytest.mark.parametrize("write", range(10))
def test_any_single_write_may_fail(fault: str, write: int):
    cluster = FakeCluster(BLOCK)
    cluster.api.faults = [*([None] * write), fault]
    cluster.settle()
    assert budgets(cluster) == ["clicks-driver"]
    assert cluster.status.state == "Running"


def test_the_budget_of_a_job_that_is_deleted_in_the_foreground_is_not_made_anew():
    """The garbage collector takes it, and would wait for the next one as long as we make another."""
    cluster = running({**BLOCK, "deletionPolicy": "Delete"})
    cluster.agent().deaf = True  # so that the driver takes its time
    cluster.delete_job(foreground=True)
    for _ in range(3):
        cluster.collect_garbage()
        cluster.pass_once()
    assert cluster.exists
    assert budgets(cluster) == []
