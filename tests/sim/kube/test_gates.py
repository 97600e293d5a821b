"""Savepoints that a job takes by itself: by schedule, and before an upgrade, a suspension, a deletion."""

import json
from datetime import timedelta
from typing import Any

import pytest

from headrace.api import FINALIZER
from headrace.kube.resources import CONFIG_MAPS, EVENTS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import FakeCluster

SPEC = {"application": {"file": "job.py"}}
DAMAGED = {"reason": "CheckpointDamaged", "message": "offsets/40 is missing"}


def running(**spec: Any) -> FakeCluster:
    cluster = FakeCluster({**SPEC, **spec})
    cluster.settle()
    assert cluster.status.state == "Running"
    return cluster


def names(cluster: FakeCluster, cause: str) -> list[str]:
    all_of_them = cluster.api.of(STREAM_SAVEPOINTS).items()
    return [name for name, one in all_of_them if one["spec"].get("cause") == cause]


def passes(cluster: FakeCluster, number: int = 6) -> None:
    for _ in range(number):
        cluster.pass_once()
        cluster.kubelets_work()


def until_saving(cluster: FakeCluster) -> None:
    """The savepoint is asked for, and is being taken for as long as the test likes."""
    cluster.savepoint_store.frozen = True
    passes(cluster, 8)


# ---- upgrade ------------------------------------------------------------------------------------------


def test_an_upgrade_takes_one_from_the_running_job_before_it_drains():
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    until_saving(cluster)
    assert len(names(cluster, "Upgrade")) == 1
    assert cluster.live_drivers() == ["clicks-r1-a1"] and not cluster.agent().drains
    assert cluster.condition("Ready") == ("True", "Running")  # it is, all the while
    assert cluster.condition("Reconciling") == ("True", "Savepoint")
    cluster.savepoint_store.frozen = False
    cluster.settle()
    assert [run for run, _, _ in cluster.started] == [1, 2]
    assert cluster.status.last_savepoint == names(cluster, "Upgrade")[0]
    assert next(iter(cluster.savepoint_store.saved.values()))["run"].endswith("/run-1")


def test_before_the_state_is_split_one_is_taken_whatever_the_policy_says():
    cluster = running(savepoints={"onUpgrade": False})
    cluster.savepoint_store.fails = DAMAGED
    cluster.edit(state={"partitions": 4})
    passes(cluster, 12)
    assert cluster.live_drivers() == ["clicks-r1-a1"] and not cluster.agent().drains
    assert cluster.condition("Stalled") == ("True", "SavepointFailed")
    told = cluster.status.condition("Stalled")
    assert told is not None and "or put spec.state.partitions back" in told.message
    cluster.savepoint_store.fails = None
    cluster.delete_savepoint(names(cluster, "Upgrade")[0])
    cluster.settle()
    assert [run for run, _, _ in cluster.started] == [1, 2]
    assert len(names(cluster, "Upgrade")) == 1
    run_file = json.loads(cluster.api.of(CONFIG_MAPS)["clicks-r2-a1"]["data"]["run.json"])
    assert run_file["repartition"] == 4
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    assert [run for run, _, _ in cluster.started] == [1, 2, 3]
    assert len(names(cluster, "Upgrade")) == 1, "and no other one"


def test_a_savepoint_that_fails_holds_the_upgrade_and_the_job_goes_on():
    cluster = running()
    cluster.savepoint_store.fails = DAMAGED
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.condition("Stalled") == ("True", "SavepointFailed")
    stalled = cluster.status.condition("Stalled")
    assert stalled is not None and "offsets/40 is missing" in stalled.message
    assert "Delete it to have another one taken" in stalled.message
    assert [run for run, _, _ in cluster.started] == [1]
    before = list(cluster.api.writes)
    passes(cluster)
    assert cluster.api.writes == before
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)  # the old version is healed as ever
    cluster.settle()
    assert cluster.started[-1][:2] == (1, 2)
    cluster.savepoint_store.fails = None
    cluster.delete_savepoint(names(cluster, "Upgrade")[0])
    cluster.settle()
    assert cluster.started[-1][0] == 2
    assert cluster.condition("Stalled") == ("False", "Settled")


def test_who_does_without_sets_the_policy_and_the_upgrade_goes_on():
    cluster = running()
    cluster.savepoint_store.fails = DAMAGED
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    cluster.edit(savepoints={"onUpgrade": False})
    cluster.settle()
    assert cluster.started[-1][0] == 2


def test_a_job_that_never_committed_has_nothing_to_save_and_is_not_held_up():
    cluster = FakeCluster(SPEC)
    cluster.savepoint_store.fails = {"reason": "NothingToSave", "message": "no query has begun"}
    cluster.settle()
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    assert cluster.started[-1][0] == 2
    assert cluster.condition("Stalled") == ("False", "Settled")


