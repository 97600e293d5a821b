"""The life of a job on a cluster: the real reconciler, on an API server in memory."""

import pytest

from headrace.core.manifests.ownership import ROLE_LABEL
from headrace.kube.resources import CONFIG_MAPS, EVENTS, PODS, SECRETS, SERVICES, STATEFUL_SETS
from tests.sim.kube.cluster import JOB, NAMESPACE, FakeCluster


@pytest.fixture
def running() -> FakeCluster:
    cluster = FakeCluster()
    cluster.settle()
    assert cluster.status.state == "Running"
    return cluster


def runs(cluster: FakeCluster) -> list[tuple[int, int]]:
    return [(run, attempt) for run, attempt, _ in cluster.started]


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


def test_a_killed_driver_is_followed_by_the_next_attempt_with_the_same_image(running: FakeCluster):
    running.end_driver(running.driver_place(), "OOMKilled", 137, words=False)
    running.settle()
    assert running.started == [(1, 1, 1), (1, 2, 2)]
    assert running.status.last_termination.reason == "OutOfMemory"
    driver = running.api.of(PODS)["clicks-r1-a2"]["spec"]["containers"][0]
    assert driver["image"] == "spark@sha256:abc"


def test_the_status_says_where_it_failed_and_where_its_log_is(running: FakeCluster):
    frame = {"file": "/app/job.py", "line": 14, "code": "return 1 // 0"}
    log_file = "s3://streams/checkpoints/shop/clicks/u/run-1/_logs/attempt-1.log"
    place = running.driver_place()
    running.end_driver(place, "QueryFailed", 66, "boom", userFrame=frame, logFile=log_file)
    running.settle()
    last = running.status.last_termination
    assert (last.log_file, last.user_frame.to_manifest()) == (log_file, frame)


def test_last_words_that_make_no_sense_are_no_obstacle(running: FakeCluster):
    nonsense = {"userFrame": {"file": 3}, "logFile": ["x"], "errorClass": 7}
    running.end_driver(running.driver_place(), "QueryFailed", 66, "boom", **nonsense)
    running.settle()
    last = running.status.last_termination
    assert (last.reason, last.log_file, last.user_frame) == ("QueryFailed", None, None)
    assert runs(running) == [(1, 1), (1, 2)]


def test_the_executors_of_a_driver_that_ended_are_removed(running: FakeCluster):
    place = running.driver_place()
    assert list(running.api.of(STATEFUL_SETS)) == ["spark-s-clicks-1-0"]
    running.end_driver(place, "QueryFailed", 66)
    running.pass_once()
    assert list(running.api.of(STATEFUL_SETS)) == []


def test_only_the_last_ended_attempt_is_kept_for_its_log(running: FakeCluster):
    for _ in range(4):
        running.end_driver(running.driver_place(), "QueryFailed", 66)
        running.settle()
    assert sorted(running.api.of(PODS)) == ["clicks-r1-a4", "clicks-r1-a5", "spark-s-clicks-5-0-0"]
    assert sorted(running.api.of(SECRETS)) == ["clicks-r1-a4", "clicks-r1-a5"]
    assert sorted(running.api.of(SERVICES)) == ["clicks-r1-a4", "clicks-r1-a5"]


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


def test_an_earlier_lineage_waits_for_an_answer_and_is_then_gone_on_from():
    cluster = FakeCluster()
    cluster.earlier = {"uid": "older", "lastRun": 4}
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "EarlierLineage")
    assert cluster.started == []
    cluster.edit(application={"args": ["--other"]})  # no way around it
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "EarlierLineage")
    cluster.edit(startFrom={"latest": True})
    cluster.settle()
    assert cluster.seeds[1] == "older/run-4"
    assert cluster.condition("Ready") == ("True", "Running")
    assert runs(cluster) == [(1, 2), (2, 1)]  # and then the edit that waited


def test_an_earlier_lineage_may_be_left_behind():
    cluster = FakeCluster()
    cluster.earlier = {"uid": "older", "lastRun": 4}
    cluster.settle()
    cluster.edit(startFrom={"none": True})
    cluster.settle()
    assert cluster.seeds == {}
    assert cluster.condition("Ready") == ("True", "Running")


