"""Upgrades that verify themselves and go back: stories, bad candidates of each kind. Output is counted."""

import pytest

from headrace.core.model import Code, Ending
from tests.sim.upgrades import (
    BAD,
    condition,
    is_exact,
    is_quiet,
    is_true,
    outcomes,
    running,
    tick,
    to_trial,
    upgraded,
    versions,
    ways,
)
from tests.sim.world import a_world


def test_a_new_run_is_watched_and_promoted():
    world = running()
    world.code = Code("code-2")
    for _ in range(6):
        world.pass_once()
        world.drains_finish()
        world.driver_runs()
        world.driver_works()
    assert world.status.operation.step == "Verifying"
    assert condition(world, "Ready").status == "True"
    assert condition(world, "Reconciling").reason == "Verifying"
    assert world.status.last_stable.run == 1
    world.settle()
    assert world.status.operation is None
    assert world.status.last_stable.run == 2
    assert condition(world, "Reconciling").status == "False"
    assert outcomes(world) == [(1, "Replaced")]
    assert world.said.count("Promoted") == 1
    is_exact(world)
    is_quiet(world)


def test_the_watch_writes_nothing_while_nothing_changes():
    world = running({"upgrade": {"verifyWindow": "1h"}})
    world.code = Code("code-2")
    for _ in range(10):
        world.pass_once()
        world.drains_finish()
        world.driver_runs()
    writes = world.writes
    for _ in range(30):
        world.later(60)
        world.pass_once()
    assert world.writes == writes
    world.settle()
    assert world.status.last_stable.run == 2


def test_the_changes_of_a_run_are_kept_with_it_and_in_the_history():
    world = running()
    world.edit(application={"file": "job.py", "args": ["--x"]})
    world.settle()
    assert world.status.run.changes == ("spec.application.args",)
    world.code = Code("code-2")
    world.settle()
    assert world.status.history[0].changes == ("spec.application.args",)


def test_the_history_keeps_ten():
    world = running()
    for number in range(2, 15):
        upgraded(f"code-{number}", world)
    assert [entry.run for entry in world.status.history] == list(range(13, 3, -1))


def test_a_finite_job_passes_when_it_completes():
    world = running({"trigger": {"mode": "AvailableNow"}})
    world.code = Code("code-2")
    for _ in range(6):
        world.pass_once()
        world.drains_finish()
        world.driver_runs()
    world.driver_ends(Ending.COMPLETED)
    world.pass_once()
    assert world.status.last_stable.run == 2
    assert world.status.state == "Completed"
    world.settle()
    is_quiet(world)


@pytest.mark.parametrize(
    "ending", [Ending.EVICTED, Ending.NODE_LOST, Ending.STORE_UNAVAILABLE, Ending.KILLED]
)
def test_what_is_not_the_versions_fault_only_begins_the_window_anew(ending):
    world = to_trial("code-2")
    world.driver_ends(ending)
    world.settle()
    assert versions(world) == ["code-1", "code-2"]
    assert world.status.last_stable.run == 2


def test_but_the_third_time_in_a_row_it_counts():
    world = to_trial("code-2")
    for _ in range(3):
        world.driver_ends(Ending.KILLED, "the driver process was killed")
        for _ in range(3):
            world.pass_once()
            world.later(60)
            world.driver_runs()
    world.settle()
    assert versions(world) == ["code-1", "code-2", "code-1"]


GROWS = (2000, 4000, 6000, 8000, 10_000, 12_000, 14_000, 16_000, 18_000)


def test_a_backlog_that_grows_and_goes_on_to_is_a_failure():
    world = to_trial("code-2", {"upgrade": {"verifyWindow": "5m"}})
    world.waited[2] = GROWS
    world.later(301)
    world.pass_once()
    assert world.status.operation.step == "Verifying", "it gets one more window"
    world.later(301)
    world.settle()
    assert versions(world) == ["code-1", "code-2", "code-1"]
    assert condition(world, "RolledBack").reason == "LagGrew"
    assert "grew from 6000 to 16000" in condition(world, "RolledBack").message


