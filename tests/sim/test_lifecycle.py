"""The life of a job, told as stories against the planner."""

import pytest

from headrace.core.model import AttemptPhase, Code, CodeProblem, EarlierLineage, Ending
from tests.sim.world import OperatorKilled, a_world


def condition(world, kind):
    return next(c for c in world.status.conditions if c.type == kind)


def started(world):
    return [(d.run, d.number, d.epoch) for d in world.drivers]


def a_running_world(spec=None):
    world = a_world(spec)
    world.settle()
    assert world.status.state == "Running"
    return world


def test_a_new_job_is_pinned_started_and_ready():
    world = a_running_world()
    assert started(world) == [(1, 1, 1)]
    assert condition(world, "Ready").status == "True"
    assert condition(world, "Reconciling").status == "False"
    assert world.status.observed_generation == 1


def test_a_settled_job_is_left_alone():
    world = a_running_world()
    before = world.writes
    for _ in range(20):
        world.later(60)
        assert not world.pass_once()
    assert world.writes == before


def test_an_edit_makes_a_new_run_from_the_state_of_the_old_one():
    world = a_running_world()
    world.edit(application={"file": "job.py", "args": ["--x"]})
    world.settle()
    assert started(world) == [(1, 1, 1), (2, 1, 2)]
    assert world.seeds == {2: (1, None)}
    assert world.drivers[0].ended.ending is Ending.DRAINED
    assert world.status.state == "Running"
    assert world.status.operation is None


def test_new_code_is_an_edit_too():
    world = a_running_world()
    world.code = Code("code-2")
    world.settle()
    assert started(world)[-1] == (2, 1, 2)


def test_a_live_change_does_not_touch_the_driver():
    world = a_running_world()
    world.edit(executors={"count": 7})
    world.settle()
    assert started(world) == [(1, 1, 1)]
    assert world.status.observed_generation == 2


def test_a_state_change_is_refused_and_the_job_goes_on():
    world = a_running_world()
    world.edit(checkpoint={"s3": {"endpoint": "https://s3.example.com"}})
    world.settle()
    assert started(world) == [(1, 1, 1)]
    assert condition(world, "Ready").status == "True"
    stalled = condition(world, "Stalled")
    assert (stalled.status, stalled.reason) == ("True", "StateChange")
    assert "spec.checkpoint.s3.endpoint" in stalled.message
    world.edit(checkpoint={})
    world.settle()
    assert condition(world, "Stalled").status == "False"


def test_code_that_cannot_run_is_refused_before_anything_is_touched():
    world = a_running_world()
    world.code = CodeProblem("job.py:3: invalid syntax")
    world.settle()
    assert started(world) == [(1, 1, 1)]
    assert condition(world, "Stalled").message == "job.py:3: invalid syntax"
    assert world.said.count("CodeProblem") == 1
    world.code = Code("code-2")
    world.settle()
    assert started(world)[-1] == (2, 1, 2)
    assert condition(world, "Stalled").status == "False"


def test_a_newer_edit_supersedes_an_upgrade_under_way():
    world = a_running_world()
    world.code = Code("code-2")
    world.pass_once()  # the upgrade has begun
    assert world.status.operation is not None
    world.code = Code("code-3")
    world.settle()
    assert started(world) == [(1, 1, 1), (2, 1, 2)]
    assert world.status.run.revision == world.pinned[2].revision
    before = world.writes
    assert not world.pass_once()
    assert world.writes == before


def test_broken_code_saved_during_an_upgrade_does_not_replace_what_was_pinned():
    world = a_running_world()
    world.code = Code("code-2")
    world.pass_once()
    world.pass_once()
    world.code = CodeProblem("job.py:1: oops")
    world.settle()
    assert started(world)[-1] == (2, 1, 2)


def test_broken_code_saved_before_an_upgrade_kept_anything_ends_the_upgrade():
    world = a_running_world()
    driver = world.driver
    world.code = Code("code-2")
    world.steps_left = 1  # the status names the upgrade; nothing else was done
    with pytest.raises(OperatorKilled):
        world.pass_once()
    world.steps_left = None
    world.code = CodeProblem("job.py:1: oops")
    world.settle()
    assert world.driver is driver and driver.live
    assert condition(world, "Stalled").reason == "CodeProblem"
    world.code = Code("code-3")
    world.settle()
    assert world.status.run.number == 2


def test_a_crash_restarts_the_same_run_with_growing_waits():
    world = a_running_world({"restart": {"backoff": {"min": "2s", "max": "8s"}}})
    waits = []
    for _ in range(4):
        world.driver_ends(Ending.QUERY_FAILED, "boom")
        world.pass_once()
        waits.append((world.status.restarts.next_at - world.now).total_seconds())
        assert condition(world, "Ready").reason == "QueryFailed"
        world.settle()
    assert waits == [2, 4, 8, 8]
    assert [(run, attempt) for run, attempt, _ in started(world)] == [(1, n) for n in range(1, 6)]


def test_waiting_for_the_next_attempt_writes_nothing():
    world = a_running_world({"restart": {"backoff": {"min": "1m", "max": "5m"}}})
    world.driver_ends(Ending.QUERY_FAILED, "boom")
    world.pass_once()
    before = world.writes
    for _ in range(10):
        world.later(5)
        world.pass_once()
    assert world.writes == before
    assert "next attempt at 00:06:00 UTC" in condition(world, "Ready").message


