"""StreamJobs and what belongs to them, as they stand on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from headrace.api import StreamJobSpec, StreamJobStatus, StreamSavepoint
from headrace.api.names import attempt_name, candidate_name
from headrace.cli.cluster import Cluster, Object, no_such
from headrace.core.manifests import RunPin, read_run_pin
from headrace.core.validate import is_paused
from headrace.kube.errors import NotFound
from headrace.kube.resources import CONFIG_MAPS, EVENTS, STREAM_JOBS, STREAM_SAVEPOINTS

Attempt = tuple[int, int]  # (run, attempt)


@dataclass(frozen=True)
class LiveJob:
    """One StreamJob. An older or newer Headrace may have written it: what cannot be read is left out."""

    manifest: Object

    @property
    def name(self) -> str:
        return self.manifest["metadata"]["name"]

    @property
    def namespace(self) -> str:
        return self.manifest["metadata"]["namespace"]

    @property
    def uid(self) -> str:
        return self.manifest["metadata"]["uid"]

    @property
    def paused(self) -> bool:
        return is_paused(self.manifest)

    @property
    def deleting(self) -> bool:
        return "deletionTimestamp" in self.manifest["metadata"]

    @property
    def created_at(self) -> datetime:
        return moment(self.manifest["metadata"]["creationTimestamp"])

    @property
    def unseen(self) -> bool:
        """The operator has not acted on the newest edit yet."""
        return self.status.observed_generation < self.manifest["metadata"].get("generation", 0)

    @cached_property
    def spec(self) -> StreamJobSpec | None:
        try:
            return StreamJobSpec.parse(self.manifest["spec"])
        except ValidationError:
            return None

    @cached_property
    def status(self) -> StreamJobStatus:
        try:
            return StreamJobStatus.parse(self.manifest.get("status") or {})
        except ValidationError:
            return StreamJobStatus(state=(self.manifest.get("status") or {}).get("state", ""))


def job(cluster: Cluster, name: str) -> LiveJob:
    """The job of this name; a ClusterProblem that suggests a near one where there is none."""
    try:
        return LiveJob(cluster.get(STREAM_JOBS, name.removeprefix("streamjob/").removeprefix("sj/")))
    except NotFound:
        raise no_such(cluster, STREAM_JOBS, "StreamJob", name) from None


def jobs(cluster: Cluster) -> list[LiveJob]:
    found = [LiveJob(one) for one in cluster.list(STREAM_JOBS)]
    return sorted(found, key=lambda one: (one.namespace, one.name))


def savepoints(cluster: Cluster, of: str | None = None) -> list[StreamSavepoint]:
    """Of one job, or all; oldest first. Those that this version cannot read are left out."""
    readable: list[StreamSavepoint] = []
    for one in sorted(
        cluster.list(STREAM_SAVEPOINTS), key=lambda each: each["metadata"]["creationTimestamp"]
    ):
        if of is not None and one["spec"]["job"]["name"] != of:
            continue
        try:
            readable.append(StreamSavepoint.parse({"kind": "StreamSavepoint", **one}))
        except ValidationError:
            continue
    return readable


def events(cluster: Cluster, job: LiveJob) -> list[Object]:
    """Of the job, its driver pods and its savepoints, oldest first."""
    found = cluster.list(EVENTS, namespace=job.namespace, everywhere=False)
    ours = [one for one in found if _is_about(one.get("involvedObject") or {}, job)]
    return sorted(ours, key=event_time)


def _is_about(about: dict[str, Any], job: LiveJob) -> bool:
    kind, name = about.get("kind"), str(about.get("name", ""))
    if kind == "StreamJob":
        return name == job.name
    # Names of drivers and keepers begin with the name of the run: <job>-r<n>.
    head, dash, run = name.partition(f"{job.name}-r")
    return kind == "Pod" and dash != "" and head == "" and run[:1].isdigit()


def event_time(event: Object) -> str:
    return event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]


def pin_of(cluster: Cluster, job: LiveJob, run: int) -> RunPin | None:
    """What a run was pinned with; None where it is gone, may not be read, or is of another version."""
    found = cluster.find(CONFIG_MAPS, f"{job.name}-r{run}", namespace=job.namespace)
    owners = found["metadata"].get("ownerReferences") or [] if found is not None else []
    if found is None or not any(owner["uid"] == job.uid for owner in owners):
        return None
    return read_run_pin(found, run=run)


def moment(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def driver_pod_name(found: LiveJob, attempt: Attempt) -> str:
    """A candidate that took over keeps its name."""
    run, last = found.status.run, found.status.last_termination
    if run is not None and run.attempt is not None and (run.number, run.attempt.number) == attempt:
        activation = run.attempt.activation
        number = activation.candidate if activation is not None else None
    else:
        number = last.candidate if last is not None and (last.run, last.attempt) == attempt else None
    return attempt_name(found.name, *attempt) if number is None else candidate_name(found.name, number)
