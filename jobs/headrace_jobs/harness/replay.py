"""Repeats past batches of one query on its fork, one after the other, each with the input it had."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace_jobs.store.rehearsals import Fork


@dataclass
class QueryReplay:
    """`start` starts the query in the JVM: to repeat the pending batch, or, of a new query, its first one."""

    fork: Fork
    asked: int
    lay_down: Callable[[int], None]
    start: Callable[[], Any]
    clock: Callable[[], float] = time.monotonic
    replayed: list[int] = field(default_factory=list)
    batch_seconds: list[float] = field(default_factory=list)
    rows: int = 0
    done: bool = False
    _began: float = 0.0

    def begin(self) -> Any:
        return self._start_next()

    def next(self, ended: Any) -> Any | None:
        """Spark's query for the batch before has ended well: takes note, and goes on with the next."""
        self._note(ended)
        if len(self.replayed) < len(self.fork.planned):
            return self._start_next()
        self.done = True
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "from": self.fork.base,
            "replayed": list(self.replayed),
            "asked": self.asked,
            "fewer": self.fork.fewer,
            "empty": self.fork.empty,
            "isNew": self.fork.is_new,
            "rows": self.rows,
            "batchSeconds": [round(seconds, 3) for seconds in self.batch_seconds],
        }

    def doing(self) -> str:
        """For a message: what it was at when the time was over."""
        if self.done:
            return "through"
        if self.fork.is_new:
            return "in its first batch"
        number = len(self.replayed)
        return f"in batch {self.fork.planned[number]}, the {number + 1}. of {len(self.fork.planned)}"

    def _start_next(self) -> Any:
        self._began = self.clock()
        if self.fork.planned:
            self.lay_down(self.fork.planned[len(self.replayed)])
        return self.start()

    def _note(self, ended: Any) -> None:
        self.batch_seconds.append(self.clock() - self._began)
        told = [json.loads(progress.json()) for progress in ended.recentProgress()]
        self.rows += sum(progress["numInputRows"] for progress in told)
        if self.fork.planned:
            self.replayed.append(self.fork.planned[len(self.replayed)])
        else:
            self.replayed += sorted({progress["batchId"] for progress in told})
