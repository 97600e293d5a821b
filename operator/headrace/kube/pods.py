"""A driver pod as the API shows it -> an attempt as the planner knows it. Pure.

Only a terminated container, or a pod that the kubelet has put into a final phase, proves that a driver can
write no more. A node that does not answer proves nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from headrace.core.last_words import ended_by
from headrace.core.manifests.kafka_files import VOLUME_FIELDS as KAFKA_VOLUME_FIELDS
from headrace.core.manifests.keeper_pod import STORE_CHECK
from headrace.core.manifests.ownership import ATTEMPT_LABEL, RUN_LABEL
from headrace.core.manifests.s3_keys import KEYS_VOLUME_FIELDS
from headrace.core.model import (
    AttemptPhase,
    EarlierLineage,
    Ended,
    Ending,
    ObservedAttempt,
    Problem,
)
from headrace.core.reports import activation_of, phase_of, query_report, spark_version, starting_report
from headrace.kube.memory import Memory

Pod = Mapping[str, Any]

DRIVER_CONTAINER = "driver"

# The kubelet has this much longer than the pod's own time to end before its node counts as lost.
_LOST_AFTER = timedelta(seconds=60)
_FINAL_PHASES = ("Succeeded", "Failed")
# Waiting for these is part of every start.
_USUAL_WAITS = ("ContainerCreating", "PodInitializing", "")
_LONGEST_TAIL = 800
_TAIL_LINES = 3
# Most volumes are there in a second or two; before this nobody looks for Events.
_USUAL_MOUNT = timedelta(seconds=10)
_VOLUME = re.compile(r'volume "([^"]+)"')
FAILED_MOUNT = "FailedMount"
_OVER_SCRATCH = re.compile(r'EmptyDir volume "(tmp|work|spark-local-dir-1)" exceeds the limit')
_VOLUME_FIELDS = {**KAFKA_VOLUME_FIELDS, **KEYS_VOLUME_FIELDS}


def observed_attempt(
    pod: Pod, report: Mapping[str, Any] | None, *, assumed: AttemptPhase, lost: bool = False
) -> ObservedAttempt:
    """`report` is the agent's word; `assumed` is what is believed of a running container without it; `lost`
    is whether its node does not answer."""
    labels, status = pod["metadata"]["labels"], pod.get("status", {})
    ended = ended_of(pod)
    return ObservedAttempt(
        run=int(labels[RUN_LABEL]),
        number=int(labels[ATTEMPT_LABEL]),
        uid=pod["metadata"]["uid"],
        phase=AttemptPhase.ENDED if ended is not None else _live_phase(pod, report, assumed),
        ended=ended,
        queries=tuple(query_report(query) for query in (report or {}).get("queries", ())),
        waiting=waiting_of(status) or starting_report(report) if ended is None else None,
        lost=ended is None and lost,
        image=_image(status),
        spark_version=spark_version(report),
        activation=activation_of(report) if report is not None else None,
    )


def ended_of(pod: Pod) -> Ended | None:
    """How the driver ended; None while it may still write."""
    status = pod.get("status", {})
    driver = _terminated(_container(status, "containerStatuses", DRIVER_CONTAINER))
    if driver is not None:
        return _driver_ended(status, driver)
    if status.get("phase") not in _FINAL_PHASES:
        return None
    return _never_ran(status)


def earlier_lineage_of(pod: Pod) -> EarlierLineage | None:
    """What the look into the store found, while the pod is there to tell."""
    check = _terminated(_container(pod.get("status", {}), "initContainerStatuses", STORE_CHECK))
    found = _words(check or {}).get("earlier")
    return EarlierLineage(uid=found["uid"], last_run=found["lastRun"]) if found else None


def keeper_result(pod: Pod, container: str) -> dict[str, Any]:
    """The keeper's last words; empty where it had none."""
    done = _terminated(_container(pod.get("status", {}), "containerStatuses", container)) or {}
    return _words(done) or {"message": str(done.get("message") or pod["status"].get("message") or "")}


def finished_at(pod: Pod) -> datetime | None:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    times = [_finished_at(state) for one in statuses if (state := _terminated(one))]
    return max((time for time in times if time is not None), default=None)


