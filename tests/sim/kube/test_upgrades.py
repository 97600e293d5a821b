"""Upgrades on a cluster: verified, rolled back, by hand; the operator killed after every write of it."""

import json

import pytest

from headrace.kube.resources import CONFIG_MAPS, PODS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster

SPEC = {"application": {"file": "job.py"}, "restart": {"backoff": {"min": "2s", "max": "8s"}}}
BAD = ["crash", "crash-after-2", "never", "hang"]
# As an agent tells of a query that still asks its source how far it reaches.
SOURCE_AWAY = {"name": "q", "active": True, "triggerActive": True, "lag": {"known": False, "rows": None}}


def running(spec: dict | None = None) -> FakeCluster:
    cluster = FakeCluster(spec or SPEC)
    cluster.settle()
    assert cluster.status.last_stable is not None
    return cluster


def becomes(cluster: FakeCluster, *args: str) -> None:
    cluster.edit(application={"args": list(args)})
    cluster.settle(200)


def versions(cluster: FakeCluster) -> list[str]:
    pins = cluster.api.of(CONFIG_MAPS)
    runs = sorted({run for run, _, _ in cluster.started} | {cluster.status.run.number})
    specs = [json.loads(pins[f"clicks-r{run}"]["data"]["spec.json"]) for run in runs]
    return [" ".join(spec["application"].get("args", [])) for spec in specs]


def annotate(cluster: FakeCluster, text: str | None) -> None:
    cluster.api.set(cluster.job_place, {"metadata": {"annotations": {"headrace.dev/rollback": text}}})


def is_exact_and_quiet(cluster: FakeCluster) -> None:
    assert cluster.stream.sink.lost() == []
    assert cluster.stream.sink.repeated() == 0
    is_quiet(cluster)


def is_quiet(cluster: FakeCluster) -> None:
    writes = list(cluster.api.writes)
    for _ in range(10):
        cluster.later(600)
        cluster.pass_once()
    assert cluster.api.writes == writes


def test_a_good_version_is_promoted():
    cluster = running()
    becomes(cluster, "--x")
    assert cluster.status.last_stable.run == 2
    assert cluster.status.last_stable.image == "spark@sha256:abc"
    assert [entry.outcome for entry in cluster.status.history] == ["Replaced"]
    is_exact_and_quiet(cluster)


@pytest.mark.parametrize(
    "told",
    [{"queries": []}, {}, {"queries": [SOURCE_AWAY]}],
    ids=["no query", "the first batch goes on", "its source does not answer"],
)
def test_a_first_run_is_stable_once_it_has_shown_a_batch(told: dict):
    cluster = FakeCluster(SPEC)
    while not cluster.live_drivers() or cluster.status.state != "Running":
        cluster.pass_once()
        cluster.kubelets_work()
    agent = cluster.agent()
    agent.busy, agent.told = True, told
    for _ in range(5):
        cluster.later(600)
        outcome = cluster.pass_once()
    assert cluster.status.last_stable is None
    assert outcome is not None and outcome.recheck_after is not None
    agent.busy, agent.told = False, {}
    cluster.pass_once()
    assert cluster.status.last_stable.run == 1


def test_a_version_whose_source_does_not_answer_is_not_promoted_and_its_failure_rolls_it_back():
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    while cluster.status.operation is None or cluster.status.operation.step != "Verifying":
        cluster.pass_once()
        cluster.kubelets_work()
    cluster.agent().told = {"queries": [SOURCE_AWAY]}
    for _ in range(5):
        cluster.later(600)
        cluster.pass_once()
    assert cluster.status.last_stable.run == 1
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.settle(200)
    assert cluster.condition("RolledBack")[0] == "True"
    assert cluster.status.last_stable.run == 3


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_version_is_rolled_back(bad: str):
    cluster = running()
    becomes(cluster, bad)
    assert cluster.status.run.number == 3
    assert versions(cluster)[-1] == ""
    assert cluster.condition("RolledBack")[0] == "True"
    assert cluster.condition("Stalled") == ("True", "RolledBack")
    assert cluster.condition("Ready") == ("True", "Running")
    is_exact_and_quiet(cluster)


def test_a_rollback_brings_back_the_very_image_and_code():
    spec = {**SPEC, "application": {"configMap": {"name": "code"}}, "image": "acme/clicks:1"}
    cluster = FakeCluster(spec)
    code = {"metadata": {"name": "code", "namespace": NAMESPACE}, "data": {"job.py": "print(1)"}}
    cluster.api.put_new(CONFIG_MAPS, code)
    cluster.settle()
    cluster.api.set((CONFIG_MAPS.plural, NAMESPACE, "code"), {"data": {"job.py": "print(2)"}})
    cluster.edit(application={"args": ["crash"]}, image="acme/clicks:2")
    cluster.settle(200)
    driver = cluster.api.of(PODS)["clicks-r3-a1"]["spec"]["containers"][0]
    assert driver["image"] == "spark@sha256:abc"  # by digest, as run 1 had it
    made = cluster.api.of(CONFIG_MAPS)["clicks-r3-a1"]["data"]
    assert made["code.job.py"] == "print(1)"
    assert json.loads(made["run.json"])["application"]["args"] == []


