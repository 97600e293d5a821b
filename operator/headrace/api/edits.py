"""Paths into a manifest, and small edits of it that a machine can apply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

_JsonMap = Mapping[str, Any]

Path = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def path_text(path: Path) -> str:
    """`spec.executors.count`, `spec.driver.env[0].name`, `spec.sparkConf["spark.ui.port"]`."""
    text = ""
    for part in path:
        match part:
            case int():
                text += f"[{part}]"
            case str() if _PLAIN_KEY.fullmatch(part):
                text += f".{part}" if text else part
            case _:
                text += f'["{part}"]'
    return text


@dataclass(frozen=True)
class SetValue:
    path: Path
    value: Any = field(repr=False)  # may be a password: never in a log by accident


@dataclass(frozen=True)
class Remove:
    path: Path


@dataclass(frozen=True)
class Rename:
    path: Path
    to: str


Edit = SetValue | Remove | Rename


@dataclass(frozen=True)
class Fix:
    """What to do about a problem: a sentence for a person, edits for a machine."""

    sentence: str
    edits: tuple[Edit, ...]


def below(prefix: Path, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The same edits, seen from the root of the manifest."""
    return tuple(replace(edit, path=prefix + edit.path) for edit in edits)


def apply_edits(data: Any, edits: Iterable[Edit]) -> Any:
    """A copy of `data` with the edits made. What an edit cannot reach, it leaves alone."""
    for edit in edits:
        data = _apply(data, edit.path, edit)
    return data


def value_at(data: Any, path: Path) -> Any:
    """The value at a path, or None."""
    for part in path:
        match data, part:
            case Mapping(), str():
                data = cast(_JsonMap, data).get(part)
            case [*items], int() if part < len(items):
                data = items[part]
            case _:
                return None
    return data


def _apply(data: Any, path: Path, edit: Edit) -> Any:
    if not path:
        return edit.value if isinstance(edit, SetValue) else data
    head, rest = path[0], path[1:]
    if isinstance(head, int):
        return _apply_to_list(data, head, rest, edit)
    mapping: dict[str, Any] = dict(cast(_JsonMap, data)) if isinstance(data, Mapping) else {}
    if rest:
        mapping[head] = _apply(mapping.get(head), rest, edit)
        return mapping
    match edit:
        case SetValue():
            mapping[head] = edit.value
            return mapping
        case Remove():
            mapping.pop(head, None)
            return mapping
        case Rename():
            # Rebuilt rather than popped and added: the order of a manifest belongs to its author.
            return {edit.to if key == head else key: value for key, value in mapping.items()}


def _apply_to_list(data: Any, index: int, rest: Path, edit: Edit) -> Any:
    if not isinstance(data, list) or index >= len(cast(list[Any], data)):
        return cast(Any, data)
    items: list[Any] = [*cast(list[Any], data)]
    if not rest and isinstance(edit, Remove):
        return items[:index] + items[index + 1 :]
    items[index] = _apply(items[index], rest, edit)
    return items
