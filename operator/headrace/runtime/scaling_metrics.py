"""What the autoscaler sees of the jobs, as metrics. The tables are also a part of the reference page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headrace.core.advice import LIMITING
from headrace.core.autoscale import Decision

Key = tuple[str, str]
_LABELS = ("namespace", "job")


@dataclass(frozen=True)
class ScalingSample:
    """The autoscaler's newest look. Also of jobs that do not scale: what they can do is worth knowing."""

    decision: Decision
    rows_lost: int


_OfScaling = Callable[[ScalingSample], float | None]

SCALING_GAUGES: Sequence[tuple[str, str, _OfScaling]] = (
    (
        "lag_known",
        "1 if the lag of every query is known. Unknown is never zero.",
        lambda seen: float(seen.decision.reason != "LagUnknown"),
    ),
    (
        "arrival_rows_per_second",
        "Rows that arrive at the sources, counted there: the higher of the last minute and the last five. "
        "No sample while the lag is unknown.",
        lambda seen: seen.decision.numbers.arrival_rows_per_second,
    ),
    (
        "capacity_rows_per_second",
        "Rows that the executors there are can do, by the model learned from past batches.",
        lambda seen: seen.decision.numbers.capacity_rows_per_second,
    ),
    (
        "capacity_at_max_rows_per_second",
        "The same for `autoscaling.max` executors.",
        lambda seen: seen.decision.numbers.capacity_at_max_rows_per_second,
    ),
    (
        "needed_rows_per_second",
        "What the autoscaler wants to be able to do: what arrives, with reserve, and what waits.",
        lambda seen: seen.decision.numbers.need_rows_per_second,
    ),
    (
        "model_error",
        "How far batches differ from the model, as a part of what it expects.",
        lambda seen: seen.decision.numbers.model_error,
    ),
    (
        "time_to_data_loss_seconds",
        "When the source will delete a row that was not read, as things go; while the lag is "
        "unknown, as they went. No sample: it will not, or nobody has known yet.",
        lambda seen: seen.decision.numbers.seconds_to_data_loss,
    ),
    (
        "data_loss_if_stopped_seconds",
        "The same if the job stopped now; while the lag is unknown, as it last was. No sample: its sources "
        "delete nothing, as far as anybody knows.",
        lambda seen: seen.decision.numbers.seconds_to_data_loss_if_stopped,
    ),
)

SCALING_COUNTERS: Sequence[tuple[str, str, _OfScaling]] = (
    (
        "rows_lost",
        "rows that a source deleted before they were read, since this operator looks.",
        lambda seen: seen.rows_lost,
    ),
)

SCALING_BOUND = (
    "scaling_bound",
    "1 for the `reason` why more executors are needed and are not added (`AtMaximum`, `PartitionBound`, "
    "`SkewBound`, `RateLimited`, `QuotaBound`, `ScalingIneffective`), 0 for the others.",
)


def scaling_metrics(
    heard: Mapping[Key, ScalingSample], counted: Mapping[Key, ScalingSample]
) -> Iterable[Metric]:
    for name, text, read in SCALING_GAUGES:
        yield _per_look(GaugeMetricFamily(f"headrace_job_{name}", text, labels=_LABELS), heard, read)
    for name, text, read in SCALING_COUNTERS:
        yield _per_look(CounterMetricFamily(f"headrace_job_{name}", text, labels=_LABELS), counted, read)
    name, text = SCALING_BOUND
    family = GaugeMetricFamily(f"headrace_job_{name}", text, labels=[*_LABELS, "reason"])
    for key, one in heard.items():
        for reason in sorted(LIMITING):
            family.add_metric([*key, reason], float(one.decision.reason == reason))
    yield family


def _per_look(
    family: GaugeMetricFamily | CounterMetricFamily, seen: Mapping[Key, ScalingSample], read: _OfScaling
) -> Metric:
    for key, one in seen.items():
        if (value := read(one)) is not None:
            family.add_metric(key, value)
    return family
