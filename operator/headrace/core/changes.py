"""What an edit of a spec changes, and what it takes to apply it.

Judges fields only. The user's code is opaque to it: that is what the rehearsal is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from headrace.api import StreamJobSpec
from headrace.api.edits import Path, path_text
from headrace.api.model import ApiModel, Change, Leaf, leaves
from headrace.api.secrets import shown


@dataclass(frozen=True)
class Changed:
    """One field that differs. `old` and `new` are as in the manifest; None is not set."""

    path: str
    change: Change
    old: Any = field(repr=False)  # may be a password: never in a log by accident
    new: Any = field(repr=False)
    old_shown: str
    new_shown: str

    def sentence(self) -> str:
        match self.old, self.new:
            case None, _:
                return f"{self.path} is now {self.new_shown}"
            case _, None:
                return f"{self.path} is no longer {self.old_shown}"
            case _:
                return f"{self.path} {self.old_shown} → {self.new_shown}"


@dataclass(frozen=True)
class ChangePlan:
    """The plan of an edit: its highest class rules."""

    changed: tuple[Changed, ...]

    @property
    def change_class(self) -> Change | None:
        """None if nothing changed."""
        return max((each.change for each in self.changed), key=lambda change: change.rank, default=None)

    @property
    def needs_run(self) -> bool:
        return self.change_class in (Change.RESTART, Change.STATE)

    def of_class(self, change: Change) -> tuple[Changed, ...]:
        return tuple(each for each in self.changed if each.change is change)

    def sentence(self) -> str:
        """The changes that decide, in words; empty if nothing changed."""
        deciding = [each.sentence() for each in self.changed if each.change is self.change_class]
        more = len(deciding) - 3
        return ", ".join(deciding[:3]) + (f" and {more} more" if more > 0 else "")


# The models do not change while we run, and a fleet of jobs is compared all the time.
_LEAVES = tuple(leaves(StreamJobSpec))


def classify(old: StreamJobSpec, new: StreamJobSpec) -> ChangePlan:
    """Every field that differs, with its class."""
    if old == new:
        return ChangePlan(())
    changed = [
        _changed(leaf, ("spec", *leaf.path, *below), before, after)
        for leaf in _LEAVES
        for below, before, after in _differences(leaf, _value(old, leaf), _value(new, leaf))
    ]
    return ChangePlan(tuple(changed))


def fields_that_need_a_run(spec: StreamJobSpec) -> dict[str, Any]:
    """What makes a run: all fields of the classes `restart` and `state` that have a value, by path, as JSON.

    Fields are read from the models, not from the manifest: a default that is written out is no change.
    """
    return {
        ".".join(leaf.path): value
        for leaf in _LEAVES
        if leaf.facts.change in (Change.RESTART, Change.STATE)
        and not _is_nothing(value := _value(spec, leaf))
    }


def _is_nothing(value: Any) -> bool:
    return value in (None, [], {})


def _value(spec: StreamJobSpec, leaf: Leaf) -> Any:
    """The value of a leaf as JSON; None where it, or a section above it, is not set."""
    holder: Any = spec
    for name in leaf.names:
        holder = getattr(holder, name)
        if holder is None:
            return None
    return _as_json(holder)


def _as_json(value: Any) -> Any:
    match value:
        case ApiModel():
            return value.to_manifest()
        case tuple() | list():
            return [_as_json(item) for item in cast(tuple[Any, ...], value)]
        case _:
            return value


def _differences(leaf: Leaf, old: Any, new: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Maps differ by key and named lists by name, so that one changed setting reads as one change."""
    before, after = _by_key(leaf, old), _by_key(leaf, new)
    if before is None or after is None:
        if old != new and not (_is_nothing(old) and _is_nothing(new)):
            yield (), old, new
        return
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) != after.get(key):
            yield (key,), before.get(key), after.get(key)


def _by_key(leaf: Leaf, value: Any) -> dict[str, Any] | None:
    if leaf.facts.list_key is not None:
        items = cast(list[dict[str, Any]], value or [])
        return {str(item[leaf.facts.list_key]): item for item in items}
    if leaf.info.annotation is not None and _is_map(leaf):
        return cast(dict[str, Any], value or {})
    return None


def _is_map(leaf: Leaf) -> bool:
    """Maps of single values. A raw Kubernetes object is one value: half of an affinity says nothing."""
    return leaf.info.default == {}


def _changed(leaf: Leaf, path: Path, old: Any, new: Any) -> Changed:
    return Changed(
        path=path_text(path),
        change=leaf.facts.change or Change.STATE,  # a test keeps every field classed; else: the careful one
        old=old,
        new=new,
        old_shown=shown(path, old),
        new_shown=shown(path, new),
    )
