"""The executors of a simulated job: asked for, started, cold, warm, gone."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from headrace.simulate.parameters import Parameters


@dataclass
class Pod:
    ready_at: float
    batches: int = 0


class Pool:
    """Pods cost from the moment they are admitted; what is denied costs nothing."""

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self._p = parameters
        self._chance = random.Random(f"pool-{seed}")  # noqa: S311 - a simulation
        self.asked = parameters.initial_executors
        self.pods = [Pod(0.0, parameters.warm_up_batches) for _ in range(self.asked)]
        self.pod_seconds = 0.0
        self.actions = 0
        self.pending_since: float | None = None
        self._counted_to = 0.0

    def count(self, now: float) -> None:
        self.pod_seconds += len(self.pods) * max(0.0, now - self._counted_to)
        self._counted_to = max(now, self._counted_to)

    def ask(self, target: int, now: float, *, admitted: float, slower: float) -> None:
        """Starts what is missing, as far as it is admitted. What is too many leaves after a batch."""
        if target != self.asked:
            self.asked, self.actions = target, self.actions + 1
        self.count(now)
        room = min(self.asked, admitted)
        while len(self.pods) < room:
            self.pods.append(Pod(now + self._startup_seconds() * slower))
        # One that has not started yet does no work that could be lost.
        starting = [pod for pod in self.pods if pod.ready_at > now]
        for pod in starting[: max(0, len(self.pods) - self.asked)]:
            self.pods.remove(pod)
        missing = self.ready(now) < self.asked
        self.pending_since = (self.pending_since or now) if missing else None

    def ready(self, now: float) -> int:
        return sum(pod.ready_at <= now for pod in self.pods)

    def boundary(self, now: float) -> float:
        """Between two batches: those that are too many leave. Returns the seconds of loading moved state."""
        self.count(now)
        before = sum(pod.batches > 0 for pod in self.pods)
        while len(self.pods) > self.asked and self.ready(now) > 1:
            self.pods.remove(
                max((pod for pod in self.pods if pod.ready_at <= now), key=lambda one: one.ready_at)
            )
        ready = self.ready(now)
        staying = sum(pod.batches > 0 for pod in self.pods if pod.ready_at <= now)
        gone, new = before - staying, ready - staying
        if not ready or not before:
            return 0.0
        moved = self._p.shuffle_partitions * (gone / before + 0.5 * new / ready)
        return math.ceil(moved) * self._p.reload_seconds / (ready * self._p.cores)

    def work(self, now: float) -> tuple[int, float]:
        """A batch begins: how many work on it, and the part of them that is cold."""
        at_work = [pod for pod in self.pods if pod.ready_at <= now]
        cold = sum(pod.batches < self._p.warm_up_batches for pod in at_work)
        for pod in at_work:
            pod.batches += 1
        return len(at_work), cold / max(len(at_work), 1)

    def lose(self, number: int, now: float, *, slower: float) -> None:
        """The platform makes new ones."""
        self.count(now)
        for pod in self.pods[:number]:
            pod.ready_at, pod.batches = now + self._startup_seconds() * slower, 0
        self.pending_since = self.pending_since or now

    def all_ready(self, now: float) -> None:
        """A restart begins with exactly what was asked for."""
        self.count(now)
        self.pods = [Pod(now) for _ in range(self.asked)]
        self.pending_since = None

    def _startup_seconds(self) -> float:
        p, chance = self._p, self._chance
        node = p.new_node_seconds if chance.random() < p.new_node_probability else 0.0
        return p.startup_median_seconds * math.exp(chance.gauss(0, p.startup_sigma)) + node
