"""Takes jobs from the queue and reconciles them, several at a time, each job by one worker only."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.kube.cache import AnyKey, SavepointKey
from headrace.kube.errors import ApiError, Conflict, Denied
from headrace.runtime.job_metrics import JobMetrics, JobSample
from headrace.runtime.leading import NoLongerLeader
from headrace.runtime.metrics import Metrics
from headrace.runtime.monitor import Monitor
from headrace.runtime.queue import WorkQueue
from headrace.runtime.reconcile import Key, Outcome, Reconciler, UnreadableStatus
from headrace.runtime.savepoints import SavepointOutcome, SavepointReconciler

log = logging.getLogger("headrace")


@dataclass(kw_only=True)
class Workers:
    reconciler: Reconciler
    savepoints: SavepointReconciler
    queue: WorkQueue[AnyKey]
    monitor: Monitor
    metrics: Metrics
    job_metrics: JobMetrics
    clock: Callable[[], float]
    _awake: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self, key: AnyKey) -> None:
        self.queue.add(key, now=self.clock())
        self._awake.set()

    def wake_at(self, key: AnyKey, when: float) -> None:
        self.queue.add_at(key, when)
        self._awake.set()

    async def run(self, count: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            self._awake.clear()
            key = self.queue.take(now=self.clock())
            self.metrics.queue_depth.set(self.queue.depth())
            if key is None:
                await self._sleep_until_awake()
                continue
            # Others may find more.
            self._awake.set()
            await self.work_on(key)

    async def _sleep_until_awake(self) -> None:
        alarm = self.queue.next_alarm()
        timeout = None if alarm is None else max(0.0, alarm - self.clock())
        try:
            await asyncio.wait_for(self._awake.wait(), timeout)
        except TimeoutError:
            return

    async def work_on(self, key: AnyKey) -> None:
        began = time.monotonic()
        result = "error"
        try:
            if isinstance(key, SavepointKey):
                self._follow_savepoint(key, await self.savepoints.reconcile(key))
                result = "ok"
            else:
                result = self._follow(key, await self.reconciler.reconcile(key))
        except NoLongerLeader:
            raise
        except Conflict:
            # Somebody wrote between our look and our write: look again.
            result = "conflict"
        except (Denied, UnreadableStatus) as refused:
            result = "refused"
            log.warning("%s: %s", _named(key), refused)
        except ApiError as error:
            log.warning("%s: %s: %s", _named(key), type(error).__name__, error)
        except Exception:
            log.exception("%s: the pass failed", _named(key))
        finally:
            self.metrics.observe_pass(result, time.monotonic() - began)
            self.queue.done(key, now=self.clock(), failed=result != "ok")
            self._awake.set()

    def _follow(self, key: Key, outcome: Outcome) -> str:
        """The word for the metrics."""
        if outcome.status is None:
            self.queue.forget(key)
            self.monitor.forget(key)
            self.job_metrics.forget(key)
            return "ok"
        self.monitor.follow(key, outcome)
        spec = outcome.job.spec if outcome.job is not None else None
        self.job_metrics.set(key, JobSample(spec, outcome.status, outcome.report, outcome.savepoints))
        for other in outcome.wakes:
            self.wake(other)
        if outcome.refused is not None:
            log.warning("%s: %s", _named(key), outcome.refused)
            return "refused"
        if outcome.recheck_after is not None:
            self.queue.add_at(key, self.clock() + outcome.recheck_after)
        return "ok"

    def _follow_savepoint(self, key: SavepointKey, outcome: SavepointOutcome) -> None:
        if outcome.gone:
            self.queue.forget(key)
            return
        if outcome.failed is not None:
            self.metrics.savepoint_failures.labels(*outcome.failed).inc()
        if outcome.recheck_after is not None:
            self.queue.add_at(key, self.clock() + outcome.recheck_after)
        for other in outcome.wakes:
            self.wake(other)


def _named(key: AnyKey) -> str:
    return str(key) if isinstance(key, SavepointKey) else "/".join(key)
