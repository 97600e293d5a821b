"""Follows the queries by asking: a listener in Python would slow every batch down.

One thread asks Spark, another one measures the lag: a broker that does not answer must not hide a batch.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError

from headrace_jobs.harness.managed import ManagedQuery, QueryRegistry
from headrace_jobs.harness.view import Lag, QueryView, with_progress, with_status

log = logging.getLogger("headrace")

POLL_SECONDS = 0.5
# An autoscaler asks a little less often, and must find something new.
_LAG_SECONDS = 8.0

MeasureLag = Callable[[str, dict[str, Any] | None], Lag]
CountExecutors = Callable[[], int | None]
MeasureSkew = Callable[[str], float | None]


class Observer:
    """Keeps the newest view of each query. Reading it never waits for the JVM."""

    def __init__(
        self,
        registry: QueryRegistry,
        measure_lag: MeasureLag,
        clock: Callable[[], float],
        *,
        count_executors: CountExecutors = lambda: None,
        measure_skew: MeasureSkew = lambda _run_id: None,
    ) -> None:
        self._registry = registry
        self._measure_lag = measure_lag
        self._clock = clock
        self._count_executors = count_executors
        self._measure_skew = measure_skew
        self._lock = threading.Lock()
        self._views: dict[str, QueryView] = {}
        self._seen: dict[str, tuple[Any, ...]] = {}
        self._lag_due: dict[str, float] = {}
        # Executors that are there now; None until somebody has counted.
        self.executors: int | None = None
        self.last_look = clock()

    def start(self) -> None:
        for work, name in ((self.look, "observer"), (self.measure, "lag")):
            threading.Thread(target=self._repeat, args=(work,), name=f"headrace-{name}", daemon=True).start()

    def views(self) -> list[QueryView]:
        with self._lock:
            return list(self._views.values())

    def mark_stuck(self, names: frozenset[str]) -> None:
        with self._lock:
            for name, view in self._views.items():
                self._views[name] = replace(view, stuck=name in names)

    def look(self) -> None:
        """One round over all queries."""
        self.executors = self._count_executors()
        for query in self._registry.all():
            before = self._view_of(query)
            # Its end is noted first, so that the last progress is read after it.
            ended = query.end
            if ended is not None and not before.active:
                continue
            after = self._updated(query, before)
            if ended is not None:
                failure = ended.failure
                after = replace(
                    after,
                    active=False,
                    trigger_active=False,
                    busy_since=None,
                    error=failure and failure.sentence,
                )
            with self._lock:
                # What others have noted meanwhile stays.
                now = self._views.get(query.query_name, after)
                theirs = now if now.run_id == after.run_id else after
                self._views[query.query_name] = replace(
                    after,
                    stuck=theirs.stuck and after.active,
                    lag=theirs.lag,
                    task_skew=theirs.task_skew,
                )
        self.last_look = self._clock()

    def measure(self) -> None:
        """The lag of each query for which it is time."""
        for view in self.views():
            began = self._clock()
            if not view.active or began < self._lag_due.get(view.run_id, 0):
                continue
            lag, skew = self._measure_lag(view.name, view.progress), self._measure_skew(view.run_id)
            with self._lock:
                if (now := self._views[view.name]).run_id == view.run_id:
                    self._views[view.name] = replace(now, lag=lag, task_skew=skew)
            # Listing a large directory takes its time: at most a twentieth of ours. Who waited in vain asks
            # again soon, or would learn late that there is an answer.
            now_at = self._clock()
            rest = 19 * (now_at - began) if lag.known else 0.0
            self._lag_due[view.run_id] = max(began + _LAG_SECONDS, now_at + rest)

    def _repeat(self, work: Callable[[], None]) -> None:
        while True:
            try:
                work()
            except Py4JError:
                log.debug("the JVM did not answer the observer", exc_info=True)
            except Exception:
                log.exception("the observer failed, and goes on")
            time.sleep(POLL_SECONDS)

    def _view_of(self, query: ManagedQuery) -> QueryView:
        with self._lock:
            view = self._views.get(query.query_name)
        if view is None or view.run_id != query.run_id:
            interval = trigger_interval_ms(query.java)
            return QueryView(query.query_name, query.lineage, query.run_id, trigger_interval_ms=interval)
        return view

    def _updated(self, query: ManagedQuery, view: QueryView) -> QueryView:
        java = query.java
        for progress in self._new_progress(query.run_id, java):
            view = with_progress(view, progress, executors=self.executors)
        return with_status(view, json.loads(java.status().json()), self._clock())

    def _new_progress(self, run_id: str, java: Any) -> list[dict[str, Any]]:
        """What came since the last look, oldest first. Spark keeps a few hundred."""
        recent = java.recentProgress()
        seen, fresh = self._seen.get(run_id), []
        for index in range(len(recent) - 1, -1, -1):
            mark = (recent[index].batchId(), recent[index].timestamp())
            if mark == seen:
                break
            fresh.append((mark, json.loads(recent[index].json())))
        if fresh:
            self._seen[run_id] = fresh[0][0]
        return [progress for _, progress in reversed(fresh)]


def trigger_interval_ms(java: Any) -> int | None:
    """Also where the code sets it. None: another kind of trigger, or a query that does not tell."""
    try:
        return int(java.streamingQuery().trigger().intervalMs())
    except (Py4JError, TypeError, ValueError):
        return None