def has_ended(pod: Pod) -> bool:
    """Whether no container of it can do anything any more."""
    return pod.get("status", {}).get("phase") in _FINAL_PHASES


def is_lost(pod: Pod, memory: Memory) -> bool:
    """Told to go, and still there long after the time that it was given: its node does not answer.

    Measured since it was first seen to go: by its deletionTimestamp, which is the server's, a clock of ours
    that is ahead would give up a driver that still writes.
    """
    metadata = pod["metadata"]
    if metadata.get("deletionTimestamp") is None:
        return False
    given = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
    return memory.lasting(memory.leaving_since, metadata["uid"]) > given + _LOST_AFTER


def is_placed(pod: Pod) -> bool:
    """On a node, and not at its end."""
    placed = _condition(pod.get("status", {}), "PodScheduled")
    return placed is not None and placed["status"] == "True" and not has_ended(pod)


def may_wait_for_volumes(pod: Pod, *, now: datetime) -> bool:
    """Placed on a node for a while, and no container has begun: only the pod's Events can tell why."""
    status = pod.get("status", {})
    if status.get("phase") != "Pending" or not is_placed(pod):
        return False
    sandbox = _condition(status, "PodReadyToStartContainers")
    if sandbox is not None and sandbox["status"] == "True":
        return False  # volumes come before the sandbox
    containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    if any("waiting" not in one.get("state", {"waiting": {}}) for one in containers):
        return False
    return now - _time(pod["metadata"]["creationTimestamp"]) > _USUAL_MOUNT


def last_message(events: Iterable[Mapping[str, Any]]) -> str | None:
    messages = _messages(events)
    return messages[-1] if messages else None


def mount_problem(events: Iterable[Mapping[str, Any]]) -> Problem | None:
    """What the kubelet said last of a volume. Its summary of all volumes tells nothing and is passed over."""
    messages = _messages(events)
    telling = [message for message in messages if message.startswith("MountVolume")] or messages
    if not telling:
        return None
    volume = _VOLUME.search(telling[-1])
    field = _VOLUME_FIELDS.get(volume[1]) if volume is not None else None
    return Problem(FAILED_MOUNT, f"{field}: {telling[-1]}" if field is not None else telling[-1])


