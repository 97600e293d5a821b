"""What people see of `headrace dev`."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from headrace.api import Attempt, Condition, Run, StreamJobStatus, Termination
from headrace.cli.views import words
from headrace.cli.views.lines import JsonView, PlainView
from headrace.cli.views.live import picture
from headrace.core.decision import Sentence
from headrace.local.view import Snapshot

QUERY = {
    "name": "revenue",
    "active": True,
    "batch": 41,
    "processedRowsPerSecond": 12345.6,
    "totalInputRows": 1_234_567,
    "lag": {"known": True, "files": 2, "rows": None},
    "watermark": "2026-01-01T10:42:17.000Z",
    "stateRows": 17,
    "lateRowsDropped": 3,
    "batchDurationMs": 412,
}


def a_snapshot(state="Running", *, conditions=(), query=QUERY, termination=None) -> Snapshot:
    attempt = Attempt(
        number=3, epoch=7, state="Started", started_at=datetime.now(UTC) - timedelta(seconds=75)
    )
    status = StreamJobStatus(
        state=state,
        run=Run(number=2, revision="abc", attempt=attempt),
        conditions=conditions,
        last_termination=termination,
    )
    report = {"queries": [query], "uiUrl": None}
    return Snapshot(
        name="orders",
        status=status,
        report=report,
        problem=None,
        home=Path.cwd() / ".headrace/orders",
        manifest=Path("job.yaml"),
    )


def drawn(snapshot: Snapshot) -> str:
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    console.print(picture(snapshot))
    return console.file.getvalue()


def a_condition(kind, status, reason, message):
    return Condition(
        type=kind, status=status, reason=reason, message=message, last_transition_time=datetime.now(UTC)
    )


def test_the_picture_answers_is_it_fine():
    text = drawn(a_snapshot())
    for word in ("orders", "Running", "run 2", "attempt 3", "epoch 7", "up 7", "41", "12.3k", "1.23M"):
        assert word in text
    for word in ("2 files", "10:42:17", "17", "0.41 s", "Ctrl-C drains"):
        assert word in text


def test_a_completed_job_shows_when_it_starts_again():
    due = datetime(2026, 1, 2, 1, 30, tzinfo=UTC)
    snapshot = a_snapshot("Completed")
    waiting = replace(snapshot, status=snapshot.status.model_copy(update={"next_start_at": due}))
    assert "next start 2026-01-02 01:30 UTC" in drawn(waiting)
    assert "next start" not in drawn(snapshot)


def test_unknown_lag_is_never_zero():
    text = drawn(a_snapshot(query={**QUERY, "lag": {"known": False, "why": "rate source"}}))
    assert "unknown" in text


def test_a_failure_shows_the_sentence_and_the_log():
    failed = Termination(run=2, attempt=3, reason="QueryFailed", message="job.py:14: KeyError: 'price'")
    ready = a_condition("Ready", "False", "QueryFailed", "job.py:14: KeyError: 'price' (next attempt in 8 s)")
    text = drawn(a_snapshot("Backoff", conditions=(ready,), termination=failed))
    assert "job.py:14: KeyError: 'price' (next attempt in 8 s)" in text
    assert "full trace: .headrace/orders/runs/run-2/attempt-3/driver.log" in text


def test_a_refused_edit_is_shown_while_the_job_runs():
    stalled = a_condition("Stalled", "True", "StateChange", "spec.state.partitions: the state may not fit")
    text = drawn(a_snapshot(conditions=(stalled,)))
    assert "Running" in text
    assert "spec.state.partitions: the state may not fit" in text


def test_plain_lines_say_each_thing_once():
    out = io.StringIO()
    view = PlainView(out)
    view.say(Sentence("Upgrade", "run 2: the code changed"))
    view.show(a_snapshot())
    view.show(a_snapshot())
    lines = out.getvalue().splitlines()
    assert len(lines) == 3
    assert "Upgrade" in lines[0]
    assert "Running" in lines[1]
    assert "revenue: batch 41 · 12.3k rows/s · 1.23M rows in all · lag 2 files" in lines[2]


def test_json_lines_parse():
    out = io.StringIO()
    view = JsonView(out)
    view.say(Sentence("Upgrade", "run 2"))
    view.problem("job.yaml:3: …", running=True)
    view.show(a_snapshot())
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["decision", "problem", "state", "progress"]
    assert events[2]["status"]["run"]["attempt"]["epoch"] == 7


def test_numbers_as_people_read_them():
    assert [words.count(n) for n in (0, 999, 9999, 12_345, 1.5e6, 2e9)] == [
        "0",
        "999",
        "9,999",
        "12.3k",
        "1.5M",
        "2G",
    ]
    assert [words.seconds(s) for s in (0.412, 42, 75 * 60, 100)] == ["0.41 s", "42 s", "1 h 15 m", "1 m 40 s"]
    assert words.clock_time("1970-01-01T00:00:00.000Z") == words.NOTHING
