"""Where a number was once taken for what it is not: rows of other times, a limit per batch, a saw-tooth."""

from dataclasses import replace

import pytest

from headrace.core.autoscale import Batch, Executors, Memory, Observation, Query, Reason, decide
from headrace.core.autoscale.cost import Fit
from headrace.core.autoscale.memory import QueryMemory, Trial
from headrace.core.lag import Offsets, Partition
from tests.unit.autoscale.story import Story, a_settled_job, limits

# Rows and offsets of the same time.


def rows_per_offset(job: Story) -> float:
    return job.memory.queries["clicks"].rows_per_offset


def test_batches_that_end_while_the_lag_is_unknown_count_when_it_is_known_again():
    job = a_settled_job(rows_per_second=3300)
    job.run(1200, unknown="the broker is away")
    job.run(900, unknown=None)
    assert rows_per_offset(job) == 1.0
    assert all(after >= before for before, after in job.moves), "it arrives as it did"


def test_batches_from_before_the_first_look_are_of_another_time():
    """After the memory was lost: the driver still tells of its last batches, of half an hour."""
    job = a_settled_job(rows_per_second=3300)
    before, job.memory = job.executors, Memory()
    told = [Batch(number=n, seconds=9.0, rows=33_000, executors=before) for n in range(job.number)]
    job.run(15, query={"batches": tuple(told)})
    job.run(600, query={})
    assert rows_per_offset(job) == 1.0
    assert job.moves == []


def test_batches_that_were_missed_are_not_compared():
    """Nobody looked for more batches than a driver tells of."""
    job = a_settled_job(rows_per_second=3300)
    job.number += 1000
    for index in range(job.partitions):
        job.ends[index] += 1_000_000
        job.committed[index] += 1_000_000
    job.batch = None
    job.run(300)
    assert rows_per_offset(job) == 1.0


def test_a_batch_whose_executors_nobody_counted_is_missed_too():
    memory = QueryMemory(rows_since_look=0.0, fit=Fit(last_number=4))
    batches = [Batch(number=number, seconds=8.0, rows=10, executors=1) for number in (5, 6, 7)]
    assert memory.with_batches(batches).rows_since_look == 30
    assert memory.with_batches([batches[0], batches[2]]).rows_since_look is None


def test_the_first_commit_of_a_partition_is_not_compared():
    """Where it began is not known: its first batch may be all there was."""
    memory = Memory()
    for look in range(12):
        partition = Partition(
            end=1_000_000 + 1000 * look, committed=None if look == 0 else 1000 * look + 999_000
        )
        rows = 999_000 if look == 1 else 1000
        batches = () if look == 0 else (Batch(number=look - 1, seconds=8.0, rows=rows, executors=1),)
        query = Query(
            name="q",
            trigger_seconds=10.0,
            source=Offsets({"t/0": replace(partition, earliest=0)}),
            batches=batches,
        )
        seen = Observation(
            at=15.0 * look,
            queries=(query,),
            executors=Executors(cores=1, asked=1, ready=1),
            limits=limits(max=4),
        )
        _, memory = decide(seen, memory)
    assert memory.queries["q"].fit.ready
    assert memory.queries["q"].rows_per_offset == 1.0


# A limit of rows per batch.


def test_batches_as_large_as_the_limit_follow_each_other_as_fast_as_they_end():
    job = a_settled_job(rows_per_second=2500)
    last = job.run(15, query={"trigger_seconds": 0.0, "max_rows_per_batch": 10_000})
    # A second, and what 10,000 rows take.
    full = 1.0 + 10_000 / job.capacity()
    assert last.numbers.capacity_rows_per_second == pytest.approx(10_000 / full, rel=0.1)
    assert last.reason is not Reason.RATE_LIMITED


def test_more_executors_are_asked_for_where_they_make_batches_of_the_limit_shorter():
    job = a_settled_job(rows_per_second=2500)
    job.run(300, rows_per_second=5000, query={"trigger_seconds": 0.0, "max_rows_per_batch": 40_000})
    assert job.executors > 4


# Queries that have nothing to do.


def test_a_query_without_rows_does_not_keep_the_others_from_being_scaled():
    busy, memory, target = Story(rows_per_second=2000), Memory(), 4
    reasons = list[Reason]()
    for look in range(80):
        busy.rows_per_second = 2000 if look < 50 else 6000
        busy.now += 15
        busy._arrive()
        first = busy.query_seen(busy._work())
        idle = Query(
            name="dead-letters",
            trigger_seconds=10.0,
            source=Offsets({"dead/0": Partition(end=7, committed=7, earliest=0)}),
            batches=(),
        )
        seen = Observation(
            at=busy.now,
            queries=(first, idle),
            executors=Executors(cores=2, asked=target, ready=target),
            limits=busy.limits,
        )
        decision, memory = decide(seen, memory)
        reasons.append(decision.reason)
        busy.ready = target = decision.target
    assert Reason.LEARNING not in reasons[20:]
    assert decision.numbers.capacity_rows_per_second is not None
    assert target > 4


