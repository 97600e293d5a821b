"""What the planner is told of a decision of the autoscaler: the words that go into the status.

Numbers that move are metrics. Of a decision the status shows what changes seldom: the target, a band, a word.
A word that comes and goes is shown at most every few minutes; a new target, and a danger, at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from headrace.core.autoscale.observation import Decision, Numbers, Reason
from headrace.core.autoscale.words import amount, duration

Band = Literal["Ok", "Behind", "AtRisk", "Unknown"]

QUIET_SECONDS = 300.0
# Back within the objective is who is clearly within it.
CLEARLY = 0.8
# The load asks for more than there is to have.
LIMITING = frozenset(
    {
        Reason.AT_MAXIMUM,
        Reason.PARTITION_BOUND,
        Reason.SKEW_BOUND,
        Reason.RATE_LIMITED,
        Reason.QUOTA_BOUND,
        Reason.SCALING_INEFFECTIVE,
    }
)
# It stays although it would move: said, but nothing is wrong.
HOLDING = frozenset({Reason.BLACKOUT, Reason.BATCH_STUCK, Reason.SOURCE_RESET, Reason.LAG_UNKNOWN})


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One decision, in the words of the status."""

    at: datetime
    # What it was made for: where the number is another one by now, it is void.
    asked: int
    target: int
    reason: str
    message: str
    # Why more would be needed and is not to be had; None if it is not so.
    limit: str | None
    band: Band
    band_message: str
    # Why the lag is not known; None if it is.
    unknown: str | None
    # What is about to be lost; None if nothing is.
    loss: str | None
    # Until a row would be lost if the job stopped now; None if nobody knows of any. It moves with every look.
    stopped_seconds: float | None = None
    # When a word was last shown that came without a new target.
    spoke_at: datetime | None = None

    @property
    def moves(self) -> bool:
        return self.target != self.asked

    @property
    def word(self) -> tuple[object, ...]:
        """What a change of is worth a write: calm reasons come and go, and are one."""
        return self.limit, self.band, self.unknown is None, self.loss is None, self._holding

    @property
    def _holding(self) -> str | None:
        return self.reason if self.reason in HOLDING else None


def advice_of(decision: Decision, *, at: datetime, objective_seconds: float, before: Advice | None) -> Advice:
    numbers, reason = decision.numbers, decision.reason
    # "stays at 3 executors: the lag of … is not known": of the lag, what comes after.
    unknown = decision.message.partition(": ")[2] if reason is Reason.LAG_UNKNOWN else None
    loss = _loss(numbers) if decision.emergency else None
    was_behind = before is not None and before.band == "Behind"
    band = _band(numbers, objective_seconds, unknown=unknown, loss=loss, was_behind=was_behind)
    return Advice(
        at=at,
        asked=decision.asked,
        target=decision.target,
        reason=str(reason),
        message=decision.message,
        limit=str(reason) if reason in LIMITING else None,
        band=band,
        band_message=_band_message(band, numbers, objective_seconds, unknown=unknown, loss=loss),
        unknown=unknown,
        loss=loss,
        stopped_seconds=numbers.seconds_to_data_loss_if_stopped,
    )


def _band(
    numbers: Numbers, objective_seconds: float, *, unknown: str | None, loss: str | None, was_behind: bool
) -> Band:
    if loss is not None:
        return "AtRisk"
    if unknown is not None or numbers.lag_seconds is None:
        return "Unknown"
    limit = CLEARLY * objective_seconds if was_behind else objective_seconds
    return "Behind" if numbers.lag_seconds > limit else "Ok"


def _band_message(
    band: Band, numbers: Numbers, objective_seconds: float, *, unknown: str | None, loss: str | None
) -> str:
    objective = f"the objective is {duration(objective_seconds)}"
    match band:
        case "AtRisk":
            return loss or ""
        case "Unknown":
            return unknown or "how long the unread rows have waited is not known yet"
        case "Behind":
            rows = amount(numbers.lag_rows)
            return f"the oldest of {rows} unread rows waits for {duration(numbers.lag_seconds)}; {objective}"
        case "Ok":
            return f"within the objective of {duration(objective_seconds)}"


def _loss(numbers: Numbers) -> str:
    return f"the source deletes unread rows in {duration(numbers.seconds_to_data_loss)} as things go"


def published(before: Advice | None, fresh: Advice) -> Advice:
    """Of two, the one that the status shows: the older one as long as the newer says nothing new."""
    if before is None:
        return fresh
    if (fresh.asked, fresh.target) != (before.asked, before.target):
        return replace(fresh, spoke_at=before.spoke_at)
    if fresh.word == before.word:
        return before
    danger = fresh.loss is not None and before.loss is None
    spoke = before.spoke_at
    quiet = spoke is not None and (fresh.at - spoke).total_seconds() < QUIET_SECONDS
    return before if quiet and not danger else replace(fresh, spoke_at=fresh.at)