def test_told_from_the_beginning_an_earlier_lineage_is_gone_on_from():
    cluster = FakeCluster({"application": {"file": "job.py"}, "startFrom": {"latest": True}})
    cluster.earlier = {"uid": "older", "lastRun": 4}
    cluster.settle()
    assert cluster.seeds == {1: "older/run-4"}
    assert cluster.condition("Ready") == ("True", "Running")


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


def test_a_driver_on_a_lost_node_is_never_replaced_unless_the_spec_says_so(running: FakeCluster):
    place = running.driver_place()
    stamp = running.moment.isoformat().replace("+00:00", "Z")
    agent = running.agent()
    agent.deaf = True
    running.api.set(place, {"metadata": {"deletionTimestamp": stamp}})
    running.pass_once()
    running.later(120)
    for _ in range(5):
        running.pass_once()
    assert running.condition("Stalled") == ("True", "NodeLost")
    assert running.started == [(1, 1, 1)]
    running.edit(lostNode="Force")
    running.pass_once()
    assert place not in running.api.objects
    running.settle()
    assert runs(running)[-1] == (1, 2)


def test_a_silent_agent_is_believed_for_a_while_and_then_said(running: FakeCluster):
    running.agent().deaf = True
    running.pass_once()
    running.later(30)
    running.pass_once()
    assert running.condition("Ready") == ("True", "Running")
    running.later(60)
    running.pass_once()
    assert running.condition("Ready") == ("False", "AgentSilent")
    assert running.live_drivers() == ["clicks-r1-a1"]
    running.agent().deaf = False
    running.settle()
    assert running.condition("Ready") == ("True", "Running")


def test_a_driver_without_an_agent_is_drained_by_deleting_its_pod(running: FakeCluster):
    running.agent().deaf = True
    running.edit(suspend=True)
    running.settle()
    assert ("delete", "pods", "clicks-r1-a1") in running.api.writes
    assert running.condition("Ready") == ("True", "Suspended")


def test_a_driver_that_does_not_end_when_asked_is_deleted_in_time(running: FakeCluster):
    running.edit(suspend=True)
    running.pass_once()
    assert running.agent().drains
    running.later(100)
    running.pass_once()
    assert ("delete", "pods", "clicks-r1-a1") not in running.api.writes
    running.later(60)
    running.pass_once()
    assert ("delete", "pods", "clicks-r1-a1") in running.api.writes


def test_an_evicted_driver_whose_pod_is_gone_at_once_drained_peacefully(running: FakeCluster):
    stamp = running.moment.isoformat().replace("+00:00", "Z")
    running.api.set(running.driver_place(), {"metadata": {"deletionTimestamp": stamp}})
    running.kubelets_work()
    assert running.api.of(PODS) == {}
    running.settle()
    assert running.status.last_termination.reason == "Drained"
    assert running.status.restarts.total == 0
    assert runs(running) == [(1, 1), (1, 2)]


def test_a_service_that_was_deleted_or_edited_is_repaired(running: FakeCluster):
    service = (SERVICES.plural, NAMESPACE, "clicks-r1-a1")
    good = running.api.objects[service]["spec"]
    running.api.remove(service)
    running.pass_once()
    assert running.api.objects[service]["spec"] == good
    running.api.set(service, {"spec": {"selector": {"headrace.dev/role": "nobody"}}})
    running.pass_once()
    assert running.api.objects[service]["spec"] == good


def test_a_pod_of_an_earlier_job_of_the_same_name_is_waited_for():
    cluster = FakeCluster()
    labels = {
        "headrace.dev/job": JOB,
        "headrace.dev/role": "driver",
        "headrace.dev/run": "3",
        "headrace.dev/attempt": "1",
    }
    owners = [{"uid": "somebody-else"}]
    old = {"name": "clicks-r3-a1", "namespace": NAMESPACE, "labels": labels, "ownerReferences": owners}
    cluster.api.put_new(PODS, {"metadata": old, "status": {"phase": "Running"}})
    for _ in range(6):
        cluster.pass_once()
    assert cluster.condition("Ready") == ("False", "WaitingForWriter")
    assert "clicks-r1-a1" not in cluster.api.of(PODS)
    cluster.api.remove((PODS.plural, NAMESPACE, "clicks-r3-a1"))
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")


