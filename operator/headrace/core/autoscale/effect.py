"""What came of a decision: whether a scale-up helped, whether a move down was a mistake."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.core.autoscale.memory import Block, Floor, Memory, Trial
from headrace.core.autoscale.observation import Reason
from headrace.core.autoscale.situation import Situation

# A scale-up that brings less than this of what was expected has not helped. Where less than a fifth was
# expected, batches differ too much to tell.
EFFECTIVE_GAIN = 0.1
TELLING_GAIN = 0.2
TRIAL_BATCHES = 4
TRIAL_LONG_BATCHES = 2
TRIAL_SECONDS = 1800.0
BLOCK_SECONDS = 1800.0
# The job became faster by itself by this factor: what held it back is gone.
RECOVERED = 1.25
# Up again this soon after going down is a mistake, and not made again for a while.
REGRET_SECONDS = 600.0
FLOOR_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A target with its reason, before it becomes a decision."""

    target: int
    reason: Reason
    message: str
    # Nothing could be told: what was needed lately does not count any more.
    blind: bool = False


def judged(on: Situation) -> Situation:
    """Whether the last scale-up helped; and whether a job that more executors did not help has recovered."""
    memory, at = on.memory, on.seen.at
    if not on.queries or not on.modelled:
        return on
    block, trial = memory.block, memory.trial
    if block is not None and (at >= block.until or on.measured_capacity > RECOVERED * block.capacity):
        block = None
    if block is not None and on.asked < block.before:
        # It went down since: that many more would not have helped says nothing of so few.
        block = None
    if trial is not None and _has_shown(on, trial):
        capacity, expected = on.measured_capacity, trial.capacity_expected - trial.capacity_before
        gained = (capacity - trial.capacity_before) / expected if expected > 0 else 1.0
        telling = expected >= TELLING_GAIN * trial.capacity_before
        if telling and gained < EFFECTIVE_GAIN:
            block = Block(
                until=at + BLOCK_SECONDS,
                executors=trial.after,
                capacity=capacity,
                gained=gained,
                before=trial.before,
            )
        trial = None
    elif trial is not None and at - trial.at > TRIAL_SECONDS:
        trial = None
    return replace(on, memory=replace(memory, block=block, trial=trial))


def _has_shown(on: Situation, trial: Trial) -> bool:
    """After a few batches beyond the first, which loads code and state; long ones say more."""
    # A query without rows has no batches that could show anything.
    busy = [query for query in on.working if not query.is_idle]
    return bool(busy) and all(
        query.fit.executors == trial.after
        and query.fit.batches_here >= (TRIAL_BATCHES if query.batches_are_short else TRIAL_LONG_BATCHES)
        for query in busy
    )


def remembered(on: Situation, answer: Answer) -> Memory:
    memory = on.memory.blind() if answer.blind else on.memory
    if answer.target == on.asked:
        return memory
    at, up = on.seen.at, answer.target > on.asked
    trial = None
    if up and on.modelled:
        before = max(on.seen.executors.ready, 1)
        trial = Trial(
            at=at,
            before=before,
            after=answer.target,
            capacity_before=on.capacity_apart(before),
            capacity_expected=on.capacity_apart(answer.target),
            arrival=on.arrival,
        )
    if up and not on.modelled:
        # Three more samples before the next doubling.
        queries = {name: replace(query, lags=()) for name, query in memory.queries.items()}
        memory = replace(memory, queries=queries)
    return replace(
        memory,
        moved_at=at,
        asked_at=at if up else None,
        trial=trial,
        floor=_floor(on) if up else memory.floor,
        went_down_at=None if up else at,
    )


def _floor(on: Situation) -> Floor | None:
    """Up again soon after going down: that number was too small."""
    memory, at = on.memory, on.seen.at
    if memory.went_down_at is None or at - memory.went_down_at > REGRET_SECONDS:
        return memory.floor
    return Floor(executors=on.asked + 1, arrival=on.arrival, until=at + FLOOR_SECONDS)
