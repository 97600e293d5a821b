"""When an attempt ends, and why: the decision alone, without doing it. The first cause wins.

the application and all its queries have ended             Completed
someone asks (agent, signal, parent gone)                  Drained
the application breaks a rule                              Refused           others drained first
the application fails outside of a query                   ApplicationError  others drained first
a query fails                                              QueryFailed       others drained first
the checkpoint store does not do what it should            StoreUnavailable  others drained first
a newer attempt holds the run                              Fenced            at once
a batch takes too long, and the manifest says Restart      BatchStuck        others drained first
the JVM, or a query in it, ran out of memory               OutOfMemory       others drained first
the JVM is gone                                            InternalError     at once
a rehearsal is through, too slow, or finds another meaning Rehearsed, …      at once
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace_jobs.harness.control import Fenced, StoreUnavailable
from headrace_jobs.harness.failure import Failure, UserCode, failure_of_exception, suggestion_for
from headrace_jobs.harness.rules import Refused
from headrace_jobs.harness.termination import Reason

# The parent of a local driver is gone without a word: nobody waits for this driver's end any more.
PARENT_GONE_DRAIN_SECONDS = 20.0
# Other queries end at a batch boundary if they can, but the fault must be told soon.
FAILED_DRAIN_SECONDS = 20.0
_OUT_OF_MEMORY = "java.lang.OutOfMemoryError"


class CannotStart(Exception):
    """The driver could not be started, and it is not the application's fault."""


@dataclass(frozen=True)
class QueryEnd:
    """How a query ended. No failure: by itself, by a stop, or by a drain."""

    failure: Failure | None = None
    fenced: bool = False
    store_fault: bool = False
    drained: bool = False
    jvm_lost: bool = False
    spark_stopped: bool = False
    """It failed when Spark had stopped under it: a JVM that ends by itself stops Spark first."""


@dataclass(frozen=True)
class DrainRequested:
    by: str
    timeout_seconds: float
    snapshots_first: bool = False


@dataclass(frozen=True)
class QueryEnded:
    name: str
    end: QueryEnd


@dataclass(frozen=True)
class ApplicationEnded:
    error: BaseException | None = None


@dataclass(frozen=True)
class BatchStuck:
    query: str
    sentence: str


@dataclass(frozen=True)
class JvmEnded:
    how: str
    out_of_memory: bool = False


@dataclass(frozen=True)
class RehearsalOver:
    """The rehearsal itself says how it ended; faults of the application tell of themselves."""

    reason: Reason
    message: str


Event = DrainRequested | QueryEnded | ApplicationEnded | BatchStuck | JvmEnded | RehearsalOver


@dataclass(frozen=True)
class Ending:
    """`drain_seconds` None: at once. `leave_out`: a query that is beyond help."""

    reason: Reason
    message: str
    failure: Failure | None = None
    drain_seconds: float | None = None
    leave_out: frozenset[str] = frozenset()
    snapshots_first: bool = False


def ending_for(
    event: Event, *, application_ended: bool, active: int, own: UserCode, rehearsing: bool = False
) -> Ending | None:
    """What an event means for the attempt; None: it goes on. `active` counts the queries still running.

    `rehearsing`: an application that has ended by itself is not the end, the rehearsal says what it found.
    """
    match event:
        case DrainRequested(by, seconds, snapshots_first):
            return Ending(Reason.DRAINED, by, drain_seconds=seconds, snapshots_first=snapshots_first)
        case BatchStuck(query, sentence):
            return Ending(
                Reason.BATCH_STUCK, sentence, drain_seconds=FAILED_DRAIN_SECONDS, leave_out=frozenset({query})
            )
        case RehearsalOver(reason, message):
            return Ending(reason, message)
        case JvmEnded(how, out_of_memory=True):
            message = f"the driver's JVM {how}. {suggestion_for(_OUT_OF_MEMORY)}"
            return Ending(Reason.OUT_OF_MEMORY, message, Failure(_OUT_OF_MEMORY, message))
        case JvmEnded(how):
            return Ending(Reason.INTERNAL_ERROR, f"the driver's JVM {how}. Its last lines are in the log")
        case QueryEnded(name, QueryEnd(failure=Failure() as failure) as end):
            return query_failed(name, failure, end)
        case ApplicationEnded(error) if error is not None and not _is_good_exit(error):
            return _application_failed(error, own)
        case _:
            return _completed() if application_ended and active == 0 and not rehearsing else None


def _completed() -> Ending:
    return Ending(Reason.COMPLETED, "the application and all its queries have ended")


def query_failed(name: str, failure: Failure, end: QueryEnd) -> Ending:
    if end.fenced:
        return Ending(Reason.FENCED, failure.sentence, failure)
    reason = Reason.STORE_UNAVAILABLE if end.store_fault else Reason.QUERY_FAILED
    if failure.error_class == _OUT_OF_MEMORY:
        reason = Reason.OUT_OF_MEMORY
    message = f"query {name} failed: {failure.sentence}"
    return Ending(reason, message, failure, drain_seconds=FAILED_DRAIN_SECONDS)


def _application_failed(error: BaseException, own: UserCode) -> Ending:
    match error:
        case Fenced():
            return Ending(Reason.FENCED, str(error))
        case CannotStart():
            return Ending(Reason.INTERNAL_ERROR, str(error))
        case StoreUnavailable():
            return Ending(Reason.STORE_UNAVAILABLE, str(error))
        case Refused():
            failure = failure_of_exception(error, own)
            failure = Failure(error.error_class, str(error), failure.frame)
            return Ending(Reason.REFUSED, failure.sentence, failure, drain_seconds=FAILED_DRAIN_SECONDS)
        case SystemExit():
            told = error.code if isinstance(error.code, int) else repr(error.code)
            failure = failure_of_exception(error, own)
            failure = Failure("SystemExit", f"the application called sys.exit({told})", failure.frame)
        case _:
            failure = failure_of_exception(error, own)
    return Ending(Reason.APPLICATION_ERROR, failure.sentence, failure, drain_seconds=FAILED_DRAIN_SECONDS)


def _is_good_exit(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)
