"""Before a job is stopped for an upgrade: whether its source would delete rows meanwhile. Pure.

Held is an upgrade that would take more than a quarter of the time that is left: starts fail, and what has
piled up has to be read, too. It is asked with every pass, and goes on by itself when there is time again. A
job that is suspended, or down, is not held: it loses nothing by being upgraded.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headrace.api import Operation, StreamJobStatus
from headrace.core import attempts
from headrace.core.autoscale.words import duration
from headrace.core.decision import Context, Decision, Sentence
from headrace.core.expectations import last_gap
from headrace.core.model import AttemptPhase, Problem

PART_OF_TIME_LEFT = 0.25
# What an upgrade is taken to take before one was seen.
UNSEEN_GAP_SECONDS = 300.0
# A run that was not ready for a while, for whatever reason, makes its start seem long ago.
LONGEST_GAP_SECONDS = 1800.0
_LOOK_AGAIN = timedelta(seconds=30)


def before_upgrade(context: Context, operation: Operation) -> Decision | None:
    """Of a driver that runs: one that drains, or is down, is past it."""
    seen, advice = context.current, context.observed.advice
    running = seen is not None and seen.phase is AttemptPhase.RUNNING
    if operation.kind != "Upgrade" or not running or advice is None:
        return None
    if (why := problem(context.status, advice.stopped_seconds)) is None:
        return None
    held = attempts.keep_alive(context.refusing(why.reason, why.message))
    assert held is not None  # the last question always answers
    refused = Sentence(why.reason, why.message)
    return replace(held, refused=refused, recheck_at=context.now + _LOOK_AGAIN)


def problem(status: StreamJobStatus, stopped_seconds: float | None) -> Problem | None:
    """Why a job should not be stopped for an upgrade now; None if it may be."""
    if stopped_seconds is None:
        return None
    known = last_gap(status)
    known = known if known is not None and known <= LONGEST_GAP_SECONDS else None
    gap = UNSEEN_GAP_SECONDS if known is None else known
    if gap <= PART_OF_TIME_LEFT * stopped_seconds:
        return None
    took = (
        f"the last upgrade took {duration(gap)}"
        if known is not None
        else f"no upgrade was seen yet, and is taken to take {duration(gap)}"
    )
    return Problem(
        "DataLossNear",
        f"stopped now, the job loses unread rows in {duration(stopped_seconds)}, and {took}. It waits until "
        "there is four times as much time: give the topic more retention, or let the job catch up. To "
        "upgrade all the same, suspend and resume it",
    )
