"""What of a job is left over and may go. Pure: the rules, not the deleting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.api import StreamJobStatus
from headrace.core.manifests.keeper_pod import TRY_LABEL
from headrace.core.manifests.ownership import ATTEMPT_LABEL, CANDIDATE_LABEL, RUN_LABEL
from headrace.core.model import Job
from headrace.core.rehearsal import named_candidates
from headrace.kube.found import (
    AttemptNumber,
    Found,
    attempt_of,
    executor_set_of,
    is_leaving,
    name_of,
    uid_of,
)
from headrace.kube.labels import label
from headrace.kube.pods import ended_of
from headrace.kube.resources import CONFIG_MAPS, PODS, SERVICES, STATEFUL_SETS, Resource

# Runs whose pins are kept beside the current one: to see what ran, and to go back to.
_PINS_KEPT = 2


@dataclass(frozen=True)
class Leftover:
    resource: Resource
    name: str
    uid: str | None
    # The object must be owned by this one; None where its own uid is proof enough.
    owner_uid: str | None = None


def leftovers(job: Job, status: StreamJobStatus, found: Found) -> Iterator[Leftover]:
    yield from _executor_sets(job, found)
    yield from _candidates(job, status, found)
    yield from _lookouts(job, status, found)
    if job.deleting:
        # What it owns goes with it; but a copy of state under way would write behind the removal.
        yield from (Leftover(PODS, name_of(pod), uid_of(pod)) for pod in found.keepers if not is_leaving(pod))
        return
    operation = status.operation
    if status.run is None or (operation is not None and not operation.on_trial):
        return  # while something is under way, everything may still be needed
    kept = _kept_attempts(status, found)
    yield from _attempts(found, kept)
    run, attempt = status.run.number, status.run.attempt
    for pod in found.keepers:
        done = int(label(pod, RUN_LABEL)) <= run and attempt is not None and attempt.state == "Started"
        if done and not is_leaving(pod):
            yield Leftover(PODS, name_of(pod), uid_of(pod))
    kept_pins = _kept_pins(status)
    for number, pin in found.pins.items():
        if number < run - _PINS_KEPT and number not in kept_pins:
            yield Leftover(CONFIG_MAPS, pin.name, uid_of(found.config_maps[pin.name]))


def _candidates(job: Job, status: StreamJobStatus, found: Found) -> Iterator[Leftover]:
    """All but the one that rehearses, and one that has taken over: what the others found is in the status,
    and their logs are in the store."""
    kept = set(map(str, () if job.deleting else named_candidates(status)))
    kept |= {label(pod, CANDIDATE_LABEL) for pod in found.drivers.values() if ended_of(pod) is None}
    things = [
        *((PODS, pod) for pod in found.candidates.values() if ended_of(pod) is not None or job.deleting),
        *((SERVICES, service) for service in found.services.values()),
        *((CONFIG_MAPS, each) for each in found.config_maps.values()),
    ]
    for resource, thing in things:
        number = label(thing, CANDIDATE_LABEL)
        if not number or is_leaving(thing) or number in kept:
            continue
        yield Leftover(resource, name_of(thing), uid_of(thing))


def _lookouts(job: Job, status: StreamJobStatus, found: Found) -> Iterator[Leftover]:
    """All but the one that the status names: whoever is awake looks for itself."""
    named = str(status.sleep.lookout) if status.sleep is not None and not job.deleting else None
    for pod in found.lookouts:
        if label(pod, TRY_LABEL) != named and not is_leaving(pod):
            yield Leftover(PODS, name_of(pod), uid_of(pod))


def _kept_pins(status: StreamJobStatus) -> set[int]:
    """Versions that a rollback may return to."""
    stable, operation = status.last_stable, status.operation
    return {
        *(entry.run for entry in status.history),
        *([stable.run] if stable is not None else []),
        *([operation.back_to] if operation is not None and operation.back_to is not None else []),
    }


def _executor_sets(job: Job, found: Found) -> Iterator[Leftover]:
    """A driver that ended and is kept for its logs would leave its executors crash-looping."""
    for pod in found.drivers.values():
        staying = [one for one in found.executors_of(pod) if not is_leaving(one)]
        if staying and ended_of(pod) is not None:
            yield Leftover(STATEFUL_SETS, executor_set_of(job.name, pod), None, owner_uid=uid_of(pod))


def _kept_attempts(status: StreamJobStatus, found: Found) -> set[AttemptNumber]:
    """The current one, whoever still lives, and the last that ended: somebody may want its log."""
    run = status.run
    current = (run.number, run.attempt.number) if run is not None and run.attempt is not None else None
    ended = [
        number for number, pod in found.drivers.items() if ended_of(pod) is not None and number != current
    ]
    living = {number for number, pod in found.drivers.items() if ended_of(pod) is None}
    return {*([current] if current is not None else []), *living, *sorted(ended)[-1:]}


def _attempts(found: Found, kept: set[AttemptNumber]) -> Iterator[Leftover]:
    things = [
        *((PODS, pod) for pod in found.drivers.values()),
        *((SERVICES, service) for service in found.services.values() if label(service, ATTEMPT_LABEL)),
        *((CONFIG_MAPS, each) for each in found.config_maps.values() if label(each, ATTEMPT_LABEL)),
    ]
    for resource, thing in things:
        if attempt_of(thing) not in kept and not is_leaving(thing):
            # Its Secret goes with the ConfigMap, which owns it.
            yield Leftover(resource, name_of(thing), uid_of(thing))
