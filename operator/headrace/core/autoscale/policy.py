"""How many executors, and why: a list of questions, the first that has an answer decides.

Pure, without a clock: the same observations lead to the same decisions, so a job's history can be replayed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from headrace.core.autoscale.effect import Answer, judged, remembered
from headrace.core.autoscale.memory import Memory
from headrace.core.autoscale.observation import Decision, Observation, Reason
from headrace.core.autoscale.situation import Situation, learn
from headrace.core.autoscale.words import amount, duration, executors, manage, rate

# Fewer executors only after this long without a need for more: the larger the saving, the sooner. State has
# to be loaded anew, so a small one must last.
HOLD_SECONDS = ((180.0, 0.3), (300.0, 0.15), (600.0, 0.1))
LONGEST_HOLD_SECONDS = HOLD_SECONDS[-1][0]
# Between a move and the next one down: the moved state is loaded, and a few batches have shown the effect.
SETTLE_SECONDS = 120.0
# Backlog beyond this part of the objective asks for more executors, whatever the load.
BACKLOG_OF_OBJECTIVE = 0.25
# More arrives by this factor than when executors were last asked for: that is news, and need not wait.
NEWS = 1.15


Question = Callable[[Situation], Answer | None]


def decide(seen: Observation, memory: Memory) -> tuple[Decision, Memory]:
    situation = judged(learn(seen, memory))
    if situation.queries and situation.modelled:
        needing = situation.memory.needing(
            situation.wanted_steadily, at=seen.at, hold_seconds=LONGEST_HOLD_SECONDS
        )
        situation = replace(situation, memory=needing)
    answer = next(answer for question in QUESTIONS if (answer := question(situation)) is not None)
    return _decision(situation, answer), remembered(situation, answer)


def lag_is_unknown(on: Situation) -> Answer | None:
    """Unknown is never zero: whatever runs stays."""
    if not on.queries:
        return _stay(on, Reason.LAG_UNKNOWN, "no query has reported yet", blind=True)
    for query in on.queries:
        if query.unknown is not None:
            text = f"the lag of query {query.seen.name} is not known ({query.unknown})"
            return _stay(on, Reason.LAG_UNKNOWN, text, blind=True)
    return None


def source_was_reset(on: Situation) -> Answer | None:
    for query in on.queries:
        if query.reset:
            text = (
                f"offsets of {', '.join(query.reset[:3])} went back: the source of query "
                f"{query.seen.name} is another one now, and its arrival is measured anew"
            )
            return _stay(on, Reason.SOURCE_RESET, text, blind=True)
    return None


def batch_is_stuck(on: Situation) -> Answer | None:
    for query in on.queries:
        if query.stuck:
            running = query.seen.running_seconds
            since = query.seen.quiet_seconds if running is None else running
            usual = duration(query.usual_batch_seconds)
            text = (
                f"query {query.seen.name} has finished no batch for {duration(since)}, where {usual} "
                "is usual: more executors do not free a batch that is stuck"
            )
            return _stay(on, Reason.BATCH_STUCK, text, blind=True)
    return None


def blackout_holds(on: Situation) -> Answer | None:
    if on.limits.blackout is None or on.emergency:
        return None
    would = f"; {executors(on.wanted)} would be right" if on.modelled and on.wanted != on.asked else ""
    return _stay(on, Reason.BLACKOUT, f"blackout window {on.limits.blackout}{would}")


def out_of_limits(on: Situation) -> Answer | None:
    low, high = on.limits.min, on.ceiling
    if low <= on.asked <= high:
        return None
    target, limit = (low, f"min is {low}") if on.asked < low else (high, f"max is {high}")
    return _move(on, target, Reason.OUT_OF_LIMITS, limit)


def still_learning(on: Situation) -> Answer | None:
    """Without a model nothing is known but whether the lag grows."""
    if on.modelled:
        return None
    query = min(on.working or on.queries, key=lambda one: one.fit.batches)
    for one in on.queries:
        lags = one.memory.lags
        # Between two batches every lag grows: only what is more than that counts.
        grows = len(lags) == 4 and all(before < after for before, after in pairwise(lags))
        if grows and one.excess_rows > 0 and not on.seen.executors.pending and on.asked < on.ceiling:
            text = f"the lag of query {one.seen.name} grew three times in a row, to {amount(lags[-1])} rows"
            target = min(2 * on.asked, on.ceiling)
            return _move(on, target, Reason.LAG_GROWS, f"{text}; there is no model of its batches yet")
    known = "1 batch" if query.fit.batches == 1 else f"{query.fit.batches} batches"
    text = f"of query {query.seen.name} {known} can be learned from: a model needs 8, or 3 long ones"
    return _stay(on, Reason.LEARNING, text)


def more_is_needed(on: Situation) -> Answer | None:
    if on.wanted <= on.asked or not _pressed(on):
        return None
    for barrier in BARRIERS:
        answer = barrier(on)
        if answer is not None:
            return answer
    if on.emergency:
        return _move(on, on.wanted, Reason.DATA_LOSS_NEAR, f"{_loss(on)}; {_why_up(on)}")
    busy = on.arrival_load(on.asked) > on.utilisation_limit
    reason = Reason.ARRIVAL_EXCEEDS_CAPACITY if busy else Reason.BACKLOG
    return _move(on, on.wanted, reason, _why_up(on))


def more_is_needed_than_can_help(on: Situation) -> Answer | None:
    """The load is too high, and the number is already where the limits or the job itself put an end to it."""
    if not _pressed(on) or on.wanted > on.asked or on.load(on.asked) <= 1:
        return None
    if (denied := executors_are_denied(on)) is not None:
        return denied
    for query, need in zip(on.working, on.needs, strict=True):
        if query.rate_limited(on.asked, need):
            limit = query.seen.max_rows_per_batch
            text = f"query {query.seen.name} reads at most {amount(limit)} rows per batch"
            return _stay(
                on, Reason.RATE_LIMITED, f"{text}: raise that limit, executors do not help; {_state(on)}"
            )
    if on.useful <= on.asked and on.useful < on.ceiling:
        return _stay(on, *_bound(on))
    if on.asked >= on.ceiling:
        loss = f"{_loss(on)}; " if on.emergency else ""
        text = f"{loss}{_state(on)}, {rate(sum(on.needs))} needed: max is {on.ceiling}"
        return _stay(on, Reason.AT_MAXIMUM, text)
    return None


def fewer_are_enough(on: Situation) -> Answer | None:
    if on.wanted >= on.asked:
        return None
    if (kept := _kept_for_now(on)) is not None:
        return kept
    found = _fewer(on)
    if found is None:
        return _held(on)
    target, hold_seconds = found
    text = f"{_state(on)}; {manage(target)} {rate(on.capacity(target))}"
    without = f"and more was not needed for {duration(hold_seconds)}"
    return _move(on, target, Reason.LESS_IS_ENOUGH, f"{text}, {without}")


def _fewer(on: Situation) -> tuple[int, float] | None:
    """The smallest number that was enough for as long as such a saving has to last."""
    at, watched = on.seen.at, on.memory.watched_since
    best: tuple[int, float] | None = None
    for hold_seconds, saving in HOLD_SECONDS:
        if watched is None or at - watched < hold_seconds:
            break
        most = on.memory.most_needed(at=at, seconds=hold_seconds)
        target = max(most, math.ceil(on.asked / 2), on.limits.min, _regretted(on))
        while target < on.asked and not on.can_afford(target):
            target += 1
        saved = on.asked - target
        if saved >= max(1, math.floor(saving * on.asked)) and (best is None or target < best[0]):
            best = (target, hold_seconds)
    return best


def _regretted(on: Situation) -> int:
    """A number that was too small for this load a short while ago is too small still."""
    floor = on.memory.floor
    if floor is None or on.seen.at >= floor.until or on.arrival < floor.arrival / NEWS:
        return 0
    return floor.executors


def _kept_for_now(on: Situation) -> Answer | None:
    """Why nothing is taken away, however little is needed."""
    if on.emergency:
        return _stay(on, Reason.DATA_LOSS_NEAR, f"{_loss(on)}: nothing is taken away")
    if any(query.quiet_too_long for query in on.queries):
        return _stay(on, Reason.HOLDING_BEFORE_DOWN, "a long batch is running: nothing is taken away from it")
    if on.seen.executors.pending and not _quota_bound(on):
        return _waiting(on)
    if on.backlog_seconds > 0:
        return _stay(on, Reason.HOLDING_BEFORE_DOWN, f"{_state(on)}; first the backlog goes")
    if on.memory.moved_at is not None and on.seen.at - on.memory.moved_at < SETTLE_SECONDS:
        return _stay(on, Reason.HOLDING_BEFORE_DOWN, f"{_state(on)}; the last move is still settling")
    return None


def it_is_enough(on: Situation) -> Answer | None:
    if on.seen.executors.pending:
        return executors_are_denied(on) or _waiting(on)
    return _stay(on, Reason.ENOUGH, _state(on))


# Why more executors are not asked for although they seem to be needed.


def executors_are_denied(on: Situation) -> Answer | None:
    if not _quota_bound(on):
        return None
    missing, since = on.seen.executors.pending, duration(on.seen.executors.pending_seconds)
    why = on.seen.executors.why_pending or "the cluster or a quota is full"
    text = f"{executors(missing)} of {on.asked} could not be started for {since}: {why}"
    would = f"; {on.wanted} would be right" if on.wanted > on.asked else ""
    return _stay(on, Reason.QUOTA_BOUND, f"{text}{would}. {_state(on)}")


def work_is_skewed(on: Situation) -> Answer | None:
    for query in on.queries:
        if query.skewed:
            text = (
                f"in query {query.seen.name} the longest task of a shuffle takes {query.seen.task_skew:.1f} "
                "times the median: one key is too hot for more executors to help (salt it)"
            )
            return _stay(on, Reason.SKEW_BOUND, f"{text}; {_state(on)}")
    return None


def more_did_not_help(on: Situation) -> Answer | None:
    block = on.memory.block
    if block is None:
        return None
    text = (
        f"{manage(block.executors)} {rate(block.capacity)}, {max(block.gained, 0):.0%} of the gain "
        "that was expected of them: something else is the limit, most likely the sink"
    )
    left = duration(block.until - on.seen.at)
    return _stay(on, Reason.SCALING_INEFFECTIVE, f"{text}; more are tried again in {left}. {_state(on)}")


def the_last_ones_are_unproven(on: Situation) -> Answer | None:
    """What was asked for may be enough: only news, or rows that are soon lost, are a reason to ask for more
    before it has shown.
    """
    trial = on.memory.trial
    if trial is None or on.emergency or on.arrival > NEWS * trial.arrival:
        return None
    if on.seen.executors.pending:
        return _waiting(on)
    text = f"{executors(trial.after)} have not done enough batches yet to tell whether they help"
    return _stay(on, Reason.WAITING_FOR_EXECUTORS, f"{text}; {_state(on)}")


BARRIERS: tuple[Question, ...] = (
    executors_are_denied,
    work_is_skewed,
    more_did_not_help,
    the_last_ones_are_unproven,
)
QUESTIONS: tuple[Question, ...] = (
    lag_is_unknown,
    source_was_reset,
    batch_is_stuck,
    blackout_holds,
    out_of_limits,
    still_learning,
    more_is_needed,
    more_is_needed_than_can_help,
    fewer_are_enough,
    it_is_enough,
)


def _pressed(on: Situation) -> bool:
    busy = on.arrival_load(on.asked) > on.utilisation_limit
    return busy or on.emergency or on.backlog_seconds > BACKLOG_OF_OBJECTIVE * on.limits.lag_objective_seconds


def _quota_bound(on: Situation) -> bool:
    there = on.seen.executors
    return there.pending > 0 and there.pending_seconds > on.memory.patience_seconds


def _decision(on: Situation, answer: Answer) -> Decision:
    return Decision(
        at=on.seen.at,
        asked=on.asked,
        target=answer.target,
        reason=answer.reason,
        message=answer.message,
        numbers=on.numbers(),
        emergency=on.emergency,
    )


def _stay(on: Situation, reason: Reason, text: str, *, blind: bool = False) -> Answer:
    message = f"stays at {executors(on.asked)}: {text}."
    return Answer(target=on.asked, reason=reason, message=message, blind=blind)


def _move(on: Situation, target: int, reason: Reason, text: str) -> Answer:
    return Answer(target=target, reason=reason, message=f"{on.asked} → {executors(target)}: {text}.")


def _waiting(on: Situation) -> Answer:
    missing = on.seen.executors.pending
    usual = duration(on.memory.startup_seconds)
    text = f"{missing} of them still start, which usually takes {usual}"
    return _stay(on, Reason.WAITING_FOR_EXECUTORS, f"{text}; {_state(on)}")


def _held(on: Situation) -> Answer:
    most = on.memory.most_needed(at=on.seen.at, seconds=LONGEST_HOLD_SECONDS)
    would = f"{on.wanted} would do"
    if most > on.wanted:
        would += f", but {most} were needed within the last {duration(LONGEST_HOLD_SECONDS)}"
    return _stay(on, Reason.HOLDING_BEFORE_DOWN, f"{_state(on)}; {would}")


def _state(on: Situation) -> str:
    """What arrives, what the executors manage, what waits."""
    present = max(on.asked, 1)
    text = f"{rate(on.arrival)} arrive, {manage(present)} {rate(on.capacity(present))}"
    excess = sum(query.excess_rows for query in on.queries)
    if on.arrival_soon > 1.1 * on.arrival:
        text += f", {rate(on.arrival_soon)} will if it grows on as it does"
    if excess > 0:
        text += f", {amount(excess)} rows are backlog"
    return text


def _why_up(on: Situation) -> str:
    horizon = min(query.catch_up_seconds for query in on.queries)
    work_off = f" to be worked off in {duration(horizon)}" if on.backlog_seconds > 0 else ""
    error = max(query.fit.error for query in on.working)
    return (
        f"{_state(on)}{work_off}; {rate(sum(on.needs))} needed with reserve, {manage(on.wanted)} "
        f"{rate(on.capacity(on.wanted))} (model error {error:.0%})"
    )


def _loss(on: Situation) -> str:
    left = on.seconds_to_data_loss
    assert left is not None  # an emergency has one
    return f"{left[1]} loses unread rows in {duration(left[0])}"


def _bound(on: Situation) -> tuple[Reason, str]:
    """More executors than these have nothing to do: by the number of tasks, or by a hot partition."""
    query = max(on.working, key=lambda one: one.arrival_up or 0.0)
    stages, hottest = query.stages, query.hottest
    tasks, kind = stages.fewest_tasks
    if hottest is not None and stages.hottest_share * (stages.source_tasks or 0) > 2:
        text = f"{hottest[0]} gets {hottest[1]:.0%} of what arrives in query {query.seen.name}"
        return Reason.SKEW_BOUND, f"{text}, and one core has to do it; {_state(on)}"
    text = f"query {query.seen.name} has {tasks} {kind} for {on.asked * stages.cores} cores"
    return Reason.PARTITION_BOUND, f"{text}: more would hardly help; {_state(on)}"
