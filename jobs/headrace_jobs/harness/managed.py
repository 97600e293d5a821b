"""The queries of a job: each one watched from its start to its end.

User code gets a `ManagedQuery`, a StreamingQuery like any other, with two differences: it waits on what
the harness knows instead of on the JVM (so the JVM's query behind it can be replaced), and the end of a
drained query is a normal stop, not an exception.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from headrace_jobs import run
from headrace_jobs.harness.control import StoreUnavailable
from headrace_jobs.harness.endings import QueryEnd
from headrace_jobs.harness.failure import (
    DRAINED_CLASS,
    FENCED_CLASS,
    JavaFault,
    UserCode,
    ended_by,
    failure_of_exception,
    failure_of_query,
    failure_of_store,
    is_store_fault,
)
from headrace_jobs.harness.jvm_errors import java_throwable_in

log = logging.getLogger("headrace")

_SIGNAL_SECONDS = 0.1


class BatchScope:
    """What the harness knows of the batches of one query while user code runs in them."""

    def __init__(self) -> None:
        self.lineage: str | None = None
        self.error: BaseException | None = None


class Replay(Protocol):
    """The batches that a query repeats in a rehearsal, each by a query of the JVM of its own."""

    def next(self, ended: Any) -> Any | None:
        """Takes note of the one that has ended, and starts the next; None: there is none left."""
        ...


@dataclass(frozen=True)
class Part:
    """What a query plays in a rehearsal, and how it is started in earnest."""

    replay: Replay
    start: Callable[[], Any]


class ManagedQuery(StreamingQuery):
    def __init__(
        self, name: str, jsq: Any, scope: BatchScope, registry: QueryRegistry, part: Part | None
    ) -> None:
        super().__init__(jsq)
        self._registry = registry
        self._draining = registry.draining
        self._scope = scope
        self._ended = threading.Event()
        self._rested = threading.Event()
        self._end: QueryEnd | None = None
        self._error: StreamingQueryException | None = None
        self.query_name = name
        self.part = part
        self.stopping = False
        self.repoint(jsq)

    @property
    def java(self) -> Any:
        """The query in the JVM."""
        return self._jsq

    @property
    def end(self) -> QueryEnd | None:
        """None while the query runs."""
        return self._end

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name, as below
        return self._end is None

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        if timeout is not None and (isinstance(timeout, bool) or timeout <= 0):
            return super().awaitTermination(timeout)  # raises Spark's own complaint
        with self._registry.a_waiter():
            ended = self._ended.wait(timeout)
        if self._error is not None:
            raise self._error
        return ended if timeout is not None else None

    def exception(self) -> StreamingQueryException | None:
        return self._error

    def processAllAvailable(self) -> None:  # noqa: N802
        """In a rehearsal what is available is what it repeats."""
        if self.part is None:
            super().processAllAvailable()
        else:
            self._rested.wait()

    def stop(self) -> None:
        """As Spark's: it cuts a running batch, which the next attempt repeats. Not during a drain, though:
        then the batch ends first (jobs like to stop their queries when they see a SIGTERM)."""
        # A script's own signal handler runs in the same instant as ours: give the drain time to begin.
        if not self._draining.wait(_SIGNAL_SECONDS):
            self.cut()
            self._registry.stop_resting(self)
        # The watching thread sees the end a moment later; after stop() a query must not look active.
        self._ended.wait()

    def cut(self) -> None:
        """Stops the query wherever it is. What the interrupt breaks in it is not a failure."""
        self.stopping = True
        self.java.stop()

    def repoint(self, jsq: Any) -> None:
        """Puts another query of the JVM behind this object; whoever waits on it goes on waiting."""
        # Asked once, so that they can be told when the JVM is gone.
        self.lineage: str = jsq.id().toString()
        self.run_id: str = jsq.runId().toString()
        self._jsq = jsq
        self._scope.lineage = self.lineage
        run.remember_lineage(self.query_name, self.lineage)

    @property
    def resting(self) -> bool:
        """It has repeated what there was, and waits for the handover: active to the user's code."""
        return self._rested.is_set() and self.part is not None and self._end is None

    def rest(self) -> None:
        self._rested.set()

    def activated(self, jsq: Any) -> None:
        """From now on it is a query like any other."""
        self.part = None
        self.repoint(jsq)

    def record_end(self, end: QueryEnd, error: StreamingQueryException | None) -> None:
        self._error, self._end = error, end

    def release_waiters(self) -> None:
        self._ended.set()


