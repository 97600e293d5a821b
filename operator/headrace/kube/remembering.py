"""The API with a memory: what the server answers to our writes is in the cache before its watch says so."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.kube.cache import CACHED, Cache
from headrace.kube.client import Object, PassesReads
from headrace.kube.resources import Resource


@dataclass(frozen=True)
class RememberingApi(PassesReads):
    cache: Cache

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        return self._remember(resource, await self.api.create(resource, namespace, body))

    async def apply(self, resource: Resource, namespace: str, body: Object) -> Object:
        return self._remember(resource, await self.api.apply(resource, namespace, body))

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str | None = None,
    ) -> Object:
        answer = await self.api.patch(resource, namespace, name, body, subresource=subresource)
        # A subresource such as `scale` is an object of another kind.
        return self._remember(resource, answer) if subresource in (None, "status") else answer

    async def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        return self._remember(resource, await self.api.replace(resource, namespace, body))

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None,
        grace_seconds: int | None = None,
    ) -> None:
        await self.api.delete(resource, namespace, name, uid=uid, grace_seconds=grace_seconds)

    def _remember(self, resource: Resource, thing: Object) -> Object:
        if resource in CACHED:
            self.cache.put(resource, thing)
        return thing
