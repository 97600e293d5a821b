"""Only the operator that holds the Lease may act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.kube.client import Object, PassesReads
from headrace.kube.resources import Resource


class NoLongerLeader(Exception):
    """Another operator acts now. Nothing more may be done here."""


def make_sure(leads: bool) -> None:
    if not leads:
        raise NoLongerLeader


@dataclass(frozen=True)
class LeadingApi(PassesReads):
    """The API for the leader alone: each write is preceded by a look at the clock.

    An act may take several writes, and a process can be paused between any two of them for as long as it
    takes another to lead. Of what it had in mind, at most the write that was under way is made then.
    """

    leads: Callable[[], bool]

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        make_sure(self.leads())
        return await self.api.create(resource, namespace, body)

    async def apply(self, resource: Resource, namespace: str, body: Object) -> Object:
        make_sure(self.leads())
        return await self.api.apply(resource, namespace, body)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str | None = None,
    ) -> Object:
        make_sure(self.leads())
        return await self.api.patch(resource, namespace, name, body, subresource=subresource)

    async def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        make_sure(self.leads())
        return await self.api.replace(resource, namespace, body)

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None,
        grace_seconds: int | None = None,
    ) -> None:
        make_sure(self.leads())
        await self.api.delete(resource, namespace, name, uid=uid, grace_seconds=grace_seconds)
