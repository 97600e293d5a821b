"""Look after look, until there is something to say. The clock comes in from outside.

Unknown is never zero: who cannot look for some minutes says so, and the job is woken.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace_jobs.harness.offsets import LookFailed
from headrace_jobs.harness.source_notes import NotNoted
from headrace_jobs.store import StoreError

log = logging.getLogger("headrace")

# Who cannot look asks again after this time at the latest, and gives up after that.
_AGAIN_SECONDS = 30.0
PATIENCE_SECONDS = 300.0
_FEWEST_FAILURES = 3
# A row must be seen long before its source deletes it.
_PART_OF_RETENTION = 0.25


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One look at all sources."""

    # What waits, in words; None if nothing does.
    work: str | None = None
    # How long the source with the shortest memory keeps a row.
    retention_seconds: float | None = None


@dataclass(kw_only=True)
class Watch:
    look: Callable[[], Seen]
    every_seconds: float
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    _failing_since: float | None = None
    _failures: int = 0
    _looked: bool = False
    _retention_seconds: float | None = None

    def run(self) -> dict[str, Any]:
        """The last words."""
        while True:
            try:
                seen = self.look()
            except NotNoted as problem:
                return {"reason": "Blind", "message": str(problem)}  # no look will change that
            except (LookFailed, StoreError) as problem:
                if self._has_failed_too_long():
                    message = f"nobody can tell whether there is work: {problem}"
                    return {"reason": "Blind", "message": message}
                log.warning("this look failed: %s", problem)
                self.sleep(min(self._pause(), _AGAIN_SECONDS))
                continue
            self._failing_since, self._failures = None, 0
            if seen.work is not None:
                return {"reason": "Work", "message": seen.work}
            self._retention_seconds = seen.retention_seconds
            if not self._looked:
                log.info("nothing waits; the sources are looked at every %g s", self._pause())
            self._looked = True
            self.sleep(self._pause())

    def _has_failed_too_long(self) -> bool:
        now = self.clock()
        self._failing_since = now if self._failing_since is None else self._failing_since
        self._failures += 1
        patience = min(PATIENCE_SECONDS, _PART_OF_RETENTION * (self._retention_seconds or float("inf")))
        return self._failures >= _FEWEST_FAILURES and now - self._failing_since >= patience

    def _pause(self) -> float:
        if self._retention_seconds is None:
            return self.every_seconds
        return min(self.every_seconds, max(5.0, _PART_OF_RETENTION * self._retention_seconds))
