"""The plan of an edit: its verdict, its steps, what it costs, and what it says about the sinks."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.api import (
    Activation,
    Attempt,
    Change,
    Condition,
    HistoryEntry,
    LagStatus,
    Operation,
    Run,
    StableRun,
    StreamJob,
    StreamJobStatus,
    StreamSavepointStatus,
)
from headrace.core.changes import classify
from headrace.core.edit_plan import Edit, EditPlan, Running, Verdict, plan_edit
from headrace.core.edit_steps import sentence
from headrace.core.expectations import Figures
from headrace.core.guarantees import GUARANTEES, SinkKind, guarantees_for, kinds_of
from headrace.core.model import Code, CodeProblem, Problem
from headrace.core.revision import revision_of
from tests.sim.kube.fields import EDITS

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
CODE = Code("c0de")
ELSEWHERE = {"checkpoint": {"s3": {"endpoint": "https://s3.example.com"}}}


def a_job(**spec: Any) -> StreamJob:
    whole = {"application": {"file": "job.py"}, **spec}
    return StreamJob.parse({"metadata": {"name": "clicks"}, "spec": whole})


def a_status(job: StreamJob, **more: Any) -> StreamJobStatus:
    attempt = Attempt(number=1, epoch=3, state="Started", started_at=NOW - timedelta(minutes=30))
    run = Run(number=3, revision=revision_of(job.spec, CODE.digest), attempt=attempt)
    known = {"state": "Running", "run": run, "observed_generation": 1}
    return StreamJobStatus(**{**known, "last_stable": StableRun(run=3, revision=run.revision), **more})


def planned(old: StreamJob, new: StreamJob, *, code=CODE, **more: Any) -> EditPlan:
    status = more.pop("status", None) or a_status(old)
    applied = more.pop("applied", old).spec
    running = Running(
        spec=old.spec,
        applied=applied,
        status=status,
        code=CODE.digest,
        paused=more.pop("paused", False),
        deleting=more.pop("deleting", False),
    )
    return plan_edit(Edit(job=new, now=NOW, running=running, code=code, **more))


def steps(plan: EditPlan) -> list[str]:
    return [step.name for step in plan.steps]


# ---- the verdict


@pytest.mark.parametrize("path", EDITS)
def test_every_field_gets_the_verdict_of_its_class(path: str):
    edit = EDITS[path]
    old, new = a_job(**edit.before()), a_job(**edit.after(path))
    plan = planned(old, new)
    change = classify(old.spec, new.spec)
    if path == "checkpoint.location":
        assert plan.verdict is Verdict.REFUSED
    elif change.change_class is Change.LIVE:
        assert plan.verdict is Verdict.LIVE
        assert plan.exit_code == 0
    elif change.change_class is Change.RESTART or new.spec.upgrade.state_compatible:
        assert plan.verdict is Verdict.NEW_RUN
        assert plan.exit_code == 10
    else:
        assert plan.verdict is Verdict.REFUSED
        assert plan.exit_code == 20
        assert "spec.upgrade.stateCompatible" in plan.refusals[0].message
    assert {each.path for each in plan.changed} >= {
        each.path for each in change.changed if each.change is change.change_class
    }


def test_nothing_changes():
    plan = planned(a_job(), a_job())
    assert (plan.verdict, plan.exit_code, plan.sentence) == (Verdict.NOTHING, 0, "nothing changes")
    assert not plan.steps and plan.gap is None


def test_new_code_alone_is_a_new_run():
    plan = planned(a_job(), a_job(), code=Code("other"))
    assert plan.verdict is Verdict.NEW_RUN
    assert plan.code_changed
    assert plan.sentence == "the code changed: a new run from its state"


def test_code_that_cannot_run_is_refused_with_its_line():
    plan = planned(a_job(), a_job(), code=CodeProblem("job.py:3: invalid syntax"))
    assert plan.verdict is Verdict.REFUSED
    assert plan.refusals == (Problem("CodeProblem", "job.py:3: invalid syntax"),)


def test_code_that_nobody_could_read_is_said():
    plan = planned(a_job(), a_job(), code=None)
    assert plan.verdict is Verdict.NOTHING
    assert plan.code_changed is None
    assert any("code was not compared" in note for note in plan.notes)


def test_what_runs_is_compared_not_what_was_applied_last():
    """An edit that was refused stands in the object; putting it back changes nothing of what runs."""
    runs, refused = a_job(), a_job(**ELSEWHERE)
    back = planned(runs, runs, applied=refused)
    assert back.verdict is Verdict.NOTHING
    again = planned(runs, refused, applied=refused)
    assert again.verdict is Verdict.REFUSED
    assert any("is not what runs (spec.checkpoint.s3.endpoint)" in note for note in again.notes)


def test_live_fields_are_compared_with_what_was_applied_last():
    """The pin keeps the number of executors of the day the run began."""
    pinned, scaled = a_job(), a_job(executors={"count": 5})
    assert planned(pinned, scaled, applied=scaled).verdict is Verdict.NOTHING
    assert planned(pinned, pinned, applied=scaled).verdict is Verdict.LIVE


def test_the_store_cannot_be_changed_and_the_message_is_ours():
    old = a_job(checkpoint={"location": "s3://acme/b"})
    server = Problem("Invalid", "checkpoint.location cannot change once the job has a run: take …")
    plan = planned(old, a_job(checkpoint={"location": "s3://acme/d"}), refusals=(server,))
    assert [one.reason for one in plan.refusals] == ["Immutable"]
    assert "put it back to s3://acme/b" in plan.refusals[0].message


def test_what_the_server_refuses_is_refused():
    quota = Problem("AdmissionDenied", 'admission webhook "policy" denied the request: no images by tag')
    plan = planned(a_job(), a_job(image="a:2"), refusals=(quota,))
    assert plan.refusals == (quota,)
    assert plan.exit_code == 20


def test_a_job_that_is_being_deleted_takes_no_edit():
    assert planned(a_job(), a_job(image="a:2"), deleting=True).refusals[0].reason == "Deleting"


def test_a_suspended_job_takes_the_edit_at_its_resume_and_is_judged_now():
    old = a_job(suspend=True)
    suspended = a_status(old, state="Suspended")
    plan = planned(old, a_job(suspend=True, image="a:2"), status=suspended)
    assert plan.verdict is Verdict.NEW_RUN
    assert steps(plan)[0] == "wait"
    assert "drain" not in steps(plan)
    refused = planned(old, a_job(suspend=True, **ELSEWHERE), status=suspended)
    assert refused.verdict is Verdict.REFUSED


def test_a_new_job():
    plan = plan_edit(Edit(job=a_job(), now=NOW, code=CODE))
    assert (plan.verdict, plan.exit_code) == (Verdict.NEW_JOB, 10)
    assert "waits for startFrom" in plan.steps[0].message
    bad = plan_edit(Edit(job=a_job(), now=NOW, code=CodeProblem("no file")))
    assert bad.verdict is Verdict.REFUSED


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ({"savepoint": "nightly"}, "from savepoint nightly"),
        ({"path": "s3://acme/b/c"}, "from what lies at s3://acme/b/c"),
        ({"timestamp": "2026-01-31T08:00:00Z"}, "without state; sources are read from 2026-01-31T08:00:00Z"),
        ({"offsets": {"q": "{}"}}, "without state, at the given offsets of q"),
        ({"latest": True}, "from the newest state of this name"),
        ({"none": True}, "from nothing, whatever lies in the store"),
    ],
)
def test_where_a_new_job_starts(start: dict[str, Any], said: str):
    assert said in plan_edit(Edit(job=a_job(startFrom=start), now=NOW)).steps[0].message


def test_start_from_has_no_effect_on_a_job_with_a_run():
    plan = planned(a_job(), a_job(startFrom={"none": True}))
    assert plan.verdict is Verdict.LIVE
    assert any("no effect" in note for note in plan.notes)


# ---- the steps


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


# ---- what it costs


def ready(seconds_after_start: float) -> Condition:
    began = NOW - timedelta(minutes=30)
    return Condition(
        type="Ready",
        status="True",
        reason="Running",
        last_transition_time=began + timedelta(seconds=seconds_after_start),
    )


def saved(seconds: float) -> StreamSavepointStatus:
    return StreamSavepointStatus(started_at=NOW, completed_at=NOW + timedelta(seconds=seconds))


def test_without_figures_nothing_is_made_up():
    gap = planned(a_job(), a_job(image="a:2")).gap
    assert gap is not None and gap.low_seconds is None and gap.high_seconds is None
    for part in ("drain", "copy", "start"):
        assert part in gap.text
    assert gap.text.startswith("not known: ")


COLD = {"upgrade": {"strategy": "Cold"}}


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


# ---- the sinks


@pytest.mark.parametrize(
    ("described", "kinds"),
    [
        ("FileSink[s3a://acme/out]", {SinkKind.FILES}),
        ("DeltaSink[/out]", {SinkKind.DELTA}),
        ("org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable@1", {SinkKind.KAFKA}),
        ("ForeachBatchSink", {SinkKind.LEDGER, SinkKind.FOREACH_BATCH}),
        ("org.apache.spark.sql.execution.streaming.ConsoleTable$@1", {SinkKind.CONSOLE}),
        ("MemorySink", {SinkKind.CONSOLE}),
        ("org.acme.MyTable", set()),
    ],
)
def test_sinks_are_known_by_spark_s_words(described: str, kinds: set[SinkKind]):
    assert set(kinds_of(described)) == kinds


def test_only_the_job_s_sinks_where_all_are_known():
    assert [row.sink for row in guarantees_for(("FileSink[/a]", "KafkaTable"))] == [
        SinkKind.FILES,
        SinkKind.KAFKA,
    ]
    assert guarantees_for(("FileSink[/a]", "org.acme.MyTable")) == GUARANTEES
    assert guarantees_for(()) == GUARANTEES


def test_every_kind_of_sink_has_a_row():
    assert {row.sink for row in GUARANTEES} == set(SinkKind)
    plan = planned(a_job(), a_job(image="a:2"))
    assert plan.guarantees == GUARANTEES and not plan.sinks_known


# ---- the rehearsal


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


# ---- one line


def test_the_sentence_for_the_status():
    old, new = a_job(), a_job(image="a:2")
    assert sentence(classify(old.spec, new.spec), new.spec) == (
        'spec.image is now "a:2": a new run from its state'
    )
    live = a_job(executors={"count": 4})
    assert sentence(classify(old.spec, live.spec), live.spec) == (
        "spec.executors.count 1 → 4: applied without touching the driver"
    )


def test_secrets_never_show():
    old = a_job(sparkConf={"spark.my.password": "hunter2"})
    plan = planned(old, a_job(sparkConf={"spark.my.password": "hunter3"}))
    assert "hunter" not in repr(plan) and "hunter" not in plan.sentence
