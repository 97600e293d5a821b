"""The alerts about lag, data loss and scaling. Part of the one list in alerts.py."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.runtime.alert import DURATION, JOB, Alert

_EXPLAIN = "`kubectl streamjob explain <job>`: the last decisions, with their numbers."

SCALING_ALERTS: Sequence[Alert] = (
    Alert(
        name="HeadraceDataLossImminent",
        group="jobs",
        expr="headrace_job_time_to_data_loss_seconds < 3600",
        lasts="2m",
        severity="critical",
        summary=f"{JOB} will lose unread rows in {DURATION}",
        description="The source deletes rows faster than the job reads them.",
        means="At the rate at which unread rows age, or the source's first offset runs after what was read, "
        "the source will delete a row within an hour that the job has not read. Autoscaling has already "
        "lifted `max` to `emergencyMax`, and takes nothing away.",
        look=(
            _EXPLAIN,
            "`headrace_job_capacity_rows_per_second` against `headrace_job_arrival_rows_per_second`.",
        ),
        act=(
            "Give the topic more retention (`retention.ms`, `retention.bytes`): it takes effect at once.",
            "Raise `autoscaling.emergencyMax`, or `spec.executors.count` without autoscaling.",
            "Do not suspend, restart or upgrade the job now.",
        ),
    ),
    Alert(
        name="HeadraceRowsLost",
        group="jobs",
        expr="increase(headrace_job_rows_lost_total[10m]) > 0",
        severity="critical",
        summary=f"{JOB}: its source deleted rows before they were read",
        description="They cannot be read any more.",
        means="The first offset of a partition is beyond what the job has read.",
        look=("The driver's log: with `failOnDataLoss` the query fails, without it it goes on in silence.",),
        act=("Load the rows from elsewhere, if there is an elsewhere.", "More retention for the topic."),
    ),
    Alert(
        name="HeadraceWontCatchUp",
        group="jobs",
        expr="headrace_job_arrival_rows_per_second > headrace_job_capacity_at_max_rows_per_second "
        "and on (namespace, job) max by (namespace, job) (headrace_job_lag_seconds) > 60",
        lasts="5m",
        severity="critical",
        summary=f"{JOB} cannot keep up, not even with all the executors it may have",
        description="More arrives than it could ever do; what is behind stays behind.",
        means="More arrives than the learned model of its batches says that `autoscaling.max` executors can "
        "do, and the job is behind.",
        look=(_EXPLAIN, "`headrace_job_model_error`: above 0.3 the model is a guess."),
        act=("Raise `autoscaling.max`.", "If `headrace_job_scaling_bound` names another limit, that one."),
    ),
    Alert(
        name="HeadraceLagUnknown",
        group="jobs",
        expr="headrace_job_lag_known == 0 and on (namespace, job) headrace_job_lag_objective_seconds",
        lasts="10m",
        severity="warning",
        summary=f"{JOB}: nobody can tell how far it is behind",
        description="The autoscaler changes nothing until somebody can.",
        means="A source does not tell its offsets: its brokers do not answer the driver, or it is of a kind "
        "that never does.",
        look=("The message of the condition `LagKnown` names the query and the reason.", "The brokers."),
        act=(
            "Bring the brokers back, or the driver's way to them.",
            'For a source that cannot tell: `autoscaling.mode: "Off"`, and a fixed number.',
        ),
    ),
    Alert(
        name="HeadraceBoundByPartitions",
        group="jobs",
        expr='headrace_job_scaling_bound{reason=~"PartitionBound|SkewBound"} == 1',
        lasts="15m",
        severity="warning",
        summary=f"{JOB} needs more than executors can give ({{{{ $labels.reason }}}})",
        description="More executors would have nothing to do.",
        means="`PartitionBound`: every partition has a core already. `SkewBound`: one partition or one key "
        "gets too much, and one core has to do it.",
        look=(_EXPLAIN, "The sentence names the partition, or the ratio of the tasks."),
        act=(
            "`PartitionBound`: more partitions for the topic, or `minPartitions` in the code.",
            "`SkewBound`: another key, or salt it.",
        ),
    ),
    Alert(
        name="HeadraceScalingIneffective",
        group="jobs",
        expr='headrace_job_scaling_bound{reason="ScalingIneffective"} == 1',
        severity="warning",
        summary=f"{JOB}: more executors did not make it faster",
        description="The autoscaler adds no more for half an hour.",
        means="After the last scale-up the job gained less than a tenth of what was expected. Something else "
        "is the limit, most likely the sink.",
        look=("What the sink says: its load, its limits.", _EXPLAIN),
        act=(
            "Make the sink faster, or write less often to it.",
            "Else lower `autoscaling.max`: it is waste.",
        ),
    ),
    Alert(
        name="HeadraceFlapping",
        group="jobs",
        expr="changes(headrace_job_executors_wanted[1h]) > 8",
        severity="warning",
        summary=f"{JOB}: the number of its executors changed {{{{ $value }}}} times in an hour",
        description="Each change costs state that is loaded anew.",
        means="The autoscaler, or whoever writes `spec.executors.count`, goes up and down.",
        look=(_EXPLAIN, "With an HPA or KEDA: their own events."),
        act=("A higher `autoscaling.min`, or a larger `lagObjective`.", "Please report it, with the ring."),
    ),
)
