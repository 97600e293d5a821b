"""Copies the incumbent's state for the candidate while both wait for the handover.

What is not copied ahead is copied while nobody writes. It is a help alone: the seed itself checks all of it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace_jobs.store import Store, StoreError
from headrace_jobs.store.runs import Run
from headrace_jobs.store.seed import copy_ahead

log = logging.getLogger("headrace")

_EVERY_SECONDS = 1.0
# Much state is looked at less often.
_SHARE = 0.25


@dataclass
class CopyAhead:
    store: Store
    from_run: Run
    to_run: Run
    go_on: Callable[[], bool]
    """False when the handover begins: what is left is copied by that, and not twice."""
    clock: Callable[[], float] = time.monotonic
    _known: set[str] = field(default_factory=set[str])
    _next: float = 0.0

    def catch_up(self) -> None:
        """The first copy may take minutes, the next one copies what came meanwhile, which is less, and so on:
        until that takes no time, or does not get shorter."""
        took = self._copy()
        while took > _EVERY_SECONDS and self.go_on():
            before, took = took, self._copy()
            if took > before / 2:
                return

    def copy_if_due(self) -> None:
        if self.clock() > self._next:
            self._copy()

    def _copy(self) -> float:
        """How long it took."""
        began = self.clock()
        try:
            copied = copy_ahead(self.store, self.from_run, self.to_run, known=self._known, go_on=self.go_on)
            log.debug("%d files of the state were copied ahead", copied)
        except StoreError as error:
            log.warning("the state could not be copied ahead: %s", error)
        took = self.clock() - began
        self._next = self.clock() + max(_EVERY_SECONDS, took / _SHARE)
        return took