def test_an_attempt_that_lived_long_starts_the_count_anew():
    world = a_running_world({"restart": {"backoff": {"min": "2s", "max": "1m"}}})
    for _ in range(3):
        world.driver_ends(Ending.QUERY_FAILED)
        world.settle()
    world.later(3600)
    world.driver_ends(Ending.QUERY_FAILED)
    world.pass_once()
    assert world.status.restarts.in_a_row == 1


def test_a_refused_application_waits_for_an_edit():
    world = a_running_world()
    world.driver_ends(Ending.REFUSED, "job.py:9: every query needs a name")
    world.settle()
    world.later(3600)
    world.settle()
    assert len(world.drivers) == 1
    assert condition(world, "Stalled").message == "job.py:9: every query needs a name"
    world.code = Code("code-2")
    world.settle()
    assert started(world)[-1] == (2, 1, 2)
    assert world.status.state == "Running"


def test_a_finite_job_completes_and_stays_completed():
    world = a_running_world({"trigger": {"mode": "AvailableNow"}})
    world.driver_ends(Ending.COMPLETED)
    world.settle()
    world.later(3600)
    assert not world.pass_once()
    assert world.status.state == "Completed"
    assert (condition(world, "Ready").status, condition(world, "Ready").reason) == ("True", "Completed")


@pytest.mark.parametrize("change", [{"restartNonce": "2"}, {"executors": {"cores": 2}}])
def test_a_completed_job_starts_again_on_an_edit(change):
    world = a_running_world({"trigger": {"mode": "AvailableNow"}})
    world.driver_ends(Ending.COMPLETED)
    world.settle()
    world.edit(**change)
    world.settle()
    assert started(world) == [(1, 1, 1), (2, 1, 2)]
    assert world.seeds == {2: (1, None)}
    assert world.status.state == "Running"


def test_a_live_edit_does_not_start_a_completed_job():
    world = a_running_world({"trigger": {"mode": "AvailableNow"}})
    world.driver_ends(Ending.COMPLETED)
    world.settle()
    world.edit(executors={"count": 3})
    world.settle()
    assert len(world.drivers) == 1
    assert world.status.state == "Completed"


def test_suspend_drains_and_resume_goes_on_from_the_checkpoint():
    world = a_running_world()
    world.edit(suspend=True)
    world.settle()
    assert world.status.state == "Suspended"
    assert world.driver is None
    world.edit(suspend=False)
    world.settle()
    assert started(world) == [(1, 1, 1), (1, 2, 2)]
    assert world.status.restarts.in_a_row == 0


def test_a_driver_that_drained_unasked_is_replaced_at_once():
    world = a_running_world()
    world.driver_ends(Ending.DRAINED)
    world.pass_once()
    assert started(world)[-1] == (1, 2, 2)


def test_nothing_starts_while_a_stray_writer_lives():
    world = a_running_world()
    stray = world.driver
    world.status = world.status.model_copy(
        update={
            "run": world.status.run.model_copy(
                update={"attempt": world.status.run.attempt.model_copy(update={"state": "Ended"})}
            )
        }
    )
    world.pass_once()
    assert world.driver is stray
    assert stray.drain_asked
    world.settle()
    assert started(world)[-1] == (1, 2, 2)


@pytest.mark.parametrize(
    ("start_from", "seeds"), [({"latest": True}, {1: (4, "older")}), ({"none": True}, {})]
)
def test_an_earlier_lineage_is_never_passed_over_in_silence(start_from, seeds):
    world = a_world()
    world.earlier = EarlierLineage(uid="older", last_run=4)
    world.settle()
    assert world.drivers == []
    assert condition(world, "Stalled").reason == "EarlierLineage"
    world.edit(startFrom=start_from)
    world.settle()
    assert world.status.state == "Running"
    assert world.seeds == seeds


def test_a_failed_copy_of_the_state_is_said_and_tried_again():
    world = a_running_world()
    world.seed_problem = "no space left on device"
    world.code = Code("code-2")
    for _ in range(10):
        world.pass_once()
        world.drains_finish()
    assert len(world.drivers) == 1
    assert "no space left on device" in condition(world, "Stalled").message
    world.seed_problem = None
    world.settle()
    assert started(world)[-1] == (2, 1, 2)


def test_a_detached_job_goes_on_when_it_is_taken_up_again():
    world = a_running_world()
    world.detach()
    world.settle()
    assert world.status.state == "Detached"
    world.detach(False)
    world.settle()
    assert started(world) == [(1, 1, 1), (1, 2, 2)]


def test_a_stuck_batch_makes_the_job_not_ready(monkeypatch):
    world = a_running_world()
    observed = world.observe()
    assert observed.attempts[0].phase is AttemptPhase.RUNNING
    from dataclasses import replace

    from headrace.core.plan import plan

    stuck = replace(observed.attempts[0], queries=(replace(observed.attempts[0].queries[0], stuck=True),))
    made = plan(world.job, world.status, replace(observed, attempts=(stuck,)), world.now)
    ready = next(c for c in made.status.conditions if c.type == "Ready")
    assert (ready.status, ready.reason) == ("False", "BatchStuck")
