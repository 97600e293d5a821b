"""Scaling from lag where it is not known, where nothing is learned yet, and where no progress comes."""

from dataclasses import replace

import pytest

from headrace.core.autoscale import Executors, Limits, Memory, Observation, Reason, decide
from headrace.core.autoscale.query import stages_of
from headrace.core.lag import Offsets, Partition
from tests.unit.autoscale.story import Story, a_settled_job, one_look

# What cannot be known.


def test_unknown_lag_freezes_and_is_never_zero():
    job = a_settled_job(rows_per_second=3300)
    last = job.run(3600, unknown="the broker does not answer", rows_per_second=0)
    assert job.moves == []
    assert last.reason is Reason.LAG_UNKNOWN
    assert "the broker does not answer" in last.message
    assert last.numbers.lag_rows is None and last.numbers.lag_seconds is None
    assert last.numbers.arrival_rows_per_second is None and last.numbers.need_rows_per_second is None
    assert (last.numbers.capacity_rows_per_second or 0) > 3300


def test_after_a_gap_nothing_is_taken_away_before_the_hold_window_is_full_again():
    job = a_settled_job(rows_per_second=3300)
    job.run(1200, unknown="timeout", rows_per_second=100)
    job.run(165, unknown=None)
    assert job.moves == []
    assert Reason.HOLDING_BEFORE_DOWN in job.reasons


def test_one_partition_that_does_not_answer_makes_the_lag_unknown():
    seen = one_look(source=Offsets({"a/0": Partition(end=10, committed=4), "a/1": Partition(end=10)}))
    decision, _ = decide(seen, Memory())
    assert decision.reason is Reason.LAG_UNKNOWN
    assert "a/1" in decision.message


def test_no_query_yet_is_unknown_too():
    seen = Observation(
        at=0, queries=(), executors=Executors(cores=2, asked=3, ready=3), limits=Limits(max=12)
    )
    decision, _ = decide(seen, Memory())
    assert (decision.target, decision.reason) == (3, Reason.LAG_UNKNOWN)


def test_without_a_model_the_number_is_held():
    job = Story(rows_per_second=100)
    assert job.run(45).reason is Reason.LEARNING
    assert job.moves == []


def test_without_a_model_a_lag_that_grows_three_times_doubles_the_number():
    job = Story(rows_per_second=10_000, per_executor=100)
    job.run(90)
    assert job.moves[0] == (4, 8)
    moved = next(one for one in job.decisions if one.moves)
    assert moved.reason is Reason.LAG_GROWS and "grew three times in a row" in moved.message


def test_a_topic_made_anew_is_measured_anew():
    job = a_settled_job(rows_per_second=3300)
    job.ends = [5.0] * job.partitions
    job.committed = [0.0] * job.partitions
    job.batch = None
    first = job.run(15)
    assert first.reason is Reason.SOURCE_RESET and "went back" in first.message
    assert job.memory.queries["clicks"].fit.ready
    job.run(150, rows_per_second=100)
    assert job.moves == []


def test_new_partitions_are_noticed_and_count():
    job = a_settled_job(rows_per_second=3300, partitions=4, executors=2, per_executor=2000)
    assert job.run(600, rows_per_second=5000).target == 2
    job.ends += [0.0] * 20
    job.committed += [0.0] * 20
    job.earliest += [0.0] * 20
    job.partitions, job.batch = 24, None
    job.run(900)
    assert job.executors > 2


def test_partitions_that_are_told_of_in_groups_are_tasks_and_no_skew():
    job = a_settled_job(rows_per_second=3300)
    groups, memory = job.query_seen([]), job.memory.queries["clicks"]
    grouped = stages_of(replace(groups, partition_count=240), memory, cores=2)
    assert grouped.source_tasks == 240
    assert grouped.hottest_share == pytest.approx(1 / 240)
    shares = [0.3] + [0.7 / 23] * 23
    hot = a_settled_job(rows_per_second=3300, shares=shares)
    in_group = stages_of(
        replace(hot.query_seen([]), partition_count=240), hot.memory.queries["clicks"], cores=2
    )
    assert in_group.hottest_share == pytest.approx(0.3 - 9 / 240, rel=0.01)


def test_a_query_that_is_away_for_a_while_is_remembered():
    job = a_settled_job(rows_per_second=3300)
    known = job.memory.queries["clicks"].fit
    job.name = "other"
    job.run(60)
    assert job.memory.queries["clicks"].fit == known
    assert job.memory.absent(at=job.now + 90_000) == {}


def test_no_arrival_does_not_mean_endless_capacity():
    job = a_settled_job(rows_per_second=3300)
    capacity = job.run(15).numbers.capacity_rows_per_second
    last = job.run(1200, rows_per_second=0)
    assert job.executors == 1
    assert last.numbers.capacity_rows_per_second == pytest.approx(capacity / 4, rel=0.35)


def test_offsets_that_are_no_rows_are_calibrated():
    job = a_settled_job(rows_per_second=3300)
    memory = job.memory.queries["clicks"]
    halved = replace(memory, offsets_read=memory.offsets_read * 2)
    assert halved.rows_per_offset == pytest.approx(0.5, rel=0.1)
    assert memory.rows_per_offset == 1.0


# Progress that does not come.


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"quiet_seconds": 500, "idle": True}, Reason.ENOUGH),
        ({"quiet_seconds": 65, "running_seconds": 20.0, "running_rows": 45_000}, Reason.ENOUGH),
        ({"quiet_seconds": 400, "running_seconds": 390.0, "running_rows": 45_000}, Reason.BATCH_STUCK),
        ({"quiet_seconds": 400, "running_seconds": None}, Reason.BATCH_STUCK),
    ],
    ids=["idle", "a long batch", "a stuck batch", "no batch at all"],
)
def test_quiet_progress(query, reason):
    job = a_settled_job(rows_per_second=3300)
    assert job.run(15, query=query).reason is reason
    assert job.moves == []


class ToldByBatches(Story):
    """Its source says how far it reaches at the begin of each batch, and is asked by nobody else."""

    told = (0.0, Offsets({"0": Partition(end=0, committed=0)}))

    def query_seen(self, finished):
        if finished:
            read = round(sum(self.committed))
            began = self.batch_ends_at if self.batch is None else self.now
            self.told = (began - finished[-1].seconds, Offsets({"0": Partition(end=read, committed=read)}))
        at, source = self.told
        return replace(super().query_seen(finished), looked_at=at, live=False, source=source)


def test_a_source_that_is_told_of_by_batches_is_scaled_for_when_they_are_long():
    job = ToldByBatches(rows_per_second=3300, query={"min_partitions": 24})
    job.run(1800)
    assert job.run(15).numbers.lag_seconds < 60
    last = job.run(900, rows_per_second=7000)
    assert job.executors > 4
    assert Reason.LAG_UNKNOWN not in job.reasons
    # Each batch takes all there is: what has come since is reckoned, and never zero.
    assert min(one.numbers.lag_rows for one in job.decisions) > 0
    assert last.numbers.arrival_rows_per_second == pytest.approx(7000, rel=0.2)


def test_nothing_is_taken_away_while_a_long_batch_runs():
    job = a_settled_job(rows_per_second=3300)
    job.run(240, rows_per_second=300)
    last = job.run(600, query={"quiet_seconds": 65, "running_seconds": 20.0, "running_rows": 45_000})
    assert job.moves == []
    assert "nothing is taken away" in last.message