def test_a_backlog_that_stops_growing_in_its_second_window_is_none():
    world = to_trial("code-2", {"upgrade": {"verifyWindow": "5m"}})
    world.waited[2] = GROWS
    world.later(301)
    world.pass_once()
    world.waited[2] = (*GROWS, *(18_000 for _ in GROWS))
    world.settle()
    assert world.status.last_stable.run == 2


def test_what_waits_for_the_old_version_as_well_is_no_growth():
    world = running({"upgrade": {"verifyWindow": "5m"}})
    world.waited = {1: (15_000,) * 8, 2: GROWS}
    world.code = Code("code-2")
    world.settle(200)
    assert versions(world) == ["code-1", "code-2"]
    assert world.status.last_stable.run == 2


def test_a_window_shorter_than_the_trigger_waits_for_batches_before_it_condemns():
    world = to_trial("code-2", {"upgrade": {"verifyWindow": "1m"}})
    world.waited[2] = (100, 9000)  # the first after a short gap, the second a whole trigger later
    world.driver_works()
    for _ in range(40):
        world.later(60)
        world.pass_once()
    assert world.status.operation.step == "Verifying"
    world.waited[2] = (100, 9000, 9100, 8900, 9000, 9000)
    world.settle()
    assert versions(world) == ["code-1", "code-2"]
    assert world.status.last_stable.run == 2


def test_suspended_on_trial_it_is_watched_anew_when_it_is_resumed():
    world = to_trial("code-2")
    world.edit(suspend=True)
    world.settle()
    assert world.status.state == "Suspended"
    world.later(86_400)
    world.edit(suspend=False)
    world.settle()
    assert world.status.last_stable.run == 2
    assert versions(world) == ["code-1", "code-2"]
    is_exact(world)


# ---- rollback ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_version_is_rolled_back_and_the_output_is_exact(bad):
    world = upgraded(bad)
    assert versions(world) == ["code-1", bad, "code-1"]
    assert world.status.state == "Running"
    assert condition(world, "Ready").status == "True"
    assert is_true(world, "RolledBack")
    assert condition(world, "Stalled").reason == "RolledBack"
    assert "restartNonce" in condition(world, "Stalled").message
    assert outcomes(world) == [(2, "RolledBack"), (1, "Replaced")]
    assert world.status.last_stable.run == 3
    assert world.status.rejected.run == 2
    is_exact(world)
    is_quiet(world)


@pytest.mark.parametrize(
    ("bad", "way"),
    [
        ("crash", "Handover"),
        ("never", "Handover"),
        ("hang", "Carried"),
        ("crash-after-0", "Carried"),
        ("crash-after-2", "Forward"),
    ],
)
def test_where_a_rollback_begins(bad, way):
    world = upgraded(bad)
    if bad == "never":
        assert world.seeds[3] == (2, None)
    assert ways(world, 3) == [way]
    assert world.status.run.seeded_from == ("run-2" if way == "Forward" else "run-1")
    assert "batch" in condition(world, "RolledBack").message


def test_state_that_the_old_version_cannot_read_is_left_behind_under_a_new_lineage():
    world = upgraded("other-state")
    assert world.status.last_stable.run == 2
    world.code = Code("crash")
    world.settle()  # forward: the new one and the one before read the same state
    assert versions(world) == ["code-1", "other-state", "crash", "other-state"]

    world = running()
    world.code = Code("other-state-then-dead")
    for _ in range(8):
        world.pass_once()
        world.drains_finish()
        world.driver_runs()
        world.driver_works()
    world.driver_ends(Ending.QUERY_FAILED, "boom")
    world.settle()
    assert versions(world) == ["code-1", "other-state-then-dead", "code-1", "code-1"]
    assert (ways(world, 3), ways(world, 4)) == (["Forward"], ["Rewound"])
    assert "new lineage" in condition(world, "RolledBack").message
    assert world.stream.sink.lost() == []
    assert world.stream.sink.repeated() > 0  # and that is said
    assert outcomes(world)[:2] == [(3, "RolledBack"), (2, "RolledBack")]
    is_quiet(world)


