"""Takes jobs from the queue and reconciles them, several at a time, each job by one worker only."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.kube.errors import ApiError, Conflict, Denied
from headrace.kube.starting import StartRefused
from headrace.runtime.job_metrics import JobMetrics, JobSample
from headrace.runtime.metrics import Metrics
from headrace.runtime.monitor import Monitor
from headrace.runtime.queue import WorkQueue
from headrace.runtime.reconcile import Key, NoLongerLeader, Outcome, Reconciler

log = logging.getLogger("headrace")


@dataclass(kw_only=True)
class Workers:
    reconciler: Reconciler
    queue: WorkQueue[Key]
    monitor: Monitor
    metrics: Metrics
    job_metrics: JobMetrics
    clock: Callable[[], float]
    _awake: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self, key: Key) -> None:
        self.queue.add(key, now=self.clock())
        self._awake.set()

    def wake_at(self, key: Key, when: float) -> None:
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

    async def work_on(self, key: Key) -> None:
        began = time.monotonic()
        result = "error"
        try:
            outcome = await self.reconciler.reconcile(key)
            result = "ok"
            self._follow(key, outcome)
        except NoLongerLeader:
            raise
        except Conflict:
            # Somebody wrote between our look and our write: look again.
            result = "conflict"
        except (StartRefused, Denied) as refused:
            result = "refused"
            log.warning("%s/%s: %s", *key, refused)
        except ApiError as error:
            log.warning("%s/%s: %s: %s", *key, type(error).__name__, error)
        except Exception:
            log.exception("%s/%s: the pass failed", *key)
        finally:
            self.metrics.observe_pass(result, time.monotonic() - began)
            self.queue.done(key, now=self.clock(), failed=result != "ok")
            self._awake.set()

    def _follow(self, key: Key, outcome: Outcome) -> None:
        if outcome.status is None:
            self.queue.forget(key)
            self.monitor.forget(key)
            self.job_metrics.forget(key)
            return
        self.monitor.follow(key, outcome)
        spec = outcome.job.spec if outcome.job is not None else None
        self.job_metrics.set(key, JobSample(spec, outcome.status, outcome.report))
        if outcome.recheck_after is not None:
            self.queue.add_at(key, self.clock() + outcome.recheck_after)
