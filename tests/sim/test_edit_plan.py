"""The plan of an edit against the planner itself: what is foretold is what happens."""

import pytest

from headrace.api import StreamJob
from headrace.api.metadata import ObjectMeta
from headrace.core.edit_plan import Edit, Running, Verdict, plan_edit
from headrace.core.model import Code
from tests.sim.test_lifecycle import a_running_world, condition

ELSEWHERE = {"checkpoint": {"s3": {"endpoint": "https://s3.example.com"}}}


def foretold(world, **spec):
    """The plan of an edit of the world's job, made as a command would make it."""
    pinned = world.observe().pinned[world.status.run.number]
    running = Running(
        spec=pinned.spec,
        applied=world.job.spec,
        status=world.status,
        code=pinned.code,
        paused=world.job.paused,
    )
    whole = {**world.job.spec.model_dump(mode="json", exclude_unset=True), **spec}
    job = StreamJob(metadata=ObjectMeta(name=world.job.name), spec=type(world.job.spec).parse(whole))
    return plan_edit(Edit(job=job, now=world.now, running=running, code=world.code))


def test_a_live_edit_is_told_once():
    world = a_running_world()
    world.said.clear()
    world.edit(executors={"count": 4})
    world.settle()
    assert world.said == ["AppliedLive"]
    assert world.sentences[-1] == "spec.executors.count 1 → 4: applied without touching the driver"
    world.later(600)
    world.settle()
    assert world.said == ["AppliedLive"]


def test_the_status_says_what_changed_and_what_is_done():
    world = a_running_world()
    world.edit(image="acme/clicks:2")
    world.pass_once()
    assert world.status.operation.reason == 'spec.image is now "acme/clicks:2": a new run from its state'


def test_a_refused_edit_is_not_told_as_taken():
    world = a_running_world()
    world.edit(**ELSEWHERE, executors={"count": 4})
    world.settle()
    assert "AppliedLive" not in world.said


@pytest.mark.parametrize(
    ("edit", "verdict"),
    [
        ({"executors": {"count": 4}}, Verdict.LIVE),
        ({"image": "acme/clicks:2"}, Verdict.NEW_RUN),
        ({"state": {"partitions": 64}}, Verdict.NEW_RUN),
        (ELSEWHERE, Verdict.REFUSED),
        ({**ELSEWHERE, "upgrade": {"stateCompatible": True}}, Verdict.NEW_RUN),
    ],
)
def test_the_verdict_is_what_happens(edit, verdict):
    world = a_running_world()
    plan = foretold(world, **edit)
    assert plan.verdict is verdict
    world.edit(**edit)
    world.settle()
    assert (world.status.run.number > 1) == (verdict is Verdict.NEW_RUN)
    stalled = condition(world, "Stalled")
    assert (stalled.status == "True") == (verdict is Verdict.REFUSED)
    if verdict is Verdict.REFUSED:
        assert [one.message for one in plan.refusals] == [stalled.message]


def test_a_version_that_was_rolled_back_is_refused_by_the_plan_as_well():
    world = a_running_world()
    world.code = Code("crash")
    assert foretold(world).verdict is Verdict.NEW_RUN
    world.settle()
    assert world.status.run.number == 3 and world.status.rejected is not None
    again = foretold(world)
    assert again.verdict is Verdict.REFUSED
    assert [one.reason for one in again.refusals] == ["RolledBack"]
    world.code = Code("code-3")
    fixed = foretold(world)
    assert fixed.verdict is Verdict.NEW_RUN
    assert fixed.steps[-1].message.endswith("from where run 4 was")


def test_new_code_is_foretold():
    world = a_running_world()
    world.code = Code("code-2")
    assert foretold(world).verdict is Verdict.NEW_RUN


# ---- in the status -------------------------------------------------------------------------------------


def test_the_status_tells_the_plan_of_an_edit_once_and_in_the_words_of_the_command():
    world = a_running_world()
    assert world.status.plan is None, "a new job is no edit"
    told = foretold(world, image="acme/clicks:2")
    world.edit(image="acme/clicks:2")
    world.pass_once()
    plan = world.status.plan
    assert (plan.verdict, plan.run, plan.change_class) == ("new run", 2, "restart")
    assert (plan.changes, plan.sentence) == (("spec.image",), told.sentence)
    # The world has no savepoints.
    assert list(plan.steps) == [step.name for step in told.steps if step.name != "savepoint"]
    assert "at most" in plan.gap
    assert plan.catch_up == "not known: the rates of this job could not be read."
    assert plan.misses == "; ".join(told.rehearsal_misses)
    assert plan.sinks
    world.settle()
    assert world.status.last_stable.run == 2
    assert world.status.plan == plan


def test_what_is_known_of_the_job_is_in_the_plan():
    world = a_running_world()
    world.figures = {"batch_seconds": 4.0, "arrival": 100.0, "capacity": 300.0, "sink": "KafkaTable[topic]"}
    world.edit(image="acme/clicks:2", upgrade={"strategy": "Rehearsed"})
    world.pass_once()
    plan = world.status.plan
    assert plan.steps[0] == "rehearse"
    assert "a sum that becomes a max" in plan.finds
    assert len(plan.sinks) == 1
    assert plan.sinks[0].startswith("Kafka: each row once; of a batch that is cut at least once")
    assert plan.catch_up.startswith("at least 0.5 times as long as the gap")
    assert len(plan.model_dump_json()) < 3000, "a status stays small"


def test_a_live_edit_and_a_refused_one_are_in_the_status_too():
    world = a_running_world()
    world.edit(executors={"count": 4})
    world.settle()
    plan = world.status.plan
    assert (plan.verdict, plan.change_class, plan.steps) == ("live", "live", ())
    assert plan.gap == "none: the driver is not touched"
    world.edit(**ELSEWHERE)
    world.settle()
    plan = world.status.plan
    assert (plan.verdict, plan.change_class) == ("refused", "state")
    assert "StateChange" in plan.sentence
    assert "stateCompatible: true" in plan.sentence, "with the way out"


def test_an_edit_that_is_taken_back_leaves_no_plan_and_other_code_makes_one():
    world = a_running_world()
    world.edit(executors={"count": 4})
    world.settle()
    world.edit(executors={"count": 1})
    world.settle()
    assert world.status.plan is None
    world.code = Code("code-2")
    world.pass_once()
    assert world.status.plan.sentence == "the code changed: a new run from its state"
    assert (world.status.plan.change_class, world.status.plan.changes) == ("restart", ())
    world.settle()
    assert world.status.run.number == world.status.plan.run
