"""What is made from the alerts and the metrics: the chart's rules, the runbook, the reference page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.runtime import job_metrics, scaling_metrics
from headrace.runtime.alerts import ALERTS, Alert
from headrace.runtime.metrics import Metrics
from headrace.runtime.savepoint_metrics import SAVEPOINT_GAUGES

RUNBOOK = "docs/runbooks/index.md"

_METRICS_TOP = """\
# Metrics

The operator serves them on port 8080 at `/metrics`, those of the jobs included: the agents of the drivers \
answer only who holds the token of the attempt, so drivers are not scraped. Only the replica that works \
(`headrace_leader` 1) knows the jobs. A number that nobody knows has no sample: unknown is never zero. The \
series of a job end with it.

The first alerts that use them are in \
[`charts/headrace/files/alerts.yaml`](../../charts/headrace/files/alerts.yaml), and what to do about each \
in the [runbook](../runbooks/index.md). With the Prometheus operator, `metrics.serviceMonitor.enabled` and \
`metrics.rules.enabled` install both. Without it, the scrape must keep our labels, because Prometheus has \
a label `job` of its own:

```yaml
scrape_configs:
- job_name: headrace
  honor_labels: true
  dns_sd_configs:
  - {names: [headrace-metrics.headrace.svc], type: A, port: 8080}
```
"""

_HOW = """\
### Lag in seconds

Of Kafka, the oldest unread record of each partition is read, and its timestamp counts. Of files, the time \
of the last change of the oldest unread one counts, on S3 too. Where that is not \
possible, and of other sources, Headrace keeps the ends that they told in the last half hour; the oldest \
unread row of a partition came when the partition grew beyond what was read. The partition that waits \
longest counts. Where the job was behind before its driver started, rows are taken to \
have always come at the rate they come at now; if none come, the lag is at least the time that was \
watched. Like `headrace_job_lag_rows` and `headrace_job_lag_files`, it is known only where sources tell \
their end.

### Idle, busy, behind

`headrace_job_progress_age_seconds` stays small for an idle job: it looks, finds nothing, and has nothing \
to commit. It grows while a batch runs, while a source or the store does not answer, and while no attempt \
gets as far as a commit. `headrace_job_checkpoint_age_seconds` grows in all of these cases and also while \
the job is idle.

`headrace_job_trigger_utilisation` compares with what the job can afford: the trigger's interval; where \
batches follow each other at once, `spec.objectives.latency`; without both there is no honest number, and \
no sample. A batch that still runs counts as soon as it is longer than the last one, and a look that found \
nothing counts as what it took, so that an idle job is never under pressure. Whatever the trigger, a job \
that cannot keep up has a growing `headrace_job_lag_seconds`: the alert HeadraceFallingBehind watches \
that.

### Checkpoints

`headrace_job_checkpoint_duration_seconds` is what a batch waits for on the driver. The state is committed \
by the executors within the batch: `headrace_job_state_commit_seconds`. The size of the store is not \
listed, which would cost more requests than the job itself: `headrace_job_checkpoint_state_bytes` is what \
RocksDB says of its own files, and changelogs between two snapshots come on top.
"""


def rules(alerts: Iterable[Alert] = ALERTS) -> dict[str, Any]:
    """As Prometheus reads them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for alert in alerts:
        lasts = {"for": alert.lasts} if alert.lasts else {}
        rule = {
            "alert": alert.name,
            "expr": alert.expr,
            **lasts,
            "labels": {"severity": alert.severity},
            "annotations": {
                "summary": alert.summary,
                "description": alert.description,
                "runbook": f"{RUNBOOK}#{anchor(alert.name)}",
            },
        }
        groups.setdefault(f"headrace-{alert.group}", []).append(rule)
    return {"groups": [{"name": name, "rules": members} for name, members in groups.items()]}


def anchor(alert_name: str) -> str:
    """Of its section in the runbook, by the rule of GitHub and most others."""
    return alert_name.lower()


def runbook_page() -> str:
    return "\n".join(_runbook_lines()) + "\n"


def _runbook_lines() -> Iterator[str]:
    yield "<!-- Generated from operator/headrace/runtime/alerts.py by `make generate`. Edit that file. -->"
    yield "# Runbook"
    yield ""
    yield "One section per alert: what it means, where to look, what to do. The metrics are explained in the"
    yield "[reference](../reference/metrics.md)."
    for group, title in (("jobs", "Jobs"), ("operator", "The operator")):
        yield from ("", f"## {title}")
        for alert in ALERTS:
            if alert.group == group:
                yield from _section(alert)


def _section(alert: Alert) -> Iterator[str]:
    lasts = f", after {alert.lasts}" if alert.lasts else ""
    yield from ("", f"### {alert.name}", "", f"*{alert.severity}{lasts}.* {alert.means}")
    yield from ("", "```promql", alert.expr, "```")
    for title, lines in (("Look", alert.look), ("Do", alert.act)):
        yield from ("", f"{title}:", "", *(f"- {line}" for line in lines))


def metrics_page() -> str:
    return "\n".join(_metrics_lines()) + "\n"


def _metrics_lines() -> Iterator[str]:
    yield "<!-- Generated from operator/headrace/runtime by `make generate`. Edit the help texts there. -->"
    yield _METRICS_TOP
    yield "## Jobs (labels `namespace`, `job`)"
    gauges = [(name, text) for name, text, _ in job_metrics.JOB_GAUGES]
    counters = [(f"{name}_total", f"Counter: {text}") for name, text, _ in job_metrics.JOB_COUNTERS]
    yield from _table(
        (f"headrace_job_{name}", text) for name, text in (*gauges, *counters, job_metrics.LAST_END)
    )
    yield from ("", "## Savepoints (labels `namespace`, `job`)")
    yield from _table((f"headrace_savepoint_{name}", text) for name, text, _ in SAVEPOINT_GAUGES)
    yield from ("", "## Autoscaling (labels `namespace`, `job`)", "")
    yield (
        "Of every job whose driver reports its offsets, at each look of the autoscaler; without "
        "`autoscaling`, `max` is the number there is."
    )
    scaled = [(name, text) for name, text, _ in scaling_metrics.SCALING_GAUGES]
    lost = [(f"{name}_total", f"Counter: {text}") for name, text, _ in scaling_metrics.SCALING_COUNTERS]
    yield from _table(
        (f"headrace_job_{name}", text) for name, text in (*scaled, *lost, scaling_metrics.SCALING_BOUND)
    )
    yield from ("", "## Queries (labels `namespace`, `job`, `query`)", "")
    yield "From the driver's agent, asked every 15 seconds."
    queries = [(name, text) for name, text, _ in job_metrics.QUERY_GAUGES]
    remembered = [(name, text) for name, text, _ in job_metrics.REMEMBERED_GAUGES]
    yield from _table(
        (f"headrace_job_{name}", text) for name, text in (*queries, *remembered, job_metrics.SINK)
    )
    yield from ("", _HOW, "## The operator")
    yield from _table([("headrace_jobs", job_metrics.JOBS_HELP), *_own_metrics()])


def _own_metrics() -> Iterator[tuple[str, str]]:
    for family in Metrics().registry.collect():
        match family.type:
            case "counter":
                yield f"{family.name}_total", f"Counter: {family.documentation}"
            case "histogram":
                yield family.name, f"Histogram: {family.documentation}"
            case _:
                yield family.name, family.documentation


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from ("", "| Metric | Meaning |", "|---|---|")
    yield from (f"| `{name}` | {text} |" for name, text in rows)
