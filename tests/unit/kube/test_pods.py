"""What a pod says of its driver: above all, when it has really ended."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.core.model import AttemptPhase, EarlierLineage, Ending
from headrace.kube.memory import Memory
from headrace.kube.pods import (
    earlier_lineage_of,
    executor_problem,
    is_lost,
    may_wait_for_volumes,
    mount_problem,
    observed_attempt,
    why_evicted,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUNNING = {"state": {"running": {}}}


def a_pod(status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    labels = {"headrace.dev/run": "2", "headrace.dev/attempt": "3"}
    return {"metadata": {"uid": "u", "labels": labels, **metadata}, "status": status}


def ended_container(**terminated: Any) -> dict[str, Any]:
    return {"phase": "Failed", "containerStatuses": [{"name": "driver", "state": {"terminated": terminated}}]}


def driver(**state: Any) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": [{"name": "driver", **state}]}


def seen(status: dict[str, Any], report: dict[str, Any] | None = None, lost: bool = False, **metadata: Any):
    return observed_attempt(a_pod(status, **metadata), report, assumed=AttemptPhase.STARTING, lost=lost)


WORDS = json.dumps({"reason": "QueryFailed", "message": "boom", "errorClass": "X"})


@pytest.mark.parametrize(
    ("status", "ending", "message"),
    [
        (ended_container(exitCode=66, message=WORDS), Ending.QUERY_FAILED, "boom"),
        (ended_container(exitCode=0, message=json.dumps({"reason": "Drained"})), Ending.DRAINED, ""),
        (ended_container(exitCode=137, reason="OOMKilled"), Ending.OUT_OF_MEMORY, "spec.driver.memory"),
        (ended_container(exitCode=137, message="last line"), Ending.KILLED, "signal 9"),
        (ended_container(exitCode=1, message="No module named x"), Ending.UNKNOWN, "No module named x"),
        (
            ended_container(exitCode=128, reason="StartError", message="python3: not found"),
            Ending.START_FAILED,
            "python3: not found",
        ),
        (
            {**ended_container(exitCode=137), "reason": "Evicted", "message": "low on memory"},
            Ending.EVICTED,
            "low on memory",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "disk pressure"},
            Ending.EVICTED,
            "disk pressure",
        ),
        ({"phase": "Failed", "reason": "OutOfcpu", "message": "no room"}, Ending.START_FAILED, "no room"),
        (
            {
                "phase": "Failed",
                "conditions": [
                    {"type": "DisruptionTarget", "reason": "DeletionByPodGC", "message": "node gone"}
                ],
            },
            Ending.NODE_LOST,
            "node gone",
        ),
        (
            {
                "phase": "Failed",
                "initContainerStatuses": [
                    {"name": "headrace", "state": {"terminated": {"exitCode": 1, "message": "disk full"}}}
                ],
            },
            Ending.START_FAILED,
            "init container headrace failed: disk full",
        ),
    ],
)
def test_how_a_driver_ended(status: dict[str, Any], ending: Ending, message: str):
    attempt = seen(status)
    assert (attempt.run, attempt.number, attempt.phase) == (2, 3, AttemptPhase.ENDED)
    assert attempt.ended is not None
    assert attempt.ended.ending is ending
    assert message in attempt.ended.message


def test_the_store_speaks_through_the_container_that_looked_into_it():
    words = {
        "reason": "Refused",
        "errorClass": "EarlierLineage",
        "message": "older",
        "earlier": {"uid": "old", "lastRun": 7},
    }
    state = {"terminated": {"exitCode": 64, "message": json.dumps(words)}}
    pod = a_pod({"phase": "Failed", "initContainerStatuses": [{"name": "store", "state": state}]})
    ended = observed_attempt(pod, None, assumed=AttemptPhase.STARTING).ended
    assert ended is not None
    assert (ended.ending, ended.error_class, ended.message) == (Ending.REFUSED, "EarlierLineage", "older")
    assert earlier_lineage_of(pod) == EarlierLineage(uid="old", last_run=7)


@pytest.mark.parametrize(
    "status",
    [
        driver(**RUNNING),
        {"phase": "Unknown", "reason": "NodeLost", "containerStatuses": [{"name": "driver", **RUNNING}]},
        {"phase": "Running", "containerStatuses": []},
        {"phase": "Pending"},
        {},
    ],
)
def test_what_does_not_prove_an_end(status: dict[str, Any]):
    deleted = (NOW - timedelta(hours=1)).isoformat()
    for metadata in ({}, {"deletionTimestamp": deleted}):
        assert seen(status, **metadata).live


def test_a_node_is_lost_when_a_deleted_pod_does_not_go_in_its_time():
    """Since it was first seen to go: when that was by the server's clock is no matter."""
    seconds = [0.0]
    memory = Memory(clock=lambda: seconds[0])
    pod = a_pod(driver(**RUNNING), deletionTimestamp=NOW.isoformat(), deletionGracePeriodSeconds=30)
    assert not is_lost(pod, memory)
    seconds[0] = 89
    assert not is_lost(pod, memory)
    seconds[0] = 91
    assert is_lost(pod, memory)
    assert not is_lost(a_pod(driver(**RUNNING)), memory)
    assert seen(driver(**RUNNING), lost=True).lost
    assert not seen(ended_container(exitCode=0), lost=True).lost


