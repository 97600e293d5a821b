"""The autoscaler of a running job: it acts under the same driver, says why, and is quiet otherwise."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from headrace.kube.agent import AgentAddress
from tests.sim.kube.cluster import KEY
from tests.sim.kube.scaled import ScaledCluster

LIMITS = {"max": 8, "lagObjective": "60s"}
ONE_DRIVER = [(1, 1, 1)]


def test_executors_follow_a_ramp_up_and_down_under_the_same_driver():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=100)
    assert cluster.target == 1
    cluster.steps(40, rate=500)
    assert (cluster.target or 0) >= 3
    reason = cluster.status.executors.reason
    assert reason is not None and "rows/s arrive" in reason
    assert cluster.replicas() == cluster.target
    cluster.steps(160, rate=50)
    assert (cluster.target, cluster.replicas()) == (1, 1)
    assert cluster.started == ONE_DRIVER
    assert cluster.status.executors.decided_at is not None


def test_a_steady_job_writes_nothing():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(80, rate=120)
    before = len(cluster.api.writes)
    cluster.steps(240, rate=120)  # an hour
    assert cluster.api.writes[before:] == []
    assert cluster.condition("LagKnown") == ("True", "Measured")
    assert cluster.condition("ScalingLimited") == ("False", "NotLimited")
    assert cluster.condition("DataLossRisk") == ("False", "InTime")
    lag = cluster.status.lag
    assert lag is not None and lag.band == "Ok"


def test_a_broker_that_is_away_freezes_everything():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(60, rate=500)
    target = cluster.target
    assert (target or 0) > 1
    cluster.topic.away = True
    cluster.steps(120, rate=0)
    assert cluster.target == target
    assert cluster.condition("LagKnown") == ("False", "LagUnknown")
    lag = cluster.status.lag
    assert lag is not None and lag.band == "Unknown"
    cluster.topic.away = False
    cluster.steps(60, rate=500)
    assert cluster.condition("LagKnown") == ("True", "Measured")


def its_clock_is_ahead_for_a_while(cluster):
    cluster.clock_error = timedelta(hours=1)
    cluster.steps(8)
    cluster.clock_error = timedelta(0)


def test_a_clock_that_was_ahead_and_is_put_right_does_not_make_it_deaf():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=100)
    its_clock_is_ahead_for_a_while(cluster)
    cluster.steps(40, rate=500)
    assert (cluster.target or 0) >= 3


def test_what_it_learns_is_kept_at_once_when_its_clock_is_right_again():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(20, rate=100)
    its_clock_is_ahead_for_a_while(cluster)
    cluster.steps(40)
    ring, now = cluster.agents.ring, cluster.moment.timestamp()
    assert 0 <= now - ring["memory"]["queries"]["q"]["flows"]["at"] <= 330
    assert sum(now - 600 <= look[0] <= now for look in ring["looks"]) >= 4


def test_the_next_driver_is_heard_also_if_the_clock_of_its_node_is_behind():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(60, rate=100)
    assert cluster.target == 1
    cluster.driver_ahead = -400.0
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.steps(20, rate=900)
    assert (cluster.target or 0) > 1


def test_a_driver_whose_clock_is_behind_has_not_been_without_work_for_as_long():
    cluster = ScaledCluster({**LIMITS, "idle": {"after": "5m"}})
    cluster.driver_ahead = -500.0
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.steps(12, rate=100)
    cluster.steps(12, rate=0)
    assert cluster.status.sleep is None
    cluster.steps(16)
    assert cluster.status.sleep is not None


def test_partitions_that_are_added_are_noticed():
    cluster = ScaledCluster({"max": 12, "lagObjective": "60s"})
    cluster.topic.ends, cluster.topic.committed = [0.0] * 2, [0.0] * 2
    cluster.steps(80, rate=1500)
    assert cluster.condition("ScalingLimited")[0] == "True"
    bound = cluster.target
    cluster.topic.ends += [0.0] * 14
    cluster.topic.committed += [0.0] * 14
    cluster.steps(80, rate=1500)
    assert (cluster.target or 0) > (bound or 0)


def test_a_restarted_operator_keeps_the_target_and_what_was_learned():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(60, rate=500)
    target, writes = cluster.target, len(cluster.api.writes)
    assert (target or 0) >= 3
    assert cluster.agents.ring["memory"]["queries"]["q"]["fit"]["batches"] > 8
    cluster.operator = cluster.new_operator()
    cluster.settle()
    cluster.steps(20, rate=500)
    assert cluster.target == target
    # Nothing is learned anew, and nothing is said again.
    memory = cluster.scaling._jobs[KEY].memory
    assert memory is not None and memory.queries["q"].fit.batches > 40
    assert cluster.status_writes(writes) <= 1


def test_the_target_survives_an_attempt_that_fails():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(60, rate=500)
    target = cluster.target
    assert (target or 0) >= 3
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.steps(4)
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]
    # Spark begins with as many: nothing has to be scaled after the start.
    assert cluster.replicas() == target == cluster.target


def test_the_target_survives_an_upgrade():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(60, rate=500)
    target = cluster.target
    cluster.edit(image="spark:2")
    cluster.steps(6)
    assert cluster.started[-1][0] == 2
    assert cluster.replicas() == target == cluster.target


def test_an_upgrade_waits_while_stopping_the_job_would_cost_rows():
    cluster = ScaledCluster(LIMITS)
    cluster.topic.retention_seconds = 900.0
    cluster.steps(20, rate=100)
    cluster.edit(image="spark:2")
    cluster.steps(6)
    assert cluster.started[-1][0] == 1
    stalled = cluster.status.condition("Stalled")
    assert stalled is not None and "suspend and resume" in stalled.message
    assert cluster.condition("Stalled") == ("True", "DataLossNear")
    ready = cluster.status.condition("Ready")
    assert ready is not None and ready.status == "True"
    # More retention, and it goes on by itself.
    cluster.topic.retention_seconds = 7200.0
    cluster.steps(8)
    assert cluster.started[-1][0] == 2


def test_a_job_that_is_suspended_is_upgraded_whatever_its_source_deletes():
    cluster = ScaledCluster(LIMITS)
    cluster.topic.retention_seconds = 900.0
    cluster.steps(20, rate=100)
    cluster.edit(suspend=True)
    cluster.steps(3)
    cluster.edit(suspend=False, image="spark:2")
    cluster.steps(6)
    assert cluster.started[-1][0] == 2


def test_advice_changes_nothing():
    cluster = ScaledCluster({**LIMITS, "mode": "Advise"}, count=2)
    cluster.steps(80, rate=700)
    assert (cluster.target, cluster.replicas()) == (2, 2)
    reason = cluster.status.executors.reason
    assert reason is not None and reason.startswith("advice only: 2 → ")
    assert cluster.condition("ScalingLimited") == ("False", "AdviceOnly")


def test_off_leaves_the_number_to_others():
    cluster = ScaledCluster({**LIMITS, "mode": "Off"}, count=2)
    cluster.steps(60, rate=700)
    assert (cluster.target, cluster.status.executors.reason) == (2, None)
    cluster.edit(executors={"count": 5})
    cluster.settle()
    assert (cluster.target, cluster.replicas()) == (5, 5)
    assert cluster.condition("LagKnown") == ("True", "Measured")


def test_a_count_that_somebody_sets_beside_the_autoscaler_is_named_and_not_used():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=100)
    cluster.edit(executors={"count": 6})
    cluster.steps(8, rate=100)
    assert (cluster.target, cluster.replicas()) == (1, 1)
    assert cluster.condition("ScalingLimited") == ("False", "AutoscalerRules")
    limited = cluster.status.condition("ScalingLimited")
    assert limited is not None and 'mode "Off"' in limited.message


def test_executors_that_get_no_place_are_not_asked_for_again_and_again():
    cluster = ScaledCluster({"max": 20, "lagObjective": "60s"})
    cluster.room = 2
    cluster.steps(100, rate=900)
    assert cluster.condition("ScalingLimited") == ("True", "QuotaBound")
    limited = cluster.status.condition("ScalingLimited")
    assert limited is not None and "0/3 nodes are available" in limited.message
    asked = cluster.target
    cluster.steps(100, rate=900)
    assert cluster.target == asked


def test_a_suspension_in_the_middle_of_a_start_is_not_how_long_a_start_takes():
    cluster = ScaledCluster({"max": 20, "lagObjective": "60s"})
    cluster.room = 2
    for _ in range(100):
        cluster.steps(1, rate=900)
        if (cluster.target or 0) > 2:
            break
    cluster.steps(2)
    cluster.edit(suspend=True)
    cluster.steps(2)
    cluster.room = 100
    cluster.edit(suspend=False)
    cluster.steps(30)
    assert cluster.ready() == cluster.target
    assert cluster.agents.ring["memory"]["startupSeconds"] < 70


def test_limits_that_are_edited_hold_at_once():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(60, rate=900)
    assert (cluster.target or 0) > 3
    cluster.edit(autoscaling={**LIMITS, "max": 2})
    cluster.settle()
    assert cluster.target == cluster.replicas() == 2
    cluster.edit(autoscaling={**LIMITS, "min": 4}, executors={"count": 4})
    cluster.settle()
    assert cluster.target == cluster.replicas() == 4


def test_fewer_executors_wait_for_the_end_of_a_batch():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(60, rate=900)
    before = cluster.replicas()
    agent = cluster.agent()
    cluster.topic.in_batch = True
    agent.told = cluster.topic.report(at=cluster.moment.timestamp(), executors=before)
    cluster.edit(autoscaling={**LIMITS, "max": 2})
    cluster.pass_once()
    outcome = cluster.pass_once()
    assert (cluster.target, cluster.replicas()) == (2, before)
    assert outcome is not None and outcome.recheck_after == 2
    cluster.topic.in_batch = False
    agent.told = cluster.topic.report(at=cluster.moment.timestamp(), executors=before)
    cluster.pass_once()
    assert cluster.replicas() == 2


def test_a_batch_that_never_ends_does_not_keep_them_for_ever():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(60, rate=900)
    cluster.topic.in_batch = True
    cluster.edit(autoscaling={**LIMITS, "max": 2})
    cluster.steps(8)
    assert cluster.replicas() == 2


def test_a_refused_edit_does_not_change_the_limits_and_the_autoscaler_of_the_run_goes_on():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=100)
    cluster.edit(checkpoint={"s3": {"endpoint": "https://s3.example.com"}})
    cluster.steps(40, rate=500)
    assert cluster.condition("Stalled") == ("True", "StateChange")
    assert (cluster.target or 0) >= 3
    frozen = cluster.target
    cluster.edit(autoscaling={**LIMITS, "max": 2})
    cluster.steps(20, rate=500)
    assert cluster.target == cluster.replicas() == frozen


def test_a_query_that_nobody_can_look_at_any_more_stops_no_look_at_the_others():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=100)
    assert cluster.condition("LagKnown") == ("True", "Measured")
    alone, began = cluster.topic.report, cluster.moment.timestamp()
    (stands_still,) = alone(at=began, executors=1)["queries"]

    def both(*, at, executors):
        report = alone(at=at, executors=executors)
        return {**report, "queries": [*report["queries"], {**stands_still, "name": "other"}]}

    cluster.topic.report = both
    while cluster.condition("LagKnown") == ("True", "Measured"):
        cluster.steps(1)
        assert cluster.moment.timestamp() - began < 400
    known = cluster.status.condition("LagKnown")
    assert known is not None and "query other" in known.message


def test_blackout_windows_hold_the_number():
    window = {"schedule": "0 0 * * *", "duration": "2h"}
    cluster = ScaledCluster({**LIMITS, "blackoutWindows": [window]})
    cluster.steps(60, rate=500)
    assert cluster.target == 1
    reason = cluster.status.executors.reason
    assert reason is not None and "blackout window 0 0 * * *" in reason


def test_near_a_data_loss_the_maximum_is_lifted():
    cluster = ScaledCluster({"max": 2, "emergencyMax": 8, "lagObjective": "60s"})
    cluster.topic.retention_seconds = 1200.0
    cluster.steps(40, rate=200)
    assert (cluster.target or 0) <= 2
    for _ in range(60):
        cluster.steps(1, rate=900)
        if (cluster.target or 0) > 2:
            break
    assert (cluster.target or 0) > 2
    assert cluster.condition("DataLossRisk") == ("True", "RetentionNear")
    lag = cluster.status.lag
    assert lag is not None and lag.band == "AtRisk"
    # It outlives a restart of the operator. When all is read and the danger has passed, it goes back.
    cluster.operator = cluster.new_operator()
    lifted = cluster.target
    cluster.settle()
    assert cluster.target == lifted
    cluster.steps(80, rate=100)
    assert cluster.condition("DataLossRisk") == ("False", "InTime")
    assert (cluster.target or 0) <= 2


def test_without_autoscaling_any_more_nothing_old_is_said():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=500)
    cluster.edit(autoscaling=None)
    cluster.steps(4)
    assert {one.type for one in cluster.status.conditions} == {"Ready", "Reconciling", "Stalled"}
    assert (cluster.target, cluster.status.lag, cluster.status.executors.reason) == (1, None, None)


def test_of_two_operators_only_the_one_that_leads_acts():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=100)
    cluster.leads = False
    before = len(cluster.api.writes)
    cluster.topic.rate = 900
    for _ in range(20):
        cluster.later(15)
        cluster.topic.advance(15, executors=1, at=cluster.moment.timestamp())
        cluster.agent().told = cluster.topic.report(at=cluster.moment.timestamp(), executors=1)
        cluster.pass_once()
    assert cluster.api.writes[before:] == []


def test_what_was_decided_is_kept_in_the_ring():
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=100)
    cluster.steps(60, rate=500)
    ring = cluster.agents.ring
    moves = [one for one in ring["decisions"] if one["asked"] != one["target"]]
    assert moves and all("rows/s" in one["message"] for one in moves)
    assert len(ring["looks"]) >= 20
    times = [point[0] for point in ring["looks"]]
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    "told", [{"queries": 7}, {"queries": [None, {"name": "q", "active": True, "lag": 3}]}]
)
def test_a_report_that_makes_no_sense_harms_nobody(told):
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=100)
    cluster.later(15)
    report = {"phase": "Running", **told}
    asyncio.run(cluster.scaling.look(KEY, AgentAddress("10.0.0.1", "uid"), report))
    assert cluster.scaling.advice(KEY, cluster.scaling._jobs[KEY].uid) is not None
    assert cluster.target == 1


def test_a_fault_of_the_policy_stops_neither_the_operator_nor_other_jobs(monkeypatch):
    cluster = ScaledCluster(LIMITS)
    cluster.steps(40, rate=100)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("headrace.runtime.scaling.look", broken)
        cluster.steps(4, rate=500)
    assert cluster.target == 1
    cluster.steps(60, rate=500)
    assert (cluster.target or 0) >= 3
