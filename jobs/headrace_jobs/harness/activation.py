"""Makes a candidate in standby the writer of its run. Until the claim it can go back; after it, it is one."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace_jobs.harness.assignment import claim_body
from headrace_jobs.harness.control import Fenced, StoreUnavailable
from headrace_jobs.harness.endings import ApplicationEnded, CannotStart, Event
from headrace_jobs.harness.orders import NotInStandby, Order
from headrace_jobs.harness.rehearsal import Rehearsal
from headrace_jobs.harness.rules import Refused
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.harness.start import check_seed
from headrace_jobs.store import LastBatches, StoreError, seed_run

log = logging.getLogger("headrace")

_LOOK_SECONDS = 0.05


class PendingBatch(Exception):
    """The incumbent was cut in the middle of a batch, and nobody said that this is fine."""


@dataclass
class Activation:
    """The orders that came, and what became of the last one."""

    rehearsal: Rehearsal
    tell: Callable[[Event], None]
    clock: Callable[[], float] = time.monotonic
    order: Order | None = None
    state: str = ""
    message: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    first_batches: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, order: Order) -> None:
        """Begins, or finds that the same was asked before. Raises NotInStandby."""
        with self._lock:
            if order == self.order and self.state != "Failed":
                return
            if not self.rehearsal.leave_standby("Activating"):
                told = f"; {self.order} was asked for before" if self.order else ""
                raise NotInStandby(f"the candidate is {self.rehearsal.phase}{told}")
            self.order, self.state, self.message = order, "Copying", None
            self.seconds, self.first_batches = {}, {}
        threading.Thread(target=self._run, args=(order,), name="headrace-activation", daemon=True).start()

    def to_json(self) -> dict[str, Any] | None:
        if self.order is None:
            return None
        return {
            "run": self.order.run,
            "attempt": self.order.attempt,
            "epoch": self.order.epoch,
            "state": self.state,
            "message": self.message,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "firstBatches": dict(self.first_batches),
        }

    def _run(self, order: Order) -> None:
        try:
            run_file = self._prepare(order)
        except (PendingBatch, StoreError, StoreUnavailable) as error:
            log.warning("the activation came to nothing: %s", error)
            self.state, self.message = "Failed", f"{type(error).__name__}: {error}"
            self.rehearsal.back_to_standby()
            return
        except (Fenced, Refused) as error:
            # Another driver has the attempt, or the state is not for its queries: it can never take over.
            self.state, self.message = "Failed", str(error)
            self.tell(ApplicationEnded(error))
            return
        except Exception as error:
            # Else it would copy for ever, and nobody writes meanwhile. It says nothing of the version.
            log.exception("the activation failed")
            self.state, self.message = "Failed", f"{type(error).__name__}: {error}"
            self.tell(ApplicationEnded(CannotStart(f"it could not take over: {self.message}")))
            return
        try:
            self._take_over(run_file)
        except BaseException as error:
            log.exception("the queries could not be started")
            self.tell(ApplicationEnded(error))
        else:
            self._await_first_batches()

    def _prepare(self, order: Order) -> RunFile:
        """All that can fail without harm, and the claim last."""
        rehearsal = self.rehearsal
        run_file = rehearsal.assignment.run_file.activated(
            run=order.run, attempt=order.attempt, epoch=order.epoch
        )
        with self._timed("copy"):
            seed = seed_run(
                rehearsal.store,
                rehearsal.terms.from_run,
                order.run,
                # The files that this program was fetched as: another attempt of the run gets the same.
                code_of=rehearsal.fetched,
                # Before the copy: once a run is seeded, the one it came from may not go on.
                check=lambda batches: self._check_boundaries(order, batches),
            )
            for query in rehearsal.registry.resting():
                check_seed(seed, query.query_name)
        with self._timed("claim"):
            rehearsal.control.claim(run_file, claim_body(run_file, spark_version=rehearsal.session.version))
        return run_file

    @staticmethod
    def _check_boundaries(order: Order, batches: dict[str, LastBatches]) -> None:
        pending = {name: last.offsets for name, last in batches.items() if last.pending}
        if pending and not order.accept_pending:
            told = ", ".join(f"batch {batch} of query {name}" for name, batch in pending.items())
            raise PendingBatch(f"{told} has begun and not ended: say acceptPending to repeat it")

    def _take_over(self, run_file: RunFile) -> None:
        rehearsal = self.rehearsal
        self.state = "Starting"
        rehearsal.control.guard(run_file)
        rehearsal.assignment.change(run_file)
        with self._timed("start"):
            for query in rehearsal.registry.resting():
                rehearsal.registry.activate(query)
            rehearsal.keep_meanings()
        self.state = rehearsal.phase = "Active"
        log.info("run %d, attempt %d, epoch %d: active", run_file.run, run_file.attempt, run_file.epoch)

    def _await_first_batches(self) -> None:
        began = self.clock()
        waiting = {query.query_name: query for query in self.rehearsal.registry.active()}
        while waiting:
            for name, query in list(waiting.items()):
                progress = query.java.lastProgress()
                if progress is not None:
                    self.first_batches[name] = progress.batchId()
                    log.info("query %s: %s", name, told_batch(json.loads(progress.json())))
                if progress is not None or not query.isActive:
                    del waiting[name]
            time.sleep(_LOOK_SECONDS)
        self.seconds["firstBatch"] = self.clock() - began
        self.state = "Done"

    def _timed(self, name: str) -> _Timer:
        return _Timer(self, name)


def told_batch(progress: dict[str, Any]) -> str:
    """Where the time of a batch went, the longest first: of the first one it is most of the handover."""
    parts = sorted(progress["durationMs"].items(), key=lambda part: -part[1])
    times = ", ".join(f"{name} {ms / 1000:.2f} s" for name, ms in parts if ms > 0)
    state = [{**one, **one.get("customMetrics", {})} for one in progress["stateOperators"]]

    def total(name: str) -> int:
        return sum(one.get(name, 0) for one in state)

    # Of all tasks together: as many of them as there are cores go on at the same time.
    loaded, committed = (total(name) / 1000 for name in ("rocksdbLoadLatencyMs", "commitTimeMs"))
    changelogs = total("rocksdbNumReplayChangelogFiles")
    return (
        f"batch {progress['batchId']} took {times}; state: loaded in {loaded:.2f} s, "
        f"{changelogs} changelogs replayed, committed in {committed:.2f} s"
    )


class _Timer:
    def __init__(self, activation: Activation, name: str) -> None:
        self._activation, self._name, self._began = activation, name, 0.0

    def __enter__(self) -> None:
        self._began = self._activation.clock()

    def __exit__(self, *_: object) -> None:
        self._activation.seconds[self._name] = self._activation.clock() - self._began
