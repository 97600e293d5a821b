"""What is known of a job becomes a sample; what is not known has none."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import Histogram

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core.savepoints import Known, Phase, Summary
from headrace.runtime.job_metrics import JobMetrics, JobSample
from headrace.runtime.metrics import Metrics
from tests.unit.runtime.test_monitor import KEY, NOW, a_report

PLAIN = {"application": {"file": "job.py"}}
PROMISES = {"objectives": {"latency": "10s"}, "autoscaling": {"max": 4, "lagObjective": "30s"}}


class World:
    """One job, and a clock."""

    def __init__(self, **spec: Any) -> None:
        self.now = NOW
        self.metrics = JobMetrics(lambda: self.now)
        self.spec = StreamJobSpec.parse({**PLAIN, **spec})

    def tell(self, report: dict[str, Any] | None, status: StreamJobStatus | None = None) -> None:
        self.metrics.set(KEY, JobSample(self.spec, status or StreamJobStatus(), report))

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def samples(self) -> dict[str, float]:
        return {
            one.name.removeprefix("headrace_job_"): one.value
            for family in self.metrics.collect()
            for one in family.samples
        }


def test_numbers_that_are_none_have_no_sample_and_harm_nobody():
    world = World()
    report = a_report()
    wrong = {"lag": "much", "batchDurationMs": "long", "lastCommitAt": "yesterday", "stateRows": [1]}
    world.tell({**report, "queries": [{**report["queries"][0], **wrong}]})
    found = world.samples()
    assert not {"lag_rows", "lag_seconds", "batch_duration_seconds", "state_rows"} & found.keys()
    assert found["headrace_jobs"] == 1
    assert found["event_latency_seconds"] == 2.5
    assert found["progress_age_seconds"] == 3


def test_a_report_in_numbers():
    world = World()
    world.tell(a_report())
    found = world.samples()
    wanted = {
        "lag_rows": 42,
        "lag_seconds": 30,
        "batch_duration_seconds": 1.5,
        "trigger_utilisation": 0.5,
        "trigger_interval_seconds": 3,
        "watermark_delay_seconds": 60,
        "event_latency_seconds": 2.5,
        "event_latency_worst_seconds": 9,
        "progress_age_seconds": 3,
        "checkpoint_age_seconds": 9,
        "checkpoint_duration_seconds": 0.3,
        "state_commit_seconds": 0.0405,
        "checkpoint_state_bytes": 1024,
        "restarts_total": 0,
        "headrace_jobs": 1,
    }
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


def test_unknown_is_never_zero():
    world = World()
    world.tell(a_report(lag={"rows": None, "files": None, "behindSince": None}, eventLatencySeconds=None))
    unknown = {
        "lag_rows",
        "lag_files",
        "lag_seconds",
        "processed_rows_per_second",
        "event_latency_seconds",
        "checkpoint_upload_bytes",
        "ready",
        "executors_wanted",
        "last_end",
        "latency_objective_seconds",
        "lag_objective_seconds",
    }
    assert not unknown & world.samples().keys()


def test_a_driver_of_an_older_version_tells_less_and_breaks_nothing():
    world = World()
    world.tell({"phase": "Running", "queries": [{"name": "counts", "active": True, "committedBatch": 4}]})
    found = world.samples()
    assert found["committed_batch"] == 4
    assert not {"lag_seconds", "trigger_utilisation", "progress_age_seconds", "stuck"} & found.keys()


def test_nothing_unread_is_no_lag_and_rows_of_unknown_age_have_none():
    world = World()
    world.tell(a_report(lag={"rows": 0, "files": None, "behindSince": None}))
    assert world.samples()["lag_seconds"] == 0
    world.tell(a_report(lag={"rows": 5, "files": None, "behindSince": None}))
    assert "lag_seconds" not in world.samples()


@pytest.mark.parametrize(
    ("rows", "files", "seconds"),
    [(None, 0, 0), (None, 3, 30), (0, 3, 30), (0, 0, 0), (7, 0, 30)],
)
def test_files_that_wait_are_as_late_as_rows(rows, files, seconds):
    world = World()
    since = a_report()["queries"][0]["lag"]["behindSince"]
    world.tell(a_report(lag={"rows": rows, "files": files, "behindSince": since}))
    assert world.samples()["lag_seconds"] == seconds


def test_the_objectives_are_the_jobs_own():
    world = World(**PROMISES)
    world.tell(None)
    found = world.samples()
    assert (found["latency_objective_seconds"], found["lag_objective_seconds"]) == (10, 30)


def test_pressure_is_measured_against_what_the_job_can_afford():
    at_once = {"triggerIntervalMs": 0, "triggerDurationMs": 15_000}
    promising = World(**PROMISES)
    promising.tell(a_report(**at_once))
    assert promising.samples()["trigger_utilisation"] == 1.5
    # Without an interval and without a promise there is nothing to compare with.
    plain = World()
    plain.tell(a_report(**at_once))
    assert "trigger_utilisation" not in plain.samples()


def test_a_batch_that_still_runs_counts_once_it_is_longer_than_the_last():
    world = World()
    world.tell(a_report(batchStartedAt="2025-12-31T23:59:59.000Z"))
    assert world.samples()["trigger_utilisation"] == 0.5
    world.later(8)
    assert world.samples()["trigger_utilisation"] == 3


def test_the_age_of_the_checkpoint_outlives_an_attempt():
    world = World()
    world.tell(a_report())
    world.tell(None)
    world.later(60)
    found = world.samples()
    assert (found["progress_age_seconds"], found["checkpoint_age_seconds"]) == (63, 69)
    assert "lag_rows" not in found
    # The next attempt has not committed anything yet.
    world.tell(a_report(lastProgressAt=None, lastCommitAt=None))
    assert world.samples()["progress_age_seconds"] == 63


@pytest.mark.parametrize("spec", [{"suspend": True}, {"trigger": {"mode": "AvailableNow"}}])
def test_a_job_that_need_not_run_has_no_stale_checkpoint(spec: dict[str, Any]):
    world = World(**spec)
    world.tell(a_report())
    assert "progress_age_seconds" in world.samples()
    world.tell(None)
    assert not {"progress_age_seconds", "checkpoint_age_seconds"} & world.samples().keys()


def test_a_query_that_was_renamed_is_forgotten():
    world = World()
    world.tell(a_report())
    world.tell(a_report(name="sums"))
    world.tell(None)
    queries = {
        one.labels["query"] for f in world.metrics.collect() for one in f.samples if "query" in one.labels
    }
    assert queries == {"sums"}


def test_how_the_last_attempt_ended():
    world = World()
    ended = {"run": 1, "attempt": 2, "reason": "StoreUnavailable"}
    world.tell(None, StreamJobStatus.parse({"lastTermination": ended, "restarts": {"total": 2}}))
    (sample,) = [one for f in world.metrics.collect() for one in f.samples if one.name.endswith("last_end")]
    assert sample.labels == {"namespace": "shop", "job": "clicks", "reason": "StoreUnavailable"}


def test_a_job_whose_spec_cannot_be_taken_is_still_seen():
    world = World()
    condition = {
        "type": "Stalled",
        "status": "True",
        "reason": "InvalidSpec",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    world.metrics.set(KEY, JobSample(None, StreamJobStatus.parse({"conditions": [condition]}), None))
    found = world.samples()
    assert found["stalled"] == 1
    assert "suspended" not in found


def test_a_job_that_is_gone_has_no_series():
    world = World(**PROMISES)
    world.tell(a_report())
    world.metrics.forget(KEY)
    assert world.samples() == {"headrace_jobs": 0}
    assert not [one for f in world.metrics.collect() for one in f.samples if one.labels]


def test_no_histogram_has_a_series_per_job():
    """A histogram has some fifteen series for each value of its labels."""
    histograms = [one for one in vars(Metrics()).values() if isinstance(one, Histogram)]
    assert len(histograms) == 2
    assert {label for one in histograms for label in one._labelnames} == {"verb"}


def test_results_are_counted_from_zero_and_a_pass_is_dated():
    metrics = Metrics(resync_seconds=60)
    before = datetime.now(UTC).timestamp()
    assert metrics.registry.get_sample_value("headrace_reconcile_total", {"result": "error"}) == 0
    metrics.observe_pass("error", 0.1)
    assert metrics.registry.get_sample_value("headrace_reconcile_total", {"result": "error"}) == 1
    last = metrics.registry.get_sample_value("headrace_last_reconcile_timestamp_seconds")
    assert last is not None and last >= before
    assert metrics.registry.get_sample_value("headrace_resync_seconds") == 60


def test_savepoints_in_numbers():
    world = World()
    good = Known(
        name="nightly",
        cause="Schedule",
        phase=Phase.GOOD,
        began_at=NOW,
        completed_at=NOW,
        seconds=12.5,
        size_bytes=4096,
    )
    world.tell(None)
    assert not [name for name in world.samples() if "savepoint" in name]
    told = Summary(last_good=good, failed=False, overdue_since=NOW + timedelta(seconds=60))
    world.metrics.set(KEY, JobSample(world.spec, StreamJobStatus(), None, told))
    world.later(100)
    found = {name: value for name, value in world.samples().items() if "savepoint" in name}
    assert found == {
        "headrace_savepoint_age_seconds": 100,
        "headrace_savepoint_duration_seconds": 12.5,
        "headrace_savepoint_bytes": 4096,
        "headrace_savepoint_failed": 0,
        "headrace_savepoint_overdue_seconds": 40,
    }
    world.metrics.set_report(KEY, a_report())
    assert "headrace_savepoint_bytes" in world.samples()  # a report says nothing of them


def test_without_a_good_one_nobody_knows_its_age():
    world = World()
    none = Summary(last_good=None, failed=True, overdue_since=None)
    world.metrics.set(KEY, JobSample(world.spec, StreamJobStatus(), None, none))
    found = {name: value for name, value in world.samples().items() if "savepoint" in name}
    assert found == {"headrace_savepoint_failed": 1, "headrace_savepoint_overdue_seconds": 0}
