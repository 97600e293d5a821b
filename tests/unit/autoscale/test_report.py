"""What an agent reports, as the policy sees it: never an error, and unknown is never zero."""

from datetime import UTC, datetime

import pytest

from headrace.api import Autoscaling
from headrace.core.autoscale.report import limits_of, read
from headrace.core.lag import Offsets, UnknownLag

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
AT = NOW.timestamp()


def a_report(**query: object) -> dict:
    offsets = {
        "at": AT - 5,
        "retentionSeconds": 3600,
        "minPartitions": 12,
        "maxRowsPerBatch": 500,
        "plannedRows": 40,
        "partitions": {"t/0": [20, 5, 0, AT - 30], "t/1": [7, None, 3, None]},
    }
    known = {
        "name": "q",
        "active": True,
        "triggerActive": True,
        "batchStartedAt": "2026-01-01T11:59:50.000Z",
        "lastProgressAt": "2026-01-01T11:59:45.000Z",
        "triggerIntervalMs": 10_000,
        "shufflePartitions": 8,
        "taskSkew": 2.5,
        "batches": [[3, 1.5, 100, 2, "x"], [4, 1.25, 90, None, "x"]],
        "lag": {"known": True, "why": "", "offsets": offsets},
    }
    return {"at": "2026-01-01T12:00:00.000Z", "executors": 2, "queries": [{**known, **query}]}


def test_everything_that_is_told_is_seen():
    reading = read(a_report(), now=AT)
    (query,) = reading.queries
    assert (reading.at, reading.executors) == (AT, 2)
    assert (query.looked_at, query.live) == (AT - 5, True)
    assert isinstance(query.source, Offsets)
    assert query.source.partitions["t/0"].behind == 15
    assert query.source.partitions["t/1"].behind == 4
    assert (query.trigger_seconds, query.running_seconds, query.quiet_seconds) == (10, 10, 15)
    assert (query.running_rows, query.max_rows_per_batch, query.min_partitions) == (40, 500, 12)
    assert (query.shuffle_partitions, query.task_skew, query.retention_seconds) == (8, 2.5, 3600)
    assert not query.idle
    # Of a batch whose executors nobody counted, nothing can be learned.
    assert [batch.number for batch in query.batches] == [3]


@pytest.mark.parametrize(
    ("lag", "why"),
    [
        ({"known": False, "why": "the broker is away"}, "the broker is away"),
        ({"known": False}, "does not say why"),
        ({}, "does not say why"),
        ({"known": True, "why": ""}, "partition by partition"),
        ({"known": True, "offsets": {"at": AT - 500, "partitions": {}}}, "last read 500 s ago"),
        ({"known": True, "offsets": {"at": AT, "partitions": {"t/0": [1]}}}, "cannot be read"),
        ({"known": True, "offsets": {"at": AT, "partitions": {"t/0": ["x", 1, 1, 1]}}}, "cannot be read"),
        (7, "cannot be read"),
    ],
)
def test_what_cannot_be_known_is_unknown(lag, why):
    (query,) = read(a_report(lag=lag), now=AT).queries
    assert isinstance(query.source, UnknownLag)
    assert why in query.source.why


@pytest.mark.parametrize(
    "report", [{}, {"queries": None}, {"queries": 3}, {"queries": [None, 7, {"name": 1}]}]
)
def test_a_report_without_queries_has_none(report):
    assert read(report, now=AT).queries == ()


@pytest.mark.parametrize(
    "query",
    [
        {"batches": [[1, float("nan"), 5, 1, "x"]]},
        {"batches": [[1, -1.0, 5, 1, "x"]]},
        {"batches": [[1, 1.0, 10**30, 1, "x"]]},
        {"triggerIntervalMs": float("inf")},
        {"taskSkew": float("nan")},
        {"lag": {"known": True, "offsets": {"at": AT, "partitions": {"t": [-5, 0, 0, None]}}}},
    ],
)
def test_numbers_that_cannot_be_are_never_learned_from(query):
    (seen,) = read(a_report(**query), now=AT).queries
    assert isinstance(seen.source, UnknownLag) and "cannot be read" in seen.source.why
    assert seen.batches == ()


def test_a_query_that_has_ended_is_not_looked_at():
    assert read(a_report(active=False), now=AT).queries == ()


def test_a_clock_that_is_wrong_by_hours_is_not_believed():
    report = a_report()
    report["at"] = "2026-01-01T10:00:00.000Z"
    report["queries"][0]["lag"]["offsets"]["at"] = AT - 7205
    reading = read(report, now=AT)
    assert reading.at == AT
    assert reading.queries[0].looked_at == AT - 5
    assert isinstance(reading.queries[0].source, Offsets)


OLD = {
    "known": True,
    "why": "",
    "offsets": {"at": AT - 500, "live": False, "partitions": {"0": [9, 5, None, None]}},
}


@pytest.mark.parametrize(
    ("lag", "query", "known"),
    [
        (OLD, {}, True),
        (OLD, {"batchStartedAt": None, "triggerActive": False}, True),
        (OLD, {"batchStartedAt": None, "lastProgressAt": "2026-01-01T11:52:00.000Z"}, False),
        ({**OLD, "offsets": {**OLD["offsets"], "live": True}}, {}, False),
    ],
    ids=["a batch runs", "the last batch has just ended", "nothing is heard", "who could look did not"],
)
def test_offsets_of_the_last_batch_are_as_new_as_can_be(lag, query, known):
    (seen,) = read(a_report(lag=lag, **query), now=AT).queries
    assert isinstance(seen.source, Offsets) == known
    assert seen.looked_at == AT - 500


@pytest.mark.parametrize(
    ("schedule", "duration", "zone", "holds"),
    [
        ("0 11 * * *", "2h", "Etc/UTC", True),
        ("0 11 * * *", "30m", "Etc/UTC", False),
        ("0 13 * * *", "2h", "Etc/UTC", False),
        ("0 12 * * *", "2h", "Europe/Berlin", True),
        ("0 0 1 1 *", "24h", "Etc/UTC", True),
        ("0 0 * * *", "1h", "Nowhere/Land", True),
    ],
)
def test_blackout_windows(schedule, duration, zone, holds):
    window = {"schedule": schedule, "duration": duration, "timeZone": zone}
    limits = limits_of(Autoscaling.parse({"max": 3, "blackoutWindows": [window]}), now=NOW)
    assert (limits.blackout is not None) == holds


def test_limits_are_those_of_the_spec():
    scaling = Autoscaling.parse({"min": 2, "max": 9, "emergencyMax": 12, "lagObjective": "90s"})
    limits = limits_of(scaling, now=NOW)
    assert (limits.min, limits.max, limits.lifted_max, limits.lag_objective_seconds) == (2, 9, 12, 90)
