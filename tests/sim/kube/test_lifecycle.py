"""The life of a job on a cluster: the real reconciler, on an API server in memory."""

import pytest

from headrace.core.manifests.ownership import ROLE_LABEL
from headrace.kube.resources import CONFIG_MAPS, EVENTS, PODS, SECRETS, SERVICES, STATEFUL_SETS
from tests.sim.kube.cluster import JOB, NAMESPACE, FakeCluster
from tests.sim.kube.kubernetes import runs


def test_a_new_job_becomes_ready_with_all_its_objects(running: FakeCluster):
    assert running.condition("Ready") == ("True", "Running")
    assert running.started == [(1, 1, 1)]
    assert list(running.api.of(PODS)) == ["clicks-r1-a1", "spark-s-clicks-1-0-0"]
    assert list(running.api.of(SERVICES)) == ["clicks-r1-a1"]
    assert list(running.api.of(SECRETS)) == ["clicks-r1-a1"]
    assert sorted(running.api.of(CONFIG_MAPS)) == ["clicks-r1", "clicks-r1-a1"]
    assert running.status.run.image == "spark@sha256:abc"


def test_a_settled_job_costs_no_write(running: FakeCluster):
    before = list(running.api.writes)
    for _ in range(20):
        running.later(600)
        assert running.pass_once() is not None
    assert running.api.writes == before


def test_a_deleted_job_leaves_nothing(running: FakeCluster):
    running.api.remove(running.job_place)
    left = [place for place in running.api.objects if place[0] != EVENTS.plural]
    assert left == []
    assert running.pass_once().status is None


def test_an_edit_drains_seeds_and_starts_the_next_run(running: FakeCluster):
    running.edit(application={"args": ["--x"]})
    running.settle()
    assert runs(running) == [(1, 1), (2, 1)]
    uid = running.api.objects[running.job_place]["metadata"]["uid"]
    assert running.seeds == {2: f"{uid}/run-1"}
    assert running.pins() == ["clicks-r1", "clicks-r2"]
    assert running.condition("Ready") == ("True", "Running")
    assert not [name for name in running.api.of(PODS) if "seed" in name]


def test_a_newer_edit_pins_the_next_run_anew(running: FakeCluster):
    running.edit(application={"args": ["--x"]})
    running.pass_once()
    running.pass_once()
    running.edit(application={"args": ["--y"]})
    running.settle()
    assert runs(running) == [(1, 1), (2, 1)]
    run_file = running.api.of(CONFIG_MAPS)["clicks-r2-a1"]["data"]["run.json"]
    assert '"--y"' in run_file


def test_code_in_a_config_map_is_pinned_and_its_change_is_an_upgrade():
    cluster = FakeCluster({"application": {"configMap": {"name": "code"}}})
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "CodeProblem")
    code = {"metadata": {"name": "code", "namespace": NAMESPACE}, "data": {"job.py": "print(1)"}}
    cluster.api.put_new(CONFIG_MAPS, code)
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
    cluster.api.set((CONFIG_MAPS.plural, NAMESPACE, "code"), {"data": {"job.py": "print(1"}})
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "CodeProblem")
    assert cluster.condition("Ready") == ("True", "Running")
    cluster.api.set((CONFIG_MAPS.plural, NAMESPACE, "code"), {"data": {"job.py": "print(2)"}})
    cluster.settle()
    assert runs(cluster) == [(1, 1), (2, 1)]
    assert cluster.api.of(CONFIG_MAPS)["clicks-r2-a1"]["data"]["code.job.py"] == "print(2)"
    assert cluster.api.of(CONFIG_MAPS)["clicks-r1"]["data"]["code.job.py"] == "print(1)"


def test_suspend_drains_and_resume_goes_on(running: FakeCluster):
    running.edit(suspend=True)
    running.settle()
    assert running.condition("Ready") == ("True", "Suspended")
    assert running.live_drivers() == []
    running.edit(suspend=False)
    running.settle()
    assert runs(running) == [(1, 1), (1, 2)]


@pytest.mark.parametrize(("owned", "words"), [(False, "not this job's"), (True, "lost its label")])
def test_a_pod_that_has_the_drivers_name_and_cannot_be_found_is_named(owned: bool, words: str):
    cluster = FakeCluster()
    owner = [{"uid": cluster.api.objects[("streamjobs", NAMESPACE, JOB)]["metadata"]["uid"]}]
    place = (PODS.plural, NAMESPACE, f"{JOB}-r1-a1")
    meta = {"name": place[2], "namespace": NAMESPACE, "ownerReferences": owner if owned else []}
    cluster.api.put_new(PODS, {"metadata": {**meta, "labels": {ROLE_LABEL: "driver"}}})
    cluster.pass_once()
    cluster.pass_once()
    assert cluster.condition("Ready") == ("False", "NameTaken")
    ready = cluster.status.condition("Ready")
    assert ready is not None and words in ready.message
    assert cluster.started == []