def test_two_queries_cannot_do_together_what_each_could_do_alone():
    """They share the executors: words and metrics say of them what the decision is made of."""
    stories = [Story(rows_per_second=1500, name="a"), Story(rows_per_second=500, name="b")]
    memory = Memory()
    for _ in range(60):
        seen_queries = []
        for story in stories:
            story.now += 15
            story._arrive()
            seen_queries.append(story.query_seen(story._work()))
        seen = Observation(
            at=stories[0].now,
            queries=tuple(seen_queries),
            executors=Executors(cores=2, asked=4, ready=4),
            limits=limits(min=4, max=4),
        )
        decision, memory = decide(seen, memory)
    alone = a_settled_job(rows_per_second=2000, limits=limits(min=4, max=4)).decisions[-1].numbers
    capacity = decision.numbers.capacity_rows_per_second
    assert capacity == pytest.approx(alone.capacity_rows_per_second, rel=0.15)
    assert decision.numbers.capacity_at_max_rows_per_second == capacity


def test_a_job_that_has_never_had_rows_is_left_as_it_is():
    job = Story(rows_per_second=0.0)
    assert job.run(1800).reason is Reason.LEARNING
    assert job.moves == []


# The saw-tooth, before there is a model.


def test_a_lag_that_grows_between_two_batches_far_apart_is_no_growth():
    memory, trigger, target = Memory(), 120.0, 1
    for look in range(1, 48):
        at = 15.0 * look
        done = int(at / trigger)
        partition = Partition(end=round(100 * at), committed=round(100 * trigger * done), earliest=0)
        batches = tuple(Batch(number=n, seconds=6.0, rows=12_000, executors=target) for n in range(done))
        query = Query(name="q", trigger_seconds=trigger, source=Offsets({"t/0": partition}), batches=batches)
        seen = Observation(
            at=at,
            queries=(query,),
            executors=Executors(cores=1, asked=target, ready=target),
            limits=limits(max=16),
        )
        decision, memory = decide(seen, memory)
        target = decision.target
    assert target == 1


# An objective that is shorter than what a batch takes at the least.


def test_an_objective_that_nobody_can_keep_is_no_reason_to_do_nothing():
    job = a_settled_job(rows_per_second=3300, limits=limits(max=12, lag_objective_seconds=2.0))
    last = job.run(600, rows_per_second=9000)
    assert job.executors == 12
    assert last.numbers.capacity_rows_per_second > 0


# Near a data loss.


def near_a_loss(job: Story) -> None:
    """The source deletes by size: the earliest offset follows what is read, and faster."""
    for _ in range(20):
        job.earliest = [max(e, c - 20_000) for e, c in zip(job.earliest, job.committed, strict=True)]
        job.run(15)
    job.rows_per_second = 6000
    for _ in range(60):
        job.earliest = [
            min(one + 6500 / 24 * 15, c) for one, c in zip(job.earliest, job.committed, strict=True)
        ]
        if job.run(15).emergency:
            return
    raise AssertionError("no emergency came")


def test_a_loss_that_was_near_when_the_lag_was_last_known_is_near_still():
    job = a_settled_job(rows_per_second=2500, limits=limits(max=4))
    near_a_loss(job)
    left = job.decisions[-1].numbers.seconds_to_data_loss
    stopped = job.decisions[-1].numbers.seconds_to_data_loss_if_stopped
    last = job.run(60, unknown="the broker is away")
    # An upgrade that was held for it is held still.
    assert last.numbers.seconds_to_data_loss_if_stopped == stopped is not None
    assert last.reason is Reason.LAG_UNKNOWN
    assert last.emergency
    assert last.numbers.seconds_to_data_loss == pytest.approx(max(0.0, left - 60), abs=1)
    memory = Memory.from_json(job.memory.to_json())
    assert memory.queries["clicks"].loss_at == job.memory.queries["clicks"].loss_at


def test_a_loss_comes_nearer_also_while_the_driver_tells_of_an_old_look():
    job = a_settled_job(rows_per_second=2500, limits=limits(max=4))
    near_a_loss(job)
    left = job.decisions[-1].numbers.seconds_to_data_loss
    last = job.run(300, unknown="its offsets were last read long ago", query={"looked_at": job.now})
    assert last.numbers.seconds_to_data_loss == pytest.approx(max(0.0, left - 300), abs=1)


def test_near_a_loss_nobody_waits_for_the_last_ones_to_prove_themselves():
    job = a_settled_job(rows_per_second=2500, limits=limits(max=4))
    near_a_loss(job)
    trial = Trial(at=job.now, before=4, after=5, capacity_before=4000, capacity_expected=5000, arrival=1e9)
    job.memory = replace(job.memory, trial=trial)
    last = job.run(15, limits=limits(max=4, emergency_max=12))
    assert last.reason is Reason.DATA_LOSS_NEAR
    assert job.executors > 4


def test_a_backlog_that_the_limit_lets_go_slowly_only_is_not_blamed_on_partitions():
    of = {"max_rows_per_batch": 30_000}
    job = a_settled_job(rows_per_second=2500, limits=limits(min=4), query=of)
    job.committed, job.batch = [read - 50_000 for read in job.committed], None
    last = job.run(15)
    assert last.reason is Reason.RATE_LIMITED
    assert "reads at most 30k rows per batch" in last.message
