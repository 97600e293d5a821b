"""What the jobs do, as metrics: from their status and from what their agents last said.

Unknown is never zero: a number that nobody knows has no sample. The tables are also the reference page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core.guarantees import word_for
from headrace.core.savepoints import Summary
from headrace.runtime.savepoint_metrics import savepoint_metrics
from headrace.runtime.scaling_metrics import ScalingSample, scaling_metrics

Key = tuple[str, str]
# A driver may be older than this operator: what its agent does not tell is unknown.
Query = Mapping[str, Any]

JOB_LABELS = ("namespace", "job")
QUERY_LABELS = (*JOB_LABELS, "query")


@dataclass(frozen=True)
class JobSample:
    # None: the spec cannot be taken, and nothing runs.
    spec: StreamJobSpec | None
    status: StreamJobStatus
    report: Mapping[str, Any] | None
    # None where nothing is known of them.
    savepoints: Summary | None = None


@dataclass(frozen=True)
class Remembered:
    """What outlives the report of a driver: a job that fails again and again commits nothing meanwhile."""

    committed_at: float | None = None
    progress_at: float | None = None
    interval_seconds: float | None = None


_OfJob = Callable[[JobSample], float | None]
_OfQuery = Callable[[JobSample, Query, float], float | None]
_OfMemory = Callable[[Remembered, float], float | None]

# ruff: noqa: PLW0108 - the helpers stand below the tables
JOB_GAUGES: Sequence[tuple[str, str, _OfJob]] = (
    ("ready", "1 if the condition `Ready` is true.", lambda job: _condition(job, "Ready")),
    (
        "stalled",
        "1 if the condition `Stalled` is true: nothing will change as things are.",
        lambda job: _condition(job, "Stalled"),
    ),
    ("suspended", "1 if `spec.suspend` is set.", lambda job: float(job.spec.suspend) if job.spec else None),
    (
        "asleep",
        "1 while a job with `spec.autoscaling.idle` sleeps, or falls asleep.",
        lambda job: _asleep(job),
    ),
    ("run", "Number of the current run.", lambda job: job.status.run.number if job.status.run else None),
    ("epoch", "The job's epoch: up by one with every attempt.", lambda job: job.status.epoch),
    (
        "restarts_in_a_row",
        "Failures since an attempt was last stable.",
        lambda job: job.status.restarts.in_a_row,
    ),
    ("executors", "Executors there are.", lambda job: job.status.executors.replicas),
    ("executors_ready", "Executors that are ready.", lambda job: job.status.executors.ready),
    ("executors_wanted", "Executors there should be.", lambda job: job.status.executors.target),
    (
        "latency_objective_seconds",
        "`spec.objectives.latency`, if the job has one.",
        lambda job: _latency_objective(job),
    ),
    (
        "lag_objective_seconds",
        "`spec.autoscaling.lagObjective`, if the job has `autoscaling`.",
        lambda job: job.spec.autoscaling.lag_objective.seconds if job.spec and job.spec.autoscaling else None,
    ),
)

JOB_COUNTERS: Sequence[tuple[str, str, _OfJob]] = (
    ("restarts", "attempts that failed.", lambda job: job.status.restarts.total),
)

LAST_END = (
    "last_end",
    "Always 1; the label `reason` says how the last attempt ended: `QueryFailed`, `StoreUnavailable`, …",
)

SINK = (
    "sink",
    "Always 1; the label `sink` says what a query writes to: `filesink`, `deltasink`, `kafka`, "
    "`foreachbatch`, …; `other` where Spark's words for it tell nothing.",
)

QUERY_GAUGES: Sequence[tuple[str, str, _OfQuery]] = (
    (
        "lag_rows",
        "Rows waiting in the sources, where they can be counted (Kafka; Python sources that tell their end).",
        lambda _job, query, _now: _lag(query).get("rows"),
    ),
    (
        "lag_files",
        "Files waiting in the sources (directories).",
        lambda _job, query, _now: _lag(query).get("files"),
    ),
    (
        "lag_seconds",
        "How long the oldest unread row, or file, has waited: estimated, see below.",
        lambda _job, query, now: _lag_seconds(_lag(query), now),
    ),
    (
        "input_rows_per_second",
        "Rows that came in, over the time since the batch before.",
        lambda _job, query, _now: query.get("inputRowsPerSecond"),
    ),
    (
        "processed_rows_per_second",
        "Rows that the last batch got through, per second of its own time.",
        lambda _job, query, _now: query.get("processedRowsPerSecond"),
    ),
    (
        "batch_duration_seconds",
        "How long the last batch took.",
        lambda _job, query, _now: _thousandth(query.get("batchDurationMs")),
    ),
    (
        "trigger_utilisation",
        "The last trigger as a share of its interval, or, where batches follow at once, of "
        "`spec.objectives.latency`. Above 1 the job cannot keep its promise: see below.",
        lambda job, query, now: _utilisation(job, query, now),
    ),
    (
        "event_latency_seconds",
        "From the time of an event to the commit of the batch that read it: the mean of the last batch. "
        "Only for queries with a watermark, and only while rows come.",
        lambda _job, query, _now: query.get("eventLatencySeconds"),
    ),
    (
        "event_latency_worst_seconds",
        "The same for the earliest event of the last batch.",
        lambda _job, query, _now: query.get("eventLatencyWorstSeconds"),
    ),
    (
        "watermark_delay_seconds",
        "How far the watermark is behind the clock. It grows while no rows come.",
        lambda _job, query, now: _age(query.get("watermark"), now),
    ),
    (
        "checkpoint_duration_seconds",
        "What the last batch waited for the checkpoint's log: its offsets before, its commit after.",
        lambda _job, query, _now: _thousandth(query.get("logCommitMs")),
    ),
    (
        "state_commit_seconds",
        "What a partition of the last batch took to commit its state, on average.",
        lambda _job, query, _now: _thousandth(query.get("stateCommitMs")),
    ),
    (
        "checkpoint_state_bytes",
        "State in RocksDB's files, as a snapshot uploads them. Unknown until there was one.",
        lambda _job, query, _now: query.get("stateFileBytes"),
    ),
    (
        "checkpoint_upload_bytes",
        "What the newest snapshots of the state uploaded: files that the store did not have yet.",
        lambda _job, query, _now: query.get("snapshotUploadBytes"),
    ),
    ("committed_batch", "The newest committed batch.", lambda _job, query, _now: query.get("committedBatch")),
    ("state_rows", "Rows in the state.", lambda _job, query, _now: query.get("stateRows")),
    ("state_bytes", "Memory used by the state.", lambda _job, query, _now: query.get("stateBytes")),
    (
        "late_rows_dropped",
        "Rows of this attempt that came after the watermark and were dropped.",
        lambda _job, query, _now: query.get("lateRowsDropped"),
    ),
    (
        "stuck",
        "1 while a batch runs past `spec.watchdog.batchTimeout`.",
        lambda _job, query, _now: float(query["stuck"]) if "stuck" in query else None,
    ),
)

# These go on while no driver answers, for as long as the job should run.
REMEMBERED_GAUGES: Sequence[tuple[str, str, _OfMemory]] = (
    (
        "checkpoint_age_seconds",
        "How long ago a batch was last committed. It grows while no rows come.",
        lambda known, now: _since(known.committed_at, now),
    ),
    (
        "progress_age_seconds",
        "How long ago everything that was found had been committed: since the last commit, or since the last "
        "look that found nothing. An idle job looks again at least every 10 seconds, or once per trigger.",
        lambda known, now: _since(known.progress_at, now),
    ),
    (
        "trigger_interval_seconds",
        "The interval of the trigger, from the manifest or the code. 0: batches follow at once.",
        lambda known, _now: known.interval_seconds,
    ),
)


class JobMetrics(Collector):
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._samples: dict[Key, JobSample] = {}
        self._remembered: dict[Key, dict[str, Remembered]] = {}
        self._scaling: dict[Key, ScalingSample] = {}

    def set(self, key: Key, sample: JobSample) -> None:
        self._samples[key] = sample
        self._remember(key, sample.report)

    def set_report(self, key: Key, report: Mapping[str, Any] | None) -> None:
        if (before := self._samples.get(key)) is not None:
            self.set(key, JobSample(before.spec, before.status, report, before.savepoints))

    def set_scaling(self, key: Key, sample: ScalingSample) -> None:
        self._scaling[key] = sample

    def forget(self, key: Key) -> None:
        self._samples.pop(key, None)
        self._remembered.pop(key, None)
        self._scaling.pop(key, None)

    def _remember(self, key: Key, report: Mapping[str, Any] | None) -> None:
        queries = _queries(report)
        if not queries:
            return
        before = self._remembered.get(key, {})
        # A query that is not told of any more has been renamed or removed.
        self._remembered[key] = {
            query["name"]: _newer(before.get(query["name"], Remembered()), query) for query in queries
        }

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("headrace_jobs", JOBS_HELP, value=len(self._samples))
        for name, text, read in JOB_GAUGES:
            yield self._per_job(GaugeMetricFamily(f"headrace_job_{name}", text, labels=JOB_LABELS), read)
        for name, text, read in JOB_COUNTERS:
            yield self._per_job(CounterMetricFamily(f"headrace_job_{name}", text, labels=JOB_LABELS), read)
        yield self._last_ends()
        yield self._sinks()
        yield from self._of_scaling()
        known = {key: sample.savepoints for key, sample in self._samples.items() if sample.savepoints}
        yield from savepoint_metrics(known, self._now().timestamp())
        yield from self._per_query(self._now().timestamp())

    def _last_ends(self) -> Metric:
        name, text = LAST_END
        family = GaugeMetricFamily(f"headrace_job_{name}", text, labels=[*JOB_LABELS, "reason"])
        for key, sample in self._samples.items():
            if (last := sample.status.last_termination) is not None:
                family.add_metric([*key, last.reason], 1)
        return family

    def _sinks(self) -> Metric:
        name, text = SINK
        family = GaugeMetricFamily(f"headrace_job_{name}", text, labels=[*QUERY_LABELS, "sink"])
        for key, sample in self._samples.items():
            for query in _queries(sample.report):
                if isinstance(described := query.get("sink"), str):
                    family.add_metric([*key, query["name"], word_for(described)], 1)
        return family

    def _of_scaling(self) -> Iterable[Metric]:
        """As long as a driver reports: what was decided before it fell silent says nothing of now."""
        return scaling_metrics(
            {key: one for key, one in self._scaling.items() if self._reports(key)},
            # A counter that goes away and comes back would count its own past as an increase.
            {key: one for key, one in self._scaling.items() if key in self._samples},
        )

    def _reports(self, key: Key) -> bool:
        sample = self._samples.get(key)
        return sample is not None and sample.report is not None

    def _per_query(self, now: float) -> Iterable[Metric]:
        for name, text, read in QUERY_GAUGES:
            family = GaugeMetricFamily(f"headrace_job_{name}", text, labels=QUERY_LABELS)
            for key, sample in self._samples.items():
                for query in _queries(sample.report):
                    if (value := _number(partial(read, sample, query, now))) is not None:
                        family.add_metric([*key, query["name"]], value)
            yield family
        for name, text, recall in REMEMBERED_GAUGES:
            family = GaugeMetricFamily(f"headrace_job_{name}", text, labels=QUERY_LABELS)
            for key, sample in self._samples.items():
                if sample.report is None and not _should_run(sample):
                    continue
                for query, known in self._remembered.get(key, {}).items():
                    if (value := recall(known, now)) is not None:
                        family.add_metric([*key, query], value)
            yield family

    def _per_job(self, family: GaugeMetricFamily | CounterMetricFamily, read: _OfJob) -> Metric:
        for key, sample in self._samples.items():
            if (value := read(sample)) is not None:
                family.add_metric(key, value)
        return family


JOBS_HELP = "StreamJobs that this replica looks after."


def _lag(query: Query) -> Mapping[str, Any]:
    return query.get("lag") or {}


def _queries(report: Mapping[str, Any] | None) -> Sequence[Query]:
    return (report or {}).get("queries", ())


def _newer(before: Remembered, query: Query) -> Remembered:
    """A driver that has only begun does not know when its predecessor committed."""
    interval = query.get("triggerIntervalMs")
    return Remembered(
        committed_at=_number(lambda: _moment(query.get("lastCommitAt"))) or before.committed_at,
        progress_at=_number(lambda: _moment(query.get("lastProgressAt"))) or before.progress_at,
        interval_seconds=_number(lambda: _thousandth(interval)),
    )


def _number(read: Callable[[], Any]) -> float | None:
    """A driver may say what it likes: what is no number is not known, and does no harm to the others."""
    try:
        value = read()
        return None if value is None else float(value)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return None


def _should_run(job: JobSample) -> bool:
    stopped = job.spec is None or job.spec.suspend or job.status.sleep is not None
    return not stopped and job.spec is not None and job.spec.trigger.mode == "Continuous"


def _asleep(job: JobSample) -> float | None:
    scaling = job.spec.autoscaling if job.spec is not None else None
    may_sleep = scaling is not None and scaling.idle is not None
    return float(job.status.sleep is not None) if may_sleep else None


def _condition(job: JobSample, kind: Any) -> float | None:
    condition = job.status.condition(kind)
    return None if condition is None or condition.status == "Unknown" else float(condition.status == "True")


def _latency_objective(job: JobSample) -> float | None:
    objectives = job.spec.objectives if job.spec else None
    return objectives.latency.seconds if objectives and objectives.latency else None


def _lag_seconds(lag: Mapping[str, Any], now: float) -> float | None:
    """Of rows and files alike: a query may read a topic and a directory."""
    waiting = [count for count in (lag.get("rows"), lag.get("files")) if count is not None]
    if not waiting:
        return None
    return _age(lag.get("behindSince"), now) if any(waiting) else 0.0


def _utilisation(job: JobSample, query: Query, now: float) -> float | None:
    interval, last = query.get("triggerIntervalMs"), _thousandth(query.get("triggerDurationMs"))
    promised = interval / 1000 if interval else _latency_objective(job)
    # A batch that runs already longer than the last one counts before it has ended.
    spent = [seconds for seconds in (last, _age(query.get("batchStartedAt"), now)) if seconds is not None]
    return max(spent) / promised if promised and spent else None


def _moment(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None


def _age(text: str | None, now: float) -> float | None:
    return _since(_moment(text), now)


def _since(moment: float | None, now: float) -> float | None:
    return None if moment is None else max(0.0, now - moment)


def _thousandth(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
