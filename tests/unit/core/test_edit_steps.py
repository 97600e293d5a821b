"""The plan of an edit: its steps, and what the rehearsal finds."""

import pytest

from headrace.api import (
    HistoryEntry,
    Operation,
    StableRun,
)
from tests.unit.core.edits import a_job, a_status, planned, steps


@pytest.mark.parametrize("state", ["Backoff", "Failed", "Suspended", "Completed", "Starting"])
def test_what_does_not_run_is_not_rehearsed(state: str):
    job = a_job()
    plan = planned(job, a_job(image="a:2"), status=a_status(job, state=state))
    assert "rehearse" not in steps(plan)
    assert not plan.rehearsal_finds and "no version runs" in plan.rehearsal_misses[0]


def test_the_steps_of_a_rehearsed_upgrade_in_order():
    plan = planned(a_job(), a_job(image="a:2"))
    assert steps(plan) == ["rehearse", "savepoint", "drain", "activate", "verify", "promote"]
    assert "the version of run 3" in plan.steps[-1].message
    assert "Run 3 goes on meanwhile" in plan.steps[0].message
    assert "it waits, warm, for up to 30m" in plan.steps[0].message
    assert "the driver that rehearsed becomes run 4" in plan.steps[3].message


def test_without_a_standby_the_handover_is_cold():
    cold = {"upgrade": {"standby": {"enabled": False}}}
    plan = planned(a_job(**cold), a_job(**cold, image="a:2"))
    assert steps(plan) == ["rehearse", "savepoint", "drain", "copy", "start", "verify", "promote"]
    assert "waits" not in plan.steps[0].message


def test_the_steps_of_other_strategies():
    cold = {"strategy": "Cold"}
    assert "rehearse" not in steps(planned(a_job(upgrade=cold), a_job(upgrade=cold, image="a:2")))
    quiet = {"upgrade": cold, "savepoints": {"onUpgrade": False}}
    assert steps(planned(a_job(**quiet), a_job(**quiet, image="a:2")))[0] == "drain"
    manual = {"upgrade": {"rollback": "Manual"}}
    plan = planned(a_job(**manual), a_job(**manual, image="a:2"))
    assert "upgrade.rollback is Manual" in plan.steps[-1].message


def test_the_last_stable_run_is_where_it_returns_to():
    job = a_job()
    status = a_status(job, last_stable=StableRun(run=2, revision="x"))
    assert "the version of run 2" in planned(job, a_job(image="a:2"), status=status).steps[-1].message


def test_without_a_good_version_before_there_is_no_way_back():
    job = a_job()
    plan = planned(job, a_job(image="a:2"), status=a_status(job, last_stable=None))
    assert "no version before it was good" in plan.steps[-1].message


def test_without_state_only_on_purpose_and_loudly():
    stateless = {"upgrade": {"strategy": "Stateless"}}
    plan = planned(a_job(**stateless), a_job(**stateless, image="a:2"))
    assert plan.without_state and "copy" not in steps(plan)
    assert "WITHOUT the state of run 3" in next(step for step in plan.steps if step.name == "start").message
    assert not planned(a_job(), a_job(image="a:2")).without_state


def test_a_version_that_was_refused_has_not_used_its_number_up():
    job = a_job()
    tried = HistoryEntry(run=4, revision="x", outcome="Refused")
    plan = planned(job, a_job(image="a:2"), status=a_status(job, history=(tried,)))
    assert "becomes run 4" in plan.steps[-3].message
    assert "run 5 follows" in plan.steps[-1].message


def test_a_change_under_way_is_taken_into_account():
    job = a_job()
    under_way = Operation(kind="Upgrade", step="Draining", from_run=3, to_run=4)
    plan = planned(job, a_job(image="a:2"), status=a_status(job, operation=under_way))
    assert plan.steps[0].name == "wait"
    assert "takes its place" in plan.steps[0].message


def test_paused():
    assert "paused" in planned(a_job(), a_job(image="a:2"), paused=True).steps[0].message


def test_what_the_rehearsal_finds_and_misses():
    plan = planned(a_job(), a_job(image="a:2"))
    assert any("state that does not fit" in line for line in plan.rehearsal_finds)
    assert any("foreachBatch" in line for line in plan.rehearsal_misses)
    opted = {"upgrade": {"rehearsal": {"callForeachBatch": True}}}
    calling = planned(a_job(**opted), a_job(**opted, image="a:2"))
    assert any("foreachBatch" in line for line in calling.rehearsal_finds)
    assert not any("foreachBatch" in line for line in calling.rehearsal_misses)
    cold = {"upgrade": {"strategy": "Cold"}}
    none = planned(a_job(**cold), a_job(**cold, image="a:2"))
    assert not none.rehearsal_finds and "nothing is rehearsed" in none.rehearsal_misses[0]