def test_a_pod_of_an_earlier_job_that_has_ended_holds_nothing_up():
    """Such as the keeper that removed its checkpoints: nobody owns it, so nobody takes it away."""
    cluster = FakeCluster()
    labels = {"headrace.dev/job": "clicks", "headrace.dev/role": "deletion", "headrace.dev/lineage": "older"}
    keeper = {"metadata": {"name": "clicks-older-delete-1", "namespace": NAMESPACE, "labels": labels}}
    cluster.api.put_new(PODS, keeper)
    place = (PODS.plural, NAMESPACE, "clicks-older-delete-1")
    cluster.api.set(place, {"status": {"phase": "Running"}})
    cluster.pass_once()
    assert cluster.live_drivers() == []
    cluster.api.set(place, {"status": {"phase": "Succeeded"}})
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")


def test_a_pin_of_another_version_of_headrace_is_no_obstacle(running: FakeCluster):
    """Of an old run it does not matter. Of the run itself it cannot be compared: so the spec rules."""
    running.edit(application={"args": ["--x"]})
    running.settle()
    for name in ("clicks-r1", "clicks-r2"):
        pin = running.api.objects[(CONFIG_MAPS.plural, NAMESPACE, name)]
        pin["data"]["spec.json"] = pin["data"]["spec.json"].replace("{", '{"ofTheFuture": 1, ', 1)
        running.operator = running.new_operator()
        running.settle()
    assert runs(running) == [(1, 1), (2, 1), (3, 1)]
    assert running.condition("Ready") == ("True", "Running")


def test_an_attempt_of_a_run_without_a_pin_says_what_it_lacks():
    """The pin was deleted by hand, and the code as it stands cannot make another run."""
    cluster = FakeCluster({"application": {"configMap": {"name": "code"}}})
    code = {"metadata": {"name": "code", "namespace": NAMESPACE}, "data": {"job.py": "print(1)"}}
    cluster.api.put_new(CONFIG_MAPS, code)
    cluster.settle()
    cluster.api.set((CONFIG_MAPS.plural, NAMESPACE, "code"), {"data": {"job.py": "print(1"}})
    cluster.api.remove((CONFIG_MAPS.plural, NAMESPACE, "clicks-r1"))
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    for _ in range(4):
        cluster.pass_once()
        cluster.later(60)
    assert cluster.condition("Ready") == ("False", "NoPin")
    cluster.api.set((CONFIG_MAPS.plural, NAMESPACE, "code"), {"data": {"job.py": "print(2)"}})
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")


def test_where_neither_spec_nor_pin_can_be_read_the_status_says_so(running: FakeCluster):
    pin = running.api.objects[(CONFIG_MAPS.plural, NAMESPACE, "clicks-r1")]
    pin["data"]["spec.json"] = pin["data"]["spec.json"].replace("{", '{"ofTheFuture": 1, ', 1)
    running.edit(ofTheFuture=1)
    running.operator = running.new_operator()
    running.pass_once()
    assert running.condition("Stalled") == ("True", "InvalidSpec")
    assert running.live_drivers() == ["clicks-r1-a1"]


def test_a_spec_that_cannot_be_read_leaves_the_running_run_alone(running: FakeCluster):
    running.edit(trigger={"mode": "Sometimes"})
    running.settle()
    assert running.condition("Stalled") == ("True", "InvalidSpec")
    assert running.condition("Ready") == ("True", "Running")
    running.end_driver(running.driver_place(), "QueryFailed", 66)
    running.settle()
    assert runs(running) == [(1, 1), (1, 2)]
    running.edit(trigger={"mode": "Continuous"})
    running.settle()
    assert running.condition("Stalled")[0] == "False"
    assert runs(running) == [(1, 1), (1, 2)]


def test_a_new_job_whose_spec_cannot_be_read_is_stalled():
    cluster = FakeCluster({"application": {}})
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "InvalidSpec")
    assert cluster.api.of(PODS) == {}


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