@pytest.mark.parametrize(("bad", "way"), [("crash-after-0", "Carried"), ("crash-after-2", "Forward")])
def test_offsets_that_the_old_version_cannot_go_on_from_are_left_behind(bad, way):
    """Of other topics, say: its state is fine, and yet each attempt would fail in the same way."""
    world = to_trial(bad)
    while world.status.run.number == 2 or world.driver is None or world.driver.run == 2:
        tick(world)
    world.driver_ends(
        Ending.QUERY_FAILED,
        "Partitions Set(other-0) have been deleted",
        error_class="KAFKA_DATA_LOSS.PARTITIONS_DELETED",
    )
    world.settle()
    assert versions(world) == ["code-1", bad, "code-1", "code-1"]
    assert (ways(world, 3), ways(world, 4)) == ([way], ["Rewound"])
    assert "could not go on from what run 2 left" in condition(world, "RolledBack").message
    assert world.status.last_stable.run == 4
    assert world.stream.sink.lost() == []
    is_quiet(world)


def test_a_rollback_that_fails_otherwise_is_tried_again_and_not_rewound():
    world = to_trial("crash-after-2")
    while world.status.run.number == 2:
        world.pass_once()
        world.drains_finish()
        world.driver_runs()
        world.driver_works()
    world.driver_ends(Ending.QUERY_FAILED, "Kafka is down")
    while world.status.last_stable.run != 3:
        tick(world)
        world.later(5)
    assert versions(world) == ["code-1", "crash-after-2", "code-1"]
    is_exact(world)
    world.settle(200)  # perhaps it was not the version, so that has one more chance
    assert versions(world)[3:] == ["crash-after-2", "code-1"]
    is_exact(world)
    is_quiet(world)


def test_two_bad_ones_in_a_row():
    world = upgraded("crash-after-2")
    world.code = Code("crash")
    world.settle()
    assert versions(world) == ["code-1", "crash-after-2", "code-1", "crash", "code-1"]
    assert world.status.rejected.run == 4
    is_exact(world)
    is_quiet(world)


def test_a_fixed_edit_goes_on_by_itself_and_clears_the_condition():
    world = upgraded("crash")
    upgraded("code-2", world)
    assert versions(world)[-1] == "code-2"
    assert condition(world, "RolledBack").status == "False"
    assert condition(world, "Stalled").status == "False"
    assert world.status.rejected is None
    is_exact(world)
    is_quiet(world)


def test_back_to_what_it_was_changes_nothing_that_runs():
    world = upgraded("crash")
    drivers = len(world.drivers)
    upgraded("code-1", world)
    assert len(world.drivers) == drivers
    assert condition(world, "RolledBack").status == "False"
    assert condition(world, "Stalled").status == "False"
    is_quiet(world)


def test_the_same_again_is_tried_when_it_is_asked_for():
    world = upgraded("crash")
    world.edit(restartNonce="again")
    world.settle()
    assert versions(world) == ["code-1", "crash", "code-1", "crash", "code-1"]


def test_live_fields_are_still_taken_while_an_edit_stands_rejected():
    world = upgraded("crash")
    drivers = len(world.drivers)
    world.edit(executors={"count": 5})
    world.settle()
    assert len(world.drivers) == drivers
    assert is_true(world, "RolledBack")


def test_a_crash_of_a_proven_run_is_restarted_and_not_rolled_back():
    world = upgraded("code-2")
    world.driver_ends(Ending.QUERY_FAILED, "boom")
    world.settle()
    assert versions(world) == ["code-1", "code-2"]
    assert world.status.run.attempt.number == 2


def test_before_anything_was_good_there_is_nothing_to_go_back_to():
    world = a_world()
    world.code = Code("crash")
    for _ in range(6):
        world.pass_once()
        world.driver_runs()
    world.code = Code("crash-after-0")
    for _ in range(20):
        world.pass_once()
        world.driver_runs()
        world.driver_works()
        world.later(30)
    assert versions(world) == ["crash", "crash-after-0"]
    assert world.status.rejected is None
    upgraded("code-1", world)
    assert world.status.last_stable.run == 3
    is_exact(world)


def test_a_first_run_that_works_can_be_gone_back_to_at_once():
    world = a_world()
    for _ in range(6):
        world.pass_once()
        world.driver_runs()
    assert world.status.last_stable is None
    upgraded("crash", world)
    assert versions(world) == ["code-1", "crash", "code-1"]
