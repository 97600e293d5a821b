"""Cron expressions: five fields, checked to the last number."""

from __future__ import annotations

import re
from typing import Annotated

from headrace.api.forms import Form

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_FIELD_VALUES = (
    r"[0-5]?[0-9]",
    r"([01]?[0-9]|2[0-3])",
    r"(0?[1-9]|[12][0-9]|3[01])",
    r"(0?[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)",
    r"([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)",
)


def _field_pattern(value: str) -> str:
    item = rf"(\*|{value}(-{value})?)(/[1-9][0-9]?)?"
    return rf"{item}(,{item})*"


def _from_speech(value: object) -> str | None:
    """Macros, six-field (Quartz) expressions, lower-case names, stray spaces, numbers beyond their range."""
    if not isinstance(value, str):
        return None
    text = value.strip().upper()
    if text.lower() in _MACROS:
        return _MACROS[text.lower()]
    fields = text.replace("?", "*").split()
    if len(fields) in (6, 7):
        fields = fields[1:6]
    if len(fields) != 5:
        return None
    checked = [
        field if re.fullmatch(_field_pattern(allowed), field) else _nearest(field, position)
        for position, (field, allowed) in enumerate(zip(fields, _FIELD_VALUES, strict=True))
    ]
    return " ".join(checked)


def _nearest(field: str, position: int) -> str:
    """A number beyond the end of its field becomes the start (24:00 is 0:00); anything else becomes `*`."""
    return ("0", "0", "1", "1", "0")[position] if field.isdigit() else "*"


CRON = Form(
    expects='a cron expression of five fields (minute hour day month weekday), like "0 * * * *"',
    pattern="^" + " ".join(_field_pattern(value) for value in _FIELD_VALUES) + "$",
    example="0 * * * *",
    min_length=9,
    max_length=120,
    suggest=_from_speech,
)

Cron = Annotated[str, CRON]

TIME_ZONE = Form(
    expects='a time zone of the IANA database, like "Europe/Berlin"',
    pattern=r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$",
    example="Etc/UTC",
    max_length=64,
)

TimeZone = Annotated[str, TIME_ZONE]
