"""A thin client of the API server: what Headrace needs, and nothing in between.

Every call may be repeated: reads by nature, an apply by meaning, and creates, deletes and patches because
they carry what makes them safe (a name, a uid, a version). So a lost answer is retried like any other
failure, and a caller that meets AlreadyExists or Conflict looks again.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp

from headrace.kube.errors import Gone, Unavailable, from_answer
from headrace.kube.resources import Resource

Object = dict[str, Any]

FIELD_MANAGER = "headrace"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"
_JSON = "application/json"
_CHUNK = 500


@dataclass(frozen=True)
class Snapshot:
    """A list of objects, all as they were at one version."""

    items: list[Object]
    version: int


class Api(Protocol):
    """The calls, for callers and for the fakes of tests."""

    async def get(self, resource: Resource, namespace: str, name: str) -> Object: ...

    async def list(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        selector: str | None = None,
        fields: str | None = None,
    ) -> Snapshot:
        """Consistent: all that was there when it was asked for.

        `selector` chooses by labels, `fields` by the few fields that the API can choose by.
        """
        ...

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object: ...

    async def apply(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Server-side apply: our fields become so, whoever set them; others are left alone."""
        ...

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str | None = None,
    ) -> Object:
        """A merge patch; a resourceVersion in its metadata is a precondition."""
        ...

    async def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        """All of it, if it is still the version that was read."""
        ...

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None,
        grace_seconds: int | None = None,
    ) -> None:
        """Only the object that was seen, never a namesake. Raises NotFound when it is gone already.

        None as uid is for Secrets, which Headrace cannot read: their names are used once.
        """
        ...


@dataclass(frozen=True)
class Retries:
    attempts: int = 5
    first_seconds: float = 0.2
    longest_seconds: float = 5.0

    def wait(self, failures: int, *, retry_after: float | None, chance: float) -> float:
        """Doubling, spread over half of it, so that a thousand callers do not come back together."""
        wait = min(self.longest_seconds, self.first_seconds * 2 ** (failures - 1))
        return max(retry_after or 0.0, wait * (0.5 + chance / 2))


# verb, resource, HTTP status (0: no answer), seconds
ObserveRequest = Callable[[str, str, int, float], None]


def _unobserved(verb: str, resource: str, status: int, seconds: float) -> None:
    del verb, resource, status, seconds


@dataclass(frozen=True, kw_only=True)
class KubeClient:
    session: aiohttp.ClientSession
    server: str
    retries: Retries = Retries()
    observe: ObserveRequest = _unobserved
    # Asked before anything is tried once more: an answer may have taken so long that it is not ours to ask.
    may_retry: Callable[[], bool] = lambda: True
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        return await self._call("get", "GET", resource, resource.path(namespace, name))

    async def list(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        selector: str | None = None,
        fields: str | None = None,
    ) -> Snapshot:
        chosen = {"labelSelector": selector, "fieldSelector": fields}
        query = {name: value for name, value in chosen.items() if value is not None}
        try:
            return await self._pages(resource, namespace, {**query, "limit": str(_CHUNK)})
        except Gone:
            # The snapshot that the pages come from is compacted: all at once, then.
            return await self._pages(resource, namespace, query)

    async def _pages(self, resource: Resource, namespace: str | None, query: dict[str, str]) -> Snapshot:
        items: list[Object] = []
        while True:
            page = await self._call("list", "GET", resource, resource.path(namespace), query=query)
            items += page["items"]
            following = page["metadata"].get("continue")
            if not following:
                return Snapshot(items, int(page["metadata"]["resourceVersion"]))
            query = {**query, "continue": following}

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        query = {"fieldManager": FIELD_MANAGER}
        return await self._call("create", "POST", resource, resource.path(namespace), body=body, query=query)

    async def apply(self, resource: Resource, namespace: str, body: Object) -> Object:
        path = resource.path(namespace, body["metadata"]["name"])
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._call(
            "apply", "PATCH", resource, path, body=body, query=query, content_type=_APPLY_PATCH
        )

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str | None = None,
    ) -> Object:
        path = resource.path(namespace, name, subresource)
        query = {"fieldManager": FIELD_MANAGER}
        return await self._call(
            "patch", "PATCH", resource, path, body=body, query=query, content_type=_MERGE_PATCH
        )

    async def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        path = resource.path(namespace, body["metadata"]["name"])
        return await self._call("update", "PUT", resource, path, body=body)

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None,
        grace_seconds: int | None = None,
    ) -> None:
        body: Object = {"propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        await self._call("delete", "DELETE", resource, resource.path(namespace, name), body=body)

    async def _call(
        self,
        verb: str,
        method: str,
        resource: Resource,
        path: str,
        *,
        body: Object | None = None,
        query: dict[str, str] | None = None,
        content_type: str = _JSON,
    ) -> Object:
        failures = 0
        while True:
            began = time.monotonic()
            status, answer, retry_after = await self._once(method, path, body, query or {}, content_type)
            self.observe(verb, resource.plural, status, time.monotonic() - began)
            if 200 <= status < 300:
                return answer
            error = from_answer(status, answer)
            failures += 1
            if not isinstance(error, Unavailable) or failures >= self.retries.attempts:
                raise error
            chance = random.random()  # noqa: S311 (spreads load, guards nothing)
            await self.sleep(self.retries.wait(failures, retry_after=retry_after, chance=chance))
            if not self.may_retry():
                raise error

    async def _once(
        self, method: str, path: str, body: Object | None, query: dict[str, str], content_type: str
    ) -> tuple[int, Object, float | None]:
        """HTTP status, the JSON of the answer, and how long the server asks us to wait."""
        try:
            async with self.session.request(
                method,
                f"{self.server}{path}",
                params=query,
                data=json.dumps(body).encode() if body is not None else None,
                headers={"Content-Type": content_type, "Accept": _JSON},
            ) as response:
                return response.status, _parsed(await response.read()), _retry_after(response)
        except (aiohttp.ClientError, TimeoutError) as error:
            # 503 is what a proxy would have said.
            return 503, {"message": f"{method} {path}: {error or type(error).__name__}"}, None


def status_patch(before: Object, status: Object) -> Object | None:
    """The merge patch that makes the status of `before` read `status`; None where it does already."""
    difference = merge_difference(before.get("status") or {}, status)
    if not difference:
        return None
    version = before["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version}, "status": difference}


def merge_difference(before: Object, after: Object) -> Object:
    """As RFC 7386 has it: what differs, with null for what goes. Lists are replaced whole."""
    difference: Object = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            if below := merge_difference(old, value):
                difference[key] = below
        elif key not in before or old != value:
            difference[key] = value
    return difference


def _parsed(content: bytes) -> Object:
    try:
        parsed = json.loads(content)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"message": content[:500].decode(errors="replace")}


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdigit() else None