def test_a_crashed_job_is_saved_as_it_lies_and_not_started_once_more():
    cluster = running(restart={"backoff": {"min": "1h", "max": "2h"}})
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    passes(cluster, 2)
    cluster.edit(application={"args": ["--fixed"]})
    cluster.settle()
    assert [(run, attempt) for run, attempt, _ in cluster.started] == [(1, 1), (2, 1)]
    assert len(cluster.savepoint_store.saved) == 1


def test_a_newer_edit_while_it_is_saved_is_the_same_upgrade():
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    until_saving(cluster)
    cluster.edit(application={"args": ["--y"]})
    passes(cluster)
    cluster.savepoint_store.frozen = False
    cluster.settle()
    assert len(names(cluster, "Upgrade")) == 1
    assert [run for run, _, _ in cluster.started] == [1, 2]


def refuse_savepoints(cluster: FakeCluster, why: str = "quota") -> Any:
    create = cluster.api.create

    async def refusing(resource: Any, namespace: str, body: Any) -> Any:
        if resource is STREAM_SAVEPOINTS:
            cluster.api.faults = [why]
        return await create(resource, namespace, body)

    cluster.api.create = refusing  # type: ignore[method-assign]
    return create


def test_a_platform_that_refuses_the_object_holds_the_upgrade_until_it_does_not():
    cluster = running()
    create = refuse_savepoints(cluster)
    cluster.edit(application={"args": ["--x"]})
    passes(cluster)
    stalled = cluster.status.condition("Stalled")
    assert stalled is not None and "exceeded quota" in stalled.message
    assert cluster.condition("Ready") == ("True", "Running")
    cluster.api.create = create  # type: ignore[method-assign]
    cluster.settle()
    assert cluster.started[-1][0] == 2


# ---- suspend ------------------------------------------------------------------------------------------


def test_a_suspension_takes_one_of_what_the_driver_left():
    cluster = running()
    cluster.edit(suspend=True)
    until_saving(cluster)
    assert cluster.live_drivers() == []
    assert cluster.status.state == "Suspending"
    assert cluster.condition("Ready") == ("True", "Suspended")
    assert cluster.condition("Reconciling") == ("True", "Savepoint")
    cluster.savepoint_store.frozen = False
    cluster.settle()
    assert cluster.status.state == "Suspended"
    assert cluster.condition("Reconciling") == ("False", "Suspended")
    assert len(names(cluster, "Suspend")) == 1
    # Nobody asks for it again, whatever becomes of it.
    cluster.delete_savepoint(names(cluster, "Suspend")[0])
    cluster.settle()
    assert names(cluster, "Suspend") == []
    cluster.edit(suspend=False)
    cluster.settle()
    cluster.edit(suspend=True)
    cluster.settle()
    assert len(names(cluster, "Suspend")) == 1


@pytest.mark.parametrize("trouble", ["fails", "refused"])
def test_a_suspension_goes_on_without_one_that_fails(trouble: str):
    cluster = running()
    if trouble == "fails":
        cluster.savepoint_store.fails = DAMAGED
    else:
        refuse_savepoints(cluster)
    cluster.edit(suspend=True)
    passes(cluster, 10)
    assert cluster.status.state == "Suspended"
    assert cluster.live_drivers() == []


def test_resumed_while_it_is_saved_it_runs_again():
    cluster = running()
    cluster.edit(suspend=True)
    until_saving(cluster)
    cluster.edit(suspend=False)
    cluster.savepoint_store.frozen = False
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.status.restarts.total == 0


# ---- delete -------------------------------------------------------------------------------------------


def finalizers(cluster: FakeCluster) -> list[str]:
    return cluster.api.objects[cluster.job_place]["metadata"].get("finalizers") or []


@pytest.mark.parametrize("foreground", [False, True])
def test_a_deleted_job_that_is_to_be_saved_drains_is_saved_and_goes(foreground: bool):
    cluster = running(savepoints={"onDelete": True})
    assert finalizers(cluster) == [FINALIZER]
    cluster.delete_job(foreground=foreground)
    cluster.settle()
    assert not cluster.exists
    (name,) = names(cluster, "Delete")
    assert cluster.savepoint(name).state == "Ready"
    assert len(cluster.savepoint_store.saved) == 1 and cluster.removed == []


@pytest.mark.parametrize("trouble", ["fails", "terminating"])
def test_it_goes_without_a_savepoint_that_fails(trouble: str):
    cluster = running(savepoints={"onDelete": True})
    if trouble == "fails":
        cluster.savepoint_store.fails = DAMAGED
    else:
        refuse_savepoints(cluster, "terminating")
    cluster.delete_job()
    passes(cluster, 10)
    assert not cluster.exists


def test_who_changes_his_mind_lets_it_go():
    cluster = running(savepoints={"onDelete": True})
    cluster.delete_job()
    until_saving(cluster)
    assert cluster.exists
    assert "set savepoints.onDelete: false" in str(cluster.status.condition("Reconciling"))
    cluster.edit(savepoints={"onDelete": False})
    passes(cluster)
    assert not cluster.exists


