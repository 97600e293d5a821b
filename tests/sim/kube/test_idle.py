"""A job without work sleeps, and is woken: by work, by not knowing, by its time, by edits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace.core.manifests.lookout_pod import EVERY_LABEL
from headrace.kube.errors import Denied
from headrace.kube.resources import EVENTS, PODS, STATEFUL_SETS, STREAM_SAVEPOINTS
from headrace.runtime.job_metrics import JOB_GAUGES, JobSample
from tests.sim.kube.cluster import JOB, NAMESPACE
from tests.sim.kube.scaled import ScaledCluster

IDLE = {"after": "5m", "lookEvery": "30s", "maxSleep": "6h"}
LIMITS = {"max": 8, "lagObjective": "60s", "idle": IDLE}
WORK = {"reason": "Work", "message": "412 rows wait in q: clicks/3"}
BLIND = {"reason": "Blind", "message": "Kafka does not tell its offsets"}


def a_job(scaling: dict[str, Any] = LIMITS, **spec: Any) -> ScaledCluster:
    cluster = ScaledCluster(scaling, **spec)
    cluster.steps(40, rate=100)
    assert cluster.status.state == "Running"
    return cluster


def asleep(scaling: dict[str, Any] = LIMITS, **spec: Any) -> ScaledCluster:
    cluster = a_job(scaling, **spec)
    cluster.steps(40, rate=0)
    assert cluster.status.state == "Sleeping"
    return cluster


def lookouts(cluster: ScaledCluster) -> list[str]:
    return [name for name in cluster.api.of(PODS) if "-lookout-" in name]


def say(cluster: ScaledCluster, words: dict[str, Any]) -> None:
    cluster.lookout_says = words
    cluster.kubelets_work()
    cluster.lookout_says = None


def wake(cluster: ScaledCluster, says: dict[str, Any]) -> None:
    say(cluster, says)
    cluster.steps(4)


def watched(cluster: ScaledCluster) -> bool:
    running = [cluster.api.of(PODS)[name].get("status") is not None for name in lookouts(cluster)]
    return cluster.status.state == "Sleeping" and running == [True]


def until(cluster: ScaledCluster, holds: Callable[[], bool], *, steps: int = 120) -> None:
    for _ in range(steps):
        if holds():
            return
        cluster.kubelets_work()
        cluster.steps(1)
    raise AssertionError(f"it never comes to that: {cluster.status.state}")


def reasons(cluster: ScaledCluster) -> list[str]:
    return [event["reason"] for event in cluster.api.of(EVENTS).values()]


def test_a_job_without_work_sleeps_and_nothing_of_it_is_left_but_its_lookout():
    cluster = asleep()
    assert cluster.live_drivers() == []
    assert cluster.replicas() == 0 or cluster.api.of(STATEFUL_SETS) == {}
    assert lookouts(cluster) == [f"{JOB}-lookout-1"]
    assert cluster.condition("Ready") == ("True", "Sleeping")
    assert cluster.condition("Stalled")[0] == cluster.condition("Reconciling")[0] == "False"
    assert cluster.condition("Asleep") == ("True", "NoWork")
    assert cluster.status.restarts.total == 0
    assert "FallsAsleep" in reasons(cluster)
    before = len(cluster.api.writes)
    cluster.steps(240)  # an hour
    assert cluster.api.writes[before:] == []


def test_it_sleeps_no_sooner_than_after_the_time_that_was_set():
    cluster = a_job()
    cluster.steps(4, rate=0)
    slept_at = None
    began = cluster.moment
    while slept_at is None:
        cluster.steps(1)
        slept_at = cluster.moment if cluster.status.sleep is not None else None
    assert timedelta(minutes=4) <= slept_at - began <= timedelta(minutes=6)


def test_a_trickle_keeps_it_awake():
    """All that comes is read between two looks: nothing ever waits, and yet there is work."""
    cluster = a_job()
    cluster.steps(80, rate=1)
    assert cluster.status.state == "Running"
    assert cluster.condition("Asleep") == ("False", "Awake")


def test_work_wakes_it_in_the_same_run_and_it_is_not_lost():
    cluster = asleep()
    cluster.topic.ends[3] += 412
    wake(cluster, WORK)
    assert cluster.status.state == "Running"
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]
    assert cluster.status.sleep is None
    assert lookouts(cluster) == []
    assert cluster.condition("Asleep") == ("False", "Awake")
    events = [event for event in cluster.api.of(EVENTS).values() if event["reason"] == "Woken"]
    assert [(event["type"], event["message"]) for event in events] == [("Normal", WORK["message"])]
    cluster.steps(4, rate=100)
    assert cluster.topic.batches[-1][2] > 0


def test_awake_it_has_its_time_before_it_sleeps_again():
    cluster = asleep()
    wake(cluster, WORK)
    assert cluster.status.state == "Running"
    cluster.steps(8, rate=0)  # its offsets are those of before its sleep
    assert cluster.status.state == "Running"
    cluster.steps(40, rate=0)
    assert cluster.status.state == "Sleeping"
    assert lookouts(cluster) == [f"{JOB}-lookout-2"]


def test_a_lookout_that_never_can_look_does_not_make_the_job_come_and_go():
    cluster = asleep()
    awake_for = []
    for _ in range(3):
        wake(cluster, BLIND)
        assert cluster.condition("Asleep") == ("False", "Restless")
        began = cluster.moment
        until(cluster, lambda: cluster.status.state == "Sleeping", steps=400)
        awake_for.append(round((cluster.moment - began).total_seconds() / 300))
    assert awake_for == [2, 4, 8]
    until(cluster, lambda: watched(cluster))
    wake(cluster, WORK)
    assert cluster.status.restless == 0
    assert cluster.condition("Asleep") == ("False", "Awake")


def test_a_lookout_that_cannot_look_wakes_it_and_unknown_it_stays_awake():
    cluster = asleep()
    cluster.topic.away = True
    wake(cluster, BLIND)
    assert cluster.status.state == "Running"
    cluster.steps(80, rate=0)
    assert cluster.status.state == "Running"
    assert cluster.condition("LagKnown") == ("False", "LagUnknown")


def test_a_lookout_that_dies_is_followed_by_another_and_the_third_one_wakes_the_job():
    cluster = asleep()
    cluster.lookout_says = {}
    for _ in range(4):
        cluster.kubelets_work()
        cluster.steps(1)
    assert cluster.status.lookouts == 3
    cluster.lookout_says = None
    cluster.steps(4)
    assert cluster.status.state == "Running"
    assert cluster.started[-1] == (1, 2, 2)


def test_a_lookout_that_was_taken_away_is_replaced():
    cluster = asleep()
    cluster.api.remove((PODS.plural, NAMESPACE, f"{JOB}-lookout-1"))
    cluster.steps(2)
    assert cluster.status.state == "Sleeping"
    assert lookouts(cluster) == [f"{JOB}-lookout-2"]


def test_a_lookout_without_a_place_does_not_keep_the_job_asleep():
    cluster = a_job()
    cluster.no_room_for_lookouts = True
    cluster.steps(30, rate=0)
    assert cluster.status.state == "Sleeping"
    cluster.steps(30, rate=0)
    assert cluster.started[-1] == (1, 2, 2)


def test_a_refused_lookout_does_not_keep_the_job_asleep(monkeypatch: pytest.MonkeyPatch):
    cluster = a_job()
    create = cluster.api.create

    async def without_lookouts(resource: Any, namespace: str, body: Any) -> Any:
        if "-lookout-" in body["metadata"].get("name", ""):
            raise Denied("exceeded quota: pods", status=403)
        return await create(resource, namespace, body)

    monkeypatch.setattr(cluster.api, "create", without_lookouts)
    cluster.topic.rate = 0
    until(cluster, lambda: cluster.status.state == "Sleeping")
    assert lookouts(cluster) == []
    until(cluster, lambda: cluster.status.state == "Running")
    assert cluster.started[-1] == (1, 2, 2)
    woken = [event for event in cluster.api.of(EVENTS).values() if event["reason"] == "WokenBlind"]
    assert len(woken) == 1 and "exceeded quota" in woken[0]["message"]
    assert woken[0]["type"] == "Warning"


def test_its_longest_sleep_ends_without_work():
    cluster = asleep()
    cluster.later(6 * 3600)
    cluster.steps(4)
    assert cluster.status.state == "Running"
    messages = [event["message"] for event in cluster.api.of(EVENTS).values() if event["reason"] == "Woken"]
    assert messages == ["it has slept for 6h (spec.autoscaling.idle.maxSleep)"]


def test_the_limit_of_sleep_is_that_of_now():
    cluster = asleep()
    cluster.edit(autoscaling={"idle": {"maxSleep": "1h"}})
    cluster.later(3600)
    cluster.steps(4)
    assert cluster.status.state == "Running"


def test_how_often_is_looked_is_that_of_now():
    cluster = asleep()
    cluster.edit(autoscaling={"idle": {"lookEvery": "5m"}})
    cluster.steps(2)
    assert cluster.status.state == "Sleeping"
    (name,) = lookouts(cluster)
    assert name == f"{JOB}-lookout-2"
    assert cluster.api.of(PODS)[name]["metadata"]["labels"][EVERY_LABEL] == "300"
    assert cluster.status.sleep is not None and cluster.status.sleep.failures == 0


def test_the_time_before_sleep_is_that_of_now():
    cluster = a_job()
    cluster.edit(autoscaling={"idle": {"after": "30m"}})
    cluster.steps(60, rate=0)
    assert cluster.status.state == "Running"
    cluster.steps(80, rate=0)
    assert cluster.status.state == "Sleeping"


@pytest.mark.parametrize("change", [{"idle": None}, {"mode": "Advise"}])
def test_who_does_not_want_sleep_any_more_is_awake(change: dict[str, Any]):
    cluster = asleep()
    cluster.edit(autoscaling=change)
    cluster.steps(4)
    assert cluster.status.state == "Running"
    assert lookouts(cluster) == []
    assert (cluster.status.condition("Asleep") is None) == (change == {"idle": None})


def test_advice_is_only_advice():
    cluster = a_job({**LIMITS, "mode": "Advise"})
    cluster.steps(60, rate=0)
    assert cluster.status.state == "Running"
    assert cluster.condition("Asleep") == ("False", "AdviceOnly")


def test_with_the_number_left_to_others_it_sleeps_too():
    assert asleep({**LIMITS, "mode": "Off"}).status.state == "Sleeping"


def test_a_source_that_nobody_else_could_look_at_keeps_it_awake_and_is_named():
    cluster = ScaledCluster(LIMITS)
    cluster.topic.no_lookout = "the source rate does not tell how much is waiting"
    cluster.steps(80, rate=0)
    assert cluster.status.state == "Running"
    assert cluster.condition("Asleep") == ("False", "CannotLook")
    condition = cluster.status.condition("Asleep")
    assert condition is not None and "q: the source rate" in condition.message


def test_a_suspension_ends_its_sleep_and_saves_what_it_left():
    cluster = asleep(savepoints={"onSuspend": True})
    cluster.edit(suspend=True)
    cluster.settle()
    assert cluster.status.state == "Suspended"
    assert cluster.status.sleep is None
    assert lookouts(cluster) == []
    assert cluster.savepoint_causes() == {"Suspend": 1}
    cluster.edit(suspend=False)
    cluster.settle()
    assert cluster.status.state == "Running"


def test_an_edit_that_needs_a_run_wakes_it_with_the_new_version():
    cluster = asleep(savepoints={"onUpgrade": False})
    cluster.edit(application={"args": ["--x"]})
    cluster.steps(8)
    assert cluster.started == [(1, 1, 1), (2, 1, 2)]
    assert cluster.seeds[2].endswith("/run-1")
    assert lookouts(cluster) == []
    assert cluster.status.sleep is None


def test_a_live_edit_lets_it_sleep():
    cluster = asleep()
    cluster.edit(executors={"count": 3}, autoscaling={"max": 12})
    cluster.steps(4)
    assert cluster.status.state == "Sleeping"
    assert lookouts(cluster) == [f"{JOB}-lookout-1"]
    assert cluster.status.observed_generation == 2


def test_a_refused_edit_lets_it_sleep_and_is_told():
    cluster = asleep()
    cluster.edit(checkpoint={"s3": {"endpoint": "https://s3.example.com"}})
    cluster.steps(4)
    assert cluster.status.state == "Sleeping"
    assert cluster.condition("Ready") == ("True", "Sleeping")
    assert cluster.condition("Stalled") == ("True", "StateChange")


def test_no_savepoint_is_due_while_it_sleeps_and_one_by_hand_is_taken():
    cluster = asleep(savepoints={"schedule": "0 * * * *"})
    before = cluster.savepoint_causes()
    cluster.steps(480)  # two hours
    assert cluster.savepoint_causes() == before
    cluster.create_savepoint("by-hand")
    cluster.settle()
    ready = next(one for one in cluster.savepoint("by-hand").conditions if one.type == "Ready")
    assert ready.status == "True"
    assert cluster.status.state == "Sleeping"


def test_deleted_in_its_sleep_it_goes():
    cluster = asleep(deletionPolicy="Delete")
    cluster.delete_job()
    for _ in range(10):
        cluster.pass_once()
        cluster.kubelets_work()
    assert not cluster.exists
    assert cluster.removed
    assert lookouts(cluster) == []


def test_a_run_on_trial_does_not_sleep(monkeypatch: pytest.MonkeyPatch):
    cluster = a_job(upgrade={"strategy": "Cold", "verifyWindow": "1h"}, savepoints={"onUpgrade": False})
    # Else the cluster jumps to the end of the trial.
    monkeypatch.setattr(cluster, "_time_passes", lambda _outcome: False)
    cluster.edit(application={"args": ["--x"]})
    cluster.steps(80, rate=0)
    assert cluster.status.operation is not None and cluster.status.operation.step == "Verifying"
    assert cluster.status.state == "Running"


def test_the_metrics_of_a_sleeping_job_alert_nobody():
    cluster = asleep()
    outcome = cluster.pass_once()
    assert outcome is not None and outcome.job is not None and outcome.status is not None
    sample = JobSample(outcome.job.spec, outcome.status, outcome.report)
    told = {name: read(sample) for name, _, read in JOB_GAUGES}
    assert (told["ready"], told["stalled"], told["asleep"], told["executors"]) == (1, 0, 1, 0)
    shown = [family.name for family in cluster.metrics.collect() if family.samples]
    assert "headrace_job_progress_age_seconds" not in shown
    assert "headrace_job_lag_known" not in shown


# ---- the operator's misfortunes -----------------------------------------------------------------------


def story(cluster: ScaledCluster) -> None:
    """Asleep, another lookout, woken by work, asleep once more."""
    cluster.topic.rate = 0
    until(cluster, lambda: watched(cluster))
    say(cluster, {})
    until(cluster, lambda: cluster.status.lookouts == 2 and watched(cluster))
    cluster.topic.ends[0] += 100
    say(cluster, WORK)
    until(cluster, lambda: cluster.status.state == "Running")
    until(cluster, lambda: watched(cluster))
    cluster.settle()


def outcome(cluster: ScaledCluster) -> object:
    run = cluster.status.run
    assert run is not None and run.attempt is not None
    return (
        cluster.started,
        cluster.status.state,
        run.attempt.number,
        cluster.condition("Ready"),
        cluster.live_drivers(),
        len(lookouts(cluster)),
        sorted(cluster.api.of(STREAM_SAVEPOINTS)),
    )


def told(writes_left: int | None = None, faults: list[Any] | None = None) -> ScaledCluster:
    cluster = a_job()
    cluster.api.writes.clear()
    cluster.api.writes_left = writes_left
    cluster.api.faults = faults or []
    story(cluster)
    return cluster


UNHARMED = told()
WRITES = len(UNHARMED.api.writes)


def test_the_story_is_one():
    assert UNHARMED.started == [(1, 1, 1), (1, 2, 2)]
    assert UNHARMED.status.state == "Sleeping"
    kinds = {(verb, plural) for verb, plural, _ in UNHARMED.api.writes}
    assert kinds >= {("create", "pods"), ("delete", "pods"), ("patch", "streamjobs")}
    assert WRITES > 12


@pytest.mark.parametrize("k", range(WRITES + 1))
def test_killed_after_the_kth_write_it_comes_to_the_same_end(k: int):
    assert outcome(told(writes_left=k)) == outcome(UNHARMED)


@pytest.mark.parametrize("fault", ["refused", "lost", "conflict"])
def test_any_single_write_may_fail(fault: str):
    for k in range(WRITES):
        assert outcome(told(faults=[*([None] * k), fault])) == outcome(UNHARMED), f"{fault} at write {k}"


def test_never_does_a_driver_live_beside_a_lookout_that_looks():
    cluster = a_job()
    for _ in range(200):
        cluster.steps(1, rate=0)
        running = [
            name
            for name in lookouts(cluster)
            if not cluster.api.of(PODS)[name]["metadata"].get("deletionTimestamp")
        ]
        assert not (running and cluster.writers())
        if cluster.moment.minute % 20 == 0 and running:
            wake(cluster, WORK)
    assert len(cluster.started) > 2
