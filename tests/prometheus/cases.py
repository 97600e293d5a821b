"""When each alert fires, and when it does not: minutes of series in promtool's notation, one value a minute.

`0x20` is 0 and then 20 times the same; `0+60x20` grows by 60 each minute; `_` is no sample.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

JOB = {"namespace": "shop", "job": "clicks"}
QUERY = {**JOB, "query": "counts"}
OPERATOR = {"instance": "10.0.0.1:8080"}


@dataclass(frozen=True, kw_only=True)
class Case:
    alert: str
    why: str
    series: Mapping[str, str]
    at_minutes: int = 30
    # The summary of the one alert that fires; None: it stays silent.
    fires: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    # As the description shows it, where it does.
    value: str = ""


def job(metric: str, **more: str) -> str:
    return _series(f"headrace_job_{metric}", JOB | more)


def query(metric: str, **more: str) -> str:
    return _series(f"headrace_job_{metric}", QUERY | more)


def savepoint(metric: str) -> str:
    return _series(f"headrace_savepoint_{metric}", JOB)


def own(metric: str, **more: str) -> str:
    return _series(f"headrace_{metric}", OPERATOR | more)


def _series(name: str, labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{name}{{{inner}}}"


def fires(alert: str, why: str, summary: str, series: Mapping[str, str], **more: object) -> Case:
    return Case(alert=alert, why=why, fires=summary, series=series, **more)  # type: ignore[arg-type]


def silent(alert: str, why: str, series: Mapping[str, str], **more: object) -> Case:
    return Case(alert=alert, why=why, series=series, **more)  # type: ignore[arg-type]


READY = "HeadraceJobNotReady"
STALLED = "HeadraceJobStalled"
LOOP = "HeadraceJobRestartLoop"
FAILING = "HeadraceCheckpointFailing"
STALE = "HeadraceCheckpointStale"
STUCK = "HeadraceBatchStuck"
PRESSURE = "HeadraceBackpressure"
BEHIND = "HeadraceFallingBehind"
LAG = "HeadraceLagOverObjective"
LATENCY = "HeadraceLatencyOverObjective"
SAVEPOINT_FAILED = "HeadraceSavepointFailed"
SAVEPOINT_STALE = "HeadraceSavepointStale"
LEADER = "HeadraceNoLeader"
PASSES = "HeadraceNotReconciling"
QUEUE = "HeadraceQueueSlow"
ERRORS = "HeadraceReconcileErrors"
LOSS = "HeadraceDataLossImminent"
LOST = "HeadraceRowsLost"
WONT = "HeadraceWontCatchUp"
UNKNOWN = "HeadraceLagUnknown"
BOUND = "HeadraceBoundByPartitions"
INEFFECTIVE = "HeadraceScalingIneffective"
FLAPPING = "HeadraceFlapping"

NOT_READY = {job("ready"): "0x40", job("stalled"): "0x40"}
STORE_GONE = {job("last_end", reason="StoreUnavailable"): "1x40"}
WORKING = {own("leader"): "1x120", own("jobs"): "3x120", own("resync_seconds"): "600x120"}

CASES = (
    fires(READY, "not ready for long", "shop/clicks is not Ready for 10 minutes", NOT_READY, labels=JOB),
    silent(READY, "it only starts", NOT_READY, at_minutes=8),
    silent(READY, "stalled has an alert of its own", {job("ready"): "0x40", job("stalled"): "1x40"}),
    silent(READY, "it is ready again", {job("ready"): "0x20 1x20"}, at_minutes=22),
    fires(
        STALLED,
        "stalled",
        "shop/clicks is Stalled: nothing will change as things are",
        {job("stalled"): "1x40"},
        labels=JOB,
    ),
    silent(STALLED, "not stalled", {job("stalled"): "0x40"}),
    fires(
        LOOP,
        "a failure every six minutes: what the longest wait leaves",
        "shop/clicks failed more than three times in half an hour",
        {job("restarts_total"): "1x5 2x5 3x5 4x5 5x5 6x5"},
        labels=JOB,
        at_minutes=31,
    ),
    silent(LOOP, "one failure long ago, one now", {job("restarts_total"): "4x15 5x15 6x10"}, at_minutes=35),
    fires(
        FAILING,
        "twice in a quarter of an hour, because of the store",
        "shop/clicks cannot use its checkpoint store",
        {job("restarts_total"): "0x15 1x5 2x20", **STORE_GONE},
        labels=JOB,
        at_minutes=25,
    ),
    silent(FAILING, "once", {job("restarts_total"): "0x15 1x25", **STORE_GONE}, at_minutes=25),
    silent(FAILING, "it works again", {job("restarts_total"): "0x5 1x1 2x40", **STORE_GONE}, at_minutes=40),
    silent(
        FAILING,
        "for another reason",
        {job("restarts_total"): "0x15 1x5 2x20", job("last_end", reason="QueryFailed"): "1x40"},
        at_minutes=25,
    ),
    fires(
        STALE,
        "a batch does not end",
        "shop/clicks: query counts committed nothing for 30m 0s",
        {query("progress_age_seconds"): "0+60x40", query("trigger_interval_seconds"): "0x40"},
        labels=QUERY,
    ),
    fires(
        STALE,
        "no driver lives, and its interval is not known any more",
        "shop/clicks: query counts committed nothing for 30m 0s",
        {query("progress_age_seconds"): "0+60x40"},
        labels=QUERY,
    ),
    silent(STALE, "an idle job looks every ten seconds", {query("progress_age_seconds"): "10x40"}),
    silent(
        STALE,
        "a trigger of an hour",
        {query("progress_age_seconds"): "0+60x60", query("trigger_interval_seconds"): "3600x60"},
        at_minutes=59,
    ),
    fires(
        STALE,
        "two hours with a trigger of an hour",
        "shop/clicks: query counts committed nothing for 2h 10m 0s",
        {query("progress_age_seconds"): "0+60x140", query("trigger_interval_seconds"): "3600x140"},
        labels=QUERY,
        at_minutes=130,
    ),
    fires(
        STUCK,
        "stuck",
        "shop/clicks: a batch of counts runs past its time limit",
        {query("stuck"): "1x40"},
        labels=QUERY,
    ),
    silent(STUCK, "not stuck", {query("stuck"): "0x40"}),
    fires(
        PRESSURE,
        "for more than five minutes",
        "shop/clicks: batches of counts take longer than the job can afford",
        {query("trigger_utilisation"): "0.5x20 1.2x20"},
        labels=QUERY,
    ),
    silent(PRESSURE, "one slow batch", {query("trigger_utilisation"): "0.5x25 3x2 0.5x20"}),
    silent(PRESSURE, "just enough", {query("trigger_utilisation"): "1x40"}),
    fires(
        BEHIND,
        "the lag grows and grows",
        "shop/clicks: counts falls further and further behind its source",
        {query("lag_seconds"): "0x10 0+30x30"},
        labels=QUERY,
        value="7m 0s",
    ),
    silent(BEHIND, "much, but less and less", {query("lag_seconds"): "3600-60x40"}),
    silent(BEHIND, "up and down", {query("lag_seconds"): " ".join(["70 300 70 200"] * 10)}),
    silent(BEHIND, "growing, but seconds", {query("lag_seconds"): "0+1x40"}),
    silent(BEHIND, "too young to tell", {query("lag_seconds"): "_x26 600+60x20"}),
    fires(
        LAG,
        "above the job's own objective",
        "shop/clicks: counts is 45s behind its source",
        {query("lag_seconds"): "45x40", job("lag_objective_seconds"): "30x40"},
        labels=QUERY,
    ),
    silent(LAG, "within it", {query("lag_seconds"): "45x40", job("lag_objective_seconds"): "60x40"}),
    silent(LAG, "no objective", {query("lag_seconds"): "45x40"}),
    silent(
        LAG,
        "another job's objective",
        {
            query("lag_seconds"): "45x40",
            'headrace_job_lag_objective_seconds{namespace="shop",job="orders"}': "30x40",
        },
    ),
    fires(
        LATENCY,
        "also when rows come only now and then",
        "shop/clicks: results of counts come 20s after their events",
        {
            query("event_latency_seconds"): " ".join(["20 _ _"] * 14),
            job("latency_objective_seconds"): "10x40",
        },
        labels=QUERY,
    ),
    silent(
        LATENCY,
        "late long ago, idle since",
        {query("event_latency_seconds"): "20x10 _x30", job("latency_objective_seconds"): "10x40"},
    ),
    silent(
        LATENCY,
        "within it",
        {query("event_latency_seconds"): "8x40", job("latency_objective_seconds"): "10x40"},
    ),
    silent(LATENCY, "no objective", {query("event_latency_seconds"): "20x40"}),
    fires(LEADER, "no replica leads", "No Headrace operator is working", {own("leader"): "0x40"}),
    fires(LEADER, "none is scraped", "No Headrace operator is working", {own("leader"): "1x10 stale"}),
    fires(
        SAVEPOINT_FAILED,
        "the last one failed",
        "shop/clicks: the last savepoint has failed",
        {savepoint("failed"): "0x10 1x30"},
        labels=JOB,
    ),
    silent(SAVEPOINT_FAILED, "another one was good since", {savepoint("failed"): "1x20 0x20"}),
    silent(SAVEPOINT_FAILED, "all are good", {savepoint("failed"): "0x40"}),
    fires(
        SAVEPOINT_STALE,
        "none for more than an hour",
        "shop/clicks: a scheduled savepoint is overdue for 1h 30m 0s",
        {savepoint("overdue_seconds"): "0+60x100"},
        labels=JOB,
        at_minutes=90,
    ),
    silent(
        SAVEPOINT_STALE, "it is being taken", {savepoint("overdue_seconds"): "0+60x20 0x100"}, at_minutes=90
    ),
    silent(SAVEPOINT_STALE, "nothing is due", {savepoint("overdue_seconds"): "0x100"}, at_minutes=90),
    silent(
        LEADER,
        "one of two leads",
        {own("leader"): "0x40", 'headrace_leader{instance="10.0.0.2:8080"}': "1x40"},
    ),
    fires(
        PASSES,
        "no pass for an hour",
        "The Headrace operator looks at no job any more",
        {**WORKING, own("last_reconcile_timestamp_seconds"): "0x120"},
        labels=OPERATOR,
        value="1h 0m 0s",
        at_minutes=60,
    ),
    silent(
        PASSES,
        "every ten minutes",
        {**WORKING, own("last_reconcile_timestamp_seconds"): " ".join(f"{600 * n}x9" for n in range(12))},
        at_minutes=60,
    ),
    silent(
        PASSES,
        "no jobs, no passes",
        {**WORKING, own("jobs"): "0x120", own("last_reconcile_timestamp_seconds"): "0x120"},
        at_minutes=60,
    ),
    silent(
        PASSES,
        "a stand-by has none",
        {**WORKING, own("leader"): "0x120", own("last_reconcile_timestamp_seconds"): "0x120"},
        at_minutes=60,
    ),
    silent(
        PASSES,
        "the platform wants a pass every two hours",
        {**WORKING, own("resync_seconds"): "7200x120", own("last_reconcile_timestamp_seconds"): "0x120"},
        at_minutes=60,
    ),
    fires(
        QUEUE,
        "jobs wait",
        "Jobs wait for 2m 30s to be looked at",
        {own("queue_oldest_seconds"): "150x40"},
        labels=OPERATOR,
    ),
    silent(QUEUE, "a short peak", {own("queue_oldest_seconds"): "0x27 150x2 0x10"}),
    fires(
        ERRORS,
        "half of the passes",
        "50% of the operator's passes fail",
        {own("reconcile_total", result="ok"): "0+10x40", own("reconcile_total", result="error"): "0+10x40"},
    ),
    silent(
        ERRORS,
        "one in twenty",
        {own("reconcile_total", result="ok"): "0+95x40", own("reconcile_total", result="error"): "0+5x40"},
    ),
    silent(
        ERRORS,
        "no passes at all",
        {own("reconcile_total", result="ok"): "0x40", own("reconcile_total", result="error"): "0x40"},
    ),
    fires(
        LOSS,
        "half an hour is left",
        "shop/clicks will lose unread rows in 30m 0s",
        {job("time_to_data_loss_seconds"): "1800x40"},
        labels=JOB,
    ),
    silent(LOSS, "a day is left", {job("time_to_data_loss_seconds"): "86400x40"}),
    silent(LOSS, "nothing will be lost", {job("arrival_rows_per_second"): "10x40"}),
    fires(
        LOST,
        "rows were deleted",
        "shop/clicks: its source deleted rows before they were read",
        {job("rows_lost_total"): "0x25 100x15"},
        labels=JOB,
    ),
    silent(LOST, "none were", {job("rows_lost_total"): "0x40"}),
    silent(LOST, "long ago", {job("rows_lost_total"): "0x5 100x35"}),
    fires(
        WONT,
        "more arrives than can ever be done",
        "shop/clicks cannot keep up, not even with all the executors it may have",
        {
            job("arrival_rows_per_second"): "500x40",
            job("capacity_at_max_rows_per_second"): "400x40",
            query("lag_seconds"): "120x40",
        },
        labels=JOB,
    ),
    silent(
        WONT,
        "a burst that the lag does not feel",
        {
            job("arrival_rows_per_second"): "500x40",
            job("capacity_at_max_rows_per_second"): "400x40",
            query("lag_seconds"): "12x40",
        },
    ),
    silent(
        WONT,
        "behind, but able",
        {
            job("arrival_rows_per_second"): "300x40",
            job("capacity_at_max_rows_per_second"): "400x40",
            query("lag_seconds"): "120x40",
        },
    ),
    fires(
        UNKNOWN,
        "for ten minutes",
        "shop/clicks: nobody can tell how far it is behind",
        {job("lag_known"): "0x40", job("lag_objective_seconds"): "60x40"},
        labels=JOB,
    ),
    silent(UNKNOWN, "a moment", {job("lag_known"): "1x25 0x4 1x20", job("lag_objective_seconds"): "60x40"}),
    silent(UNKNOWN, "a job that does not scale", {job("lag_known"): "0x40"}),
    fires(
        BOUND,
        "every partition has its core",
        "shop/clicks needs more than executors can give (PartitionBound)",
        {job("scaling_bound", reason="PartitionBound"): "1x40"},
        labels={**JOB, "reason": "PartitionBound"},
    ),
    silent(BOUND, "another limit", {job("scaling_bound", reason="AtMaximum"): "1x40"}),
    silent(BOUND, "for a moment", {job("scaling_bound", reason="SkewBound"): "0x20 1x10"}),
    fires(
        INEFFECTIVE,
        "executors did not help",
        "shop/clicks: more executors did not make it faster",
        {job("scaling_bound", reason="ScalingIneffective"): "1x40"},
        labels={**JOB, "reason": "ScalingIneffective"},
    ),
    silent(INEFFECTIVE, "they did", {job("scaling_bound", reason="ScalingIneffective"): "0x40"}),
    fires(
        FLAPPING,
        "up and down",
        "shop/clicks: the number of its executors changed 10 times in an hour",
        {job("executors_wanted"): "2x40 3x2 2x2 3x2 2x2 3x2 2x2 3x2 2x2 3x2 2x40"},
        labels=JOB,
        at_minutes=75,
    ),
    silent(FLAPPING, "a day's work", {job("executors_wanted"): "2x20 4x20 6x20 3x20"}, at_minutes=75),
)
