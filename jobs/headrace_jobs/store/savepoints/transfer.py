"""Copies in parallel, at a bounded rate, with progress; the first error ends it soon, not at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from headrace_jobs.store.interface import Copy, Store

THREADS = 32
_TELL_EVERY_OBJECTS = 64


@dataclass(frozen=True)
class Progress:
    objects_done: int
    objects: int
    bytes_done: int
    bytes: int


Tell = Callable[[Progress], None]
"""Called now and then from the thread that asked for the copy. An exception out of it ends the copy."""


@dataclass
class Pace:
    """The most bytes and objects per second; None is no limit. One pace may serve several threads."""

    bytes_per_second: float | None = None
    objects_per_second: float | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_for(self, size: int) -> None:
        """Returns when an object of this size may be begun: when those before it are paid for."""
        cost = max(
            size / self.bytes_per_second if self.bytes_per_second else 0.0,
            1 / self.objects_per_second if self.objects_per_second else 0.0,
        )
        if cost == 0.0:
            return
        with self._lock:
            begin = max(self._free_at, self.clock())
            self._free_at = begin + cost
        delay = begin - self.clock()
        if delay > 0:
            self.sleep(delay)


def paced_copy(
    store: Store,
    copies: Sequence[Copy],
    *,
    pace: Pace | None = None,
    tell: Tell | None = None,
    copy: Callable[[Copy], None] | None = None,
) -> None:
    """All of them, or the first error. `copy` replaces the store's own, for copies between stores."""
    pace, copy_one = pace or Pace(), copy or store.copy
    total = sum(one.source.size for one in copies)
    done = done_bytes = told = 0

    def note(finished: set[Future[int]]) -> None:
        nonlocal done, done_bytes, told
        done, done_bytes = done + len(finished), done_bytes + sum(future.result() for future in finished)
        if tell is not None and (done - told >= _TELL_EVERY_OBJECTS or done == len(copies)):
            told = done
            tell(Progress(done, len(copies), done_bytes, total))

    def begin(one: Copy) -> int:
        copy_one(one)
        return one.source.size

    pool = ThreadPoolExecutor(THREADS)
    try:
        running: set[Future[int]] = set()
        # The largest first: the last to end must not be the one that takes longest.
        for one in sorted(copies, key=lambda one: one.source.size, reverse=True):
            pace.wait_for(one.source.size)
            running.add(pool.submit(begin, one))
            if len(running) >= 2 * THREADS:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
            else:
                finished = {future for future in running if future.done()}
                running -= finished
            note(finished)
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            note(finished)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
