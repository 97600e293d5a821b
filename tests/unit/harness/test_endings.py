"""When an attempt ends, and why."""

import pytest

from headrace_jobs.harness.control import Fenced, StoreUnavailable
from headrace_jobs.harness.endings import (
    ApplicationEnded,
    BatchStuck,
    CannotStart,
    DrainRequested,
    JvmEnded,
    QueryEnd,
    QueryEnded,
    RehearsalOver,
    ending_for,
)
from headrace_jobs.harness.failure import Failure, UserCode
from headrace_jobs.harness.rules import Refused
from headrace_jobs.harness.termination import Reason


def reason_for(event, *, application_ended=False, active=1):
    ending = ending_for(event, application_ended=application_ended, active=active, own=UserCode())
    return ending and ending.reason


BOOM = Failure("BOOM", "it went boom")
HEAP = Failure("java.lang.OutOfMemoryError", "Java heap space")


@pytest.mark.parametrize(
    ("event", "application_ended", "active", "reason"),
    [
        # The script and its queries end in any order; the last one completes the attempt.
        (ApplicationEnded(), True, 1, None),
        (ApplicationEnded(), True, 0, Reason.COMPLETED),
        (ApplicationEnded(SystemExit(0)), True, 0, Reason.COMPLETED),
        (ApplicationEnded(SystemExit()), True, 2, None),
        (QueryEnded("q", QueryEnd()), False, 0, None),
        (QueryEnded("q", QueryEnd()), True, 1, None),
        (QueryEnded("q", QueryEnd()), True, 0, Reason.COMPLETED),
        (QueryEnded("q", QueryEnd(drained=True)), False, 1, None),
        # Someone asks.
        (DrainRequested("SIGTERM was received", 60), False, 2, Reason.DRAINED),
        # Faults.
        (QueryEnded("q", QueryEnd(failure=BOOM)), False, 1, Reason.QUERY_FAILED),
        (QueryEnded("q", QueryEnd(failure=BOOM, fenced=True)), False, 1, Reason.FENCED),
        (QueryEnded("q", QueryEnd(failure=HEAP)), False, 1, Reason.OUT_OF_MEMORY),
        (QueryEnded("q", QueryEnd(failure=BOOM, store_fault=True)), False, 1, Reason.STORE_UNAVAILABLE),
        (ApplicationEnded(ValueError("x")), True, 1, Reason.APPLICATION_ERROR),
        (ApplicationEnded(KeyboardInterrupt()), True, 1, Reason.APPLICATION_ERROR),
        (ApplicationEnded(SystemExit(3)), True, 1, Reason.APPLICATION_ERROR),
        (ApplicationEnded(SystemExit("no")), True, 1, Reason.APPLICATION_ERROR),
        (ApplicationEnded(Refused("no name")), True, 0, Reason.REFUSED),
        (ApplicationEnded(Fenced("attempt 4")), True, 0, Reason.FENCED),
        (ApplicationEnded(StoreUnavailable("403")), True, 0, Reason.STORE_UNAVAILABLE),
        (ApplicationEnded(CannotStart("no Java")), True, 0, Reason.INTERNAL_ERROR),
        (BatchStuck("q", "hangs"), False, 2, Reason.BATCH_STUCK),
        (JvmEnded("was killed"), False, 2, Reason.INTERNAL_ERROR),
        (JvmEnded("ran out of memory", out_of_memory=True), False, 2, Reason.OUT_OF_MEMORY),
        (RehearsalOver(Reason.MEANING_CHANGED, "sum became max"), False, 1, Reason.MEANING_CHANGED),
    ],
)
def test_what_an_event_means(event, application_ended, active, reason):
    assert reason_for(event, application_ended=application_ended, active=active) is reason


def test_other_queries_are_drained_when_one_fails_but_a_fenced_driver_touches_nothing():
    failed = ending_for(
        QueryEnded("q", QueryEnd(failure=BOOM)), application_ended=False, active=2, own=UserCode()
    )
    fenced = ending_for(
        QueryEnded("q", QueryEnd(failure=BOOM, fenced=True)),
        application_ended=False,
        active=2,
        own=UserCode(),
    )
    assert failed is not None
    assert failed.drain_seconds
    assert failed.message == "query q failed: it went boom"
    assert fenced is not None
    assert fenced.drain_seconds is None


def test_a_stuck_query_is_not_waited_for():
    ending = ending_for(BatchStuck("q", "hangs"), application_ended=False, active=2, own=UserCode())
    assert ending is not None
    assert ending.leave_out == {"q"}
    assert ending.drain_seconds


def test_a_rehearsal_is_not_over_because_its_application_is():
    for event in (ApplicationEnded(), QueryEnded("q", QueryEnd())):
        ending = ending_for(event, application_ended=True, active=0, own=UserCode(), rehearsing=True)
        assert ending is None
    failed = QueryEnded("q", QueryEnd(failure=BOOM))
    ending = ending_for(failed, application_ended=True, active=0, own=UserCode(), rehearsing=True)
    assert ending is not None
    assert ending.reason is Reason.QUERY_FAILED


def test_exit_codes_are_the_contract():
    assert {reason.label: reason.exit_code for reason in Reason} == {
        "Completed": 0,
        "Drained": 0,
        "Refused": 64,
        "ApplicationError": 65,
        "QueryFailed": 66,
        "Fenced": 67,
        "BatchStuck": 68,
        "StoreUnavailable": 69,
        "InternalError": 70,
        "Rehearsed": 0,
        "StandbyExpired": 0,
        "MeaningChanged": 71,
        "RehearsalTimeout": 72,
        "OutOfMemory": 73,
    }
