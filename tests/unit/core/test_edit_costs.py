"""The plan of an edit: how long it takes, and what it may cost."""

from datetime import timedelta

import pytest

from headrace.api import (
    Activation,
    HistoryEntry,
    LagStatus,
    StreamJob,
    StreamJobStatus,
)
from headrace.core.edit_plan import Verdict
from headrace.core.expectations import Figures
from tests.unit.core.edits import COLD, NOW, a_job, a_status, planned, ready, saved


def test_without_figures_nothing_is_made_up():
    gap = planned(a_job(), a_job(image="a:2")).gap
    assert gap is not None and gap.low_seconds is None and gap.high_seconds is None
    for part in ("drain", "copy", "start"):
        assert part in gap.text
    assert gap.text.startswith("not known: ")


def test_the_gap_rests_on_what_this_job_has_shown():
    job = a_job(**COLD)
    plan = planned(
        job,
        a_job(**COLD, image="a:2"),
        status=a_status(job, conditions=(ready(21),)),
        figures=Figures(batch_seconds=4.0, savepoint=saved(3)),
    )
    assert plan.gap is not None
    assert (plan.gap.low_seconds, plan.gap.high_seconds) == (21, 28)
    assert plan.gap.text == "21s to 28s"
    assert len(plan.gap.rests_on) == 3


def test_the_last_change_of_the_job_is_told():
    job = a_job()
    before = HistoryEntry(run=2, revision="x", outcome="Replaced", ended_at=NOW - timedelta(minutes=31))
    plan = planned(job, a_job(image="a:2"), status=a_status(job, conditions=(ready(10),), history=(before,)))
    assert plan.gap is not None
    assert any("took 1m10s" in reason for reason in plan.gap.rests_on)


def test_a_part_that_is_not_known_is_named():
    job = a_job(**COLD)
    plan = planned(job, a_job(**COLD, image="a:2"), status=a_status(job, conditions=(ready(21),)))
    assert plan.gap is not None
    assert plan.gap.text.startswith("21s, and what is not known: drain")
    assert plan.gap.high_seconds is None


@pytest.mark.parametrize(
    ("left", "verdict", "words"),
    [
        (7200.0, Verdict.NEW_RUN, "loses unread rows in 2 h"),
        (200.0, Verdict.REFUSED, "the last upgrade took 70 s"),
        (None, Verdict.NEW_RUN, ""),
    ],
)
def test_an_upgrade_that_may_cost_rows_is_refused_and_says_so(left, verdict, words):
    job = a_job()
    before = HistoryEntry(run=2, revision="x", outcome="Replaced", ended_at=NOW - timedelta(minutes=31))
    status = a_status(job, conditions=(ready(10),), history=(before,))
    plan = planned(job, a_job(image="a:2"), status=status, figures=Figures(stopped_seconds=left))
    assert plan.verdict is verdict
    said = [*(each.message for each in plan.refusals), *plan.notes]
    assert any(words in each for each in said) or not words
    live = planned(job, a_job(executors={"count": 4}), status=status, figures=Figures(stopped_seconds=left))
    assert live.verdict is Verdict.LIVE


def test_a_suspension_says_what_it_may_cost():
    plan = planned(a_job(), a_job(suspend=True), figures=Figures(stopped_seconds=7200.0))
    assert any("loses unread rows in 2 h" in each for each in plan.notes)


def test_a_live_edit_costs_nothing():
    gap = planned(a_job(), a_job(executors={"count": 4})).gap
    assert gap is not None and gap.high_seconds == 0


def test_the_catch_up_follows_from_the_rates():
    job = a_job(**COLD)
    figures = Figures(
        batch_seconds=4.0,
        savepoint=saved(3),
        arrival_rows_per_second=1000,
        capacity_rows_per_second=3000,
    )
    status = a_status(job, conditions=(ready(21),))
    plan = planned(job, a_job(**COLD, image="a:2"), status=status, figures=figures)
    assert plan.catch_up is not None
    assert (plan.catch_up.low_seconds, plan.catch_up.high_seconds) == (10.5, 14)
    assert "at best" in plan.catch_up.text


def test_a_job_that_cannot_catch_up_is_told_so():
    figures = Figures(arrival_rows_per_second=1000, capacity_rows_per_second=900)
    expected = planned(a_job(), a_job(image="a:2"), figures=figures).catch_up
    assert expected is not None and "does not catch up" in expected.text


def test_a_job_that_is_behind_already_is_told_so():
    job = a_job()
    status = a_status(job, lag=LagStatus(band="Behind"))
    expected = planned(job, a_job(image="a:2"), status=status).catch_up
    assert expected is not None and "not known" in expected.text and "behind already" in expected.text


def test_a_warm_handover_needs_no_start():
    job = a_job()
    figures = Figures(batch_seconds=4.0, savepoint=saved(3))
    plan = planned(job, a_job(image="a:2"), status=a_status(job, conditions=(ready(21),)), figures=figures)
    assert plan.gap is not None
    assert (plan.gap.low_seconds, plan.gap.high_seconds) == (0, 28)


def took_over(job: StreamJob, seconds: float) -> StreamJobStatus:
    """The run that is itself the candidate of an upgrade before."""
    status = a_status(job, conditions=(ready(seconds),))
    assert status.run is not None and status.run.attempt is not None
    activation = Activation(candidate=2, uid="pod", from_run=2, seeded=True)
    attempt = status.run.attempt.model_copy(update={"activation": activation})
    return status.model_copy(update={"run": status.run.model_copy(update={"attempt": attempt})})


def test_a_run_that_took_over_warm_tells_what_the_next_handover_takes():
    job, figures = a_job(), Figures(batch_seconds=4.0, savepoint=saved(1))
    gap = planned(job, a_job(image="a:2"), status=took_over(job, 3), figures=figures).gap
    assert gap is not None and (gap.low_seconds, gap.high_seconds) == (3, 8)
    assert any("took over warm, in 3s" in reason for reason in gap.rests_on)


def test_it_does_not_tell_how_long_a_driver_takes_to_start():
    job, figures = a_job(**COLD), Figures(batch_seconds=4.0, savepoint=saved(1))
    gap = planned(job, a_job(**COLD, image="a:2"), status=took_over(job, 3), figures=figures).gap
    assert gap is not None and gap.high_seconds is None
    assert "nobody has seen its driver start" in gap.text
