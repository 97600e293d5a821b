"""`kubectl streamjob status`: one screen that answers "is it fine, and if not, what now?"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headrace.api import Condition, StreamSavepoint
from headrace.cli.advice import Health, advice, health
from headrace.cli.jobs import LiveJob
from headrace.cli.savepoint_views import size
from headrace.cli.views.paper import age, ago, columns, facts, lived, next_command
from headrace.cli.views.words import count, seconds
from headrace.core.expectations import NO_FIGURES, Figures

LINES_OF_HISTORY = 5

HEALTH_STYLES = {
    Health.FINE: ("✔", "bold green"),
    Health.BUSY: ("…", "bold cyan"),
    Health.ATTENTION: ("!", "bold yellow"),
    Health.TROUBLE: ("✘", "bold red"),
    Health.RESTING: ("◦", "bold"),
}
BAND_STYLES = {"Ok": "green", "Behind": "yellow", "AtRisk": "bold red", "Unknown": "dim"}
OUTCOME_STYLES = {"RolledBack": "yellow", "Refused": "red", "Superseded": "dim"}
# Conditions that are good news when they are false.
_BAD_WHEN_TRUE = frozenset({"Stalled", "ScalingLimited", "DataLossRisk", "RolledBack"})


@dataclass(frozen=True, kw_only=True)
class StatusPage:
    job: LiveJob
    now: datetime
    # The newest good one, if it could be read.
    savepoint: StreamSavepoint | None = None
    savepoints: int | None = None
    figures: Figures = NO_FIGURES


def status_page(page: StatusPage) -> RenderableType:
    parts: list[RenderableType] = [_headline(page), _under_the_headline(page), Text()]
    if (said := _what_is_said(page.job)) is not None:
        parts += [said, Text()]
    parts.append(facts(list(_facts(page))))
    if page.job.status.history:
        parts += [
            Text(),
            Text("  History", style="dim"),
            Padding(history_table(page.job, page.now, LINES_OF_HISTORY), (0, 0, 0, 4)),
        ]
    if (given := advice(page.job)) is not None:
        parts += [Text(), next_command(given.message, given.command)]
    return Group(*parts)


def state_text(job: LiveJob) -> Text:
    sign, style = HEALTH_STYLES[health(job)]
    return Text(f"{sign} {job.status.state or 'New'}", style=style)


def _headline(page: StatusPage) -> Text:
    job = page.job
    line = Text.assemble(
        (f" {job.name} ", "bold reverse"), "  ", state_text(job), ("  in ", "dim"), job.namespace
    )
    for word in ("paused",) if job.paused else ():
        line.append(f"  {word}", "bold yellow")
    if job.deleting:
        line.append("  being deleted", "bold yellow")
    if job.unseen and job.status.state:
        line.append("  an edit is waiting for the operator", "yellow")
    return line


def _under_the_headline(page: StatusPage) -> Text:
    run = page.job.status.run
    if run is None:
        return Text("  no run yet", style="dim")
    parts = [f"run {run.number}"]
    if run.attempt is not None:
        parts += [f"attempt {run.attempt.number}", f"epoch {run.attempt.epoch}"]
        if run.attempt.started_at is not None and run.attempt.state == "Started":
            parts.append(f"up {lived((page.now - run.attempt.started_at).total_seconds())}")
    spec = page.job.spec
    image = run.image or (spec.image if spec is not None else None)
    parts += [image] if image else []
    return Text("  " + " · ".join(parts), style="dim")


def _what_is_said(job: LiveJob) -> Text | None:
    """The one sentence that matters: why it stands still, or what it waits for."""
    conditions = {each.type: each for each in job.status.conditions}
    stalled, ready = conditions.get("Stalled"), conditions.get("Ready")
    if stalled is not None and stalled.status == "True":
        return _said(stalled, "yellow" if health(job) is Health.ATTENTION else "red")
    if ready is not None and ready.message:
        trouble = health(job) is Health.TROUBLE
        return _said(ready, "red" if trouble else "cyan" if ready.status != "True" else "")
    return None


def _said(condition: Condition, style: str) -> Text:
    return Text.assemble((f"  {condition.reason}: ", f"bold {style}".strip()), (condition.message, style))


def _facts(page: StatusPage) -> Iterator[tuple[str, RenderableType | None]]:
    job, now = page.job, page.now
    status = job.status
    yield "Operation", _operation(job, now)
    yield "Plan", _plan(job)
    yield "Executors", _executors(job, now)
    yield "Lag", _lag(job)
    yield "Rates", _rates(page.figures)
    yield "Restarts", _restarts(job, now)
    yield "Last end", _last_end(job, now)
    yield "Next start", Text(f"{status.next_start_at:%Y-%m-%d %H:%M} UTC") if status.next_start_at else None
    yield "Stable", _stable(job, now)
    yield "Savepoint", _savepoint(page)
    yield (
        "Checkpoint",
        Text(status.run.path, overflow="fold") if status.run is not None and status.run.path else None,
    )
    yield "Conditions", _conditions(job)


def _operation(job: LiveJob, now: datetime) -> Text | None:
    operation = job.status.operation
    if operation is None:
        return None
    since = operation.step_at or operation.started_at
    for_how_long = f" for {lived((now - since).total_seconds())}" if since is not None else ""
    return Text.assemble(
        (f"{operation.kind}: {operation.step}", "bold cyan"),
        f"{for_how_long} · run {operation.from_run} → run {operation.to_run}",
        (f"\n{operation.reason}" if operation.reason else "", "dim"),
    )


def _plan(job: LiveJob) -> Text | None:
    """While the edit is on its way: afterwards it is history."""
    plan, operation = job.status.plan, job.status.operation
    if plan is None or plan.verdict != "new run" or operation is None or operation.kind != "Upgrade":
        return None
    lines = [" → ".join(plan.steps), f"gap {plan.gap}", f"catch-up {plan.catch_up}", *plan.sinks]
    return Text("\n".join(lines))


def _executors(job: LiveJob, now: datetime) -> Text | None:
    executors = job.status.executors
    if executors.target is None and not executors.replicas:
        return None
    wanted = executors.target if executors.target is not None else executors.replicas
    style = "" if executors.ready >= wanted else "yellow"
    line = Text.assemble((f"{executors.ready} of {wanted} ready", style))
    if executors.reason:
        decided = f" ({ago(executors.decided_at, now)})" if executors.decided_at else ""
        line.append(f" · {executors.reason}{decided}", "dim")
    return line


def _lag(job: LiveJob) -> Text | None:
    lag = job.status.lag
    if lag is None:
        return None
    return Text.assemble(
        (lag.band, BAND_STYLES[lag.band]), (f" · {lag.message}" if lag.message else "", "dim")
    )


def _rates(figures: Figures) -> Text | None:
    arrival, capacity, batch = (
        figures.arrival_rows_per_second,
        figures.capacity_rows_per_second,
        figures.batch_seconds,
    )
    parts = [f"{count(arrival)} rows/s come in"] if arrival is not None else []
    parts += [f"{count(capacity)} rows/s while it works"] if capacity is not None else []
    parts += [f"last batch {seconds(batch)}"] if batch is not None else []
    return Text(" · ".join(parts)) if parts else None


def _restarts(job: LiveJob, now: datetime) -> Text | None:
    restarts = job.status.restarts
    if not restarts.total:
        return None
    line = Text(f"{restarts.total}")
    if restarts.in_a_row:
        line.append(f", {restarts.in_a_row} in a row", "yellow")
    if restarts.next_at is not None:
        line.append(f" · next attempt {ago(restarts.next_at, now)}", "dim")
    return line


def _last_end(job: LiveJob, now: datetime) -> Text | None:
    last = job.status.last_termination
    if last is None:
        return None
    good = last.reason in ("Completed", "Drained")
    line = Text.assemble(
        (last.reason, "" if good else "red"),
        (f" · run {last.run}, attempt {last.attempt}", "dim"),
        (f" · {ago(last.at, now)}" if last.at is not None else "", "dim"),
    )
    if good:
        return line
    if last.message:
        line.append(f"\n{last.message}")
    if (frame := last.user_frame) is not None:
        # The message mostly begins with the place; the line of code is not in it.
        place = f"{frame.file}:{frame.line}"
        line.append("" if place in last.message else f"\n{place}", "bold")
        line.append(f"\n    {frame.code.strip()}" if frame.code else "", "bold")
    if last.error_class:
        line.append(f"\n{last.error_class}", "dim")
    if last.log_file:
        line.append(f"\nlog: {last.log_file}", "dim")
    return line


def _stable(job: LiveJob, now: datetime) -> Text | None:
    stable, run = job.status.last_stable, job.status.run
    if stable is None:
        return None
    same = run is not None and run.number == stable.run
    line = Text(f"run {stable.run}", style="" if same else "yellow")
    line.append(f" · {ago(stable.at, now)}" if stable.at is not None else "", "dim")
    return line


def _savepoint(page: StatusPage) -> Text | None:
    taken, name = page.savepoint, page.job.status.last_savepoint
    if taken is None or taken.status is None:
        return Text(name) if name else None
    state = taken.status
    parts = [ago(state.completed_at, page.now), size(state.bytes) if state.bytes is not None else ""]
    parts += [f"batch {state.batch}"] if state.batch is not None else []
    parts += [f"verified: {state.verified.level}"]
    parts += [f"{page.savepoints} in all"] if page.savepoints is not None else []
    return Text.assemble(taken.metadata.name, (" · " + " · ".join(filter(None, parts)), "dim"))


def _conditions(job: LiveJob) -> Text | None:
    if not job.status.conditions:
        return None
    line = Text()
    for each in job.status.conditions:
        bad = (each.status == "True") == (each.type in _BAD_WHEN_TRUE)
        quiet = each.type in _BAD_WHEN_TRUE and each.status == "False"
        if each.type == "Reconciling":
            bad, quiet = False, each.status == "False"
        style = "dim" if quiet or each.status == "Unknown" else "red" if bad else "green"
        style = "cyan" if each.type == "Reconciling" and not quiet else style
        line.append("  " if line else "")
        line.append(f"{each.type}={each.status}", style)
    return line


def history_table(job: LiveJob, now: datetime, most: int | None = None) -> Table:
    table = columns("RUN", "OUTCOME", "BEGAN", "LIVED", "CHANGED", "WHAT HAPPENED", right=("RUN",))
    for entry in job.status.history[:most]:
        lasted = (
            age((entry.ended_at - entry.started_at).total_seconds())
            if entry.ended_at is not None and entry.started_at is not None
            else ""
        )
        table.add_row(
            str(entry.run),
            Text(entry.outcome, style=OUTCOME_STYLES.get(entry.outcome, "")),
            ago(entry.started_at, now),
            lasted,
            ", ".join(entry.changes),
            entry.message,
        )
    return table
