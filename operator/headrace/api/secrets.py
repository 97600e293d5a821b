"""What must not be shown: values whose name says that they are secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from headrace.api.edits import Path

MASK = "***"

_SECRET_NAME = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|(api|access|private|account)[-_. ]?key|jaas|authorization",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_LONGEST = 60


def sounds_secret(name: object) -> bool:
    return isinstance(name, str) and _SECRET_NAME.search(name) is not None


def is_secret(path: Path, siblings: object = None) -> bool:
    """Whether a value is secret: by a name above it, the `name` beside it in `env`, or the flag before it."""
    if any(sounds_secret(part) for part in path):
        return True
    match siblings, path:
        case dict(), _:
            return sounds_secret(cast(dict[str, Any], siblings).get("name"))
        case list(), (*_, int(index)) if index > 0:
            return _is_secret_flag(cast(list[Any], siblings)[index - 1])
        case _:
            return False


def shown(path: Path, value: Any, siblings: object = None) -> str:
    """A value for a message: short, on one line, and never a secret."""
    if is_secret(path, siblings):
        return MASK
    text = _USER_INFO.sub(MASK, json.dumps(_masked(value), ensure_ascii=False, default=str))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _masked(value: Any) -> Any:
    match value:
        case dict():
            entries = cast(dict[str, Any], value)
            hide_value = sounds_secret(entries.get("name"))
            return {
                key: MASK if sounds_secret(key) or (hide_value and key == "value") else _masked(item)
                for key, item in entries.items()
            }
        case list():
            return [*_masked_list(cast(list[Any], value))]
        case _:
            return value


def _masked_list(items: list[Any]) -> Iterator[Any]:
    """In a list of arguments, what follows `--password` is one; so is the end of `--password=x`."""
    previous: object = None
    for item in items:
        if _is_secret_flag(previous):
            yield MASK
        elif isinstance(item, str) and _is_secret_flag(item.partition("=")[0]) and "=" in item:
            yield f"{item.partition('=')[0]}={MASK}"
        else:
            yield _masked(item)
        previous = item


def _is_secret_flag(item: object) -> bool:
    return isinstance(item, str) and item.startswith("-") and sounds_secret(item)
