"""`make demo`: a real stream job, changed while it runs, and a proof that nothing was lost or repeated.

Generated orders -> revenue per window on embedded Spark, by the same planner and harness that a cluster uses.
The proof at the end is computed by a separate process from the generator's own log and the sink's files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from proof import committed_files, judge  # noqa: E402 - stands beside this file

from headrace.cli.manifest import load_streamjob  # noqa: E402
from headrace.cli.views.lines import PlainView  # noqa: E402
from headrace.cli.views.live import LiveView  # noqa: E402
from headrace.local.dev import DevOptions, DevSession  # noqa: E402
from headrace.local.view import Snapshot, View  # noqa: E402

CHANGE_BEFORE = '# revenue = revenue.withColumn("average_cents"'
CHANGE_AFTER = 'revenue = revenue.withColumn("average_cents"'
STEP_SECONDS = 90.0


class Results:
    """The sink's files, read as anybody could."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def rows(self) -> list[dict]:
        if not (self._directory / "_spark_metadata").is_dir():
            return []
        try:
            texts = [path.read_text() for path in committed_files(self._directory)]
        except (OSError, json.JSONDecodeError):  # the log is being compacted this very moment
            return []
        rows = [json.loads(line) for text in texts for line in text.splitlines()]
        return sorted(rows, key=lambda row: row["start"])


def picture(results: Results) -> RenderableType:
    table = Table(box=None, padding=(0, 3, 0, 1), header_style="dim", title_justify="left")
    for column in ("window", "orders", "revenue", "average", ""):
        table.add_column(column, justify="left" if column in ("window", "") else "right")
    rows = results.rows()[-8:]
    most = max((row["revenue_cents"] for row in rows), default=1)
    for row in rows:
        average = row.get("average_cents")
        table.add_row(
            _clock(row["start"]),
            str(row["orders"]),
            f"{row['revenue_cents'] / 100:,.2f}",
            f"{average / 100:,.2f}" if average is not None else "",
            Text("█" * round(24 * row["revenue_cents"] / most), style="cyan"),
        )
    return table


class LinesView(PlainView):
    """The plain lines of `headrace dev`, with each new window as a line of its own."""

    def __init__(self, results: Results) -> None:
        super().__init__(sys.stdout)
        self._results, self._seen = results, 0

    def show(self, snapshot: Snapshot) -> None:
        super().show(snapshot)
        rows = self._results.rows()
        for row in rows[self._seen :]:
            average = row.get("average_cents")
            self._line(
                "Result",
                f"window {_clock(row['start'])}: {row['orders']} orders, {row['revenue_cents'] / 100:,.2f}"
                + (f", {average / 100:,.2f} on average" if average is not None else ""),
            )
        self._seen = max(self._seen, len(rows))


@contextmanager
def generator(work: Path) -> Iterator[subprocess.Popen[bytes]]:
    files = [
        "--log",
        work / "generator.log",
        "--stop-file",
        work / "stop",
        "--too-late-file",
        work / "too-late",
    ]
    process = subprocess.Popen([sys.executable, HERE / "generator.py", "--orders", work / "orders", *files])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Demo:
    def __init__(self, work: Path, *, watch: bool) -> None:
        self._work, self._watch = work, watch
        self._console = Console(highlight=False)
        for name in ("job.yaml", "revenue.py"):
            shutil.copy(HERE / name, work / name)
        (work / "orders").mkdir()
        self._results = Results(work / "results")

    def run(self) -> int:
        manifest = self._work / "job.yaml"
        job = load_streamjob(manifest)
        assert not isinstance(job, str), job
        session = DevSession(
            DevOptions(manifest=manifest, state_dir=self._work / ".headrace"),
            job,
            lambda: load_streamjob(manifest),
            self._view(),
        )
        runner = threading.Thread(target=session.run, name="headrace-dev")
        runner.start()
        try:
            with generator(self._work) as orders:
                self._direct(orders, runner)
        finally:
            session.stop()
            runner.join()
        return self._prove()

    def _direct(self, orders: subprocess.Popen[bytes], runner: threading.Thread) -> None:
        self._chapter("1 · Orders flow in; revenue per 5-second window comes out as windows close.")
        self._wait("the first results", lambda: len(self._results.rows()) >= 1, runner)
        (self._work / "too-late").touch()
        self._wait("a few windows", lambda: len(self._results.rows()) >= 4, runner)
        self._chapter(
            "2 · A change while it runs: revenue.py is saved with an average. Headrace drains the run,"
        )
        self._chapter("    copies its state and starts the next run from it. The generator does not wait.")
        code = self._work / "revenue.py"
        fresh = code.with_suffix(".new")
        fresh.write_text(code.read_text().replace(CHANGE_BEFORE, CHANGE_AFTER))
        fresh.replace(code)
        averages = lambda: sum("average_cents" in row for row in self._results.rows())  # noqa: E731
        self._wait("windows with the average", lambda: averages() >= 3, runner)
        try:
            while self._watch:
                runner.join(0.5)
        except KeyboardInterrupt:
            self._chapter("Stopping: the last windows are closed first.")
        self._chapter("3 · The generator ends with an order from the future, so that every window closes.")
        (self._work / "stop").touch()
        orders.wait()
        complete = lambda: not judge(self._work / "generator.log", self._work / "results").lost  # noqa: E731
        self._wait("every order to be counted", complete, runner, else_go_on=True)

    def _prove(self) -> int:
        self._console.print()
        self._console.print(
            Text("The proof, by a separate process from the generator's log and the sink's files:")
        )
        proof = [sys.executable, HERE / "proof.py", self._work / "generator.log", self._work / "results"]
        outcome = subprocess.run(proof, check=False)
        good = outcome.returncode == 0
        self._console.print(
            Text("Nothing lost, nothing repeated.", style="bold green")
            if good
            else Text(f"The proof does not hold. Everything is kept in {self._work}", style="bold red")
        )
        return outcome.returncode

    def _view(self) -> View:
        if sys.stdout.isatty():
            return LiveView(self._console, below=lambda: picture(self._results))
        return LinesView(self._results)

    def _chapter(self, text: str) -> None:
        self._console.print(Text(text, style="bold"))

    def _wait(
        self, what: str, done: Callable[[], bool], runner: threading.Thread, *, else_go_on: bool = False
    ) -> None:
        deadline = time.monotonic() + STEP_SECONDS
        while not done():
            if not runner.is_alive():
                raise SystemExit(
                    f"the job ended while waiting for {what}; its log is in {self._work}/.headrace"
                )
            if time.monotonic() > deadline:
                if else_go_on:  # the proof says what is missing
                    return
                raise SystemExit(
                    f"waited {STEP_SECONDS:.0f} s for {what}; everything is kept in {self._work}"
                )
            runner.join(0.3)


def _clock(start: str) -> str:
    return datetime.fromisoformat(start).strftime("%H:%M:%S")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watch", action="store_true", help="keep running after the change, until Ctrl-C")
    parser.add_argument(
        "--work-dir", type=Path, help="keep everything here (default: a fresh temporary directory)"
    )
    args = parser.parse_args()
    work = args.work_dir or Path(tempfile.mkdtemp(prefix="headrace-demo-"))
    work.mkdir(parents=True, exist_ok=True)
    outcome = Demo(work, watch=args.watch).run()
    if outcome == 0 and args.work_dir is None:
        shutil.rmtree(work)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
