"""A job that runs, for the tests that begin with one."""

import pytest

from tests.sim.kube.cluster import FakeCluster


@pytest.fixture
def running() -> FakeCluster:
    cluster = FakeCluster()
    cluster.settle()
    assert cluster.status.state == "Running"
    return cluster