def test_files_from_s3_come_from_the_copies_of_the_run_that_had_them():
    cluster = running({**SPEC, "application": {"file": "s3://acme/job.py"}})
    cluster.edit(application={"args": ["crash"]})
    commands = []
    for _ in range(30):
        cluster.pass_once()
        keepers = [pod for name, pod in cluster.api.of(PODS).items() if "-r3-seed-" in name]
        commands += [pod["spec"]["containers"][0]["command"] for pod in keepers]
        cluster.kubelets_work()
    uid = cluster.api.objects[cluster.job_place]["metadata"]["uid"]
    assert {f"--code-of={uid}/run-1", f"--incumbent={uid}/run-1", f"--from={uid}/run-2"} <= set(commands[0])
    assert "rollback" in commands[0]


def test_the_pin_of_the_last_stable_run_outlives_many_edits():
    """Edited again and again before any was proven: the way back is still there."""
    cluster = running()
    for number in range(6):
        cluster.edit(application={"args": [f"--{number}"]})
        for _ in range(8):
            cluster.pass_once()
            cluster.kubelets_work()
    assert cluster.status.last_stable.run == 1
    assert cluster.status.run.number == 7
    becomes(cluster, "crash")
    assert versions(cluster)[-1] == ""
    assert cluster.status.history[0].outcome == "RolledBack"
    assert {entry.outcome for entry in cluster.status.history[1:6]} == {"Superseded"}
    is_exact_and_quiet(cluster)


def test_a_rollback_by_annotation():
    cluster = running()
    becomes(cluster, "--x")
    becomes(cluster, "--y")
    annotate(cluster, "3 to 1")
    cluster.settle(200)
    assert versions(cluster) == ["", "--x", "--y", ""]
    assert cluster.condition("RolledBack") == ("True", "Requested")
    assert cluster.status.run.image == "spark@sha256:abc"
    is_exact_and_quiet(cluster)
    annotate(cluster, "yesterday")
    cluster.settle(200)
    assert cluster.condition("Stalled") == ("True", "RolledBack")  # what stands rejected comes first
    becomes(cluster, "--z")
    assert cluster.condition("Stalled") == ("True", "BadRollback")
    annotate(cluster, None)
    cluster.settle(200)
    assert cluster.condition("Stalled") == ("False", "Settled")
    is_exact_and_quiet(cluster)


def test_executors_that_find_no_room_count_as_never_started():
    cluster = running()
    cluster.edit(application={"args": ["--x"]}, executors={"cores": 64})
    for _ in range(10):
        cluster.pass_once()
        cluster.kubelets_work()
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}
    place = (PODS.plural, NAMESPACE, "spark-s-clicks-2-0-0")
    cluster.api.set(place, {"status": {"phase": "Pending", "conditions": [full]}})
    for _ in range(70):
        cluster.pass_once()
        cluster.later(10)
    assert cluster.status.operation is not None and cluster.status.operation.kind == "Rollback"
    assert cluster.condition("RolledBack") == ("True", "NeverStarted")
    assert "0/3" in cluster.status.condition("RolledBack").message


def story(cluster: FakeCluster, bad: str) -> None:
    becomes(cluster, bad)
    becomes(cluster, "--fixed")


def outcome(cluster: FakeCluster) -> object:
    return (
        versions(cluster),
        cluster.seeds,
        cluster.status.state,
        cluster.condition("Ready"),
        cluster.condition("RolledBack"),
        [(entry.run, entry.outcome) for entry in cluster.status.history],
        cluster.status.last_stable.run,
        sorted(cluster.api.of(PODS)),
        sorted(cluster.api.of(CONFIG_MAPS)),
    )


@pytest.mark.parametrize("bad", ["crash-after-2", pytest.param("crash", marks=pytest.mark.full)])
def test_killed_after_the_kth_write_it_comes_to_the_same_end(bad: str):
    unharmed = running()
    begun = len(unharmed.api.writes)
    story(unharmed, bad)
    writes = len(unharmed.api.writes) - begun
    assert writes > 40
    for k in range(writes + 1):
        cluster = running()
        cluster.api.writes_left = k
        story(cluster, bad)
        assert outcome(cluster) == outcome(unharmed), f"killed after write {k}"
        is_exact_and_quiet(cluster)


@pytest.mark.parametrize("fault", ["refused", "lost", "conflict"])
def test_any_single_write_may_fail(fault: str):
    unharmed = running()
    begun = len(unharmed.api.writes)
    story(unharmed, "crash-after-2")
    for k in range(0, len(unharmed.api.writes) - begun, 9):
        cluster = running()
        cluster.api.faults = [*([None] * k), fault]
        story(cluster, "crash-after-2")
        assert outcome(cluster) == outcome(unharmed), f"{fault} at write {k}"
        is_exact_and_quiet(cluster)
