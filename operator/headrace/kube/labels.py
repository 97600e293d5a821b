"""What an object's labels have to say, by its name, which nobody can change. Pure.

Labels can be taken off and changed by anybody. A driver does not notice, and writes on: so it is known by its
name and its owner, and its labels are put back. The same for the pods that copy state.
"""

from __future__ import annotations

import re

from headrace.api import StreamJobStatus
from headrace.core.manifests.keeper_pod import KEEPER_ROLE, TRY_LABEL
from headrace.core.manifests.ownership import (
    ATTEMPT_LABEL,
    CANDIDATE_LABEL,
    CANDIDATE_ROLE,
    EPOCH_LABEL,
    JOB_LABEL,
    ROLE_LABEL,
    RUN_LABEL,
    labels_of_activated,
)
from headrace.core.model import Job
from headrace.kube.client import Object

_ATTEMPT = re.compile(r"-r(\d+)-a(\d+)")
_CANDIDATE = re.compile(r"-c(\d+)")
_KEEPER = re.compile(r"-r(\d+)-seed-(\d+)")


def label(thing: Object, key: str) -> str:
    return (thing["metadata"].get("labels") or {}).get(key, "")


def number_in(thing: Object, key: str) -> int | None:
    """None where the label is not there, or is no number."""
    text = label(thing, key)
    return int(text) if text.isascii() and text.isdigit() else None


def labelled(thing: Object, labels: dict[str, str]) -> Object:
    """The object as it would be with these labels, too."""
    metadata = thing["metadata"]
    return {**thing, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}


def labels_by_name(thing: Object, job: Job) -> dict[str, str]:
    """Of what belongs to one driver (its pod, its Service, its ConfigMap), or copies state for one."""
    name = thing["metadata"]["name"]
    if not name.startswith(job.name):
        return {}
    rest = name.removeprefix(job.name)
    if found := _ATTEMPT.fullmatch(rest):
        return {JOB_LABEL: job.name, RUN_LABEL: found[1], ATTEMPT_LABEL: found[2]}
    if found := _CANDIDATE.fullmatch(rest):
        return {JOB_LABEL: job.name, CANDIDATE_LABEL: found[1]}
    if found := _KEEPER.fullmatch(rest):
        return {JOB_LABEL: job.name, RUN_LABEL: found[1], TRY_LABEL: found[2]}
    return {}


def labels_of_pod(pod: Object, job: Job, status: StreamJobStatus) -> dict[str, str]:
    """What the name does not tell is in the status, as far as it names the driver."""
    told = labels_by_name(pod, job)
    if CANDIDATE_LABEL in told:
        return told | _of_candidate(pod, told[CANDIDATE_LABEL], status)
    if TRY_LABEL in told:
        return told | {ROLE_LABEL: KEEPER_ROLE}
    return told | {ROLE_LABEL: "driver"} | _epoch(told, status) if told else {}


def _epoch(told: dict[str, str], status: StreamJobStatus) -> dict[str, str]:
    run = status.run
    if run is None or run.attempt is None:
        return {}
    current = {RUN_LABEL: str(run.number), ATTEMPT_LABEL: str(run.attempt.number)}
    return {EPOCH_LABEL: str(run.attempt.epoch)} if current.items() <= told.items() else {}


def _of_candidate(pod: Object, number: str, status: StreamJobStatus) -> dict[str, str]:
    run, operation = status.run, status.operation
    attempt = run.attempt if run is not None else None
    activation = attempt.activation if attempt is not None else None
    if run is not None and attempt is not None and activation and str(activation.candidate) == number:
        # Before it was seen to work as the attempt, it gets these with the order to.
        taken_over = attempt.state == "Started"
        named = labels_of_activated(attempt=attempt.number, epoch=attempt.epoch) if taken_over else {}
        return {RUN_LABEL: str(run.number), **(named or _role_of(pod))}
    rehearses = operation.candidate if operation is not None else None
    if operation is not None and rehearses is not None and str(rehearses.number) == number:
        return {RUN_LABEL: str(operation.to_run), **_role_of(pod)}
    return _role_of(pod)


def _role_of(pod: Object) -> dict[str, str]:
    """Whoever may have been ordered to take over counts as a driver."""
    if label(pod, ROLE_LABEL) in ("driver", CANDIDATE_ROLE):
        return {}
    return {ROLE_LABEL: "driver" if number_in(pod, ATTEMPT_LABEL) is not None else CANDIDATE_ROLE}
