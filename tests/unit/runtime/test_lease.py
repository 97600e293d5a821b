"""The Lease: one leads, the other takes over when it must, and never before."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from headrace.runtime.lease import LeaderLease
from tests.sim.kube.fake_api import FakeApi

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Replicas:
    """Two operators and one API server. Their calendars are a day apart, which must not matter."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.api = FakeApi(self.calendar(0))
        self.one, self.two = (
            LeaderLease(
                api=self.api,
                namespace="headrace",
                name="headrace",
                identity=name,
                now=self.calendar(days),
                clock=lambda: self.seconds,
            )
            for days, name in enumerate(("one", "two"))
        )

    def calendar(self, days: int) -> Callable[[], datetime]:
        return lambda: BEGIN + timedelta(days=days, seconds=self.seconds)


def renew(lease: LeaderLease) -> bool:
    return asyncio.run(lease.renew())


def test_the_first_leads_and_the_second_waits():
    replicas = Replicas()
    assert renew(replicas.one)
    assert not renew(replicas.two)


def test_a_holder_that_renews_is_never_replaced():
    replicas = Replicas()
    for _ in range(30):
        assert renew(replicas.one)
        assert not renew(replicas.two)
        replicas.seconds += 5


def test_a_holder_that_is_gone_is_replaced_after_the_lease_ended():
    replicas = Replicas()
    renew(replicas.one)
    assert not renew(replicas.two)
    replicas.seconds += 19
    assert not renew(replicas.two)
    assert not replicas.one.leads()  # it had stopped before
    replicas.seconds += 2
    assert renew(replicas.two)
    assert not renew(replicas.one)
    assert replicas.api.objects[("leases", "headrace", "headrace")]["spec"]["leaseTransitions"] == 1


def test_a_released_lease_is_taken_at_once():
    replicas = Replicas()
    renew(replicas.one)
    assert not renew(replicas.two)
    asyncio.run(replicas.one.release())
    assert not replicas.one.leads()
    assert renew(replicas.two)


def test_how_long_the_api_server_has_not_answered_is_known():
    replicas = Replicas()
    replicas.api.faults = ["refused"]
    renew(replicas.one)
    assert replicas.one.silence_seconds() == float("inf")
    renew(replicas.one)
    replicas.seconds += 7
    assert replicas.one.silence_seconds() == 7


def test_a_failed_renewal_changes_nothing_until_the_lease_ends():
    replicas = Replicas()
    renew(replicas.one)
    replicas.seconds += 10
    replicas.api.faults = ["refused"]
    assert renew(replicas.one)
    replicas.seconds += 8
    replicas.api.faults = ["refused"]
    assert not renew(replicas.one)


def test_a_lost_answer_is_found_out_the_next_time():
    replicas = Replicas()
    replicas.api.faults = ["lost"]
    assert not renew(replicas.one)
    assert renew(replicas.one)