def test_by_default_a_retained_job_is_not_held():
    assert finalizers(running()) == []


# ---- by schedule, and retention -----------------------------------------------------------------------


def test_one_is_taken_at_each_time_of_the_schedule():
    cluster = running(savepoints={"schedule": "0 * * * *"})
    for _ in range(3):
        cluster.later(3600)
        cluster.settle()
    assert names(cluster, "Schedule") == [
        "clicks-20260101-0100",
        "clicks-20260101-0200",
        "clicks-20260101-0300",
    ]
    assert cluster.status.last_savepoint == "clicks-20260101-0300"


def test_the_next_time_is_waited_for_and_no_longer():
    cluster = running(savepoints={"schedule": "0 * * * *"})
    outcome = cluster.pass_once()
    assert outcome is not None and outcome.recheck_after is not None
    until = cluster.moment + timedelta(seconds=outcome.recheck_after)
    assert (until.hour, until.minute) == (1, 0)


def test_what_was_missed_is_made_up_for_by_one():
    cluster = running(savepoints={"schedule": "0 * * * *"})
    cluster.later(10 * 3600)
    cluster.settle()
    assert names(cluster, "Schedule") == ["clicks-20260101-1000"]  # as late as it was taken
    cluster.later(1800)
    cluster.settle()
    assert len(names(cluster, "Schedule")) == 1


def test_a_job_that_stands_still_is_not_saved_over_and_over():
    cluster = running(savepoints={"schedule": "0 * * * *"})
    cluster.savepoint_store.batch = 1  # as far as its agent says it is
    for _ in range(4):
        cluster.later(3600)
        cluster.settle()
    assert len(names(cluster, "Schedule")) == 1


def test_a_suspended_or_paused_job_takes_none():
    cluster = running(savepoints={"schedule": "0 * * * *", "onSuspend": False})
    cluster.edit(suspend=True)
    cluster.settle()
    cluster.later(7200)
    cluster.settle()
    assert names(cluster, "Schedule") == []


def test_retention_removes_objects_and_copies_and_never_the_last_good_one():
    cluster = running(savepoints={"schedule": "0 * * * *", "keep": 2})
    for _ in range(5):
        cluster.later(3600)
        cluster.settle()
    assert names(cluster, "Schedule") == ["clicks-20260101-0400", "clicks-20260101-0500"]
    assert len(cluster.savepoint_store.saved) == 2
    cluster.edit(savepoints={"keep": 1, "maxAge": "1h"})
    cluster.savepoint_store.fails = DAMAGED
    for _ in range(3):
        cluster.later(3600)
        cluster.settle()
    assert "clicks-20260101-0500" in names(cluster, "Schedule")
    assert cluster.status.last_savepoint == "clicks-20260101-0500"
    told = [one["message"] for one in cluster.api.of(EVENTS).values() if one["reason"] == "SavepointRemoved"]
    assert any("which is savepoints.keep" in message for message in told)


def with_a_second_one_taken() -> tuple[FakeCluster, str]:
    """It is to replace the first, which is named here, and is not checked yet."""
    cluster = running(savepoints={"schedule": "0 * * * *", "keep": 1, "verify": "State"})
    cluster.later(3600)
    cluster.settle()
    (first,) = names(cluster, "Schedule")
    cluster.later(3600)
    while [task for task, _ in cluster.savepoint_store.done].count("take") < 2:
        passes(cluster, 1)
    return cluster, first


def test_none_is_removed_before_the_one_in_its_place_is_checked():
    cluster, first = with_a_second_one_taken()
    cluster.savepoint_store.frozen = True
    passes(cluster)
    second = cluster.savepoint(names(cluster, "Schedule")[-1])
    assert second.completed_at is not None and second.verified.level == "Objects"
    assert first in names(cluster, "Schedule")
    cluster.savepoint_store.frozen = False
    cluster.settle()
    assert len(names(cluster, "Schedule")) == 1 and first not in names(cluster, "Schedule")


def test_one_that_a_damaged_one_was_to_replace_stays():
    cluster, first = with_a_second_one_taken()
    cluster.savepoint_store.damaged.add(cluster.savepoint_store.done[-1][1])
    cluster.settle()
    assert cluster.status.last_savepoint == first and first in names(cluster, "Schedule")


def test_the_numbers_of_a_jobs_savepoints():
    cluster = running(savepoints={"schedule": "0 * * * *"})
    cluster.later(3600)
    cluster.settle()
    outcome = cluster.pass_once()
    assert outcome is not None and outcome.savepoints is not None
    good = outcome.savepoints.last_good
    assert good is not None and (good.size_bytes, outcome.savepoints.failed) == (3_500_000, False)
    assert outcome.savepoints.overdue_since is None
    cluster.savepoint_store.fails = DAMAGED
    cluster.later(3600)
    cluster.settle()
    outcome = cluster.pass_once()
    assert outcome is not None and outcome.savepoints is not None
    assert outcome.savepoints.failed and outcome.savepoints.overdue_since is not None
