"""One line per thing worth knowing: for logs, pipes and programs."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import IO, Any

from headrace.cli.views import words
from headrace.core.decision import Sentence
from headrace.local.view import Snapshot

PROGRESS_EVERY_SECONDS = 10.0


class _Changes:
    """What of a snapshot is news: a new state at once, progress every few seconds."""

    def __init__(self) -> None:
        self._state = ""
        self._batches: dict[str, Any] = {}
        self._last_progress = 0.0

    def state(self, snapshot: Snapshot) -> str | None:
        if snapshot.status.state == self._state:
            return None
        self._state = snapshot.status.state
        return self._state

    def queries(self, snapshot: Snapshot) -> list[dict[str, Any]]:
        now = time.monotonic()
        if now - self._last_progress < PROGRESS_EVERY_SECONDS:
            return []
        moved = [q for q in snapshot.queries if q.get("batch") not in (None, self._batches.get(q["name"]))]
        if moved:
            self._last_progress = now
            self._batches.update({query["name"]: query.get("batch") for query in moved})
        return moved


class PlainView:
    def __init__(self, out: IO[str]) -> None:
        self._out, self._changes = out, _Changes()
        self._last_said = ""

    def say(self, sentence: Sentence) -> None:
        self._last_said = sentence.reason
        self._line(sentence.reason, sentence.message)

    def problem(self, text: str, *, running: bool) -> None:
        after = (
            "the job goes on as it was; save a fix to go on from here" if running else "save a fix to go on"
        )
        self._line("NotTaken", f"the manifest as saved is not taken ({after}):")
        self._out.write(text.rstrip() + "\n")
        self._out.flush()

    def show(self, snapshot: Snapshot) -> None:
        state = self._changes.state(snapshot)
        if state is not None and state != self._last_said:
            ready = next((c for c in snapshot.status.conditions if c.type == "Ready"), None)
            self._line(state, ready.message if ready is not None else "")
        for query in self._changes.queries(snapshot):
            self._line("Progress", _progress(query))

    def close(self) -> None:
        self._out.flush()

    def _line(self, what: str, message: str) -> None:
        self._out.write(f"{datetime.now(UTC):%H:%M:%S}  {what:<16}  {message}\n")
        self._out.flush()


class JsonView:
    def __init__(self, out: IO[str]) -> None:
        self._out, self._changes = out, _Changes()

    def say(self, sentence: Sentence) -> None:
        self._event("decision", reason=sentence.reason, message=sentence.message)

    def problem(self, text: str, *, running: bool) -> None:
        self._event("problem", message=text, running=running)

    def show(self, snapshot: Snapshot) -> None:
        if self._changes.state(snapshot) is not None:
            self._event("state", status=snapshot.status.to_manifest())
        for query in self._changes.queries(snapshot):
            self._event("progress", query=query)

    def close(self) -> None:
        self._out.flush()

    def _event(self, event: str, **fields: Any) -> None:
        self._out.write(json.dumps({"time": datetime.now(UTC).isoformat(), "event": event, **fields}) + "\n")
        self._out.flush()


def _progress(query: dict[str, Any]) -> str:
    parts = [
        f"{query['name']}: batch {query.get('batch')}",
        f"{words.count(query.get('processedRowsPerSecond'))} rows/s",
        f"{words.count(query.get('totalInputRows'))} rows in all",
        f"lag {words.lag(query.get('lag'))}",
    ]
    if (watermark := words.clock_time(query.get("watermark"))) != words.NOTHING:
        parts.append(f"watermark {watermark}")
    if query.get("stateRows"):
        parts.append(f"{words.count(query['stateRows'])} state rows")
    return " · ".join(parts)
