"""The work queue: each job at most once in it, never two passes of one job at a time, patient with failures.

Pure but for its own state: time comes in as an argument, so a test of an hour takes no time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Backoff:
    first_seconds: float = 0.5
    longest_seconds: float = 120.0
    # News may end the trouble, so they are looked at sooner; but our own writes are news, too.
    with_news_seconds: float = 5.0

    def wait(self, failures: int, chance: float) -> float:
        """Doubling, spread over half of it: jobs that failed together do not come back together."""
        wait = min(self.longest_seconds, self.first_seconds * 2 ** min(failures - 1, 30))
        return wait * (0.5 + chance / 2)


@dataclass
class WorkQueue(Generic[K]):
    chance: Callable[[], float]
    backoff: Backoff = Backoff()
    # Insertion order is the order of work; the value is since when it waits.
    _ready: dict[K, float] = field(default_factory=dict)
    _working: set[K] = field(default_factory=set)
    # Asked for while being worked on: once more afterwards, however often it was asked.
    _again: dict[K, float] = field(default_factory=dict)
    _due: dict[K, float] = field(default_factory=dict)
    _alarms: list[tuple[float, int, K]] = field(default_factory=list)
    _failures: dict[K, int] = field(default_factory=dict)
    # Of those that failed: not before this, whoever asks.
    _held: dict[K, float] = field(default_factory=dict)
    _count: int = 0

    def add(self, key: K, *, now: float) -> None:
        if key in self._working:
            self._again.setdefault(key, now)
        elif (held := self._held.get(key, now)) > now:
            self.add_at(key, held)
        else:
            self._ready.setdefault(key, now)

    def add_at(self, key: K, when: float) -> None:
        """Later; of several times the earliest counts."""
        if self._due.get(key, float("inf")) <= when:
            return
        self._due[key] = when
        self._count += 1
        heapq.heappush(self._alarms, (when, self._count, key))

    def take(self, *, now: float) -> K | None:
        """The key that has waited longest; `done` must follow."""
        self._ring(now)
        for key in self._ready:
            del self._ready[key]
            self._working.add(key)
            # What is looked at now need not be looked at again because of an older alarm.
            self._due.pop(key, None)
            return key
        return None

    def done(self, key: K, *, now: float, failed: bool = False) -> None:
        self._working.discard(key)
        if failed:
            self._failures[key] = self._failures.get(key, 0) + 1
            wait = self.backoff.wait(self._failures[key], self.chance())
            # A failure waits, also when somebody asks meanwhile: else a noisy object is a hot loop.
            self._held[key] = now + min(wait, self.backoff.with_news_seconds)
            asked = self._again.pop(key, None) is not None
            self.add_at(key, self._held[key] if asked else now + wait)
            return
        self._failures.pop(key, None)
        self._held.pop(key, None)
        if (since := self._again.pop(key, None)) is not None:
            self._ready.setdefault(key, since)

    def forget(self, key: K) -> None:
        """It is gone: no alarm, no memory of failures."""
        self._due.pop(key, None)
        self._failures.pop(key, None)
        self._held.pop(key, None)

    def next_alarm(self) -> float | None:
        while self._alarms and self._due.get(self._alarms[0][2]) != self._alarms[0][0]:
            heapq.heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else None

    def depth(self) -> int:
        return len(self._ready)

    def oldest_wait(self, *, now: float) -> float:
        return now - min(self._ready.values(), default=now)

    def _ring(self, now: float) -> None:
        while (when := self.next_alarm()) is not None and when <= now:
            _, _, key = heapq.heappop(self._alarms)
            del self._due[key]
            self.add(key, now=when)
