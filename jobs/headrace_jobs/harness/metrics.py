"""Prometheus metrics of a driver, made from the same views as the agent's status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.harness.view import QueryView

Read = Callable[[QueryView], float | None]

# Name, help, and where the number comes from. None: there is no sample, because unknown is never zero.
_COUNTERS: Sequence[tuple[str, str, Read]] = (
    ("batches", "Batches committed by this attempt.", lambda v: v.totals.batches),
    ("input_rows", "Rows read by this attempt.", lambda v: v.totals.input_rows),
    (
        "late_rows_dropped",
        "Rows that came after the watermark and were dropped.",
        lambda v: v.totals.late_rows_dropped,
    ),
    ("batch_seconds", "Time spent in batches.", lambda v: v.totals.batch_seconds),
)
_GAUGES: Sequence[tuple[str, str, Read]] = (
    ("active", "1 while the query runs.", lambda v: float(v.active)),
    ("stuck", "1 while a batch takes longer than the watchdog allows.", lambda v: float(v.stuck)),
    ("committed_batch", "The newest committed batch.", lambda v: v.committed_batch),
    ("batch_duration_seconds", "How long the newest batch took.", lambda v: _thousandth(v.batch_duration_ms)),
    ("state_rows", "Rows in the state.", lambda v: v.state_rows),
    ("state_bytes", "Memory used by the state.", lambda v: v.state_bytes),
    ("watermark_timestamp_seconds", "The event-time watermark.", lambda v: _seconds(v.watermark)),
    (
        "last_progress_timestamp_seconds",
        "When Spark last told its progress.",
        lambda v: _seconds(v.last_progress_at),
    ),
    ("lag_known", "1 if the lag is known.", lambda v: float(v.lag.known)),
    ("lag_rows", "Rows waiting in the sources.", lambda v: v.lag.rows),
    ("lag_files", "Files waiting in the sources.", lambda v: v.lag.files),
)


def render_metrics(run_file: RunFile, views: Sequence[QueryView], *, spark_version: str | None) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Views(run_file, views, spark_version))
    return generate_latest(registry)


class _Views(Collector):
    def __init__(self, run_file: RunFile, views: Sequence[QueryView], spark_version: str | None) -> None:
        self._run_file = run_file
        self._views = views
        self._spark_version = spark_version

    def collect(self) -> Iterable[Metric]:
        yield self._info()
        labels = ["namespace", "job", "query"]
        for name, text, read in _COUNTERS:
            yield self._filled(CounterMetricFamily(f"headrace_query_{name}", text, labels=labels), read)
        for name, text, read in _GAUGES:
            yield self._filled(GaugeMetricFamily(f"headrace_query_{name}", text, labels=labels), read)

    def _filled(self, family: CounterMetricFamily | GaugeMetricFamily, read: Read) -> Metric:
        job = self._run_file.job
        for view in self._views:
            value = read(view)
            if value is not None:
                family.add_metric([job.namespace, job.name, view.name], value)
        return family

    def _info(self) -> Metric:
        run_file = self._run_file
        labels = {
            "namespace": run_file.job.namespace,
            "job": run_file.job.name,
            "run": str(run_file.run),
            "attempt": str(run_file.attempt),
            "epoch": str(run_file.epoch),
            "spark_version": self._spark_version or "",
        }
        family = GaugeMetricFamily(
            "headrace_attempt_info", "What this driver runs; always 1.", labels=list(labels)
        )
        family.add_metric(list(labels.values()), 1)
        return family


def _seconds(moment: str | None) -> float | None:
    return datetime.fromisoformat(moment).timestamp() if moment else None


def _thousandth(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
