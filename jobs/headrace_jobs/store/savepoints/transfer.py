"""Copies in parallel, at a bounded rate, with progress; the first error ends it soon, not at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from headrace_jobs.store.interface import Copy, Store
from headrace_jobs.store.savepoints.pacing import Pace

THREADS = 32
_TELL_EVERY_OBJECTS = 64
# Also when nothing is done meanwhile: whoever is told may have had enough.
_TELL_EVERY_SECONDS = 2.0


@dataclass(frozen=True)
class Progress:
    objects_done: int
    objects: int
    bytes_done: int
    bytes: int


Tell = Callable[[Progress], None]
"""Called now and then from the thread that asked for the copy. An exception out of it ends the copy."""


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
    telling = _Telling(copies, tell, pace.clock)

    def begin(one: Copy) -> int:
        copy_one(one)
        return one.source.size

    pool = ThreadPoolExecutor(THREADS)
    try:
        running: set[Future[int]] = set()
        # The largest first: the last to end must not be the one that takes longest.
        for one in sorted(copies, key=lambda one: one.source.size, reverse=True):
            # Here and not in the threads: an error must not wait for copies that wait for their turn.
            pace.wait_for(one.source.size, telling.now_and_then)
            running.add(pool.submit(begin, one))
            if len(running) >= 2 * THREADS:
                running = _some_done(running, telling)
            else:
                finished = {future for future in running if future.done()}
                running -= finished
                telling.note(finished)
        while running:
            running = _some_done(running, telling)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _some_done(running: set[Future[int]], telling: _Telling) -> set[Future[int]]:
    """Those that are left; all of them, when none ended for a while."""
    finished, left = wait(running, _TELL_EVERY_SECONDS, FIRST_COMPLETED)
    telling.note(finished)
    return left


class _Telling:
    def __init__(self, copies: Sequence[Copy], tell: Tell | None, clock: Callable[[], float]) -> None:
        self._objects, self._bytes = len(copies), sum(one.source.size for one in copies)
        self._tell, self._clock = tell, clock
        self._done = self._done_bytes = self._told = 0
        self._told_at = clock()

    def note(self, finished: set[Future[int]]) -> None:
        """Raises what one of them raised."""
        self._done += len(finished)
        self._done_bytes += sum(future.result() for future in finished)
        is_last = bool(finished) and self._done == self._objects
        if is_last or self._done - self._told >= _TELL_EVERY_OBJECTS:
            self._say()
        else:
            self.now_and_then()

    def now_and_then(self) -> None:
        if self._clock() - self._told_at >= _TELL_EVERY_SECONDS:
            self._say()

    def _say(self) -> None:
        self._told, self._told_at = self._done, self._clock()
        if self._tell is not None:
            self._tell(Progress(self._done, self._objects, self._done_bytes, self._bytes))
