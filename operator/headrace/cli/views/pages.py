"""The shorter pages of `kubectl streamjob`: the list of jobs, the history of one, its events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headrace.cli.advice import Health, health
from headrace.cli.cluster import Object
from headrace.cli.jobs import LiveJob, event_time, moment
from headrace.cli.views.paper import age, ago, columns
from headrace.cli.views.status import BAND_STYLES, history_table, state_text


def job_list(jobs: Sequence[LiveJob], now: datetime, *, everywhere: bool) -> Table:
    place = ("NAMESPACE",) if everywhere else ()
    table = columns(
        *place, "NAME", "STATE", "EXECUTORS", "LAG", "RUN", "RESTARTS", "AGE", "WHY", right=("RUN",)
    )
    # Where there is no room it is the last one that gives way: the whole of it is in the status of the job.
    for column in table.columns[:-1]:
        column.no_wrap = True
    for job in jobs:
        status = job.status
        executors = status.executors
        wanted = executors.target if executors.target is not None else executors.replicas
        band = status.lag.band if status.lag is not None else ""
        cells: list[Text | str] = [
            job.name,
            state_text(job),
            f"{executors.ready}/{wanted}" if wanted else "",
            Text(band, style=BAND_STYLES.get(band, "")),
            str(status.run.number) if status.run is not None else "",
            str(status.restarts.total or ""),
            age((now - job.created_at).total_seconds()),
            Text(_why(job), style="dim", no_wrap=True, overflow="ellipsis"),
        ]
        table.add_row(*([job.namespace] if everywhere else []), *cells)
    return table


def _why(job: LiveJob) -> str:
    """What is worth a look, in half a line; nothing where all is well."""
    if health(job) in (Health.FINE, Health.RESTING):
        return ""
    operation = job.status.operation
    if operation is not None:
        return f"{operation.kind} to run {operation.to_run}: {operation.step}"
    for kind, wanted in (("Stalled", "True"), ("Ready", "False")):
        for each in job.status.conditions:
            if each.type == kind and each.status == wanted:
                return f"{each.reason}: {each.message}" if each.message else each.reason
    return ""


def history_page(job: LiveJob, now: datetime) -> RenderableType:
    run, stable = job.status.run, job.status.last_stable
    lines = Text(f"{job.name}: ", style="bold")
    if run is None:
        return lines.append("no run yet", "")
    lines.append(f"run {run.number} now", "not bold")
    lines.append(f", since {ago(run.started_at, now)}" if run.started_at else "", "not bold dim")
    if run.seeded_from:
        lines.append(f", from {run.seeded_from}", "not bold dim")
    if stable is not None:
        lines.append(f"; last stable: run {stable.run}", "not bold")
    if not job.status.history:
        return Group(lines, Text("No other run before it.", style="dim"))
    return Group(lines, Text(), history_table(job, now))


def event_table(events: Sequence[Object], now: datetime) -> Table:
    table = columns("LAST SEEN", "COUNT", "REASON", "ABOUT", "MESSAGE", right=("COUNT",))
    for event in events:
        about = event.get("involvedObject") or {}
        count = event.get("count") or 1
        table.add_row(
            ago(moment(event_time(event)), now),
            str(count) if count > 1 else "",
            Text(event.get("reason") or "", style="yellow" if event.get("type") == "Warning" else ""),
            "job" if about.get("kind") == "StreamJob" else str(about.get("name", "")),
            (event.get("message") or "").strip(),
        )
    return table
