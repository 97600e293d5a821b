"""Splits the state of a run into another number of partitions, before any of its queries starts.

The driver does it, with the executors that the state was sized for: a keeper has neither the memory nor the
disks. It works on the run's own copy, so what it came from is whole whatever happens here. Killed in the
middle, the next attempt removes what is half done and begins again; where all is done, nothing is to do.

Spark's own tool does the work (`StreamingCheckpointManager.repartition`, 4.2 and newer). What it would break,
or break off at in the middle, is refused before it is asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError

from headrace_jobs.harness.conf import spark_url
from headrace_jobs.harness.control import Fenced, StoreUnavailable
from headrace_jobs.harness.failure import FENCED_CLASS, UserCode, ended_by, failure_of_query, is_store_fault
from headrace_jobs.harness.managed import java_chain, stack_of
from headrace_jobs.harness.rules import Refused
from headrace_jobs.store import Store, StoreError
from headrace_jobs.store.logs import ROCKSDB
from headrace_jobs.store.partitions import QueryState, states_of, undo_unfinished
from headrace_jobs.store.savepoints.lineage import FILE_SINK

log = logging.getLogger("headrace")

_FIRST_SPARK = (4, 2)


class CannotRepartition(Refused):
    """The state stays as it is: the message says why, and the way out."""

    error_class = "CannotRepartition"


def to_split(
    states: Iterable[QueryState], partitions: int, *, spark_version: str, at_rest: bool = True
) -> list[QueryState]:
    """The queries whose state is to be split; raises CannotRepartition for the first that cannot be.

    `at_rest`: nobody works on them. While somebody does, a batch that has begun says nothing. Pure.
    """
    wanted = [state for state in states if state.stateful and state.partitions != partitions]
    for state in wanted:
        if (problem := _obstacle(state, spark_version, at_rest=at_rest)) is not None:
            raise CannotRepartition(
                f"query {state.name}: its state cannot be split into {partitions} partitions instead of "
                f"{state.partitions}: {problem}, or put spec.state.partitions back"
            )
    return wanted


def _obstacle(state: QueryState, spark_version: str, *, at_rest: bool) -> str | None:
    if tuple(int(part) for part in spark_version.split(".")[:2]) < _FIRST_SPARK:
        return f"this image has Spark {spark_version}, and 4.2 is the first that can. Use a newer image"
    if state.provider != ROCKSDB:
        return (
            f"it is kept by {state.provider}, and only RocksDB's can be split. Begin anew with "
            "spec.upgrade.strategy: Stateless"
        )
    if state.sink is not None and state.sink.startswith(FILE_SINK):
        return (
            "it writes with Spark's file sink, whose log of batches would have a hole at which it fails "
            "later. Write a table, or with foreachBatch"
        )
    if at_rest and state.last.pending:
        return (
            f"batch {state.last.offsets} has begun and not ended, and belongs to the old number. Let the job "
            "finish a batch (a drain is cut after spec.drainTimeout), then change it"
        )
    return None


@dataclass
class Repartition:
    """One run, or the fork of a rehearsal. What it is at can be asked at any time, from another thread."""

    session: Any
    store: Store
    directory: str
    """Below the store."""
    checkpoint_of: Callable[[str], str]
    partitions: int
    clock: Callable[[], float] = time.monotonic
    doing: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> None:
        """Raises CannotRepartition, Fenced or StoreUnavailable."""
        try:
            for query in undo_unfinished(self.store, self.directory):
                log.warning("query %s: half of a repartition was found, and removed", query)
            states = states_of(self.store, self.directory)
        except StoreError as error:
            raise StoreUnavailable(str(error)) from error
        # Loading a snapshot reports to a coordinator, which exists only where streams were asked for once.
        self.session._jsparkSession.streams().active()
        for state in to_split(states, self.partitions, spark_version=self.session.version):
            self._split(state)

    def _split(self, state: QueryState) -> None:
        what = f"{self.partitions} partitions instead of {state.partitions}"
        self.doing = f"the state of query {state.name} is split into {what}"
        began = self.clock()
        try:
            manager = self.session._streamingCheckpointManager
            manager.repartition(spark_url(self.checkpoint_of(state.name)), self.partitions)
        except Exception as error:
            raise _told(error, state.name) from error
        finally:
            self.doing = None
        self.seconds[state.name] = self.clock() - began
        log.info("query %s: its state is now split into %s (%.1f s)", state.name, what, self.clock() - began)

    def notes(self) -> list[str]:
        return [
            f"query {name}: splitting its state into {self.partitions} partitions took {seconds:.1f} s"
            for name, seconds in self.seconds.items()
        ]

    def to_json(self) -> dict[str, Any]:
        """For the agent's status."""
        seconds = {name: round(value, 2) for name, value in self.seconds.items()}
        return {"partitions": self.partitions, "doing": self.doing, "seconds": seconds}


def _told(error: Exception, query: str) -> Exception:
    """Whose fault it is: a rival's, the store's, or that of the state itself."""
    throwable = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    if throwable is None:
        return error
    chain = java_chain(throwable)
    failure = failure_of_query(chain, UserCode())
    if ended_by(chain, FENCED_CLASS):
        return Fenced(failure.message)
    if is_store_fault(chain, stack_of(throwable)):
        return StoreUnavailable(failure.message)
    return CannotRepartition(
        f"query {query}: its state could not be split: {failure.message}. Put spec.state.partitions back"
    )
