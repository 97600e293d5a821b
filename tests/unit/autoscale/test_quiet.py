"""Whether a job has work, look by look: what cannot be told is work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.core.autoscale.observation import Query
from headrace.core.autoscale.quiet import lookout_problem, still_quiet
from headrace.core.autoscale.report import Reading
from headrace.core.lag import Offsets, Partition, UnknownLag

READ = Query(
    name="q",
    trigger_seconds=1.0,
    source=Offsets({"t/0": Partition(end=10, committed=10, earliest=0)}),
    committed_batch=4,
)


def reading(at: float, *queries: Query) -> Reading:
    return Reading(at=at, queries=queries or (READ,), executors=1)


def test_nothing_waits_and_nothing_comes():
    first = still_quiet(None, reading(100.0))
    assert first is not None and first.since == 100.0
    assert still_quiet(first, reading(400.0)) == first


@pytest.mark.parametrize(
    "query",
    [
        replace(READ, source=Offsets({"t/0": Partition(end=11, committed=10, earliest=0)})),
        replace(READ, source=Offsets({"t/0": Partition(end=11)})),
        replace(READ, source=UnknownLag("the broker does not answer")),
        replace(READ, running_seconds=2.0),
    ],
)
def test_work_or_not_knowing_is_no_quiet(query: Query):
    before = still_quiet(None, reading(100.0))
    assert still_quiet(before, reading(115.0, query)) is None
    assert still_quiet(before, reading(115.0, READ, replace(query, name="other"))) is None


@pytest.mark.parametrize(
    "query",
    [
        # Came and was read between two looks.
        replace(READ, source=Offsets({"t/0": Partition(end=12, committed=12, earliest=0)})),
        # A timer of the query: a batch without rows.
        replace(READ, committed_batch=5),
    ],
)
def test_what_has_moved_begins_the_time_anew(query: Query):
    before = still_quiet(None, reading(100.0))
    after = still_quiet(before, reading(115.0, query))
    assert after is not None and after.since == 115.0


def test_a_job_whose_queries_are_not_known_has_work():
    assert still_quiet(None, Reading(at=1.0, queries=(), executors=1)) is None


def test_the_source_that_nobody_else_can_look_at_is_named():
    assert lookout_problem(reading(1.0)) is None
    blind = replace(READ, name="b", no_lookout="a rate source")
    assert lookout_problem(reading(1.0, READ, blind)) == "b: a rate source"
