"""The faults of the bench: each of them does harm, or is at least seen for what it is."""

from dataclasses import replace
from functools import cache

import pytest
from bench.autoscale.mishaps import LOAD, MISHAPS, Mishap

from headrace.core.autoscale import Decision, Reason
from headrace.simulate.arrivals import Partitions
from headrace.simulate.faults import Fault, Kind
from headrace.simulate.parameters import DEFAULT, Parameters
from headrace.simulate.run import Result
from headrace.simulate.scenario import Scenario
from headrace.simulate.traces import made_up

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
    Kind.GROWTH: None,
}
# Those who only lose time before they are noticed, or nothing while the load goes on as it did.
HARMLESS = {Kind.BLIND, Kind.SLOW_START}
# What is no fault at all, if it is noticed: has tests of its own.
WELCOME = {Kind.GROWTH}


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
    if fault.kind in WELCOME:
        assert result.over_objective_pct == 0
    elif fault.kind in HARMLESS:
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


def test_partitions_that_are_added_are_noticed_and_nothing_else_is():
    (mishap,) = (one for one in MISHAPS if one.faults[0].kind is Kind.GROWTH)
    scenario, (fault,) = mishap.scenario(), mishap.faults
    scaler = scenario.headrace()
    scenario.play(scaler, 1)
    wrong = {Reason.LAG_UNKNOWN, Reason.SOURCE_RESET, Reason.BATCH_STUCK}
    assert not wrong & {one.reason for one in scaler.decisions if one.at >= fault.at}
    # Their rows have arrived, and no others: the rate goes on as it was.
    rates = {one.at: one.numbers.arrival_rows_per_second or 0.0 for one in scaler.decisions}
    around = [rate for at, rate in rates.items() if abs(at - fault.at) <= 120]
    assert max(around) < 1.2 * min(around)
    assert scaler.memory.queries["simulated"].partitions == mishap.parameters.partitions + 48


def test_a_job_that_has_too_few_partitions_gets_executors_when_there_are_more():
    few = replace(DEFAULT, partitions=6, read_part=0.9)
    fault = Fault(kind=Kind.GROWTH, at=3300, seconds=600, amount=42)
    load = made_up("step", 1, hours=1.5)
    # What a row costs where there are enough: with six, the fit would make rows cheap.
    cost = Scenario(trace=load).core_seconds_per_row
    scenario = Scenario(trace=load, parameters=few, faults=(fault,), row_cost=cost)
    scaler = scenario.headrace()
    result = scenario.play(scaler, 1)
    before = [one for one in scaler.decisions if one.at < fault.at]
    soon = [one for one in scaler.decisions if fault.at <= one.at <= fault.at + 60]
    assert before[-1].reason is Reason.PARTITION_BOUND
    # At once: what the old ones got while there were only six does not make them hot.
    assert soon[-1].target > 2 * before[-1].target
    assert result.points[-1].lag_seconds < few.objective_seconds


def test_what_was_read_before_a_change_stays_where_it_was():
    partitions = Partitions([0.5, 0.5])
    partitions.change([0.9, 0.1], 100.0)
    assert partitions.offsets(60.0) == [30, 30]
    assert partitions.offsets(200.0) == pytest.approx([140, 60])
    partitions.change([0.5, 0.5], 200.0)
    assert partitions.offsets(150.0) == pytest.approx([95, 55])
    assert partitions.shares == [0.5, 0.5]
