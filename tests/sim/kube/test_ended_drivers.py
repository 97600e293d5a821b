"""Drivers that end, fall silent or are lost: what is said, what is kept, and what follows them."""

from headrace.kube.resources import PODS, SECRETS, SERVICES, STATEFUL_SETS
from tests.sim.kube.cluster import FakeCluster
from tests.sim.kube.kubernetes import runs


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
