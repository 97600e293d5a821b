"""kopf as watch plumbing: what it tells of a job or of objects under its label is cached and wakes the job.

No handlers for create or update, no index, no annotations, no timers: an event says that it is time to look,
never what to do. One that tells nothing new, such as that of our own write, wakes nobody.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import kopf

from headrace.api import GROUP, VERSION
from headrace.core.manifests.ownership import JOB_LABEL
from headrace.kube.cache import CACHED, CHILDREN, OWN_KINDS, AnyKey, Cache, concerned
from headrace.kube.client import Object
from headrace.kube.credentials import Credentials, open_session
from headrace.kube.resources import PODS, Resource
from headrace.runtime.health import Health

# The API server ends a watch after this time, so a dead one is noticed at the latest then.
_WATCH_SECONDS = 300
_LIST_CHUNK = 500
WATCHED_CHILDREN = tuple(child.plural for child in CHILDREN)


@dataclass(frozen=True, kw_only=True)
class Watches:
    credentials: Credentials
    namespaces: Sequence[str]
    """None named: all of the cluster."""

    health: Health
    cache: Cache
    wake: Callable[[AnyKey], None]
    note_pod: Callable[[Object], None]
    relisted: Callable[[str], None]
    """kopf has listed all objects of a kind."""

    async def run(self) -> None:
        """Until something is wrong: a watch that cannot go on ends the operator, to be started anew."""
        logging.getLogger("kopf").setLevel(logging.WARNING)
        for resource in CACHED:
            self.health.expect_watch(resource.plural)
        await kopf.operator(
            registry=self._registry(),
            settings=_settings(),
            standalone=True,
            clusterwide=not self.namespaces,
            namespaces=list(self.namespaces),
        )

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        async def login(**_: Any) -> kopf.AiohttpSession:
            session = open_session(self.credentials, traces=[self._trace()])
            return kopf.AiohttpSession(server=self.credentials.server, aiohttp_session=session)

        kopf.on.login(registry=registry, id="login")(login)
        for resource in CACHED:
            group, version = (GROUP, VERSION) if resource in OWN_KINDS else ("", "v1")
            handler = self._handler(resource)
            kopf.on.event(group, version, resource.plural, registry=registry, id=resource.plural)(handler)
        return registry

    def _handler(self, resource: Resource) -> Callable[..., Awaitable[None]]:
        async def on_event(body: kopf.Body, type: str | None, **_: Any) -> None:
            self.heard(resource, dict(body), gone=type == "DELETED")

        return on_event

    def heard(self, resource: Resource, thing: Object, *, gone: bool) -> None:
        self.health.watch_heard(resource.plural)
        if resource is PODS:
            self.note_pod(thing)
        if gone:
            self.cache.remove(resource, thing)
        if gone or self.cache.put(resource, thing):
            for key in concerned(self.cache, resource, thing):
                self.wake(key)

    def _trace(self) -> aiohttp.TraceConfig:
        """Each new connection of a watch is a sign of life, also where nothing happens; so is a list."""

        async def answered(
            _session: aiohttp.ClientSession, _context: Any, parameters: aiohttp.TraceRequestEndParams
        ) -> None:
            query, plural = parameters.url.query, parameters.url.path.rpartition("/")[2]
            if parameters.response.status >= 300:
                return
            if "watch" in query:
                self.health.watch_heard(plural)
            elif "continue" not in query:
                self.relisted(plural)

        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(answered)
        return trace


class _NoDiffs(kopf.DiffBaseStorage):
    """kopf would copy every object of every event, to find differences for handlers that we do not have."""

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = _NoDiffs()
    # Nothing is kept per object, so there is nothing to wait for at the end.
    settings.queueing.idle_timeout = 1
    settings.queueing.exit_timeout = 1
    settings.networking.request_timeout = 60
    settings.networking.connect_timeout = 10
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.client_timeout = _WATCH_SECONDS + 30
    settings.watching.chunk_size = _LIST_CHUNK
    for plural in WATCHED_CHILDREN:
        settings.watching.label_selectors["", "v1", plural] = JOB_LABEL
    return settings
