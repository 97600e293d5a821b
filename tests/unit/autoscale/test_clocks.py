"""A clock that was ahead, and is put right: what was seen by it is not waited for."""

import json

from headrace.core.autoscale import Memory, Reason
from headrace.core.autoscale.quiet import still_quiet
from tests.unit.autoscale.story import Story, a_settled_job
from tests.unit.autoscale.test_quiet import reading

AHEAD = 7200.0


def put_right(job: Story) -> Story:
    job.now -= AHEAD
    job.batch_ends_at -= AHEAD
    return job


def test_a_load_that_rises_is_met_at_once():
    job = put_right(a_settled_job(rows_per_second=3300, now=1000 + AHEAD))
    last = job.run(180, rows_per_second=7000)
    assert job.executors > 4
    assert last.numbers.arrival_rows_per_second > 6000


def test_a_load_that_falls_is_met_in_time():
    job = put_right(a_settled_job(rows_per_second=3300, now=1000 + AHEAD))
    fit = job.memory.queries["clicks"].fit
    job.run(1200, rows_per_second=300)
    assert job.executors == 1
    assert job.memory.queries["clicks"].fit.batches > fit.batches
    assert Reason.LAG_UNKNOWN not in job.reasons


def test_a_clock_that_is_behind_by_seconds_only_loses_nothing():
    job = a_settled_job(rows_per_second=3300)
    assert job.memory.as_of(job.now - 30) == job.memory
    assert Memory.from_json(json.loads(json.dumps(job.memory.to_json()))).as_of(job.now).queries


def test_a_quiet_that_begins_in_the_future_begins_now():
    before = still_quiet(None, reading(100.0 + AHEAD))
    now = still_quiet(before, reading(200.0))
    assert now is not None and now.since == 200.0