@pytest.mark.parametrize(
    ("report", "phase"),
    [
        ({"phase": "Running", "queries": []}, AttemptPhase.RUNNING),
        ({"phase": "Draining", "queries": []}, AttemptPhase.DRAINING),
        ({"phase": "Ended", "queries": []}, AttemptPhase.DRAINING),
        (None, AttemptPhase.STARTING),
    ],
)
def test_a_running_container_is_what_its_agent_says(report: dict[str, Any] | None, phase: AttemptPhase):
    assert seen(driver(**RUNNING), report).phase is phase


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2"}
                ]
            },
            "Unschedulable",
        ),
        (
            driver(state={"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}),
            "ImagePullBackOff",
        ),
        (
            driver(
                state={"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "x" not found'}}
            ),
            "CreateContainerConfigError",
        ),
        (driver(state={"waiting": {"reason": "ContainerCreating"}}), None),
        ({}, None),
    ],
)
def test_why_it_has_not_started(status: dict[str, Any], reason: str | None):
    waiting = seen(status).waiting
    assert (waiting.reason if waiting is not None else None) == reason


@pytest.mark.parametrize(
    ("image_id", "image"),
    [
        ("registry.example.com/a@sha256:1", "registry.example.com/a@sha256:1"),
        ("docker-pullable://a@sha256:1", "a@sha256:1"),
        ("sha256:1", None),
        ("", None),
    ],
)
def test_only_an_image_that_can_be_pulled_again_is_kept(image_id: str, image: str | None):
    assert seen(driver(**RUNNING, imageID=image_id)).image == image


PLACED = {"type": "PodScheduled", "status": "True"}
CREATING = {"name": "headrace", "state": {"waiting": {"reason": "PodInitializing"}}}


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({}, True),
        ({"conditions": [PLACED, {"type": "PodReadyToStartContainers", "status": "False"}]}, True),
        ({"conditions": [PLACED, {"type": "PodReadyToStartContainers", "status": "True"}]}, False),
        ({"conditions": [{"type": "PodScheduled", "status": "False"}]}, False),
        ({"initContainerStatuses": [{"name": "headrace", "state": {"running": {}}}]}, False),
        ({"phase": "Running"}, False),
    ],
)
def test_a_pod_that_may_wait_for_a_volume(changes: dict[str, Any], waits: bool):
    status = {"phase": "Pending", "conditions": [PLACED], "initContainerStatuses": [CREATING], **changes}
    pod = a_pod(status, creationTimestamp=NOW.isoformat())
    assert may_wait_for_volumes(pod, now=NOW + timedelta(seconds=11)) is waits
    assert not may_wait_for_volumes(pod, now=NOW + timedelta(seconds=9))


def event(message: str, second: int) -> dict[str, Any]:
    return {"message": message, "lastTimestamp": f"2026-01-01T00:00:{second:02}Z"}


def test_the_last_word_on_a_volume_names_the_field_it_comes_from():
    no_key = 'MountVolume.SetUp failed for volume "kafka-sasl" : references non-existent secret key: password'
    told = [
        event("Unable to attach or mount volumes: unmounted volumes=[kafka-sasl]: timed out", 50),
        event(no_key, 40),
        event('MountVolume.SetUp failed for volume "kafka-sasl" : secret "kafka-user" not found', 30),
    ]
    problem = mount_problem(told)
    assert problem is not None
    assert (problem.reason, problem.message) == ("FailedMount", f"spec.kafka.sasl: {no_key}")


def test_keys_to_the_store_that_are_not_there_are_named_by_their_field():
    told = event('MountVolume.SetUp failed for volume "s3-keys" : secret "late-keys" not found', 1)
    problem = mount_problem([told])
    assert problem is not None
    assert problem.message == f"spec.checkpoint.s3.credentials: {told['message']}"


def test_a_pod_that_was_evicted_for_its_disk_says_which_field_to_raise():
    told = 'Usage of EmptyDir volume "{}" exceeds the limit "10Gi". '
    over = {**ended_container(exitCode=137), "reason": "Evicted", "message": told.format("work")}
    ended = seen(over).ended
    assert ended is not None
    assert ended.ending == Ending.EVICTED
    assert ended.message.startswith('Usage of EmptyDir volume "work" exceeds the limit "10Gi": ')
    assert ended.message.endswith("Raise spec.driver.scratch")
    executor = {"phase": "Failed", "reason": "Evicted", "message": told.format("spark-local-dir-1")}
    problem = executor_problem(a_pod(executor))
    assert problem is not None
    assert (problem.reason, problem.message[-28:]) == ("Evicted", "Raise spec.executors.scratch")


def test_a_volume_of_the_users_own_is_not_ours_to_raise():
    told = 'Usage of EmptyDir volume "models" exceeds the limit "1Gi".'
    assert why_evicted({"reason": "Evicted", "message": told}, "driver") == told


def test_other_volumes_speak_for_themselves():
    assert mount_problem([]) is None
    problem = mount_problem([event('MountVolume.SetUp failed for volume "models" : no such claim', 1)])
    assert problem is not None
    assert problem.message.startswith("MountVolume.SetUp failed")


def test_of_a_log_the_last_lines_are_shown_whole():
    log = "\n".join(f"line {number} of the driver's log" for number in range(60))
    ended = seen(ended_container(exitCode=137, message=log)).ended
    assert ended is not None
    assert ended.message.endswith("its log ends: " + "\n".join(log.splitlines()[-3:]))
