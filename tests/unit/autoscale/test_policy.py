"""The edge cases of scaling from lag, one after the other: each is a row of docs/concepts/autoscaling.md."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.autoscale import Batch, Executors, Memory, Observation, Query, Reason, decide
from headrace.core.autoscale.cost import Fit, Stages
from headrace.core.autoscale.query import stages_of
from tests.unit.autoscale.story import Story, a_settled_job, limits

# The load: up in one jump, down late.


def test_a_load_that_fits_leaves_everything_as_it_is():
    job = a_settled_job(rows_per_second=3300)
    last = job.run(1800)
    assert job.moves == []
    assert last.reason is Reason.ENOUGH
    assert "3.3k rows/s arrive, 4 executors manage" in last.message


def test_a_higher_load_is_answered_in_one_jump():
    job = a_settled_job(rows_per_second=3300)
    job.run(300, rows_per_second=7000)
    ups = job.moves
    assert 1 <= len(ups) <= 2
    assert ups[0][0] == 4 and 8 <= ups[-1][1] <= 12
    first = next(one for one in job.decisions if one.moves)
    assert first.reason is Reason.ARRIVAL_EXCEEDS_CAPACITY
    assert "needed with reserve" in first.message and "manage" in first.message


def test_a_lower_load_is_answered_late_and_by_half_at_most():
    job = a_settled_job(rows_per_second=9000, executors=12)
    job.run(240, rows_per_second=500)
    assert job.moves == []
    assert Reason.HOLDING_BEFORE_DOWN in job.reasons
    job.run(1200)
    assert job.moves[0][0] == 12
    assert all(after >= before / 2 for before, after in job.moves)
    assert job.executors <= 2


def test_a_saving_too_small_to_load_state_for_is_not_taken():
    job = a_settled_job(rows_per_second=18_000, executors=23, partitions=240, limits=limits(max=30))
    before = job.executors
    assert before >= 20, "of fewer, one is a tenth already"
    job.run(1800, rows_per_second=18_000 * (before - 1) / before)
    assert all(asked - target >= 2 for asked, target in job.moves)


def test_the_horizon_in_which_backlog_is_worked_off_asks_for_more_than_the_arrival_does():
    job = a_settled_job(rows_per_second=3300)
    # The job was away for ten minutes: what arrived meanwhile waits.
    job.batch = None
    job.committed = [max(0.0, one - 2_000_000 / job.partitions) for one in job.committed]
    first = job.run(15)
    assert first.reason is Reason.BACKLOG
    assert first.target == 12
    assert "1.94M rows are backlog to be worked off in 40 s" in first.message


def test_the_saw_tooth_between_two_batches_is_no_backlog():
    job = a_settled_job(rows_per_second=2800)
    assert all("backlog" not in one.message for one in job.decisions[-20:])


def test_a_number_that_proved_too_small_is_not_tried_again_for_an_hour():
    job = a_settled_job(rows_per_second=3300)
    job.run(300, rows_per_second=2300)
    while not job.moves:
        job.run(15)
    assert job.executors == 3
    # Three turn out to be slower than four were: the reserve was in the fourth.
    job.run(600, per_executor=700)
    assert job.executors >= 4
    job.run(1800, per_executor=1000)
    assert job.executors >= 4


def test_state_that_would_take_too_long_to_load_keeps_the_executors_that_hold_it():
    stages = Stages(cores=2, source_tasks=24, shuffle_tasks=None, hottest_share=0.0)
    batches = [
        Batch(number=n, seconds=5 + n % 2, rows=20_000 + 1000 * (n % 2), executors=4) for n in range(20)
    ]
    fit = Fit().learn(batches, stages, 10.0)
    after = fit.learn([Batch(number=20, seconds=40, rows=20_000, executors=2)], stages, 10.0)
    assert fit.reload == 0
    assert after.reload_seconds(stages, before=4, after=2) == pytest.approx(30, rel=0.2)
    assert after.reload_seconds(stages, before=2, after=1) == pytest.approx(60, rel=0.2)


# What limits the number.


def test_a_number_that_saves_no_wave_counts_for_little():
    # 24 partitions on 2 cores each: 5 executors need three waves as 4 do; 6 need two.
    job = a_settled_job(rows_per_second=3300)
    stages = stages_of(job.query_seen([]), job.memory.queries["clicks"], 2)
    four, five, six = (stages.share(number) for number in (4, 5, 6))
    assert four / five < five / six
    assert six == pytest.approx(2 / 24)


def test_more_executors_than_tasks_are_never_asked_for():
    job = a_settled_job(rows_per_second=2000, partitions=8, limits=limits(max=20))
    last = job.run(900, rows_per_second=30_000)
    assert job.executors == 4
    assert last.reason is Reason.PARTITION_BOUND
    assert "8 partitions for 8 cores" in last.message


def test_partitions_that_spark_splits_are_more_tasks():
    job = a_settled_job(partitions=8, query={"min_partitions": 40}, limits=limits(max=20))
    job.run(900, rows_per_second=60_000)
    assert job.executors > 4


def test_a_hot_partition_ends_what_executors_can_do():
    hot = [0.3] + [0.7 / 23] * 23
    job = a_settled_job(rows_per_second=3300, shares=hot, limits=limits(max=20))
    last = job.run(900, rows_per_second=20_000)
    assert job.executors <= 4
    assert last.reason is Reason.SKEW_BOUND
    assert "clicks/0 gets 30% of what arrives" in last.message


def test_shuffle_partitions_count_as_tasks_of_their_own():
    few = a_settled_job(partitions=4, executors=2, rows_per_second=1000, limits=limits(max=20))
    few.run(600, rows_per_second=50_000)
    many = a_settled_job(
        partitions=4,
        executors=2,
        rows_per_second=1000,
        limits=limits(max=20),
        query={"shuffle_partitions": 40},
    )
    many.run(600, rows_per_second=50_000)
    assert few.executors == 2
    assert many.executors > 2


def test_a_hot_key_is_not_scaled_against():
    job = a_settled_job(rows_per_second=3300)
    last = job.run(120, rows_per_second=9000, query={"task_skew": 7.0})
    assert job.moves == []
    assert last.reason is Reason.SKEW_BOUND
    assert "7.0 times the median" in last.message and "salt it" in last.message


def test_a_limit_of_rows_per_batch_is_named_as_the_limit():
    job = a_settled_job(rows_per_second=1000, query={"max_rows_per_batch": 20_000})
    job.run(60, rows_per_second=9000)
    for index in range(job.partitions):
        job.ends[index] += 100_000
    last = job.run(600)
    assert last.reason is Reason.RATE_LIMITED
    assert "at most 20k rows per batch" in last.message


def test_a_limit_that_suits_is_named_where_the_source_has_none():
    job = a_settled_job(rows_per_second=3300)
    numbers = job.run(15).numbers
    # A batch may take a quarter of the objective.
    assert numbers.suitable_batch_rows == pytest.approx(15 * numbers.capacity_rows_per_second, rel=0.01)
    assert job.run(15, query={"max_rows_per_batch": 50_000}).numbers.suitable_batch_rows is None


def test_max_is_the_end_and_is_named():
    job = a_settled_job(rows_per_second=3300, limits=limits(max=6))
    last = job.run(900, rows_per_second=30_000)
    assert job.executors == 6
    assert last.reason is Reason.AT_MAXIMUM and "max is 6" in last.message


@pytest.mark.parametrize(("executors", "bounds", "then"), [(2, (3, 12), 3), (12, (1, 8), 8)])
def test_limits_that_moved_are_followed_at_once(executors, bounds, then):
    job = Story(executors=executors, rows_per_second=100, limits=limits(min=bounds[0], max=bounds[1]))
    first = job.run(15)
    assert (first.target, first.reason) == (then, Reason.OUT_OF_LIMITS)


# Executors that do not come, or do not help.


def test_executors_that_still_start_count_as_present():
    job = a_settled_job(rows_per_second=3300, partitions=240, limits=limits(max=40))
    job.granted = 4
    job.run(90, rows_per_second=7000)
    asked = job.executors
    job.run(120)
    assert job.moves == [] and job.executors == asked > 4
    assert Reason.WAITING_FOR_EXECUTORS in job.reasons


def test_executors_that_never_come_are_a_quota_and_no_more_are_asked_for():
    job = a_settled_job(rows_per_second=3300)
    job.granted = 4
    job.run(240, rows_per_second=5500)
    asked = job.executors
    last = job.run(900, rows_per_second=9000)
    assert job.executors <= max(asked, 12)
    assert last.reason is Reason.QUOTA_BOUND
    assert "could not be started for" in last.message
    assert job.run(300).target == last.target


def test_time_in_which_executors_were_denied_is_not_how_long_they_take_to_start():
    job = a_settled_job(rows_per_second=3300)
    usual = job.memory.startup_seconds
    job.run(7200, granted=4, rows_per_second=5500)
    job.run(300, granted=1000)
    assert job.ready == job.executors > 4
    assert job.memory.startup_seconds <= usual
    # The next quota is named as soon as the first one was.
    job.run(420, granted=4, rows_per_second=9000)
    assert job.decisions[-1].reason is Reason.QUOTA_BOUND


def test_a_look_that_comes_after_hours_says_nothing_of_starts():
    memory = Memory(asked_at=1000.0, startup_seconds=60.0)
    assert memory.started(at=1090.0, pending=1, pending_seconds=90.0) == memory
    joined = memory.started(at=1090.0, pending=0, pending_seconds=0.0)
    assert joined.startup_seconds == pytest.approx(69.0)
    suspended = memory.started(at=30_000.0, pending=0, pending_seconds=0.0)
    assert (suspended.startup_seconds, suspended.asked_at) == (60.0, None)


def test_executors_that_do_not_help_are_noticed_and_no_more_are_tried():
    job = a_settled_job(rows_per_second=3300, partitions=240, limits=limits(max=40))
    job.run(1500, rows_per_second=4400, sink_rows_per_second=4000)
    blocked = [one for one in job.decisions if one.reason is Reason.SCALING_INEFFECTIVE]
    assert blocked, [one.message for one in job.decisions]
    assert "most likely the sink" in blocked[-1].message
    assert job.executors < 20


def test_the_block_ends_when_the_sink_recovers():
    job = a_settled_job(rows_per_second=3300, partitions=240, limits=limits(max=40))
    job.run(1500, rows_per_second=4400, sink_rows_per_second=4000)
    assert job.memory.block is not None
    job.run(900, rows_per_second=3300, sink_rows_per_second=1e12)
    assert job.memory.block is None
    job.run(300, rows_per_second=9500)
    assert job.executors >= 10


# Time to data loss.


def test_near_data_loss_max_is_lifted_blackouts_do_not_count_and_nothing_is_taken_away():
    job = a_settled_job(rows_per_second=2500, limits=limits(max=4, emergency_max=12))
    job.limits = limits(max=4, emergency_max=12, blackout="nights")
    # The source deletes by size: the earliest offset follows what is read, and faster.
    for _ in range(20):
        job.earliest = [max(e, c - 20_000) for e, c in zip(job.earliest, job.committed, strict=True)]
        job.run(15)
    job.rows_per_second = 6000
    for _ in range(60):
        job.earliest = [
            min(one + 6500 / 24 * 15, c) for one, c in zip(job.earliest, job.committed, strict=True)
        ]
        job.run(15)
        if job.moves:
            break
    decision = job.decisions[-1]
    assert decision.emergency
    assert decision.reason is Reason.DATA_LOSS_NEAR
    assert decision.target > 4
    assert "loses unread rows in" in decision.message


def test_without_an_emergency_max_the_maximum_stays():
    assert limits(max=4).lifted_max == 4
    assert limits(max=4, emergency_max=9).lifted_max == 9


def test_a_blackout_window_holds_and_says_what_would_be_right():
    job = a_settled_job(rows_per_second=3300)
    last = job.run(300, rows_per_second=9000, limits=limits(blackout="nights"))
    assert job.moves == []
    assert last.reason is Reason.BLACKOUT and "nights" in last.message and "would be right" in last.message


# Several queries share the executors.


def test_the_needs_of_several_queries_add_up():
    alone = a_settled_job(rows_per_second=3300, partitions=240, limits=limits(max=40))
    single = alone.run(900)
    both, memory = Story(rows_per_second=3300, partitions=240, limits=limits(max=40)), Memory()
    target = 4
    for _ in range(120):
        both.now += 15
        both._arrive()
        first = both.query_seen(both._work())
        second = Query(**{**vars(first), "name": "orders"})
        seen = Observation(
            at=both.now,
            queries=(first, second),
            executors=Executors(cores=2, asked=target, ready=target),
            limits=both.limits,
        )
        decision, memory = decide(seen, memory)
        both.ready = target = decision.target
    assert target > single.target
    assert set(memory.queries) == {"clicks", "orders"}


# Whatever happens.


@settings(max_examples=25, deadline=None)
@given(
    loads=st.lists(st.floats(0, 50_000), min_size=2, max_size=4),
    per_executor=st.floats(50, 5000),
    partitions=st.integers(1, 64),
    low=st.integers(1, 5),
)
def test_whatever_happens_the_target_is_within_the_limits(loads, per_executor, partitions, low):
    job = Story(per_executor=per_executor, partitions=partitions, limits=limits(min=low, max=9))
    for load in loads:
        job.run(300, rows_per_second=load)
        assert all(low <= one.target <= 9 for one in job.decisions)
        assert all(one.message.endswith(".") and "None" not in one.message for one in job.decisions)