class QueryRegistry:
    """All queries of this driver, by name, in the order of their start.

    `draining` is set for good when a drain begins.
    """

    def __init__(self, on_end: Callable[[str, QueryEnd], None], own: UserCode) -> None:
        self._on_end = on_end
        self._own = own
        self.draining = threading.Event()
        self._changed = threading.Condition()
        self._queries: dict[str, ManagedQuery] = {}
        self._terminated: list[ManagedQuery] = []
        self._waiters = 0

    def adopt(self, name: str, jsq: Any, scope: BatchScope, part: Part | None = None) -> ManagedQuery:
        query = ManagedQuery(name, jsq, scope, self, part)
        with self._changed:
            self._queries[name] = query
            self._changed.notify_all()
        self._begin_watching(query)
        log.info("query %s started", name)
        return query

    def activate(self, query: ManagedQuery) -> None:
        """Starts a query that rests, in earnest."""
        assert query.part is not None
        query.activated(query.part.start())
        self._begin_watching(query)

    def _begin_watching(self, query: ManagedQuery) -> None:
        name = f"headrace-watch-{query.query_name}"
        threading.Thread(target=self._watch, args=(query,), name=name, daemon=True).start()

    @contextlib.contextmanager
    def a_waiter(self) -> Iterator[None]:
        """The user's code waits for queries: it starts no other meanwhile."""
        with self._changed:
            self._waiters += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._waiters -= 1

    @property
    def awaited(self) -> bool:
        return self._waiters > 0

    def resting(self) -> list[ManagedQuery]:
        return [query for query in self.all() if query.resting]

    def wait_for_change(self, timeout: float) -> None:
        """Until a query starts, rests or ends, or somebody begins to wait for one."""
        with self._changed:
            self._changed.wait(timeout)

    def stop_resting(self, query: ManagedQuery) -> None:
        """The user's code has stopped a query that was only waiting: nobody else sees its end."""
        if query.resting:
            self._finish(query, QueryEnd(), None)

    def all(self) -> list[ManagedQuery]:
        with self._changed:
            return list(self._queries.values())

    def java_query(self, name: str) -> Any:
        with self._changed:
            return self._queries[name].java

    def active(self) -> list[ManagedQuery]:
        return [query for query in self.all() if query.isActive]

    def wait_for_any_end(self, timeout: float | None) -> bool:
        """Spark's `awaitAnyTermination`: also ends that happened before, until they are reset."""
        with self.a_waiter(), self._changed:
            ended = self._changed.wait_for(lambda: self._terminated, timeout)
            failed = next((query for query in self._terminated if query.exception() is not None), None)
        if failed is not None:
            raise cast(StreamingQueryException, failed.exception())
        return bool(ended)

    def reset_ends(self) -> None:
        with self._changed:
            self._terminated.clear()

    def wait_for_failure(self, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: any(query.end and query.end.failure for query in self._queries.values()), timeout
            )

    def wait_until_ended(self, queries: Sequence[ManagedQuery], timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not any(query.isActive for query in queries), timeout)

    def _watch(self, query: ManagedQuery) -> None:
        end, error = self._await_end(query)
        while end.failure is None and not end.jvm_lost and not query.stopping and query.part is not None:
            try:
                following = query.part.replay.next(query.java)
                if following is None:
                    query.rest()
                    with self._changed:
                        self._changed.notify_all()
                    return
                query.repoint(following)
            except Exception as fault:
                end, error = self._end_of_start(fault), None
            else:
                end, error = self._await_end(query)
        self._finish(query, end, error)

    def _end_of_start(self, fault: Exception) -> QueryEnd:
        """The next query of a replay could not be started."""
        if isinstance(fault, Py4JNetworkError):
            return QueryEnd(jvm_lost=True)
        store_fault = isinstance(fault, StoreUnavailable)
        return QueryEnd(failure=failure_of_exception(fault, self._own), store_fault=store_fault)

    def _finish(self, query: ManagedQuery, end: QueryEnd, error: StreamingQueryException | None) -> None:
        query.record_end(end, error)
        query.rest()
        # Told before user code wakes up: what it does then (raise, exit) is a consequence, not the cause.
        self._on_end(query.query_name, end)
        query.release_waiters()
        with self._changed:
            self._terminated.append(query)
            self._changed.notify_all()

    def _await_end(self, query: ManagedQuery) -> tuple[QueryEnd, StreamingQueryException | None]:
        try:
            with contextlib.suppress(StreamingQueryException):
                query.java.awaitTermination()
            error = StreamingQuery.exception(query)
            if error is None:
                return QueryEnd(), None
            end = self._end_of(query, query.java.exception().get())
        except Py4JNetworkError:
            return QueryEnd(jvm_lost=True), None
        return (end, error) if end.failure is not None else (end, None)

    def _end_of(self, query: ManagedQuery, throwable: Any) -> QueryEnd:
        chain = java_chain(throwable)
        if ended_by(chain, FENCED_CLASS):
            return QueryEnd(failure=failure_of_query(chain, self._own), fenced=True)
        if ended_by(chain, DRAINED_CLASS):
            return QueryEnd(drained=True)
        if query.stopping:
            return QueryEnd()
        if query._scope.error is not None:
            return self._end_in_function(query._scope.error)
        stopped = spark_has_stopped()
        if is_store_fault(chain, stack_of(throwable)):
            return QueryEnd(failure=failure_of_store(chain), store_fault=True, spark_stopped=stopped)
        return QueryEnd(failure=failure_of_query(chain, self._own), spark_stopped=stopped)

    def _end_in_function(self, error: BaseException) -> QueryEnd:
        """Of foreachBatch. State is written while it runs: then it is the store's fault, not the code's."""
        throwable = java_throwable_in(error)
        chain = java_chain(throwable)
        if is_store_fault(chain, stack_of(throwable) if chain else ""):
            return QueryEnd(failure=failure_of_store(chain), store_fault=True)
        return QueryEnd(failure=failure_of_exception(error, self._own))


def java_chain(throwable: Any) -> list[JavaFault]:
    """A throwable and its causes, outermost first."""
    chain: list[JavaFault] = []
    link = throwable
    while link is not None and len(chain) < 20:
        chain.append(JavaFault(link.getClass().getName(), link.getMessage() or "", _condition(link)))
        link = link.getCause()
    return chain


def spark_has_stopped() -> bool:
    context: Any = SparkContext._active_spark_context
    return context is not None and bool(context._jsc.sc().isStopped())


def stack_of(throwable: Any) -> str:
    """The whole trace, causes included, as Java prints it."""
    context: Any = SparkContext
    return context._jvm.org.apache.spark.util.Utils.exceptionString(throwable)


def _condition(throwable: Any) -> str | None:
    try:
        return throwable.getCondition()  # of SparkThrowable; other classes have no such method
    except Py4JError:
        return None
