"""The termination message of a driver or keeper -> how it ended. The harness's `termination.py` writes it.

It comes out of a container in which the user's code runs: nothing in it is taken for granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from headrace.api import UserFrame
from headrace.core.model import Ended, Ending


def ended_by(words: Mapping[str, Any], *, exit_code: int | None, at: datetime | None = None) -> Ended | None:
    """None where these are not the words of a harness."""
    reason = words.get("reason")
    if reason not in set(Ending):
        return None
    return Ended(
        ending=Ending(reason),
        message=_text(words, "message") or "",
        error_class=_text(words, "errorClass"),
        exit_code=exit_code,
        user_frame=_frame(words.get("userFrame")),
        log_file=_text(words, "logFile"),
        at=at,
    )


def _text(words: Mapping[str, Any], key: str) -> str | None:
    value = words.get(key)
    return value if isinstance(value, str) else None


def _frame(value: Any) -> UserFrame | None:
    try:
        return UserFrame.parse(value) if value is not None else None
    except ValidationError:
        return None
