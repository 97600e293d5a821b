"""Follows the queries by asking, from one thread: a listener in Python would slow every batch down."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError

from headrace_jobs.harness.lag_age import OffsetHistory
from headrace_jobs.harness.managed import ManagedQuery, QueryRegistry
from headrace_jobs.harness.view import Lag, QueryView, iso, with_progress, with_status

log = logging.getLogger("headrace")

POLL_SECONDS = 0.5
_LAG_SECONDS = 5.0

MeasureLag = Callable[[str, dict[str, Any]], Lag]


class Observer:
    """Keeps the newest view of each query. Reading it never waits for the JVM."""

    def __init__(self, registry: QueryRegistry, measure_lag: MeasureLag, clock: Callable[[], float]) -> None:
        self._registry = registry
        self._measure_lag = measure_lag
        self._clock = clock
        self._lock = threading.Lock()
        self._views: dict[str, QueryView] = {}
        self._seen: dict[str, tuple[Any, ...]] = {}
        self._lag_due: dict[str, float] = {}
        self._offsets: dict[str, OffsetHistory] = {}
        self.last_look = clock()

    def start(self) -> None:
        threading.Thread(target=self._follow, name="headrace-observer", daemon=True).start()

    def views(self) -> list[QueryView]:
        with self._lock:
            return list(self._views.values())

    def mark_stuck(self, names: frozenset[str]) -> None:
        with self._lock:
            for name, view in self._views.items():
                self._views[name] = replace(view, stuck=name in names)

    def look(self) -> None:
        """One round over all queries."""
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
                stuck = self._views.get(query.query_name, after).stuck
                self._views[query.query_name] = replace(after, stuck=stuck and after.active)
        self.last_look = self._clock()

    def _follow(self) -> None:
        while True:
            try:
                self.look()
            except Py4JError:
                log.debug("the JVM did not answer the observer", exc_info=True)
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
        offsets = self._offsets.setdefault(query.run_id, OffsetHistory())
        for progress in self._new_progress(query.run_id, java):
            view = with_progress(view, progress)
            offsets.note(progress)
        view = with_status(view, json.loads(java.status().json()), self._clock())
        now = self._clock()
        if view.progress is not None and now >= self._lag_due.get(query.run_id, 0):
            lag = self._measure_lag(query.query_name, view.progress)
            since = offsets.behind_since() if lag.rows else None
            view = replace(view, lag=replace(lag, behind_since=iso(since) if since is not None else None))
            # Listing a large directory takes its time: at most a twentieth of ours.
            self._lag_due[query.run_id] = now + max(_LAG_SECONDS, 20 * (self._clock() - now))
        return view

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
