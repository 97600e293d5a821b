"""The warm handover on a cluster: the pod of the candidate becomes the attempt, with all that it has."""

import copy

import pytest

from headrace.kube.resources import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    EVENTS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
)
from tests.sim.kube.cluster import NAMESPACE, FakeCluster

SPEC = {
    "application": {"file": "job.py"},
    "upgrade": {"strategy": "Rehearsed"},
    "restart": {"backoff": {"min": "2s", "max": "8s"}},
}
KINDS = (PODS, SERVICES, SECRETS, CONFIG_MAPS, STATEFUL_SETS)
CANDIDATE = (PODS.plural, NAMESPACE, "clicks-c1")
# More than an upgrade takes.
TICKS = 24


def running(**more: object) -> FakeCluster:
    cluster = FakeCluster({**SPEC, **more})
    cluster.settle()
    assert cluster.status.last_stable is not None
    return cluster


def becomes(cluster: FakeCluster, argument: str) -> FakeCluster:
    cluster.edit(application={"args": [argument]})
    cluster.settle(200)
    return cluster


def tick(cluster: FakeCluster) -> None:
    before = cluster.writers()
    cluster.pass_once()
    cluster.kubelets_work()
    assert len(cluster.writers()) <= 1, f"{before} -> {cluster.writers()}"


def after(ticks: int, **more: object) -> FakeCluster:
    cluster = running(**more)
    cluster.edit(application={"args": ["--x"]})
    for _ in range(ticks):
        tick(cluster)
    return cluster


def until(cluster: FakeCluster, step: str) -> FakeCluster:
    for _ in range(TICKS):
        operation = cluster.status.operation
        if operation is not None and operation.step == step:
            return cluster
        tick(cluster)
    raise AssertionError(f"never {step}")


def ordered() -> FakeCluster:
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    while not cluster.agents.orders:
        cluster.pass_once()
        if not cluster.agents.orders:
            cluster.kubelets_work()
    return cluster


def is_exact(cluster: FakeCluster) -> None:
    assert cluster.stream.sink.lost() == []
    assert cluster.stream.sink.repeated() == 0


def is_quiet(cluster: FakeCluster) -> None:
    writes = list(cluster.api.writes)
    for _ in range(5):
        cluster.later(600)
        cluster.pass_once()
    assert cluster.api.writes == writes


def is_left_in_order(cluster: FakeCluster) -> None:
    """One driver, and of candidates nothing but what it may have become."""
    (own,) = cluster.live_drivers()
    assert cluster.writers() == [own]
    for kind in (SERVICES, SECRETS, CONFIG_MAPS):
        left = {name for name in cluster.api.of(kind) if name.startswith("clicks-c")}
        assert left <= {own}, kind.plural
    is_exact(cluster)
    is_quiet(cluster)


def test_the_pod_of_the_candidate_is_the_first_attempt_of_its_run():
    cluster = becomes(running(), "--x")
    assert cluster.started == [(1, 1, 1), (2, 1, 2)]
    assert cluster.live_drivers() == ["clicks-c1"]
    assert "clicks-r2-a1" not in cluster.api.of(PODS)
    assert cluster.seeds == {}  # no keeper was needed
    labels = cluster.api.of(PODS)["clicks-c1"]["metadata"]["labels"]
    wanted = {"role": "driver", "run": "2", "attempt": "1", "epoch": "2", "candidate": "1"}
    assert {key: labels[f"headrace.dev/{key}"] for key in wanted} == wanted
    assert cluster.agents.orders == [{"run": 2, "attempt": 1, "epoch": 2, "acceptPending": True}]
    attempt = cluster.status.run.attempt
    assert (attempt.state, attempt.activation.candidate, attempt.activation.seeded) == ("Started", 1, True)
    assert attempt.uid == cluster.api.of(PODS)["clicks-c1"]["metadata"]["uid"]
    assert cluster.status.run.image == "spark@sha256:abc"
    assert cluster.status.last_stable.run == 2
    assert cluster.condition("Rehearsed") == ("True", "Passed")
    is_left_in_order(cluster)