def test_a_driver_without_a_single_executor_is_not_ready_and_says_why(running: FakeCluster):
    """Its queries are active, and stand still."""
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available",
    }
    place = (PODS.plural, NAMESPACE, "spark-s-clicks-1-0-0")
    running.api.set(place, {"status": {"phase": "Pending", "conditions": [unschedulable]}})
    running.settle()
    assert running.condition("Ready") == ("False", "Unschedulable")
    ready = {"type": "Ready", "status": "True"}
    running.api.set(place, {"status": {"phase": "Running", "conditions": [ready]}})
    running.settle()
    assert running.condition("Ready") == ("True", "Running")


def test_executors_are_scaled_under_the_running_driver(running: FakeCluster):
    running.edit(executors={"count": 3})
    running.settle()
    assert running.api.of(STATEFUL_SETS)["spark-s-clicks-1-0"]["spec"]["replicas"] == 3
    assert running.started == [(1, 1, 1)]
    assert running.status.executors.target == 3


def test_a_paused_job_is_left_alone(running: FakeCluster):
    running.api.set(running.job_place, {"metadata": {"annotations": {"headrace.dev/paused": "true"}}})
    running.settle()
    running.end_driver(running.driver_place(), "QueryFailed", 66)
    running.edit(application={"args": ["--x"]})
    running.settle()
    assert running.status.state == "Paused"
    assert running.live_drivers() == []
    running.api.set(running.job_place, {"metadata": {"annotations": None}})
    running.settle()
    assert running.status.state == "Running"


def test_a_quota_is_shown_as_the_reason_and_the_job_starts_when_there_is_room():
    cluster = FakeCluster()
    # The pin, the status, the Event, the Secret, the ConfigMap, the Service; then the pod.
    cluster.api.faults = [*[None] * 6, "quota"]
    assert cluster.pass_once() is None
    cluster.api.faults = [None] * 5 + ["quota"]
    assert cluster.pass_once() is None
    assert cluster.condition("Ready") == ("False", "QuotaExceeded")
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
    assert cluster.started == [(1, 1, 1)]


def test_a_copy_that_fails_is_said_and_tried_again_with_patience(running: FakeCluster):
    running.seed_fails = "the bucket is full"
    running.edit(application={"args": ["--x"]})
    for _ in range(30):
        running.pass_once()
        running.kubelets_work()
    assert running.condition("Stalled") == ("True", "SeedFailed")
    assert "the bucket is full" in running.status.condition("Stalled").message
    tried = [name for verb, _, name in running.api.writes if verb == "create" and "seed" in name]
    assert tried == ["clicks-r2-seed-1"]  # no time has passed
    running.later(60)
    running.seed_fails = None
    running.settle()
    assert runs(running)[-1] == (2, 1)


def test_a_service_that_was_deleted_or_edited_is_repaired(running: FakeCluster):
    service = (SERVICES.plural, NAMESPACE, "clicks-r1-a1")
    good = running.api.objects[service]["spec"]
    running.api.remove(service)
    running.pass_once()
    assert running.api.objects[service]["spec"] == good
    running.api.set(service, {"spec": {"selector": {"headrace.dev/role": "nobody"}}})
    running.pass_once()
    assert running.api.objects[service]["spec"] == good


def test_events_are_told_once(running: FakeCluster):
    events = running.api.of(EVENTS).values()
    assert [(event["type"], event["reason"]) for event in events] == [("Normal", "Starting")]
    running.end_driver(running.driver_place(), "QueryFailed", 66, "boom")
    running.settle()
    reasons = [event["reason"] for event in running.api.of(EVENTS).values()]
    assert sorted(reasons) == ["QueryFailed", "Starting", "Starting"]


def test_a_missing_secret_is_told_and_the_job_goes_on_when_it_is_there():
    cluster = FakeCluster()
    while not cluster.live_drivers():
        cluster.pass_once()
    place = cluster.driver_place()
    waiting = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    cluster.api.set(place, {"status": waiting})
    pod = cluster.api.objects[place]
    said = 'MountVolume.SetUp failed for volume "kafka-sasl" : secret "kafka-user" not found'
    for number, uid in enumerate((pod["metadata"]["uid"], "of-another-pod")):
        event = {
            "metadata": {"name": f"e{number}", "namespace": NAMESPACE},
            "involvedObject": {"uid": uid},
            "reason": "FailedMount",
            "message": said if number == 0 else "not this one",
        }
        cluster.api.put_new(EVENTS, event)
    cluster.later(60)
    cluster.pass_once()
    assert cluster.condition("Ready") == ("False", "FailedMount")
    assert f"spec.kafka.sasl: {said}" in cluster.status.condition("Ready").message
    cluster.api.set(place, {"status": None})
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
