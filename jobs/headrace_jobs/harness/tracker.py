"""What Spark's own books say of executors and tasks."""

from __future__ import annotations

import json
from typing import Any

from py4j.protocol import Py4JJavaError

# Tasks shorter than this are of unequal length by chance.
_LONGEST_AT_LEAST_MS = 1000.0
_FEWEST_TASKS = 4


class Tracker:
    """For the threads that observe: each answer takes a few calls, whatever the job does."""

    def __init__(self, jvm: Any, gateway: Any, java_context: Any) -> None:
        self._jvm = jvm
        self._context = java_context
        self._local = bool(java_context.isLocal())
        self._quantiles = gateway.new_array(jvm.double, 2)
        self._quantiles[0], self._quantiles[1] = 0.5, 1.0

    def executors(self) -> int:
        """Those that have registered. In local mode the driver is the one executor."""
        registered = len(self._context.statusTracker().getExecutorInfos())
        return registered if self._local else max(0, registered - 1)

    def task_skew(self, run_id: str) -> float | None:
        """Of the newest batch: the longest task of a shuffle stage over the median one."""
        try:
            jobs = self._numbers(self._context.statusTracker().getJobIdsForGroup(run_id))
            job = self._context.statusTracker().getJobInfo(max(jobs)) if jobs else None
            stages = self._numbers(job.get().stageIds()) if job is not None and job.isDefined() else []
            ratios = [ratio for stage in stages if (ratio := self._ratio(stage)) is not None]
        except Py4JJavaError:  # forgotten meanwhile
            return None
        return max(ratios, default=None)

    def _ratio(self, stage: int) -> float | None:
        store = self._context.statusStore()
        found = store.lastStageAttempt(stage)
        if found.numCompleteTasks() < _FEWEST_TASKS or found.shuffleReadRecords() == 0:
            return None
        summary = store.taskSummary(stage, found.attemptId(), self._quantiles)
        if not summary.isDefined():
            return None
        duration = summary.get().duration()
        median, longest = duration.apply(0), duration.apply(1)
        return round(longest / max(median, 1.0), 2) if longest >= _LONGEST_AT_LEAST_MS else None

    def _numbers(self, java_array: Any) -> list[int]:
        """In one call: each look into an array of Java's is one of its own."""
        return json.loads(self._jvm.java.util.Arrays.toString(java_array))
