"""Sources that are no topics: files, and what Python reads. Their partitions are no tasks."""

from dataclasses import replace

import pytest

from headrace.core.autoscale import Memory, Query, Reason
from headrace.core.autoscale.report import read
from headrace.core.lag import Offsets, Partition
from tests.unit.autoscale.story import Story, a_settled_job


class Files(Story):
    """One directory, a thousand rows in a file: told of as one partition, without a first offset."""

    def query_seen(self, finished: list) -> Query:
        seen = super().query_seen(finished)
        if self.unknown:
            return seen
        whole = Partition(end=round(sum(self.ends) / 1000), committed=round(sum(self.committed) / 1000))
        return replace(seen, source=Offsets({"files/0": whole}), divisible=True)


def a_settled_job_of_files() -> Files:
    job = Files(rows_per_second=3000)
    job.run(900)
    return job


def test_executors_share_the_files_of_a_directory():
    job = a_settled_job_of_files()
    last = job.run(300, rows_per_second=7000)
    assert job.executors > 6
    assert not job.reasons & {Reason.PARTITION_BOUND, Reason.SKEW_BOUND}
    assert last.numbers.capacity_rows_per_second > 7000


def test_the_driver_says_whether_partitions_are_tasks():
    at = 1000.0
    offsets = {"at": at, "divisible": True, "partitions": {"files/0": [9, 4, None, None]}}
    query = {"name": "q", "active": True, "lag": {"known": True, "offsets": offsets}}
    (seen,) = read({"queries": [query]}, now=at).queries
    assert seen.divisible


def test_what_only_the_source_tells_holds_while_it_does_not_answer():
    job = a_settled_job_of_files()
    before = job.memory.queries["clicks"].fit
    capacity = job.decisions[-1].numbers.capacity_rows_per_second
    last = job.run(300, unknown="the store does not answer")
    after = job.memory.queries["clicks"].fit
    assert after.batches > before.batches
    assert last.numbers.capacity_rows_per_second == pytest.approx(capacity, rel=0.1)


def test_what_was_learned_in_another_measure_of_work_is_not_mixed_with_it():
    """By an operator of an older version, or from a topic that was read before under the same name."""
    job = a_settled_job_of_files()
    old = job.memory.to_json()
    for query in old["queries"].values():
        del query["divisible"], query["minPartitions"]
    job.memory = Memory.from_json(old)
    assert job.run(15).reason is Reason.LEARNING
    job.run(600)
    assert Memory.from_json(job.memory.to_json()).queries["clicks"].divisible


def test_too_few_shuffle_partitions_are_named_as_such():
    job = a_settled_job(
        rows_per_second=2000, partitions=240, executors=2, query={"shuffle_partitions": 4}, per_executor=1500
    )
    job.run(900, rows_per_second=20_000, per_executor=800)
    said = [one.message for one in job.decisions if one.reason is Reason.PARTITION_BOUND]
    assert said and "has 4 shuffle partitions for" in said[-1]


def test_a_long_batch_of_nobody_knows_how_many_rows_is_not_stuck():
    """Of files and of Python sources nobody tells what a batch has taken: it may be all that waits."""
    job = a_settled_job(rows_per_second=3300)
    job.ends = [end + 20_000 for end in job.ends]
    running = {"quiet_seconds": 100.0, "running_seconds": 90.0, "running_rows": None}
    assert job.run(15, query=running).reason is not Reason.BATCH_STUCK
    stuck = {"quiet_seconds": 1000.0, "running_seconds": 990.0, "running_rows": None}
    assert job.run(15, query=stuck).reason is Reason.BATCH_STUCK


# Offsets that are no rows: compacted topics, transactions.


def a_compacted_job() -> Story:
    job = a_settled_job(rows_per_second=3300)
    memory = job.memory.queries["clicks"]
    tenth = replace(memory, offsets_read=memory.rows_read * 10)
    job.memory = replace(job.memory, queries={"clicks": tenth})
    return job


def test_what_a_batch_has_taken_is_told_in_offsets():
    running = {"quiet_seconds": 100.0, "running_seconds": 90.0, "running_rows": 150_000}
    assert a_settled_job(rows_per_second=3300).run(15, query=running).reason is not Reason.BATCH_STUCK
    assert a_compacted_job().run(15, query=running).reason is Reason.BATCH_STUCK


def test_the_limit_of_a_batch_is_one_of_offsets():
    job, limit = a_compacted_job(), 20_000
    last = job.run(15, query={"max_rows_per_batch": limit})
    assert last.numbers.capacity_rows_per_second == pytest.approx(limit / 10 / 10, rel=0.05)
