"""The savepoints of the jobs, as metrics. The table is also a part of the reference page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric

from headrace.core.savepoints import Summary

Key = tuple[str, str]
_OfSavepoints = Callable[[Summary, float], float | None]


# headrace_savepoint_…, of the job.
SAVEPOINT_GAUGES: Sequence[tuple[str, str, _OfSavepoints]] = (
    (
        "age_seconds",
        "How long ago the newest good savepoint was taken.",
        lambda known, now: _since(_completed_at(known), now),
    ),
    (
        "duration_seconds",
        "How long it took.",
        lambda known, _now: known.last_good.seconds if known.last_good else None,
    ),
    ("bytes", "How big it is.", lambda known, _now: known.last_good.size_bytes if known.last_good else None),
    ("failed", "1 if the last one that ended has failed.", lambda known, _now: float(known.failed)),
    (
        "overdue_seconds",
        "How long `spec.savepoints.schedule` has asked for one that is not there, or not good; 0 if nothing "
        "is due. A job that has committed nothing since the last one needs none.",
        lambda known, now: _since(known.overdue_since, now) or 0.0,
    ),
)


def savepoint_metrics(jobs: Mapping[Key, Summary], now: float) -> Iterable[Metric]:
    for name, text, read in SAVEPOINT_GAUGES:
        family = GaugeMetricFamily(f"headrace_savepoint_{name}", text, labels=("namespace", "job"))
        for key, known in jobs.items():
            if (value := read(known, now)) is not None:
                family.add_metric(key, value)
        yield family


def _completed_at(known: Summary) -> datetime | None:
    return known.last_good.completed_at if known.last_good is not None else None


def _since(moment: datetime | None, now: float) -> float | None:
    return max(0.0, now - moment.timestamp()) if moment is not None else None