def test_its_service_knows_it_before_and_after():
    """Executors that come later find the driver by it, and no executor is taken for the driver."""
    cluster = running()
    until_standby(cluster)
    selector = cluster.api.of(SERVICES)["clicks-c1"]["spec"]["selector"]
    before = cluster.api.of(PODS)["clicks-c1"]["metadata"]["labels"]
    cluster.settle(200)
    after = cluster.api.of(PODS)["clicks-c1"]["metadata"]["labels"]
    assert before != after
    assert cluster.api.of(SERVICES)["clicks-c1"]["spec"]["selector"] == selector
    assert selector.items() <= before.items() and selector.items() <= after.items()
    assert selector == {"headrace.dev/job": "clicks", "headrace.dev/candidate-driver": "clicks-c1"}


def until_standby(cluster: FakeCluster) -> None:
    cluster.edit(application={"args": ["--x"]})
    for _ in range(TICKS):
        if [one for one in cluster.agents.by_uid.values() if one.phase == "Standby"]:
            return
        tick(cluster)
    raise AssertionError("nobody waits")


def test_its_service_is_put_back_and_its_executors_are_scaled():
    cluster = becomes(running(), "--x")
    cluster.api.remove((SERVICES.plural, NAMESPACE, "clicks-c1"))
    cluster.settle()
    assert "clicks-c1" in cluster.api.of(SERVICES)
    cluster.edit(executors={"count": 5})
    cluster.settle()
    assert cluster.api.of(STATEFUL_SETS)["spark-s-clicks-c1-0"]["spec"]["replicas"] == 5
    is_left_in_order(cluster)


def test_a_count_that_changes_while_it_waits_holds_when_it_has_taken_over():
    cluster = running()
    until_standby(cluster)
    cluster.edit(executors={"count": 4})
    cluster.settle(200)
    assert cluster.api.of(STATEFUL_SETS)["spark-s-clicks-c1-0"]["spec"]["replicas"] == 4


