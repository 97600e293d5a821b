"""Only the operator that holds the Lease may act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.kube.cache import CACHED, Cache
from headrace.kube.client import Api, Object, Snapshot
from headrace.kube.resources import Resource


class NoLongerLeader(Exception):
    """Another operator acts now. Nothing more may be done here."""


def make_sure(leads: bool) -> None:
    if not leads:
        raise NoLongerLeader


@dataclass(frozen=True)
class LeadingApi:
    """The API for the leader alone: each write is preceded by a look at the clock.

    An act may take several writes, and a process can be paused between any two of them for as long as it
    takes another to lead. Of what it had in mind, at most the write that was under way is made then.

    What the server answers to a write is in the cache before its watch says so.
    """

    api: Api
    leads: Callable[[], bool]
    cache: Cache

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        return await self.api.get(resource, namespace, name)

    async def list(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        selector: str | None = None,
        fields: str | None = None,
    ) -> Snapshot:
        return await self.api.list(resource, namespace, selector=selector, fields=fields)

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        return self._remember(resource, await self._to_write.create(resource, namespace, body))

    async def apply(self, resource: Resource, namespace: str, body: Object) -> Object:
        return self._remember(resource, await self._to_write.apply(resource, namespace, body))

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str | None = None,
    ) -> Object:
        answer = await self._to_write.patch(resource, namespace, name, body, subresource=subresource)
        # A subresource such as `scale` is an object of another kind.
        return self._remember(resource, answer) if subresource in (None, "status") else answer

    async def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        return self._remember(resource, await self._to_write.replace(resource, namespace, body))

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None,
        grace_seconds: int | None = None,
    ) -> None:
        await self._to_write.delete(resource, namespace, name, uid=uid, grace_seconds=grace_seconds)

    @property
    def _to_write(self) -> Api:
        make_sure(self.leads())
        return self.api

    def _remember(self, resource: Resource, thing: Object) -> Object:
        if resource in CACHED:
            self.cache.put(resource, thing)
        return thing
