"""The plan of an edit: its verdict, and the sentence for it."""

from typing import Any

import pytest

from headrace.api import (
    Change,
)
from headrace.core.changes import classify
from headrace.core.edit_plan import Edit, Verdict, plan_edit
from headrace.core.edit_steps import sentence
from headrace.core.model import Code, CodeProblem, Problem
from tests.sim.kube.fields import EDITS
from tests.unit.core.edits import CODE, NOW, a_job, a_status, planned, steps

ELSEWHERE = {"checkpoint": {"s3": {"endpoint": "https://s3.example.com"}}}


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