def test_a_budget_protects_it_as_any_driver():
    cluster = running(driver={"evictions": "Block"})
    becomes(cluster, "--x")
    (budget,) = cluster.api.of(DISRUPTION_BUDGETS).values()
    labels = cluster.api.of(PODS)["clicks-c1"]["metadata"]["labels"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_when_it_fails_an_ordinary_attempt_follows_and_its_executors_go():
    cluster = becomes(running(), "--x")
    assert "spark-s-clicks-c1-0-0" in cluster.api.of(PODS)
    cluster.end_driver(CANDIDATE, "QueryFailed", 66, "KeyError: 'price'")
    cluster.settle(200)
    assert cluster.live_drivers() == ["clicks-r2-a2"]
    assert cluster.started[-1] == (2, 2, 3)
    assert "spark-s-clicks-c1-0" not in cluster.api.of(STATEFUL_SETS)
    last = cluster.status.last_termination
    assert (last.run, last.attempt, last.candidate, last.reason) == (2, 1, 1, "QueryFailed")
    assert "clicks-c1" in cluster.api.of(PODS)  # somebody may want its log
    is_left_in_order(cluster)
    becomes(cluster, "--y")
    cluster.edit(restartNonce="again")
    cluster.settle(200)
    assert "clicks-c1" not in cluster.api.of(PODS)


def test_on_a_lost_node_nothing_is_started_beside_it():
    cluster = becomes(running(), "--x")
    cluster.agent().deaf = True
    cluster.api.set(CANDIDATE, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    cluster.pass_once()
    cluster.later(600)
    cluster.pass_once()
    cluster.pass_once()
    assert cluster.condition("Stalled") == ("True", "NodeLost")
    assert cluster.live_drivers() == ["clicks-c1"]


def test_it_is_drained_like_any_driver():
    cluster = becomes(running(), "--x")
    assert cluster.agents.snapshots_first == [True], "who takes over loads the state while nobody commits"
    cluster.edit(suspend=True)
    cluster.settle()
    assert cluster.agents.snapshots_first == [True, False]
    assert cluster.status.state == "Suspended"
    assert cluster.live_drivers() == []
    cluster.edit(suspend=False)
    cluster.settle()
    assert cluster.started[-1] == (2, 2, 3)
    is_left_in_order(cluster)


def test_the_next_upgrade_follows_it_as_any_run():
    cluster = becomes(becomes(running(), "--x"), "--y")
    assert cluster.live_drivers() == ["clicks-c2"]
    assert cluster.started == [(1, 1, 1), (2, 1, 2), (3, 1, 3)]
    assert cluster.status.last_stable.run == 3
    is_left_in_order(cluster)


def test_a_deleted_job_takes_it_along():
    for ticks in range(TICKS):
        cluster = after(ticks, deletionPolicy="Delete")
        cluster.delete_job()
        cluster.settle(200)
        assert not cluster.exists, f"after {ticks} ticks"
        assert [name for name in cluster.api.of(PODS) if name.startswith("clicks-c")] == []
        assert cluster.writers() == []


@pytest.mark.parametrize("claimed", [False, True])
def test_one_that_dies_with_the_order_is_followed_by_an_ordinary_attempt(claimed: bool):
    cluster = ordered()
    for _ in range(2 if claimed else 0):
        cluster.kubelets_work()
    assert cluster.agents.by_uid[f"{cluster.job_uid()}-c1"].claimed == claimed
    cluster.end_driver(CANDIDATE, "Killed", 137, words=False)
    cluster.settle(200)
    assert cluster.live_drivers() == ["clicks-r2-a2"]
    assert set(cluster.seeds) == {2}  # a keeper makes sure
    assert cluster.status.last_stable.run == 2
    is_left_in_order(cluster)


def test_a_pod_that_is_gone_without_a_trace_is_followed_too():
    cluster = ordered()
    cluster.agents.by_uid.pop(f"{cluster.job_uid()}-c1")
    cluster.api.remove(CANDIDATE)
    cluster.settle(200)
    assert cluster.live_drivers() == ["clicks-r2-a2"]
    is_left_in_order(cluster)


def test_one_that_falls_silent_with_the_order_is_a_writer_until_it_has_ended():
    cluster = ordered()
    agent = cluster.agents.by_uid[f"{cluster.job_uid()}-c1"]
    agent.deaf = True
    for _ in range(5):
        cluster.pass_once()
        cluster.later(5)
    assert "clicks-r2-a2" not in cluster.api.of(PODS)
    cluster.later(60)
    for _ in range(3):
        cluster.pass_once()
    # Asked by signal to go, it ends, and only then another one starts.
    assert cluster.api.of(PODS)["clicks-c1"]["metadata"]["deletionTimestamp"]
    assert cluster.live_drivers() == ["clicks-c1"]
    agent.deaf = False
    cluster.settle(200)
    assert cluster.live_drivers() == ["clicks-r2-a2"]
    is_left_in_order(cluster)


def test_a_store_that_fails_is_tried_again_and_then_the_upgrade_is_cold():
    cluster = running()
    cluster.seed_fails = "503"
    cluster.edit(application={"args": ["--x"]})
    until(cluster, "Activating")
    for _ in range(4):
        tick(cluster)
    assert len(cluster.agents.orders) > 1
    cluster.later(40)
    tick(cluster)
    tick(cluster)
    cluster.seed_fails = None
    cluster.settle(200)
    assert cluster.live_drivers() == ["clicks-r2-a2"]
    is_left_in_order(cluster)


def test_a_newer_edit_supersedes_at_any_step():
    for ticks in range(TICKS):
        cluster = becomes(after(ticks), "--y")
        pod = cluster.api.of(PODS)[cluster.live_drivers()[0]]
        told = cluster.api.of(CONFIG_MAPS)[pod["metadata"]["name"]]["data"]["run.json"]
        assert '"--y"' in told, f"after {ticks} ticks"
        assert cluster.status.last_stable.run == cluster.status.run.number
        is_left_in_order(cluster)


def test_the_candidate_may_die_at_any_step():
    for ticks in range(TICKS):
        cluster = after(ticks)
        if CANDIDATE in cluster.api.objects and "clicks-c1" not in cluster.writers():
            cluster.end_driver(CANDIDATE, "Killed", 137, words=False)
        cluster.settle(200)
        assert cluster.status.run.number == 2, f"after {ticks} ticks"
        assert cluster.status.last_stable.run == 2
        is_left_in_order(cluster)


def outcome(cluster: FakeCluster) -> object:
    objects = [sorted(cluster.api.of(kind)) for kind in KINDS]
    return cluster.started, cluster.seeds, objects, cluster.condition("Rehearsed"), cluster.status.state


def test_killed_after_the_kth_write_it_comes_to_the_same_end():
    unharmed = running()
    begun = len(unharmed.api.writes)
    becomes(unharmed, "--x")
    kinds = {(verb, plural) for verb, plural, _ in unharmed.api.writes[begun:]}
    assert ("patch", "pods") in kinds  # the labels, just before the order
    for k in range(len(unharmed.api.writes) - begun + 1):
        cluster = running()
        cluster.api.writes_left = k
        becomes(cluster, "--x")
        assert outcome(cluster) == outcome(unharmed), f"killed after write {k}"
        is_left_in_order(cluster)


@pytest.mark.parametrize("fault", ["refused", "lost", "conflict"])
def test_any_single_write_may_fail(fault: str):
    unharmed = running()
    begun = len(unharmed.api.writes)
    becomes(unharmed, "--x")
    for k in range(len(unharmed.api.writes) - begun):
        cluster = running()
        cluster.api.faults = [*([None] * k), fault]
        becomes(cluster, "--x")
        assert outcome(cluster) == outcome(unharmed), f"{fault} at write {k}"


def test_a_zombie_of_it_is_never_joined_by_another_writer():
    """A pod that has the labels may have written, whatever the status says by now."""
    cluster = becomes(running(), "--x")
    zombies = {kind: copy.deepcopy(cluster.api.of(kind)["clicks-c1"]) for kind in (PODS, SERVICES)}
    cluster.end_driver(CANDIDATE, "QueryFailed", 66)
    cluster.settle(200)
    assert "clicks-c1" not in cluster.api.of(SERVICES)
    cluster.api.remove(CANDIDATE)
    for kind, zombie in zombies.items():
        cluster.api.put_new(kind, zombie)
    cluster.pass_once()
    assert cluster.condition("Reconciling") == ("True", "WaitingForWriter")
    assert cluster.api.of(PODS)["clicks-c1"]["metadata"].get("deletionTimestamp")
    assert "clicks-c1" in cluster.api.of(SERVICES)  # its executors find it while it drains


def test_the_order_does_not_rest_on_hearsay():
    """A driver that the watch has not told of yet: nobody takes over beside it."""
    cluster = running()
    until_standby(cluster)
    while cluster.live_drivers():
        cluster.pass_once()
        cluster.kubelets_work()
    unheard = copy.deepcopy(cluster.api.of(PODS)["clicks-r1-a1"])
    unheard["metadata"] |= {"name": "clicks-r1-a2", "uid": "another"}
    unheard["metadata"]["labels"]["headrace.dev/attempt"] = "2"
    running_still = {"name": "driver", "state": {"running": {}}}
    unheard["status"] = {"phase": "Running", "podIP": "10.0.0.3", "containerStatuses": [running_still]}
    cluster.hear()
    cluster.watch_pace = 0
    cluster.api.put_new(PODS, unheard)
    cluster.pass_once()
    assert cluster.agents.orders == []
    assert cluster.status.run.number == 1


def test_the_order_is_given_in_the_pass_that_sees_the_old_driver_ended():
    """Nobody writes meanwhile: no pass is wasted, and none is waited for."""
    cluster = running()
    until_standby(cluster)
    while cluster.live_drivers():
        outcome = cluster.pass_once()
        cluster.kubelets_work()
    assert outcome.recheck_after <= 1
    assert cluster.agents.orders == []
    outcome = cluster.pass_once()
    assert len(cluster.agents.orders) == 1
    assert outcome.recheck_after <= 1


def test_an_upgrade_that_goes_well_warns_of_nothing():
    cluster = becomes(running(), "--x")
    told = {one["reason"]: one["type"] for one in cluster.api.of(EVENTS).values()}
    assert {"Upgrade", "Rehearsed", "Activating", "HandedOver", "Promoted"} <= set(told)
    assert set(told.values()) == {"Normal"}, told
