"""A leader that was paused in the middle of a pass wakes when another has long gone on, and writes once more.

Before which write it was paused is tried for all of them; so is whether its clock tells it that its Lease is
over. The write that it was about to make is made in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.kube.resources import STREAM_SAVEPOINTS
from tests.sim.kube.cluster import FakeCluster
from tests.sim.kube.rivals import Rivals
from tests.sim.kube.test_faults import SPEC

Act = Callable[[FakeCluster], Any]


def crashes(cluster: FakeCluster) -> None:
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.pass_once()
    cluster.later(60)


def drains(cluster: FakeCluster) -> None:
    """Of an upgrade that is about to copy the state."""
    cluster.edit(application={"args": ["--x"]})
    for _ in range(3):
        cluster.pass_once()
        cluster.kubelets_work()


def rehearses(cluster: FakeCluster) -> None:
    """Of an upgrade whose candidate is about to take over."""
    cluster.edit(upgrade={"strategy": "Rehearsed"}, application={"args": ["--x"]})
    for _ in range(60):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.later(1)
        if not cluster.writers():
            return  # the old driver has ended as it was told to
    raise AssertionError("no handover")


def nothing(cluster: FakeCluster) -> None:
    del cluster


# What a leader is about to act on when it is paused, and what happens while it sleeps.
BEFORE: dict[str, Act] = {"crash": crashes, "upgrade": drains, "handover": rehearses, "edit": nothing}
MEANWHILE: dict[str, dict[str, Any]] = {
    "edit": {"application": {"args": ["--later"]}},
    "suspend": {"suspend": True},
    "nothing": {},
}


def one_writer(cluster: FakeCluster, ticks: int) -> None:
    for _ in range(ticks):
        cluster.kubelets_work()  # before anybody else has seen what was written
        assert len(cluster.writers()) <= 1, "two writers"
        cluster.pass_once()
        cluster.later(5)


def is_exact(cluster: FakeCluster) -> None:
    assert cluster.stream.sink.lost() == []
    assert cluster.stream.sink.repeated() == 0


@pytest.mark.parametrize("knowing", [True, False], ids=["knowing", "believing"])
@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("before", BEFORE)
def test_a_leader_that_slept_before_any_write_does_no_harm(before: str, meanwhile: str, knowing: bool):
    for writes in range(12):
        cluster = FakeCluster(SPEC)
        if before != "edit":
            cluster.settle()
        BEFORE[before](cluster)
        rivals = Rivals(cluster)
        if not rivals.leader_falls_asleep(writes):
            return
        cluster.edit(**MEANWHILE[meanwhile])
        cluster.settle(200)
        rivals.sleepers_wake(knowing=knowing)
        one_writer(cluster, 4)
        cluster.settle(200)
        assert len(cluster.live_drivers()) == (meanwhile != "suspend"), f"slept before write {writes}"
        is_exact(cluster)
    raise AssertionError("the pass had more writes than that")


def test_what_a_sleeper_wrote_is_no_savepoint_twice():
    cluster = FakeCluster({**SPEC, "savepoints": {"schedule": "0 * * * *", "keep": 9}})
    cluster.settle()
    cluster.later(3600)
    rivals = Rivals(cluster)
    assert rivals.leader_falls_asleep(0)
    cluster.settle()
    taken = sorted(cluster.api.of(STREAM_SAVEPOINTS))
    rivals.sleepers_wake(knowing=False)
    cluster.settle()
    assert sorted(cluster.api.of(STREAM_SAVEPOINTS)) == taken
    assert len(taken) == 1
