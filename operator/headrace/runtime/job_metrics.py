"""What the jobs do, as metrics: from their status and from what their agents last said.

Unknown is never zero: a number that nobody knows has no sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.api import StreamJobSpec, StreamJobStatus

Key = tuple[str, str]
Query = Mapping[str, Any]


@dataclass(frozen=True)
class JobSample:
    spec: StreamJobSpec
    status: StreamJobStatus
    report: Mapping[str, Any] | None


_JOB_GAUGES: Sequence[tuple[str, str, Callable[[JobSample], float | None]]] = (
    ("ready", "1 if the job is Ready.", lambda job: _condition(job, "Ready")),
    ("stalled", "1 if nothing will change by itself.", lambda job: _condition(job, "Stalled")),
    ("suspended", "1 if the job is suspended.", lambda job: float(job.spec.suspend)),
    ("run", "Number of the current run.", lambda job: job.status.run.number if job.status.run else None),
    ("epoch", "The job's epoch.", lambda job: job.status.epoch),
    (
        "restarts_in_a_row",
        "Failures since an attempt was last stable.",
        lambda job: job.status.restarts.in_a_row,
    ),
    ("executors", "Executors there are.", lambda job: job.status.executors.replicas),
    ("executors_ready", "Executors that are ready.", lambda job: job.status.executors.ready),
    ("executors_wanted", "Executors there should be.", lambda job: job.status.executors.target),
)

_QUERY_GAUGES: Sequence[tuple[str, str, Callable[[JobSample, Query, float], float | None]]] = (
    ("lag_rows", "Rows waiting in the sources.", lambda _job, query, _now: query["lag"]["rows"]),
    ("lag_files", "Files waiting in the sources.", lambda _job, query, _now: query["lag"]["files"]),
    ("input_rows_per_second", "Rows read.", lambda _job, query, _now: query["inputRowsPerSecond"]),
    (
        "processed_rows_per_second",
        "Rows that the last batch got through.",
        lambda _job, query, _now: query["processedRowsPerSecond"],
    ),
    (
        "batch_duration_seconds",
        "The last batch.",
        lambda _job, query, _now: _thousandth(query["batchDurationMs"]),
    ),
    (
        "trigger_utilisation",
        "The last batch as a share of the trigger's interval; above 1 the job cannot keep up.",
        lambda job, query, _now: _utilisation(job, query),
    ),
    (
        "watermark_delay_seconds",
        "How far event time is behind the clock.",
        lambda _job, query, now: _age(query["watermark"], now),
    ),
    (
        "progress_age_seconds",
        "How long ago the last batch ended: the age of the checkpoint.",
        lambda _job, query, now: _age(query["lastProgressAt"], now),
    ),
    ("committed_batch", "The newest committed batch.", lambda _job, query, _now: query["committedBatch"]),
    ("state_rows", "Rows in the state.", lambda _job, query, _now: query["stateRows"]),
    ("state_bytes", "Memory used by the state.", lambda _job, query, _now: query["stateBytes"]),
    ("late_rows_dropped", "Rows dropped as too late.", lambda _job, query, _now: query["lateRowsDropped"]),
    ("stuck", "1 while a batch does not end.", lambda _job, query, _now: float(query["stuck"])),
)


class JobMetrics(Collector):
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._samples: dict[Key, JobSample] = {}

    def set(self, key: Key, sample: JobSample) -> None:
        self._samples[key] = sample

    def set_report(self, key: Key, report: Mapping[str, Any] | None) -> None:
        if (before := self._samples.get(key)) is not None:
            self._samples[key] = JobSample(before.spec, before.status, report)

    def forget(self, key: Key) -> None:
        self._samples.pop(key, None)

    def collect(self) -> Iterable[Metric]:
        for name, text, read in _JOB_GAUGES:
            yield self._per_job(
                GaugeMetricFamily(f"headrace_job_{name}", text, labels=["namespace", "job"]), read
            )
        yield self._per_job(
            CounterMetricFamily(
                "headrace_job_restarts", "Attempts that failed.", labels=["namespace", "job"]
            ),
            lambda job: job.status.restarts.total,
        )
        now = self._now().timestamp()
        for name, text, read in _QUERY_GAUGES:
            family = GaugeMetricFamily(f"headrace_job_{name}", text, labels=["namespace", "job", "query"])
            for (namespace, job), sample in self._samples.items():
                for query in (sample.report or {}).get("queries", ()):
                    if (value := read(sample, query, now)) is not None:
                        family.add_metric([namespace, job, query["name"]], value)
            yield family

    def _per_job(
        self, family: GaugeMetricFamily | CounterMetricFamily, read: Callable[[JobSample], float | None]
    ) -> Metric:
        for key, sample in self._samples.items():
            if (value := read(sample)) is not None:
                family.add_metric(key, value)
        return family


def _condition(job: JobSample, kind: Any) -> float | None:
    condition = job.status.condition(kind)
    return None if condition is None or condition.status == "Unknown" else float(condition.status == "True")


def _utilisation(job: JobSample, query: Query) -> float | None:
    interval, duration = job.spec.trigger.interval, query["batchDurationMs"]
    return None if interval is None or duration is None else duration / 1000 / interval.seconds


def _age(moment: str | None, now: float) -> float | None:
    return max(0.0, now - datetime.fromisoformat(moment).timestamp()) if moment else None


def _thousandth(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
