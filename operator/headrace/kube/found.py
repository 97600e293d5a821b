"""The objects of a job, sorted out: which are ours, and what each of them is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from headrace.api import StreamJobStatus
from headrace.api.names import candidate_set_name, executor_set_name
from headrace.core.manifests import RunPin, read_run_pin
from headrace.core.manifests.keeper_pod import (
    COLLECTOR_ROLE,
    DELETION_ROLE,
    KEEPER_ROLE,
    SAVEPOINT_ROLE,
    TRY_LABEL,
)
from headrace.core.manifests.lookout_pod import LOOKOUT_ROLE
from headrace.core.manifests.ownership import (
    ATTEMPT_LABEL,
    CANDIDATE_LABEL,
    CANDIDATE_ROLE,
    EPOCH_LABEL,
    LINEAGE_LABEL,
    ROLE_LABEL,
    RUN_LABEL,
    TASK_LABEL,
    labels_of_activated,
)
from headrace.core.manifests.run_pin import PIN_ROLE
from headrace.core.model import Job
from headrace.kube.labels import label, labelled, labels_by_name, labels_of_pod, number_in

Object = dict[str, Any]
AttemptNumber = tuple[int, int]  # (run, attempt)


@dataclass(frozen=True, kw_only=True)
class Found:
    drivers: Mapping[AttemptNumber, Object]
    # Drivers that rehearse, by number.
    candidates: Mapping[int, Object]
    executors: tuple[Object, ...]
    keepers: tuple[Object, ...]
    # The tries to remove the checkpoints of the job, oldest first.
    deletions: tuple[Object, ...]
    pins: Mapping[int, RunPin]
    config_maps: Mapping[str, Object]
    services: Mapping[str, Object]
    # Pods that look for what savepoints have left behind.
    collectors: tuple[Object, ...]
    # Pods that look for work while the job sleeps.
    lookouts: tuple[Object, ...]
    # Pods that take a savepoint: they read the checkpoints.
    saving: tuple[Object, ...]
    # Pods under the job's label that belong to somebody else, mostly to an earlier job of the same name; or
    # of which nobody can tell any more what they do.
    foreign: tuple[Object, ...]
    # Pods whose labels do not say any more what they are, as they were found, with what is missing.
    mislabelled: tuple[tuple[Object, dict[str, str]], ...] = ()

    def seedings(self, run: int) -> list[Object]:
        """The tries to copy state into a run, oldest first."""
        mine = [pod for pod in self.keepers if label(pod, RUN_LABEL) == str(run)]
        return sorted(mine, key=lambda pod: number_in(pod, TRY_LABEL) or 0)

    def seedings_before(self, run: int) -> list[Object]:
        """The tries for runs with lower numbers."""
        return [pod for pod in self.keepers if (number_in(pod, RUN_LABEL) or 0) < run and not is_leaving(pod)]

    def executors_of(self, driver: Object) -> list[Object]:
        number = label(driver, CANDIDATE_LABEL)
        key, value = (CANDIDATE_LABEL, number) if number else (EPOCH_LABEL, label(driver, EPOCH_LABEL))
        return [pod for pod in self.executors if label(pod, key) == value]


def sort_out(
    job: Job,
    status: StreamJobStatus,
    *,
    pods: Iterable[Object],
    config_maps: Iterable[Object],
    services: Iterable[Object],
    known_pins: MutableMapping[str, RunPin],
) -> Found:
    """`known_pins` by the uid of their ConfigMap, which is immutable: each is parsed once."""
    as_found = list(pods)
    pods = [_as_named(pod, job, status) for pod in as_found]
    config_maps = [_as_its_name_says(thing, job) for thing in config_maps]
    services = [_as_its_name_says(thing, job) for thing in services]
    ours = [pod for pod in pods if is_owned(pod, job.uid) and _says_what_it_is(pod)]
    # Spark makes the executors, so they are not ours by ownership.
    executors = [pod for pod in pods if label(pod, ROLE_LABEL) == "executor"]
    deletions = [pod for pod in pods if is_deletion(pod, job.uid)]
    saving = [pod for pod in pods if label(pod, ROLE_LABEL) == SAVEPOINT_ROLE]
    pins = [thing for thing in _ours(config_maps, job) if label(thing, ROLE_LABEL) == PIN_ROLE]
    return Found(
        drivers={attempt_of(pod): pod for pod in ours if label(pod, ROLE_LABEL) == "driver"},
        candidates={
            number: pod
            for pod in ours
            if label(pod, ROLE_LABEL) == CANDIDATE_ROLE
            and (number := number_in(pod, CANDIDATE_LABEL)) is not None
        },
        executors=tuple(executors),
        keepers=tuple(pod for pod in ours if label(pod, ROLE_LABEL) == KEEPER_ROLE),
        deletions=tuple(sorted(deletions, key=lambda pod: number_in(pod, TRY_LABEL) or 0)),
        pins={pin.run: pin for thing in pins if (pin := _pin(thing, known_pins)) is not None},
        config_maps={name_of(thing): thing for thing in _ours(config_maps, job)},
        services={name_of(thing): thing for thing in _ours(services, job)},
        collectors=tuple(pod for pod in ours if label(pod, ROLE_LABEL) == COLLECTOR_ROLE),
        lookouts=tuple(pod for pod in ours if label(pod, ROLE_LABEL) == LOOKOUT_ROLE),
        saving=tuple(pod for pod in saving if label(pod, TASK_LABEL) == "take"),
        foreign=tuple(
            pod for pod in pods if not any(pod in known for known in (ours, executors, deletions, saving))
        ),
        mislabelled=tuple(_mislabelled(as_found, job, status)),
    )


def _mislabelled(
    pods: Iterable[Object], job: Job, status: StreamJobStatus
) -> Iterator[tuple[Object, dict[str, str]]]:
    for pod in pods:
        wanted = labels_of_pod(pod, job, status) if is_owned(pod, job.uid) else {}
        missing = {key: value for key, value in wanted.items() if label(pod, key) != value}
        if missing and not is_leaving(pod):
            yield pod, missing


def _as_named(pod: Object, job: Job, status: StreamJobStatus) -> Object:
    """A candidate that the status names as the attempt is one: the order may have reached it. It gets the
    labels that say so just before that; until they are seen, the status counts."""
    if not is_owned(pod, job.uid):
        return pod
    pod = labelled(pod, labels_of_pod(pod, job, status))
    run = status.run
    activation = run.attempt.activation if run is not None and run.attempt is not None else None
    if run is None or run.attempt is None or activation is None or uid_of(pod) != activation.uid:
        return pod
    return labelled(pod, labels_of_activated(attempt=run.attempt.number, epoch=run.attempt.epoch))


def _as_its_name_says(thing: Object, job: Job) -> Object:
    return labelled(thing, labels_by_name(thing, job)) if is_owned(thing, job.uid) else thing


def _says_what_it_is(pod: Object) -> bool:
    """Whether the numbers that its role takes are there."""
    needed = {
        "driver": (RUN_LABEL, ATTEMPT_LABEL),
        CANDIDATE_ROLE: (RUN_LABEL, CANDIDATE_LABEL),
        KEEPER_ROLE: (RUN_LABEL, TRY_LABEL),
        COLLECTOR_ROLE: (),
        LOOKOUT_ROLE: (),
    }
    numbers = needed.get(label(pod, ROLE_LABEL))
    return numbers is not None and all(number_in(pod, key) is not None for key in numbers)


def executor_set_of(job: str, driver: Object) -> str:
    """The name of the StatefulSet that Spark makes for the executors of this driver."""
    if number := label(driver, CANDIDATE_LABEL):
        return candidate_set_name(job, int(number))
    # No epoch is 0: a driver of long ago whose label is gone has no set that anybody could name.
    return executor_set_name(job, number_in(driver, EPOCH_LABEL) or 0)


def is_owned(thing: Object, job_uid: str) -> bool:
    owners = thing["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == job_uid for owner in owners)


def is_deletion(pod: Object, job_uid: str) -> bool:
    """Not ours by ownership: see its builder."""
    return label(pod, ROLE_LABEL) == DELETION_ROLE and label(pod, LINEAGE_LABEL) == job_uid


def attempt_of(thing: Object) -> AttemptNumber:
    return int(label(thing, RUN_LABEL)), int(label(thing, ATTEMPT_LABEL))


def name_of(thing: Object) -> str:
    return thing["metadata"]["name"]


def uid_of(thing: Object) -> str:
    return thing["metadata"]["uid"]


def is_leaving(thing: Object) -> bool:
    return thing["metadata"].get("deletionTimestamp") is not None


def _pin(config_map: Object, known: MutableMapping[str, RunPin]) -> RunPin | None:
    uid = uid_of(config_map)
    if (pin := known.get(uid)) is None:
        run = number_in(config_map, RUN_LABEL)
        pin = read_run_pin(config_map, run=run) if run is not None else None
        if pin is not None:
            known[uid] = pin
    return pin


def _ours(things: Iterable[Object], job: Job) -> list[Object]:
    return [thing for thing in things if is_owned(thing, job.uid)]
