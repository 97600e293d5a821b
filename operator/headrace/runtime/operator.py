"""The operator process: waits for the Lease, then watches and works until it loses it or is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import aiohttp
from aiohttp import web

from headrace.kube.agent import AgentTokens, HttpAgents
from headrace.kube.cache import CACHED, OWN_KINDS, AnyKey, Cache
from headrace.kube.client import KubeClient
from headrace.kube.credentials import Credentials, load_credentials, open_session
from headrace.kube.errors import ApiError, NotFound
from headrace.kube.keeper_progress import HttpKeepers
from headrace.kube.savepoint_substrate import SavepointSubstrate
from headrace.kube.substrate import KubeSubstrate
from headrace.runtime.events import EventRecorder
from headrace.runtime.health import Health, web_application
from headrace.runtime.job_metrics import JobMetrics
from headrace.runtime.leading import LeadingApi, NoLongerLeader
from headrace.runtime.lease import LeaderLease
from headrace.runtime.metrics import Metrics
from headrace.runtime.monitor import Monitor
from headrace.runtime.options import Options
from headrace.runtime.queue import WorkQueue
from headrace.runtime.reconcile import Reconciler
from headrace.runtime.relist import Relists
from headrace.runtime.savepoints import SavepointReconciler
from headrace.runtime.scaling import Scaling
from headrace.runtime.watches import Watches
from headrace.runtime.workers import Workers

log = logging.getLogger("headrace")


@dataclass(frozen=True, kw_only=True)
class Operator:
    options: Options
    credentials: Credentials
    client: KubeClient
    lease: LeaderLease
    health: Health
    metrics: Metrics
    workers: Workers
    reconciler: Reconciler

    async def run(self) -> None:
        """Returns when told to stop; raises when it cannot or may not go on."""
        runner = web.AppRunner(web_application(self.health, self.metrics), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, port=self.options.port).start()
        stop = _stop_signal()
        try:
            await _first_of(self._lead(), stop.wait())
        finally:
            with contextlib.suppress(ApiError):
                await self.lease.release()
            await runner.cleanup()

    async def _lead(self) -> None:
        log.info("waiting for the lease %s/%s", self.lease.namespace, self.lease.name)
        while not await self.lease.renew():
            await asyncio.sleep(self.lease.timing.renewed_every_seconds * random.uniform(0.5, 1))  # noqa: S311
        log.info("this operator leads")
        await self._wait_for_api()
        cache = self.reconciler.cache
        relists = Relists(
            api=self.client, cache=cache, namespaces=self.options.namespaces, wake=self.workers.wake
        )
        watches = Watches(
            credentials=self.credentials,
            namespaces=self.options.namespaces,
            health=self.health,
            cache=cache,
            wake=self.workers.wake,
            note_pod=self.reconciler.substrate.note_pod,
            relisted=relists.ask,
        )
        await _first_of(
            self._keep_lease(),
            watches.run(),
            relists.run(),
            self._work(relists),
            self.workers.monitor.run(self.workers.wake),
            self._resync(relists),
        )

    async def _work(self, relists: Relists) -> None:
        await relists.complete()
        await self.workers.run(self.options.workers)

    async def _wait_for_api(self) -> None:
        """kopf watches what is there when it starts: a definition that comes later would never be watched."""
        namespace = self.options.namespaces[0] if self.options.namespaces else None
        while await self.lease.renew():
            try:
                for resource in OWN_KINDS:
                    await self.client.list(resource, namespace)
            except NotFound:
                log.warning(
                    "the cluster does not know StreamJobs and StreamSavepoints yet: waiting for "
                    "their definitions (CRDs)"
                )
                await asyncio.sleep(self.lease.timing.renewed_every_seconds)
            else:
                return
        raise NoLongerLeader

    async def _keep_lease(self) -> None:
        while await self.lease.renew():
            await asyncio.sleep(self.lease.timing.renewed_every_seconds)
        raise NoLongerLeader

    async def _resync(self, relists: Relists) -> None:
        """Everything is listed anew and every job looked at: it heals whatever a watch has missed."""
        while True:
            await asyncio.sleep(self.options.resync_seconds * random.uniform(0.9, 1.1))  # noqa: S311
            for resource in CACHED:
                relists.ask(resource.plural)
            cache = self.reconciler.cache
            for key in (*cache.jobs(), *cache.savepoints()):
                spread = random.uniform(0, self.options.resync_seconds / 2)  # noqa: S311
                self.workers.wake_at(key, time.monotonic() + spread)


async def run_operator(options: Options) -> None:
    credentials = load_credentials()
    metrics = Metrics(resync_seconds=options.resync_seconds)
    # The agents get a session of their own: theirs must never carry the operator's own credentials.
    async with open_session(credentials) as session, aiohttp.ClientSession() as agent_session:
        client = KubeClient(session=session, server=credentials.server, observe=metrics.observe_request)
        await _operator(options, credentials, client, agent_session, metrics).run()


def _operator(
    options: Options,
    credentials: Credentials,
    client: KubeClient,
    agent_session: aiohttp.ClientSession,
    metrics: Metrics,
) -> Operator:
    tokens = AgentTokens(options.token_key)
    agents = HttpAgents(agent_session, tokens)
    job_metrics = JobMetrics(_utc_now)
    metrics.registry.register(job_metrics)
    queue: WorkQueue[AnyKey] = WorkQueue(chance=random.random)
    lease = LeaderLease(
        api=client,
        namespace=options.lease_namespace,
        name=options.lease_name,
        identity=options.identity,
        now=_utc_now,
        clock=time.monotonic,
    )
    scaling = Scaling(agents=agents, metrics=job_metrics, now=_utc_now)
    cache = Cache()
    # Not the client of the Lease: that must be written by those who do not lead.
    own = replace(client, may_retry=lease.leads)
    api = LeadingApi(own, lease.leads, cache)
    substrate = KubeSubstrate(api, agents, tokens, options.platform, cache)
    events = EventRecorder(client, options.identity.partition("_")[0])
    reconciler = Reconciler(
        api=api,
        substrate=substrate,
        events=events,
        now=_utc_now,
        may_act=lease.leads,
        advice=scaling.advice,
        idleness=scaling.idleness,
    )
    savepoints = SavepointReconciler(
        substrate=SavepointSubstrate(
            api=api,
            platform=options.platform,
            cache=cache,
            memory=substrate.memory,
            keepers=HttpKeepers(agent_session),
        ),
        events=events,
        now=_utc_now,
        may_act=lease.leads,
    )
    monitor = Monitor(agents=agents, metrics=job_metrics, scaling=scaling, clock=time.monotonic)
    workers = Workers(
        reconciler=reconciler,
        savepoints=savepoints,
        queue=queue,
        monitor=monitor,
        metrics=metrics,
        job_metrics=job_metrics,
        clock=time.monotonic,
    )
    return Operator(
        options=options,
        credentials=credentials,
        client=client,
        lease=lease,
        health=Health(
            clock=time.monotonic,
            leads=lease.leads,
            queue_wait=lambda: queue.oldest_wait(now=time.monotonic()),
            lease_silence=lease.silence_seconds,
        ),
        metrics=metrics,
        workers=workers,
        reconciler=reconciler,
    )


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def _first_of(*works: object) -> None:
    """Runs all until one ends; then the others are ended, too. What that one raised is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]  # type: ignore[arg-type]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _utc_now() -> datetime:
    return datetime.now(UTC)
