"""The jobs, their savepoints and all that is labelled as theirs, as last heard of: a pass reads from here.

It hears of an object by the watch, by the answer to a write of our own, and by lists. Of two versions of an
object the newer stays, in whatever order they come; of what was deleted, an older version does not come
back. So it is never older than what this process itself has written, but it may be older than the truth.
What keeps that harmless:

- the status is written with the version that was read as precondition, before anything is done;
- an act that no such write goes before is preceded by a look at the job's version (`Reconciler`);
- who starts a writer or copies state, or finds a driver gone, lists the job's pods for itself;
- pods are created, never applied, under a name that is used once; deletes carry the uid of what was seen.

kopf does not tell of objects that were deleted while its watch was broken. Therefore a list of our own
follows each list of kopf's, and replaces what is here: see `replace`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.api import GROUP, RESTORE_ANNOTATION, VERSION
from headrace.core.manifests.ownership import JOB_LABEL, ROLE_LABEL, SAVEPOINT_LABEL
from headrace.core.manifests.run_pin import PIN_ROLE
from headrace.core.start import restored_name
from headrace.kube.client import Object, Snapshot
from headrace.kube.labels import label
from headrace.kube.memory import Recent
from headrace.kube.resources import (
    CONFIG_MAPS,
    PODS,
    SERVICES,
    STREAM_JOBS,
    STREAM_SAVEPOINTS,
    Resource,
)

JobKey = tuple[str, str]  # (namespace, name)
Name = tuple[str, str]  # (namespace, name) of any object


@dataclass(frozen=True)
class SavepointKey:
    """Of another type than a job's: a savepoint may have the name of a job."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"savepoint {self.namespace}/{self.name}"


AnyKey = JobKey | SavepointKey

CHILDREN = (PODS, CONFIG_MAPS, SERVICES)
OWN_KINDS = (STREAM_JOBS, STREAM_SAVEPOINTS)
CACHED = (*OWN_KINDS, *CHILDREN)

