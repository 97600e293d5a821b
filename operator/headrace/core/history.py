"""Runs of the past, newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from headrace.api import HistoryEntry, StreamJobStatus
from headrace.core.model import Ending
from headrace.core.restarts import hold_reason

_KEPT = 10
_REFUSED_KEPT = 3

Outcome = Literal["Replaced", "RolledBack", "Superseded", "Refused", "Completed"]


def with_past_run(
    status: StreamJobStatus, outcome: Outcome, message: str, *, now: datetime
) -> tuple[HistoryEntry, ...]:
    """The history after the present run has ended so."""
    run = status.run
    if run is None:
        return status.history
    if outcome == "Replaced" and hold_reason(status) is Ending.COMPLETED:
        outcome = "Completed"
    entry = HistoryEntry(
        run=run.number,
        revision=run.revision,
        outcome=outcome,
        message=message,
        image=run.image,
        spark_version=run.spark_version,
        changes=run.changes,
        started_at=run.started_at,
        ended_at=now,
    )
    return with_entry(status.history, entry)


def with_entry(history: tuple[HistoryEntry, ...], entry: HistoryEntry) -> tuple[HistoryEntry, ...]:
    """A run that was refused in its rehearsal never began: the next one has its number. However many are
    refused in a row, they do not take the place of what ran, and can be gone back to."""
    entries = (entry, *(each for each in history if each.run != entry.run or each.outcome == "Refused"))
    too_many = [each for each in entries if each.outcome == "Refused"][_REFUSED_KEPT:]
    return tuple(each for each in entries if each not in too_many)[:_KEPT]


def image_of(status: StreamJobStatus, run: int) -> str | None:
    """The image that a run of the past ran, by digest where anybody knew it."""
    stable = status.last_stable
    if stable is not None and stable.run == run and stable.image is not None:
        return stable.image
    return next((entry.image for entry in status.history if entry.run == run), None)
