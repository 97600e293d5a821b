"""The termination message: the last word of an attempt, read by whoever started it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from headrace_jobs.harness.failure import Failure

# Kubernetes keeps this much of a termination message; cut in the middle it would not be JSON any more.
LARGEST_MESSAGE_BYTES = 4096
_SHORTEST_TEXT = 40


class Reason(Enum):
    """Why an attempt ended, with its exit code."""

    COMPLETED = ("Completed", 0)
    DRAINED = ("Drained", 0)
    REFUSED = ("Refused", 64)
    APPLICATION_ERROR = ("ApplicationError", 65)
    QUERY_FAILED = ("QueryFailed", 66)
    FENCED = ("Fenced", 67)
    BATCH_STUCK = ("BatchStuck", 68)
    STORE_UNAVAILABLE = ("StoreUnavailable", 69)
    INTERNAL_ERROR = ("InternalError", 70)
    REHEARSED = ("Rehearsed", 0)
    STANDBY_EXPIRED = ("StandbyExpired", 0)
    MEANING_CHANGED = ("MeaningChanged", 71)
    REHEARSAL_TIMEOUT = ("RehearsalTimeout", 72)
    OUT_OF_MEMORY = ("OutOfMemory", 73)

    def __init__(self, label: str, exit_code: int) -> None:
        self.label = label
        self.exit_code = exit_code

    @property
    def is_failure(self) -> bool:
        return self.exit_code != 0


@dataclass(frozen=True)
class Termination:
    uid: str
    reason: Reason
    message: str
    failure: Failure | None = None
    clean: bool = True
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    log_file: str | None = None
    rehearsal: dict[str, Any] | None = None

    def to_json(self) -> str:
        """At most as long as Kubernetes keeps: the longest texts are shortened until it fits."""
        content = self._content()
        while len(text := json.dumps(content, ensure_ascii=False).encode()) > LARGEST_MESSAGE_BYTES:
            if _leave_out(content, "notes", "queries") or _shorten(content):
                continue
            if not _leave_out(content, "differences"):
                content["queries"] = {}
        return text.decode()

    def _content(self) -> dict[str, Any]:
        frame = self.failure.frame if self.failure else None
        # Only where there is one: most attempts are no rehearsals.
        rehearsal = {"rehearsal": dict(self.rehearsal)} if self.rehearsal is not None else {}
        return {
            "uid": self.uid,
            "reason": self.reason.label,
            "exitCode": self.reason.exit_code,
            "message": self.message,
            "errorClass": self.failure.error_class if self.failure else None,
            "userFrame": vars(frame) | {} if frame else None,
            "clean": self.clean,
            "queries": dict(self.queries),
            "logFile": self.log_file,
            **rehearsal,
        }


def _leave_out(content: dict[str, Any], *parts: str) -> bool:
    """Empties the first of these parts of a rehearsal that holds anything; False when none does."""
    rehearsal = content.get("rehearsal", {})
    for part in parts:
        if rehearsal.get(part):
            rehearsal[part] = type(rehearsal[part])()
            return True
    return False


def _shorten(content: dict[str, Any]) -> bool:
    """Halves the longest text; False when nothing is left to shorten."""
    holders = [content, *([content["userFrame"]] if content["userFrame"] else [])]
    fixed = ("uid", "reason", "logFile")
    texts = [(len(v), h, k) for h in holders for k, v in h.items() if isinstance(v, str) and k not in fixed]
    length, holder, key = max(texts, key=lambda entry: entry[0])
    if length <= _SHORTEST_TEXT:
        return False
    holder[key] = holder[key][: length // 2] + "…"
    return True


def write_json(path: str, text: str) -> None:
    """Atomically where possible; Kubernetes' termination log is a mounted file that cannot be replaced."""
    target = Path(path)
    fresh: str | None = None
    try:
        handle, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        Path(fresh).replace(target)
    except OSError:
        if fresh is not None:
            with contextlib.suppress(OSError):
                Path(fresh).unlink()
        target.write_text(text, encoding="utf-8")