# Not `managedFields`, which is often larger than all the rest.
_METADATA = frozenset(
    (
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "finalizers",
        "labels",
        "ownerReferences",
    )
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass
class _Kind:
    """The objects of one kind."""

    by_name: dict[Name, Object] = field(default_factory=dict[Name, Object])
    # Names of each job's objects.
    of_job: dict[JobKey, set[Name]] = field(default_factory=dict[JobKey, set[Name]])
    # At which version a name was last seen to go.
    gone_at: Recent[Name, int] = field(default_factory=Recent[Name, int])
    # At which version all of a namespace (None: of all) was last listed.
    listed_at: dict[str | None, int] = field(default_factory=dict[str | None, int])

    def was_listed_at(self, namespace: str) -> int:
        return max(self.listed_at.get(namespace, -1), self.listed_at.get(None, -1))


@dataclass(frozen=True)
class Cache:
    _kinds: dict[str, _Kind] = field(default_factory=lambda: {one.plural: _Kind() for one in CACHED})

    # ---- what a pass asks ----------------------------------------------------------------------------

    def job(self, key: JobKey) -> Object | None:
        return self._kinds[STREAM_JOBS.plural].by_name.get(key)

    def jobs(self) -> list[JobKey]:
        return list(self._kinds[STREAM_JOBS.plural].by_name)

    def savepoint(self, key: SavepointKey) -> Object | None:
        return self._kinds[STREAM_SAVEPOINTS.plural].by_name.get((key.namespace, key.name))

    def savepoints(self) -> list[SavepointKey]:
        return [SavepointKey(*name) for name in self._kinds[STREAM_SAVEPOINTS.plural].by_name]

    def jobs_in(self, namespace: str) -> list[Object]:
        by_name = self._kinds[STREAM_JOBS.plural].by_name
        return [job for (place, _), job in by_name.items() if place == namespace]

    def jobs_outside(self, namespace: str) -> list[Object]:
        by_name = self._kinds[STREAM_JOBS.plural].by_name
        return [job for (place, _), job in by_name.items() if place != namespace]

    def children(self, resource: Resource, key: JobKey) -> list[Object]:
        kind = self._kinds[resource.plural]
        return [kind.by_name[name] for name in sorted(kind.of_job.get(key, ()))]

    def known(self, resource: Resource, thing: Object) -> Object | None:
        """The object of this name, as last heard of."""
        return self._kinds[resource.plural].by_name.get(_name(thing))

    # ---- what it is told -----------------------------------------------------------------------------

    def put(self, resource: Resource, thing: Object) -> bool:
        """Whether that was news."""
        # What a list did not show, and is older than that list, was gone by then.
        listed_at = self._kinds[resource.plural].was_listed_at(thing["metadata"]["namespace"])
        return self._put(resource, thing, not_since=listed_at)

    def _put(self, resource: Resource, thing: Object, *, not_since: int = -1) -> bool:
        kind, name, version = self._kinds[resource.plural], _name(thing), version_of(thing)
        known = kind.by_name.get(name)
        newest = version_of(known) if known is not None else not_since
        if version <= max(newest, kind.gone_at.get(name, -1)):
            return False
        if known is not None:
            self._forget(resource, name)
        kind.by_name[name] = _slim(resource, thing)
        kind.of_job.setdefault(job_of(resource, thing), set()).add(name)
        return True

    def remove(self, resource: Resource, thing: Object) -> None:
        """As it was last seen; a namesake that came later stays."""
        kind, name, version = self._kinds[resource.plural], _name(thing), version_of(thing)
        kind.gone_at[name] = max(version, kind.gone_at.get(name, -1))
        known = kind.by_name.get(name)
        if known is not None and version_of(known) <= version:
            self._forget(resource, name)

    def replace(
        self,
        resource: Resource,
        snapshot: Snapshot,
        *,
        namespace: str | None = None,
        job: JobKey | None = None,
    ) -> set[JobKey]:
        """By all that there is: of one job, of one namespace, or of all. Answers whose objects changed."""
        kind, there, changed = self._kinds[resource.plural], set[Name](), set[JobKey]()
        for thing in snapshot.items:
            there.add(_name(thing))
            if self._put(resource, thing):
                changed.add(job_of(resource, thing))
        if job is None:
            kind.listed_at[namespace] = max(snapshot.version, kind.listed_at.get(namespace, -1))
        for name in list(kind.by_name if job is None else kind.of_job.get(job, ())):
            if name in there or namespace not in (None, name[0]):
                continue
            known = kind.by_name[name]
            # What is newer than the list came after it.
            if version_of(known) <= snapshot.version:
                changed.add(job_of(resource, known))
                kind.gone_at[name] = snapshot.version
                self._forget(resource, name)
        return changed

    def _forget(self, resource: Resource, name: Name) -> None:
        kind = self._kinds[resource.plural]
        key = job_of(resource, kind.by_name.pop(name))
        kind.of_job[key].discard(name)
        if not kind.of_job[key]:
            del kind.of_job[key]


def version_of(thing: Object) -> int:
    """Kubernetes promises numbers that grow, within one kind of objects (KEP-5504)."""
    return int(thing["metadata"]["resourceVersion"])


def job_of(resource: Resource, thing: Object) -> JobKey:
    metadata = thing["metadata"]
    match resource.plural:
        case STREAM_JOBS.plural:
            own = metadata["name"]
        case STREAM_SAVEPOINTS.plural:
            own = (thing["spec"].get("job") or {}).get("name", "")
        case _:
            own = label(thing, JOB_LABEL)
    return metadata["namespace"], own


def concerned(cache: Cache, resource: Resource, thing: Object) -> set[AnyKey]:
    """Who may have something to do when this has changed."""
    namespace, name = _name(thing)
    job = job_of(resource, thing)
    match resource.plural:
        case STREAM_JOBS.plural:
            own = {key_of(one) for one in cache.children(STREAM_SAVEPOINTS, job)}
            return {job, *own, *(SavepointKey(namespace, one) for one in _starts(thing))}
        case STREAM_SAVEPOINTS.plural:
            starting = (one for one in cache.jobs_in(namespace) if name in _starts(one))
            return {job, SavepointKey(namespace, name), *(_name(one) for one in starting)}
        case PODS.plural if worked_on := label(thing, SAVEPOINT_LABEL):
            return {job, SavepointKey(namespace, worked_on)}
        case _:
            return {job}


def key_of(savepoint: Object) -> SavepointKey:
    return SavepointKey(*_name(savepoint))


def _starts(job: Object) -> set[str]:
    """Savepoints that the job names: what it is to begin with, or to go back to."""
    start = (job["spec"].get("startFrom") or {}).get("savepoint")
    asked = (job["metadata"].get("annotations") or {}).get(RESTORE_ANNOTATION, "")
    return {one for one in (start, restored_name(asked)) if one}


def _name(thing: Object) -> Name:
    return thing["metadata"]["namespace"], thing["metadata"]["name"]


def _slim(resource: Resource, thing: Object) -> Object:
    """What a pass needs of it. Of a pod that is a tenth; a thousand jobs are to fit into little memory."""
    metadata = {key: value for key, value in thing["metadata"].items() if key in _METADATA}
    slim: Object = {"metadata": metadata}
    match resource.plural:
        case STREAM_JOBS.plural | STREAM_SAVEPOINTS.plural:
            annotations = thing["metadata"].get("annotations") or {}
            metadata["annotations"] = {key: annotations[key] for key in annotations if key != _LAST_APPLIED}
            # The items of a list do not say what they are, and an Event about the job must.
            kind = "StreamJob" if resource is STREAM_JOBS else "StreamSavepoint"
            slim |= {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind}
            parts = ("spec", "status")
        case PODS.plural:
            parts = ("status",)
        case SERVICES.plural:
            parts = ("spec",)
        case _:
            # Of the others it is enough to know that they are there.
            parts = ("data",) if label(thing, ROLE_LABEL) == PIN_ROLE else ()
    return slim | {part: thing[part] for part in parts if part in thing}
