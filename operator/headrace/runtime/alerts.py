"""The alerts: one entry each. The chart's rules, the runbook and the tests' list come from here.

An alert is about something that somebody must do. Expressions compare with the job's own objectives where it
has some. Labels `namespace`, `job` and `query` are ours: a scrape must keep them (honor_labels).
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.runtime.alert import DESCRIBE, DURATION, JOB, QUERY, Alert
from headrace.runtime.scaling_alerts import SCALING_ALERTS

ALERTS: Sequence[Alert] = (
    Alert(
        name="HeadraceJobNotReady",
        group="jobs",
        expr="headrace_job_ready == 0 unless on (namespace, job) headrace_job_stalled == 1",
        lasts="10m",
        severity="warning",
        summary=f"{JOB} is not Ready for 10 minutes",
        description=f"See why: {DESCRIBE}",
        means="The job should run and does not: it starts for too long, waits between two attempts, or its "
        "driver does not answer. A suspended job is Ready, and so is one that sleeps. A Stalled one has an "
        "alert of its own.",
        look=(
            "`kubectl describe streamjob <job>`: the message of the condition `Ready`, then the events.",
            "The driver's log: `kubectl logs <job>-r<run>-a<attempt>`.",
        ),
        act=(
            "`Unschedulable`, `ImagePullBackOff`, `QuotaExceeded`: give the cluster what the message names.",
            "A failing attempt: `status.lastTermination` names the reason and the line of code.",
        ),
    ),
    Alert(
        name="HeadraceJobStalled",
        group="jobs",
        expr="headrace_job_stalled == 1",
        lasts="2m",
        severity="critical",
        summary=f"{JOB} is Stalled: nothing will change as things are",
        description=f"Its Stalled condition says what to do: {DESCRIBE}",
        means="Headrace does not get on without you: a spec that cannot be taken, state that would not fit, "
        "a lost node, code that has failed five times without a batch. What ran before an edit goes on; code "
        "that fails is tried on with the longest wait, and a batch of every query ends the alert.",
        look=("`kubectl describe streamjob <job>`: the condition `Stalled` has the reason and the fix.",),
        act=(
            "Do what the message says. The table in [install](../how-to/install.md) explains the reasons.",
            "A reason in capitals is Spark's error class: see [find the failure]"
            "(../how-to/find-the-failure.md).",
        ),
    ),
    Alert(
        name="HeadraceJobRestartLoop",
        group="jobs",
        expr="increase(headrace_job_restarts_total[30m]) > 3",
        severity="critical",
        summary=f"{JOB} failed more than three times in half an hour",
        description="status.lastTermination names the reason and the line of code.",
        means="Attempts of the same run fail one after the other. The wait between them doubles up to "
        "`spec.restart.backoff.max`; no data is lost as long as the source keeps it.",
        look=(
            "`kubectl get streamjob <job> -o yaml`: `status.lastTermination`.",
            "`headrace_job_last_end`: whether it is always the same reason.",
        ),
        act=(
            "`QueryFailed`, `ApplicationError`: see [find the failure](../how-to/find-the-failure.md); new "
            "code or an edit makes a new run.",
            "`OutOfMemory`, and most often `Killed`: raise `spec.driver.memory` or `memoryOverhead`.",
            "To stop the attempts meanwhile: `spec.suspend: true`.",
        ),
    ),
    Alert(
        name="HeadraceCheckpointFailing",
        group="jobs",
        expr="increase(headrace_job_restarts_total[15m]) > 1.5 "
        'and on (namespace, job) headrace_job_last_end{reason="StoreUnavailable"} == 1',
        severity="critical",
        summary=f"{JOB} cannot use its checkpoint store",
        description="Attempts end with StoreUnavailable; status.lastTermination says why.",
        means="At least two attempts of the last quarter of an hour ended because the checkpoint could not "
        "be read or written. Nothing is committed meanwhile.",
        look=(
            "`status.lastTermination.message`: no such bucket, wrong keys, no answer, no conditional PUT.",
            "Other jobs with the same store: is it the store, or this job's credentials?",
        ),
        act=(
            "Bring the store back, or renew the credentials. The next attempt goes on from the last commit.",
        ),
    ),
    Alert(
        name="HeadraceCheckpointStale",
        group="jobs",
        # A job with a trigger of an hour is not late after a quarter of one.
        expr="headrace_job_progress_age_seconds > 900 "
        "unless headrace_job_progress_age_seconds < 2 * headrace_job_trigger_interval_seconds",
        lasts="5m",
        severity="warning",
        summary=f"{JOB}: query {QUERY} committed nothing for {DURATION}",
        description="A batch takes long, a source or the store does not answer, or no attempt lives long "
        "enough.",
        means="There was something to commit and it was not committed, for more than 20 minutes and more "
        "than twice the trigger's interval; over all attempts. A crash now repeats all of that work. An "
        "idle job does not count: it looks for data, finds none, and has nothing to commit.",
        look=(
            "`headrace_job_restarts_total`: attempts that die before their first commit?",
            "The driver's log: which batch, since when, in which stage.",
            "`headrace_job_lag_rows`: one huge batch after a pause?",
        ),
        act=(
            "A huge first batch: let it end, and limit the next ones (`maxOffsetsPerTrigger`, "
            "`maxFilesPerTrigger`).",
            "A batch that hangs: after `spec.watchdog.batchTimeout` the stacks are in the log and the "
            "attempt is replaced.",
        ),
    ),
    Alert(
        name="HeadraceBatchStuck",
        group="jobs",
        expr="headrace_job_stuck == 1",
        severity="critical",
        summary=f"{JOB}: a batch of {QUERY} runs past its time limit",
        description="The stacks of all threads are in the driver's log.",
        means="A batch runs longer than `spec.watchdog.batchTimeout`. With `watchdog.action: Restart` the "
        "attempt is replaced; with `Report` it goes on until you act.",
        look=("The driver's log: the stacks of all threads, at the moment the limit was passed.",),
        act=(
            "If the batch is only slow: raise `batchTimeout`, or make batches smaller.",
            "If it hangs: the stack shows on what (a sink, a lookup, a lock).",
        ),
    ),
    Alert(
        name="HeadraceBackpressure",
        group="jobs",
        expr="headrace_job_trigger_utilisation > 1",
        lasts="5m",
        severity="warning",
        summary=f"{JOB}: batches of {QUERY} take longer than the job can afford",
        description="Longer than the trigger's interval or, without one, than the latency objective. "
        "More executors, or a longer interval.",
        means="A batch takes longer than the trigger's interval; where batches follow each other at once, "
        "longer than `spec.objectives.latency`. A job that has neither is watched by HeadraceFallingBehind.",
        look=(
            "`headrace_job_batch_duration_seconds` against `headrace_job_input_rows_per_second`: more rows, "
            "or slower ones?",
            "`headrace_job_checkpoint_duration_seconds`, `headrace_job_state_commit_seconds`: the store?",
            "`headrace_job_executors_ready` against `headrace_job_executors_wanted`.",
        ),
        act=("Raise `spec.executors.count`, or `autoscaling.max`.", "Else a longer `spec.trigger.interval`."),
    ),
    Alert(
        name="HeadraceFallingBehind",
        group="jobs",
        # The least of now is above the most of before: it grows, and does not only go up and down. A minute
        # lies between, because both windows would hold the sample at their border.
        expr="min_over_time(headrace_job_lag_seconds[5m]) > 60 "
        "and min_over_time(headrace_job_lag_seconds[5m]) "
        "> max_over_time(headrace_job_lag_seconds[5m] offset 6m)",
        severity="warning",
        summary=f"{JOB}: {QUERY} falls further and further behind its source",
        description="Its lag grows steadily, to {{ $value | humanizeDuration }} at the least.",
        means="Over five minutes the lag was never as small as its largest value of the five minutes before, "
        "and always more than a minute: rows come faster than they are worked off, whatever the trigger.",
        look=(
            "`headrace_job_lag_rows`, `headrace_job_processed_rows_per_second`.",
            "The retention of the topic: unread rows that it deletes are lost.",
        ),
        act=(
            "Raise `spec.executors.count`, or `autoscaling.max`.",
            "A rate limit in the code (`maxOffsetsPerTrigger`) may be too low for what comes.",
        ),
    ),
    Alert(
        name="HeadraceLagOverObjective",
        group="jobs",
        expr="headrace_job_lag_seconds "
        "> on (namespace, job) group_left () headrace_job_lag_objective_seconds",
        lasts="5m",
        severity="warning",
        summary=f"{JOB}: {QUERY} is {DURATION} behind its source",
        description="More than spec.autoscaling.lagObjective allows.",
        means="The oldest unread row has waited longer than `spec.autoscaling.lagObjective`, for five "
        "minutes. The number is an estimate: see [lag in seconds](../reference/metrics.md#lag-in-seconds).",
        look=(
            "`headrace_job_executors_wanted`: at `autoscaling.max`?",
            "`headrace_job_input_rows_per_second`: a burst that will pass?",
        ),
        act=("Raise `autoscaling.max`.", "If the promise is too tight, a larger `lagObjective`."),
    ),
    Alert(
        name="HeadraceLatencyOverObjective",
        group="jobs",
        # Averaged, so that a pause between two batches does not begin the five minutes anew.
        expr="avg_over_time(headrace_job_event_latency_seconds[5m]) "
        "> on (namespace, job) group_left () headrace_job_latency_objective_seconds",
        lasts="5m",
        severity="warning",
        summary=f"{JOB}: results of {QUERY} come {DURATION} after their events",
        description="Later than spec.objectives.latency promises.",
        means="From the time of an event to the commit of its batch it takes longer than "
        "`spec.objectives.latency`, on average over the rows of five minutes.",
        look=(
            "`headrace_job_lag_seconds`: if it is small, the rows already come late to the source.",
            "`headrace_job_event_latency_worst_seconds`: all rows, or some late ones?",
            "`headrace_job_batch_duration_seconds` and the trigger's interval: their sum is the "
            "least there is.",
        ),
        act=("Behind its source: more executors.", "Else a shorter `spec.trigger.interval`."),
    ),
    Alert(
        name="HeadraceSavepointFailed",
        group="jobs",
        expr="headrace_savepoint_failed == 1",
        lasts="5m",
        severity="warning",
        summary=f"{JOB}: the last savepoint has failed",
        description="kubectl -n {{ $labels.namespace }} get streamsavepoints: the one that Failed says why.",
        means="The newest savepoint that has ended is not good: it was given up, or found damaged. The job "
        "itself is not touched by it, but an upgrade that asked for the savepoint is held.",
        look=(
            "`kubectl get ssp -o wide`, then `kubectl describe ssp <name>`: the condition `Stalled`.",
            "`headrace_savepoint_failures_total`: always the same reason?",
        ),
        act=(
            "`TimeLimit`: raise `spec.timeLimit`, or `maxCopyRate`; the message says what it waited for.",
            "`CheckpointDamaged`: the job could not restart either. Find out what removed the files.",
            "Then make another one; the next scheduled one comes by itself. A held upgrade goes on when the "
            "failed savepoint is deleted, or with `savepoints.onUpgrade: false`.",
        ),
    ),
    Alert(
        name="HeadraceSavepointStale",
        group="jobs",
        expr="headrace_savepoint_overdue_seconds > 3600",
        lasts="5m",
        severity="warning",
        summary=f"{JOB}: a scheduled savepoint is overdue for {DURATION}",
        description="spec.savepoints.schedule asked for one, and there is no good one since.",
        means="More than an hour after its time there is no good savepoint for it. A job that has committed "
        "nothing since the last one needs none, and a suspended one takes none.",
        look=(
            "`kubectl get ssp`: does one of them wait, and what for? Only one is taken at a time.",
            "The events of the StreamJob: a quota for StreamSavepoints, or missing rights?",
        ),
        act=("Do what its message says. After a pause one savepoint makes up for all that were missed.",),
    ),
    Alert(
        name="HeadraceNoLeader",
        group="operator",
        expr="absent(headrace_leader == 1)",
        lasts="5m",
        severity="critical",
        summary="No Headrace operator is working",
        description="Jobs go on running, but nothing is healed, upgraded or scaled. Look at the operator's "
        "pods.",
        means="No replica of the operator holds the Lease, or Prometheus reaches none of them.",
        look=(
            "`kubectl -n headrace get pods,lease`; the operator's log.",
            "Prometheus' own list of targets: is the operator's Service scraped?",
        ),
        act=("Bring the operator back. It goes on where it was; drivers do not notice.",),
    ),
    Alert(
        name="HeadraceNotReconciling",
        group="operator",
        expr="time() - headrace_last_reconcile_timestamp_seconds > 2 * headrace_resync_seconds + 300 "
        "and headrace_jobs > 0 and headrace_leader == 1",
        lasts="5m",
        severity="critical",
        summary="The Headrace operator looks at no job any more",
        description="It holds the Lease and has jobs, but no pass ended for {{ $value | humanizeDuration }}.",
        means="Every job gets a pass at least once per `operator.resyncSeconds`. None ended for more than "
        "twice that time.",
        look=(
            "The operator's log, and `headrace_watch_age_seconds`.",
            "`headrace_api_requests_total`: does the API server answer it?",
        ),
        act=("Delete the leading pod: the other takes over within seconds. Keep its log for a bug report.",),
    ),
    Alert(
        name="HeadraceQueueSlow",
        group="operator",
        expr="headrace_queue_oldest_seconds > 120",
        lasts="5m",
        severity="warning",
        summary="Jobs wait for {{ $value | humanizeDuration }} to be looked at",
        description="Raise operator.workers, or look at headrace_api_request_seconds: the API server may be "
        "slow.",
        means="More jobs want a pass than the operator gets done.",
        look=(
            "`headrace_queue_depth`, `headrace_reconcile_seconds`, `headrace_api_request_seconds`.",
            '`headrace_api_requests_total{code="429"}`: does the API server turn it away?',
        ),
        act=("Raise `operator.workers` in the chart's values, or the operator's CPU.",),
    ),
    Alert(
        name="HeadraceReconcileErrors",
        group="operator",
        expr='sum(rate(headrace_reconcile_total{result="error"}[10m])) / '
        "sum(rate(headrace_reconcile_total[10m])) > 0.2",
        lasts="10m",
        severity="warning",
        summary="{{ $value | humanizePercentage }} of the operator's passes fail",
        description="The operator's log names the jobs and the errors.",
        means="Passes over jobs end with an error: the API server refuses or does not answer, or it is a "
        "fault of Headrace.",
        look=("The operator's log: the lines that name a job and an error.",),
        act=(
            "`Forbidden`: the rights of the chart's ClusterRole or Roles are missing in a namespace.",
            "A traceback: please report it.",
        ),
    ),
    *SCALING_ALERTS,
)
