"""kopf as watch plumbing: every event of a job or of an object under its label wakes the job. Nothing else.

No handlers for create or update, no index, no annotations, no timers: an event says that it is time to look,
never what to do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import kopf

from headrace.api import GROUP, VERSION
from headrace.core.manifests.ownership import JOB_LABEL
from headrace.kube.client import Object
from headrace.kube.credentials import Credentials, open_session
from headrace.runtime.health import Health
from headrace.runtime.reconcile import Key

# The API server ends a watch after this time, so a dead one is noticed at the latest then.
_WATCH_SECONDS = 300
_LIST_CHUNK = 500
WATCHED_CHILDREN = ("pods", "configmaps", "services")


@dataclass(frozen=True, kw_only=True)
class Watches:
    credentials: Credentials
    namespaces: Sequence[str]
    """None named: all of the cluster."""

    health: Health
    wake: Callable[[Key], None]
    note_pod: Callable[[Object], None]
    is_own_version: Callable[[Key, str], bool]

    async def run(self) -> None:
        """Until something is wrong: a watch that cannot go on ends the operator, to be started anew."""
        logging.getLogger("kopf").setLevel(logging.WARNING)
        for resource in ("streamjobs", *WATCHED_CHILDREN):
            self.health.expect_watch(resource)
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

        async def on_job(body: kopf.Body, **_: Any) -> None:
            self._job_event(body)

        async def on_pod(body: kopf.Body, **_: Any) -> None:
            self.health.watch_heard("pods")
            self.note_pod(dict(body))
            self._child_event(body)

        async def on_child(body: kopf.Body, **_: Any) -> None:
            self._child_event(body)

        kopf.on.login(registry=registry, id="login")(login)
        kopf.on.event(GROUP, VERSION, "streamjobs", registry=registry, id="job")(on_job)
        kopf.on.event("", "v1", "pods", registry=registry, id="pod")(on_pod)
        for plural in WATCHED_CHILDREN[1:]:
            kopf.on.event("", "v1", plural, registry=registry, id=plural)(on_child)
        return registry

    def _job_event(self, body: Any) -> None:
        self.health.watch_heard("streamjobs")
        metadata = body["metadata"]
        key = (metadata["namespace"], metadata["name"])
        if not self.is_own_version(key, metadata["resourceVersion"]):
            self.wake(key)

    def _child_event(self, body: Any) -> None:
        metadata = body["metadata"]
        self.wake((metadata["namespace"], metadata["labels"][JOB_LABEL]))

    def _trace(self) -> aiohttp.TraceConfig:
        """Each new connection of a watch is a sign of life, also where nothing happens."""

        async def answered(
            _session: aiohttp.ClientSession, _context: Any, parameters: aiohttp.TraceRequestEndParams
        ) -> None:
            if "watch" in parameters.url.query and parameters.response.status < 300:
                self.health.watch_heard(parameters.url.path.rpartition("/")[2])

        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(answered)
        return trace


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
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
