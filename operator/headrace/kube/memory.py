"""What this process remembers between two passes. Hints only: forgotten, they are learned again."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar

from headrace.api import StreamJobSpec
from headrace.core.manifests import RunPin
from headrace.core.model import ObservedAttempt, Problem

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V], Generic[K, V]):
    """The newest entries; the oldest go when there are too many."""

    def __init__(self, limit: int = 10_000) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._limit:
            self.popitem(last=False)


# (uid of the job, run, attempt)
AttemptKey = tuple[str, int, int]


@dataclass
class Memory:
    # Never jumps, unlike the time of day: how long something has lasted is measured by it.
    clock: Callable[[], float] = time.monotonic
    # What was parsed before: the spec of a job by uid and generation, a pin by the uid of its ConfigMap.
    specs: Recent[tuple[str, int], StreamJobSpec] = field(
        default_factory=Recent[tuple[str, int], StreamJobSpec]
    )
    pins: Recent[str, RunPin] = field(default_factory=Recent[str, RunPin])
    # A pod that ended and was removed at once tells its last words only to those who watch.
    last_words: Recent[AttemptKey, ObservedAttempt] = field(
        default_factory=Recent[AttemptKey, ObservedAttempt]
    )
    # Why the platform refused to start an attempt.
    start_problems: Recent[AttemptKey, Problem] = field(default_factory=Recent[AttemptKey, Problem])
    # Why what a run of a job runs could not be kept, by the job's uid.
    pin_problems: Recent[str, Problem] = field(default_factory=Recent[str, Problem])
    # Why the platform refused to start a candidate, by the job's uid.
    candidate_problems: Recent[str, Problem] = field(default_factory=Recent[str, Problem])
    # Why the platform refused the pod that copies the state of a job, by the job's uid.
    seed_problems: Recent[str, Problem] = field(default_factory=Recent[str, Problem])
    # Why the platform refused the pod that removes the checkpoints of a job, by the job's uid.
    removal_problems: Recent[str, Problem] = field(default_factory=Recent[str, Problem])
    # Why the platform refused to make a StreamSavepoint for a job, by the job's uid.
    savepoint_problems: Recent[str, Problem] = field(default_factory=Recent[str, Problem])
    # Why the platform refused the pod that looks for orphans, by the job's uid and what was asked.
    collect_problems: Recent[tuple[str, str], Problem] = field(
        default_factory=Recent[tuple[str, str], Problem]
    )
    # Why the platform refused a lookout, by the job's uid and the number of the lookout.
    lookout_problems: Recent[tuple[str, int], Problem] = field(
        default_factory=Recent[tuple[str, int], Problem]
    )
    # Why the platform refused a pod that works on a savepoint, by the savepoint's uid.
    keeper_problems: Recent[str, Problem] = field(default_factory=Recent[str, Problem])
    # Since when the agent of a pod, by its uid, has not answered.
    silent_since: Recent[str, float] = field(default_factory=Recent[str, float])
    # Since when none of the executors of a driver, by the uid of its pod, has been ready.
    without_executor_since: Recent[str, float] = field(default_factory=Recent[str, float])
    # Why a candidate, by the uid of its pod, waits, and since when for this reason.
    candidate_waits: Recent[str, tuple[str, float]] = field(default_factory=Recent[str, tuple[str, float]])
    # When the drain of a pod, by its uid, was first asked for.
    drain_asked_at: Recent[str, float] = field(default_factory=Recent[str, float])
    # Since when a pod, by its uid, has been told to go.
    leaving_since: Recent[str, float] = field(default_factory=Recent[str, float])
    # Since when a savepoint, by its uid, has been being taken.
    taking_since: Recent[str, float] = field(default_factory=Recent[str, float])
    # Since when a try of a keeper, by the uid of its pod, has been over.
    over_since: Recent[str, float] = field(default_factory=Recent[str, float])
    # Jobs, by uid, that are known to have no PodDisruptionBudget: most have none, and need no look.
    without_budget: Recent[str, bool] = field(default_factory=Recent[str, bool])

    def lasting(self, since: Recent[str, float], uid: str) -> timedelta:
        """How long it has lasted, from the first time on that this was asked."""
        now = self.clock()
        return timedelta(seconds=now - since.setdefault(uid, now))
