"""A deletion in spite of kills, failing writes and views of the past: it comes to the same end."""

import copy

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.sim.kube.cluster import FakeCluster
from tests.sim.kube.deletions import SPEC, nothing_is_left, passes, running
from tests.sim.kube.troubles import Troubles


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
