"""What waited when a batch was planned, and how little is kept of it."""

import pytest

from headrace_jobs.harness.backlog import Waited, waiting_rows


def source(rows, end, latest):
    return {"numInputRows": rows, "endOffset": end, "latestOffset": latest}


@pytest.mark.parametrize(
    ("sources", "waited"),
    [
        ([source(40, {"a": {"0": 100, "1": 50}}, {"a": {"0": 100, "1": 50}})], 40),  # it took everything
        ([source(40, {"a": {"0": 100, "1": 50}}, {"a": {"0": 130, "1": 55}})], 75),  # a limit left some over
        ([source(40, {"a": {"0": 100}}, {"a": {"0": 90}})], 40),  # the topic went back
        ([source(40, {"a": {"0": 100}}, {"a": {"0": 100, "1": 7}})], None),
        ([source(40, {"logOffset": 3}, None)], None),
        ([source(1, {"a": {"0": 1}}, {"a": {"0": 3}}), source(5, {"b": {"0": 1}}, {"b": {"0": 1}})], 8),
        ([source(1, {"a": {"0": 1}}, {"a": {"0": 3}}), source(5, {"logOffset": 3}, None)], None),
        ([], None),
    ],
)
def test_rows_that_waited(sources, waited):
    assert waiting_rows({"sources": sources}) == waited


def test_however_long_it_runs_few_points_are_kept_over_the_whole_life():
    waited = Waited()
    for batch in range(1000):
        waited = waited.with_batch(batch)
        assert len(waited.rows) <= 32
        assert list(waited.rows) == list(range(0, batch + 1, waited.every))
    assert len(waited.rows) >= 16
    assert waited.with_batch(None) == waited
