"""An API server in memory: versions, uids, preconditions, owners, and faults on demand.

It refuses to read Secrets: the operator has no right to, and must never need to.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headrace.kube.cache import version_of
from headrace.kube.client import Snapshot
from headrace.kube.errors import AlreadyExists, Conflict, Denied, Invalid, NotFound, Unavailable
from headrace.kube.resources import PODS, SECRETS, STREAM_JOBS, STREAM_SAVEPOINTS, Resource

Object = dict[str, Any]
Place = tuple[str, str, str]  # plural, namespace, name


class OperatorKilled(BaseException):
    """Not an Exception: nothing in the operator may catch it."""


@dataclass
class FakeApi:
    now: Callable[[], datetime]
    objects: dict[Place, Object] = field(default_factory=dict)
    # Every write that was carried out: (verb, plural, name).
    writes: list[tuple[str, str, str]] = field(default_factory=list)
    # Every right that was needed: (verb, resource).
    rights: set[tuple[str, str]] = field(default_factory=set)
    # Let the operator do this many more writes, then kill it.
    writes_left: int | None = None
    # What happens to the next writes, in order: None, "refused" (500, nothing done), "lost" (done, and then
    # no answer), "busy" (429), "conflict", "invalid" (422), "quota", "terminating" (the namespace is being
    # deleted).
    faults: list[str | None] = field(default_factory=list)
    # The same for reads, gets and lists: None, "refused", "busy".
    read_faults: list[str | None] = field(default_factory=list)
    # How often something was read.
    reads: int = 0
    # After this many more writes, whoever makes the next one sleeps before it is carried out.
    sleeps_in: int | None = None
    # Reads answer from here: the past, as an API server behind a slow one would.
    stale: dict[Place, Object] | None = None
    # The same for lists alone.
    stale_lists: dict[Place, Object] | None = None
    # What a watch would tell, in order: (deleted or not, plural, object).
    told: list[tuple[bool, str, Object]] = field(default_factory=list)
    _version: int = 0

    # ---- reads --------------------------------------------------------------------------------------

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        self.rights.add(("get", resource.plural))
        self._read_fails()
        return copy.deepcopy(self._readable(resource)[self._found(resource, namespace, name)])

    async def list(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        selector: str | None = None,
        fields: str | None = None,
    ) -> Snapshot:
        self.rights.add(("list", resource.plural))
        self._read_fails()
        key, equals, value = (selector or "").partition("=")
        found = [
            thing
            for (plural, place, _), thing in sorted((self.stale_lists or self._readable(resource)).items())
            if plural == resource.plural and namespace in (None, place)
        ]
        labels = [(one["metadata"].get("labels", {}), one) for one in found]
        labelled = [
            one for has, one in labels if not key or (has.get(key) == value if equals else key in has)
        ]
        labelled = [one for one in labelled if _has_fields(one, fields)]
        # As the real one: the items of a list do not say what they are.
        unnamed = [{k: v for k, v in one.items() if k not in ("apiVersion", "kind")} for one in labelled]
        # From the past comes a version of the past.
        past = self.stale_lists or self.stale
        version = self._version if past is None else max(map(version_of, past.values()))
        return Snapshot(copy.deepcopy(unnamed), version)

    def _readable(self, resource: Resource) -> dict[Place, Object]:
        assert resource is not SECRETS, "the operator read a Secret"
        return self.objects if self.stale is None else self.stale

    def _found(self, resource: Resource, namespace: str, name: str) -> Place:
        place = (resource.plural, namespace, name)
        if place not in (self._readable(resource) if resource is not SECRETS else self.objects):
            raise NotFound(f"{resource.plural} {name} not found")
        return place

    # ---- writes -------------------------------------------------------------------------------------

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        self.rights.add(("create", resource.plural))
        return await self._write(
            "create", resource, body["metadata"]["name"], lambda: self.put_new(resource, body)
        )

    async def apply(self, resource: Resource, namespace: str, body: Object) -> Object:
        self.rights |= {("create", resource.plural), ("patch", resource.plural)}

        def act() -> Object:
            place = (resource.plural, namespace, body["metadata"]["name"])
            if place not in self.objects:
                return self.put_new(resource, body)
            return self._change(place, _merged(self.objects[place], body))

        return await self._write("apply", resource, body["metadata"]["name"], act)

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: Object, *, subresource: str | None = None
    ) -> Object:
        self.rights.add(("patch", "/".join(filter(None, (resource.plural, subresource)))))

        def act() -> Object:
            place = self._place(resource, namespace, name)
            self._check_version(place, body)
            before = self.objects[place]
            after = _merged(before, body)
            if subresource == "status":
                after = {**before, "status": after["status"]}
            elif "spec" in body and resource in (STREAM_JOBS, STREAM_SAVEPOINTS):
                after["metadata"]["generation"] += 1
            return self._change(place, after)

        return await self._write("patch", resource, name, act)

    async def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        self.rights.add(("update", resource.plural))

        def act() -> Object:
            place = self._place(resource, namespace, body["metadata"]["name"])
            self._check_version(place, body)
            return self._change(place, copy.deepcopy(body))

        return await self._write("update", resource, body["metadata"]["name"], act)

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None,
        grace_seconds: int | None = None,
    ) -> None:
        self.rights.add(("delete", resource.plural))

        def act() -> Object:
            place = self._place(resource, namespace, name)
            if uid is not None and self.objects[place]["metadata"]["uid"] != uid:
                raise Conflict(f"{name}: the uid is another one")
            if resource is STREAM_SAVEPOINTS and self.objects[place]["metadata"].get("finalizers"):
                return self.date_deletion(place)
            if resource is PODS and grace_seconds != 0 and _runs(self.objects[place]):
                dated = {"metadata": {"deletionTimestamp": self.stamp()}}
                return self._change(place, _merged(self.objects[place], dated))
            return self.remove(place)

        await self._write("delete", resource, name, act)

    # ---- what the cluster does by itself ------------------------------------------------------------

    def put_new(self, resource: Resource, body: Object) -> Object:
        metadata = body["metadata"]
        place = (resource.plural, metadata["namespace"], metadata["name"])
        if place in self.objects:
            raise AlreadyExists(f"{resource.plural} {metadata['name']} already exists")
        thing = copy.deepcopy(body)
        thing["metadata"] |= {
            "uid": f"uid-{self._next()}",
            "creationTimestamp": self.stamp(),
            "generation": 1,
            "resourceVersion": str(self._next()),
        }
        self.objects[place] = thing
        self.told.append((False, resource.plural, copy.deepcopy(thing)))
        return copy.deepcopy(thing)

    def set(self, place: Place, change: Object) -> None:
        self._change(place, _merged(self.objects[place], change))

    def date_deletion(self, place: Place) -> Object:
        """What has finalizers only gets a date to be deleted at; a deletion is a new generation, too."""
        metadata = self.objects[place]["metadata"]
        dated = {"deletionTimestamp": self.stamp(), "generation": metadata["generation"] + 1}
        return self._change(place, _merged(self.objects[place], {"metadata": dated}))

    def remove(self, place: Place) -> Object:
        """With everything that it owns, as the garbage collector does it."""
        thing = self.objects.pop(place)
        thing["metadata"]["resourceVersion"] = str(self._next())
        self.told.append((True, place[0], copy.deepcopy(thing)))
        uid = thing["metadata"]["uid"]
        for owned, one in list(self.objects.items()):
            if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences", ())):
                self.remove(owned)
        return thing

    def of(self, resource: Resource) -> dict[str, Object]:
        return {name: one for (plural, _, name), one in self.objects.items() if plural == resource.plural}

    def stamp(self) -> str:
        """The time, as objects have it."""
        return self.now().isoformat().replace("+00:00", "Z")

    # ---- inside -------------------------------------------------------------------------------------

    def _read_fails(self) -> None:
        self.reads += 1
        fault = self.read_faults.pop(0) if self.read_faults else None
        if fault is not None:
            raise _UNANSWERED[fault]()

    async def _write(self, verb: str, resource: Resource, name: str, act: Callable[[], Object]) -> Object:
        await self._perhaps_sleep()
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise OperatorKilled
            self.writes_left -= 1
        match self.faults.pop(0) if self.faults else None:
            case "refused" | "busy" as fault:
                raise _UNANSWERED[fault]()
            case "invalid":
                raise Invalid("spec.x: Invalid value", status=422)
            case "conflict":
                raise Conflict("the object has been modified", status=409)
            case "quota":
                raise Denied('pods "x" is forbidden: exceeded quota: small')
            case "terminating":
                raise Denied("pods is forbidden: unable to create new content because it is being terminated")
            case "lost":
                act()
                self.writes.append((verb, resource.plural, name))
                raise Unavailable("connection reset", status=503)
            case _:
                result = act()
        self.writes.append((verb, resource.plural, name))
        return copy.deepcopy(result)

    async def _perhaps_sleep(self) -> None:
        if self.sleeps_in is None:
            return
        if self.sleeps_in == 0:
            self.sleeps_in = None
            await _sleep()
        else:
            self.sleeps_in -= 1

    def _next(self) -> int:
        self._version += 1
        return self._version

    def _place(self, resource: Resource, namespace: str, name: str) -> Place:
        place = (resource.plural, namespace, name)
        if place not in self.objects:
            raise NotFound(f"{resource.plural} {name} not found")
        return place

    def _check_version(self, place: Place, body: Object) -> None:
        wanted, there = body.get("metadata", {}), self.objects[place]["metadata"]
        for key in ("resourceVersion", "uid"):
            if wanted.get(key, there[key]) != there[key]:
                raise Conflict(f"{place[2]}: the object has been modified, or is another one")

    def _change(self, place: Place, after: Object) -> Object:
        before = self.objects[place]
        if before.get("immutable") and before.get("data") != after.get("data"):
            raise Invalid(f"{place[2]}: field is immutable")
        finalizers = after["metadata"].get("finalizers") or []
        if (
            leaving := place[0] in (STREAM_JOBS.plural, STREAM_SAVEPOINTS.plural)
            and "deletionTimestamp" in after["metadata"]
        ) and not set(finalizers) <= set(before["metadata"].get("finalizers") or []):
            raise Invalid(f"{place[2]}: no new finalizers can be added if the object is being deleted")
        if after != before:
            after["metadata"]["resourceVersion"] = str(self._next())
            self.objects[place] = after
            self.told.append((False, place[0], copy.deepcopy(after)))
        if leaving and not finalizers:
            return self.remove(place)
        return copy.deepcopy(self.objects[place])


# As the client says it when its patience ends.
_UNANSWERED: dict[str, Callable[[], Unavailable]] = {
    "refused": lambda: Unavailable("no leader", status=500),
    "busy": lambda: Unavailable("too many requests", status=429),
}


@types.coroutine
def _sleep() -> Generator[None, None, None]:
    """Until whoever drives the coroutine goes on with it."""
    yield


def at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """Nothing here waits for anything, so no event loop is needed: that would take half of the time."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")


def _has_fields(thing: Object, fields: str | None) -> bool:
    for wanted in fields.split(",") if fields else ():
        path, _, value = wanted.partition("=")
        found: Any = thing
        for part in path.split("."):
            found = found.get(part, {})
        if found != value:
            return False
    return True


def _runs(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") == "Running"


def _merged(base: Object, patch: Object) -> Object:
    result = copy.deepcopy(base)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = _merged(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = copy.deepcopy(value)
    return result
