"""The terminal picture: one small table that changes in place, decisions scrolling by above it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headrace.cli.views import words
from headrace.core.decision import Sentence
from headrace.local.view import Snapshot

STATE_STYLES = {
    "Running": "bold green",
    "Completed": "bold green",
    "Stalled": "bold red",
    "Failed": "bold red",
    "Stuck": "bold red",
    "Backoff": "bold yellow",
    "Upgrading": "bold cyan",
    "Activating": "bold cyan",
    "Draining": "bold cyan",
}


class LiveView:
    def __init__(
        self, console: Console | None = None, below: Callable[[], RenderableType] | None = None
    ) -> None:
        self._console = console or Console(highlight=False)
        self._below = below
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._live.start()

    def say(self, sentence: Sentence) -> None:
        line = Text.assemble(
            (f"{datetime.now(UTC):%H:%M:%S}  ", "dim"), (f"{sentence.reason}  ", "bold"), sentence.message
        )
        self._console.print(line)

    def problem(self, text: str, *, running: bool) -> None:
        self._console.print(Text(text.rstrip(), style="red"))
        if running:
            self._console.print(Text("The job goes on as it was; save a fix and it is taken.", style="dim"))

    def show(self, snapshot: Snapshot) -> None:
        shown = picture(snapshot)
        self._live.update(Group(shown, self._below()) if self._below is not None else shown, refresh=True)

    def close(self) -> None:
        self._live.stop()


def picture(snapshot: Snapshot) -> RenderableType:
    parts: list[RenderableType] = [_headline(snapshot)]
    if snapshot.queries:
        parts.append(Padding(_queries(snapshot), (0, 0, 0, 1)))
    if (trouble := _trouble(snapshot)) is not None:
        parts.append(trouble)
    parts.append(_footer(snapshot))
    return Group(*parts)


def _headline(snapshot: Snapshot) -> Text:
    status = snapshot.status
    line = Text.assemble(
        (f" {snapshot.name} ", "bold reverse"),
        "  ",
        (status.state or "Starting", STATE_STYLES.get(status.state, "bold")),
    )
    if (run := status.run) is not None:
        line.append(f"   run {run.number}", "dim")
        if run.attempt is not None:
            line.append(f" · attempt {run.attempt.number} · epoch {run.attempt.epoch}", "dim")
            if run.attempt.started_at is not None and status.state == "Running":
                lived = (datetime.now(UTC) - run.attempt.started_at).total_seconds()
                line.append(f" · up {words.seconds(lived)}", "dim")
    if status.next_start_at is not None:
        line.append(f" · next start {status.next_start_at:%Y-%m-%d %H:%M} UTC", "dim")
    return line


def _queries(snapshot: Snapshot) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("query")
    for column in ("batch", "rows/s", "rows", "lag", "watermark", "state rows", "late", "last batch"):
        table.add_column(column, justify="right")
    for query in snapshot.queries:
        duration = query.get("batchDurationMs")
        table.add_row(
            query["name"],
            str(query["batch"]) if query.get("batch") is not None else words.NOTHING,
            words.count(query.get("processedRowsPerSecond")),
            words.count(query.get("totalInputRows")),
            words.lag(query.get("lag")),
            words.clock_time(query.get("watermark")),
            words.count(query.get("stateRows")),
            words.count(query.get("lateRowsDropped")),
            words.seconds(duration / 1000) if duration is not None else words.NOTHING,
            style="" if query.get("active") else "dim",
        )
    return table


def _trouble(snapshot: Snapshot) -> Text | None:
    """The one thing that is wrong, and where to read more."""
    status = snapshot.status
    bad = [c for c in status.conditions if c.type == "Stalled" and c.status == "True"]
    waiting = [c for c in status.conditions if c.type == "Ready" and c.status == "False" and c.message]
    text = next((c.message for c in (*bad, *waiting)), None)
    if text is None:
        return None
    failed = bool(bad) or status.state in ("Backoff", "Failed")
    line = Text(f" {text}", style="red" if failed else "cyan")
    if failed and status.last_termination is not None and snapshot.log is not None:
        line.append(f"\n full trace: {words.here(snapshot.log)}", "dim")
    return line


def _footer(snapshot: Snapshot) -> Text:
    ui = (snapshot.report or {}).get("uiUrl")
    parts = [
        f"save {snapshot.manifest.name} or the code to apply it",
        "Ctrl-C drains and keeps the checkpoint",
    ]
    if ui:
        parts.append(f"Spark UI {ui}")
    return Text(" " + " · ".join(parts), style="dim")
