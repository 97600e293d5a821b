"""What user code tells readers and writers of Spark; their own memory of it is write-only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace_jobs.harness.patches import Patches


@dataclass
class IoState:
    format: str | None = None
    options: dict[str, str] = field(default_factory=dict[str, str])
    """By their names in small letters."""


def remember(patches: Patches, owner: type, state_of: Callable[[Any], IoState]) -> None:
    """From here on, the state of each `owner` says which format and which options it was given."""
    patches.replace(owner, "format", lambda original: _format(original, state_of))
    patches.replace(owner, "option", lambda original: _option(original, state_of))
    patches.replace(owner, "options", lambda original: _options(original, state_of))


def _format(original: Any, state_of: Callable[[Any], IoState]) -> Any:
    def format(self: Any, source: str) -> Any:
        state_of(self).format = source
        return original(self, source)

    return format


def _option(original: Any, state_of: Callable[[Any], IoState]) -> Any:
    def option(self: Any, key: str, value: Any) -> Any:
        state_of(self).options[key.lower()] = str(value)
        return original(self, key, value)

    return option


def _options(original: Any, state_of: Callable[[Any], IoState]) -> Any:
    def options(self: Any, **given: Any) -> Any:
        state_of(self).options.update({key.lower(): str(value) for key, value in given.items()})
        return original(self, **given)

    return options