def _messages(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """The oldest first."""
    told = sorted(events, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return [str(event.get("message") or "") for event in told]


def is_running(pod: Pod) -> bool:
    container = _container(pod.get("status", {}), "containerStatuses", DRIVER_CONTAINER)
    return container is not None and "running" in container.get("state", {})


def _live_phase(pod: Pod, report: Mapping[str, Any] | None, assumed: AttemptPhase) -> AttemptPhase:
    if pod["metadata"].get("deletionTimestamp") is not None:
        return AttemptPhase.DRAINING
    if not is_running(pod):
        return AttemptPhase.STARTING
    return phase_of(report) if report is not None else assumed


def _driver_ended(status: Mapping[str, Any], terminated: Mapping[str, Any]) -> Ended:
    code = terminated.get("exitCode")
    if terminated.get("reason") == "OOMKilled":
        return Ended(
            ending=Ending.OUT_OF_MEMORY,
            exit_code=code,
            message="the driver needed more memory than its container has: raise spec.driver.memory, or "
            "leave it more beside the heap with spec.driver.memoryOverhead",
        )
    if (told := ended_by(_words(terminated), exit_code=code, at=_finished_at(terminated))) is not None:
        return told
    if status.get("reason") == "Evicted":
        return Ended(ending=Ending.EVICTED, exit_code=code, message=why_evicted(status, "driver"))
    tail = _tail(terminated)
    if terminated.get("reason") in ("StartError", "ContainerCannotRun"):
        return Ended(ending=Ending.START_FAILED, exit_code=code, message=tail or "the container cannot start")
    if isinstance(code, int) and code > 128:
        killed = f"the driver was killed by signal {code - 128}"
        return Ended(
            ending=Ending.KILLED,
            exit_code=code,
            message=f"{killed}; its log ends: {tail}" if tail else killed,
        )
    return Ended(
        ending=Ending.UNKNOWN,
        exit_code=code,
        message=f"the driver ended without a word; its log ends: {tail}",
    )


def _never_ran(status: Mapping[str, Any]) -> Ended:
    """A final phase without a terminated driver container: refused, evicted early, or its node is gone."""
    failed = [
        (one["name"], state)
        for one in status.get("initContainerStatuses", ())
        if (state := _terminated(one)) is not None and state.get("exitCode") != 0
    ]
    if failed:
        name, state = failed[0]
        told = ended_by(_words(state), exit_code=state.get("exitCode"))
        return told or Ended(
            ending=Ending.START_FAILED,
            message=f"the init container {name} failed: {_tail(state)}",
            exit_code=state.get("exitCode"),
        )
    message = str(status.get("message") or status.get("reason") or "the pod failed before its driver ran")
    match status.get("reason"):
        case "Evicted" | "Preempting" | "Terminated" | "NodeShutdown":
            return Ended(ending=Ending.EVICTED, message=why_evicted(status, "driver") or message)
        case "NodeLost":
            return Ended(ending=Ending.NODE_LOST, message=message)
    disrupted = _condition(status, "DisruptionTarget")
    if disrupted is not None and disrupted.get("reason") == "DeletionByPodGC":
        return Ended(ending=Ending.NODE_LOST, message=str(disrupted.get("message") or message))
    return Ended(ending=Ending.START_FAILED, message=message)


def waiting_of(status: Mapping[str, Any]) -> Problem | None:
    """Why a pod is not running yet, where that is more than the usual wait."""
    scheduled = _condition(status, "PodScheduled")
    if scheduled is not None and scheduled["status"] == "False":
        return Problem(scheduled.get("reason") or "Unschedulable", str(scheduled.get("message") or ""))
    containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    for container in containers:
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason", "") not in _USUAL_WAITS:
            return Problem(waiting["reason"], f"{container['name']}: {waiting.get('message', '')}")
    return None


def why_evicted(status: Mapping[str, Any], who: str) -> str:
    """The kubelet's words, with the field to change where there is one. `who`: driver or executors."""
    message = str(status.get("message") or "").strip()
    if not _OVER_SCRATCH.search(message):
        return message
    return (
        f"{message.rstrip('.')}: the local copy of the state, shuffle files or what the code writes need "
        f"more. Raise spec.{who}.scratch"
    )


def executor_problem(pod: Pod) -> Problem | None:
    """Why an executor does not run, where that is more than the usual wait."""
    status = pod.get("status", {})
    if status.get("reason") == "Evicted":
        return Problem("Evicted", why_evicted(status, "executors"))
    return waiting_of(status)


def _image(status: Mapping[str, Any]) -> str | None:
    """An image that was loaded by hand has an id but no digest that could be pulled."""
    container = _container(status, "containerStatuses", DRIVER_CONTAINER) or {}
    image = str(container.get("imageID", "")).removeprefix("docker-pullable://")
    return image if "@sha256:" in image else None


def _container(status: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any] | None:
    return next((one for one in status.get(kind, ()) if one["name"] == name), None)


def _terminated(container: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return (container or {}).get("state", {}).get("terminated")


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    return next((one for one in status.get("conditions", ()) if one["type"] == kind), None)


def _words(terminated: Mapping[str, Any]) -> dict[str, Any]:
    """The termination message, where the harness or the keeper wrote it. Else it is the end of the log."""
    try:
        parsed = json.loads(terminated.get("message") or "")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _tail(terminated: Mapping[str, Any]) -> str:
    """The last lines, whole; of a very long one its end."""
    lines = str(terminated.get("message") or "").strip().splitlines()[-_TAIL_LINES:]
    while len(lines) > 1 and sum(map(len, lines)) > _LONGEST_TAIL:
        lines = lines[1:]
    return "\n".join(lines)[-_LONGEST_TAIL:]


def _finished_at(terminated: Mapping[str, Any]) -> datetime | None:
    text = terminated.get("finishedAt")
    return _time(text) if text else None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
