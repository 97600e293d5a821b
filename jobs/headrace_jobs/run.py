"""What a job may ask about the run it is part of: `from headrace_jobs import run`.

    def write(frame, batch_id):
        sink.upsert(frame, fence=run.epoch, key=(run.lineage(), batch_id))

Works in the driver, inside `foreachBatch`, and inside UDFs on executors. Under plain `python job.py` there
is no run: the names below have the harmless values of a first run, and `run.managed` is False.

- `run.job`        JobRef(namespace, name, uid)
- `run.number`     the number of the run, `run.attempt` of its attempt
- `run.epoch`      up by one with every attempt that may write; a sink refuses an epoch below the highest seen
- `run.batch_id`   the batch that is being processed; None outside of one
- `run.lineage()`  the scope in which batch numbers mean something; a sink de-duplicates on (lineage, batch).
                   `run.lineage("orders")` is that of another query of the job; known in the driver only
- `run.rehearsing` True while an upgrade tries the code: write nothing to the outside
- `run.managed`    True under Headrace
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

# Written by the harness, for itself and (as spark.executorEnv) for Python workers.
VARIABLE = "HEADRACE_RUN"
# Spark's own names for what it tells every task of a batch.
_BATCH_PROPERTY = "streaming.sql.batchId"
# Ours, set for every query: a warm executor's environment still tells of the rehearsal it began with.
CONTEXT_PROPERTY = "headrace.run"
_QUERY_PROPERTY = "sql.streaming.queryId"


@dataclass(frozen=True)
class JobRef:
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class _Context:
    job: JobRef
    number: int
    attempt: int
    epoch: int
    rehearsing: bool
    managed: bool


@dataclass(frozen=True)
class _Batch:
    number: int
    lineage: str | None


_UNMANAGED = _Context(JobRef("", "", ""), number=1, attempt=1, epoch=0, rehearsing=False, managed=False)
_current_batch: ContextVar[_Batch | None] = ContextVar("headrace_batch", default=None)

_lineages: dict[str, str] = {}

# Resolved by __getattr__ below, so that they are never stale; declared here for editors and type checkers.
job: JobRef
number: int
attempt: int
epoch: int
rehearsing: bool
managed: bool
batch_id: int | None


def lineage(query: str | None = None) -> str | None:
    """The lineage of a query by name, or of the one whose batch is being processed; None if there is none."""
    if query is not None:
        return _lineages.get(query)
    batch = _current_batch.get()
    return batch.lineage if batch and batch.lineage else _local_property(_QUERY_PROPERTY)


def encode(*, job: JobRef, number: int, attempt: int, epoch: int, rehearsing: bool) -> str:
    """The value of the environment variable that carries the context. For the harness."""
    return json.dumps(
        {"job": vars(job), "number": number, "attempt": attempt, "epoch": epoch, "rehearsing": rehearsing}
    )


def remember_lineage(query: str, lineage: str) -> None:
    """For the harness, when a query has started."""
    _lineages[query] = lineage


@contextlib.contextmanager
def batch(number: int, lineage: str | None) -> Iterator[None]:
    """Marks the block as the processing of a batch. For the harness."""
    token = _current_batch.set(_Batch(number, lineage))
    try:
        yield
    finally:
        _current_batch.reset(token)


def __getattr__(name: str) -> Any:
    match name:
        case "batch_id":
            return _batch_id()
        case "job" | "number" | "attempt" | "epoch" | "rehearsing" | "managed":
            return getattr(_context(_task_property(CONTEXT_PROPERTY) or os.environ.get(VARIABLE)), name)
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["attempt", "batch_id", "epoch", "job", "lineage", "managed", "number", "rehearsing"]


def _batch_id() -> int | None:
    batch = _current_batch.get()
    if batch is not None:
        return batch.number
    told = _local_property(_BATCH_PROPERTY)
    return int(told) if told is not None else None


@functools.lru_cache(maxsize=2)
def _context(encoded: str | None) -> _Context:
    if encoded is None:
        return _UNMANAGED
    told = json.loads(encoded)
    return _Context(
        job=JobRef(**told["job"]),
        number=told["number"],
        attempt=told["attempt"],
        epoch=told["epoch"],
        rehearsing=told["rehearsing"],
        managed=True,
    )


def _task_property(name: str) -> str | None:
    """What Spark tells a task on a worker; None in the driver, and where there is no Spark."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import TaskContext  # noqa: PLC0415 - as below

    task = TaskContext.get()
    return task.getLocalProperty(name) if task is not None else None


def _local_property(name: str) -> str | None:
    """What Spark tells this thread about its batch: in a task on a worker, or in a driver's foreachBatch."""
    from pyspark import SparkContext, TaskContext  # noqa: PLC0415 - a job that only reads run.epoch needs no Spark

    if TaskContext.get() is not None:
        return _task_property(name)
    context = SparkContext._active_spark_context
    return context.getLocalProperty(name) if context is not None else None
