"""Keeps the cache honest: after each list of kopf's, and now and then, it is replaced by a list of our own.

kopf lists when it starts and whenever the server has forgotten the version it watched from; what was deleted
in between it never tells. A list that we ask for after that one shows it, and the watch goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headrace.core.manifests.ownership import JOB_LABEL
from headrace.kube.cache import CACHED, OWN_KINDS, AnyKey, Cache, key_of
from headrace.kube.client import Api
from headrace.kube.errors import ApiError
from headrace.kube.resources import STREAM_SAVEPOINTS, Resource

log = logging.getLogger("headrace")

_AGAIN_SECONDS = 5.0


@dataclass(kw_only=True)
class Relists:
    api: Api
    cache: Cache
    namespaces: Sequence[str]
    wake: Callable[[AnyKey], None]
    _asked: asyncio.Queue[Resource] = field(default_factory=asyncio.Queue[Resource])
    _listed: set[Resource] = field(default_factory=set[Resource])
    _complete: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self, plural: str) -> None:
        """kopf has listed the kind."""
        for resource in CACHED:
            if resource.plural == plural:
                self._asked.put_nowait(resource)

    async def run(self) -> None:
        while True:
            resource = await self._asked.get()
            try:
                await self.relist(resource)
            except ApiError as error:
                log.warning("%s could not be listed: %s", resource.plural, error)
                await asyncio.sleep(_AGAIN_SECONDS)
                self._asked.put_nowait(resource)

    async def relist(self, resource: Resource) -> None:
        selector = None if resource in OWN_KINDS else JOB_LABEL
        for namespace in self.namespaces or (None,):
            snapshot = await self.api.list(resource, namespace, selector=selector)
            for key in self.cache.replace(resource, snapshot, namespace=namespace):
                self.wake(key)
                for savepoint in self.cache.children(STREAM_SAVEPOINTS, key):
                    self.wake(key_of(savepoint))
        self._listed.add(resource)
        if self._listed == set(CACHED):
            self._complete.set()

    async def complete(self) -> None:
        """Until everything has been listed once: half a view is no base for decisions."""
        await self._complete.wait()
