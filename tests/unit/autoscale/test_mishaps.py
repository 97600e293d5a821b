"""The faults of the bench: each of them does harm, or is at least seen for what it is."""

from functools import cache

import pytest
from bench.autoscale.__main__ import calmer
from bench.autoscale.contest import Entry, Spread
from bench.autoscale.mishaps import LOAD, MISHAPS, Mishap

from headrace.core.autoscale import Decision, Reason
from headrace.simulate.arrivals import Partitions
from headrace.simulate.faults import Kind
from headrace.simulate.parameters import Parameters
from headrace.simulate.run import Result

# What the autoscaler says of it; None where the harm is all that shows.
SEEN_AS = {
    Kind.OUTAGE: Reason.BATCH_STUCK,
    Kind.SINK: None,
    Kind.DENIED: Reason.QUOTA_BOUND,
    Kind.BLIND: Reason.LAG_UNKNOWN,
    Kind.STALL: Reason.BATCH_STUCK,
    Kind.HOT: Reason.SKEW_BOUND,
    Kind.SLOW_START: Reason.QUOTA_BOUND,
    Kind.LOSS: None,
}
# Those who only lose time before they are noticed, or nothing while the load goes on as it did.
HARMLESS = {Kind.BLIND, Kind.SLOW_START}


@cache
def played(mishap: Mishap) -> tuple[Result, list[Decision]]:
    scenario = mishap.scenario()
    scaler = scenario.headrace()
    return scenario.play(scaler, 1), scaler.decisions


@cache
def without_fault(parameters: Parameters) -> tuple[Result, frozenset[Reason]]:
    result, decisions = played(Mishap("none", (), parameters))
    return result, frozenset(one.reason for one in decisions)


@pytest.mark.parametrize("mishap", MISHAPS, ids=lambda one: one.name)
def test_every_fault_bites(mishap):
    (fault,) = mishap.faults
    calm, calm_reasons = without_fault(mishap.parameters)
    result, decisions = played(mishap)
    assert calm.over_objective_pct == 0
    seen = SEEN_AS[fault.kind]
    if seen is not None:
        assert seen not in calm_reasons
        assert seen in {one.reason for one in decisions}
    if fault.kind in HARMLESS:
        assert seen is not None
    else:
        assert result.over_objective_pct > 0.5
        assert result.recovery_seconds


def test_every_kind_of_fault_has_a_row():
    assert {fault.kind for mishap in MISHAPS for fault in mishap.faults} == set(Kind)


@pytest.mark.parametrize("mishap", MISHAPS, ids=lambda one: one.name)
def test_faults_strike_where_much_arrives(mishap):
    (fault,) = mishap.faults
    during = [rate for at, rate in zip(LOAD.seconds, LOAD.rates, strict=True) if fault.holds(at)]
    assert max(during) > 0.8 * max(LOAD.rates)


def test_the_fault_that_nearly_loses_rows_is_an_emergency_and_loses_none():
    (mishap,) = (one for one in MISHAPS if "rows are kept" in one.name)
    result, decisions = played(mishap)
    assert any(one.emergency for one in decisions)
    assert result.data_loss_events == 0


def test_what_was_read_before_a_change_stays_where_it_was():
    partitions = Partitions([0.5, 0.5])
    partitions.change([0.9, 0.1], 100.0)
    assert partitions.offsets(60.0) == [30, 30]
    assert partitions.offsets(200.0) == pytest.approx([140, 60])
    partitions.change([0.5, 0.5], 200.0)
    assert partitions.offsets(150.0) == pytest.approx([95, 55])
    assert partitions.shares == [0.5, 0.5]


def an_entry(name: str, *, late: float, actions: float, hours: float = 10.0) -> Entry:
    nothing = Spread(0.0, 0.0)
    return Entry(
        scaler=name,
        results=[],
        cost_over_oracle=nothing,
        executor_hours=Spread(hours, 0.0),
        over_objective_pct=Spread(late, 0.0),
        lag_p99_seconds=nothing,
        actions_per_hour=Spread(actions, 0.0),
        data_loss_events=0,
        recovery_seconds=None,
    )


@pytest.mark.parametrize(
    ("peer", "is_calmer"),
    [
        ({"late": 0.0, "actions": 1.0}, True),
        ({"late": 0.0, "actions": 1.0, "hours": 99.0}, True),
        ({"late": 0.6, "actions": 1.0}, False),
        ({"late": 0.0, "actions": 3.0}, False),
    ],
    ids=["fewer actions", "fewer, at a price", "fewer, but late", "as many"],
)
def test_a_peer_is_calmer_that_keeps_the_objective_with_fewer_actions(peer, is_calmer):
    ours, static = an_entry("headrace", late=0.0, actions=3.0), an_entry("static-peak", late=0.0, actions=0.0)
    entries = {one.scaler: one for one in (ours, static, an_entry("peer", **peer))}
    assert (calmer(entries) == ["peer"]) is is_calmer
