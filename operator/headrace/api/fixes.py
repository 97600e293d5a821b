"""Ways to mend one fault of a manifest, best first.

These are proposals: `problems.py` tries them on the manifest and keeps the first that really mends it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from headrace.api.edits import Fix, Path, Remove, Rename, SetValue, below, path_text, value_at
from headrace.api.forms import EXAMPLE_KEY, Form, as_text
from headrace.api.guesses import nearest_name, truth, whole_number
from headrace.api.model import Broken
from headrace.api.schema import Schema
from headrace.api.secrets import shown

Json = Any

# A name like `name` lives in a dozen places: beyond the first few nobody meant it.
_MOST_HOMES = 4

# YAML reads these words without quotes as truth values.
_YAML_WORDS = {False: "Off", True: "On"}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, as the validation found it."""

    kind: str
    path: Path
    message: str
    value: Json = field(default=None, repr=False)  # may be a password: never in a log by accident
    form: Form | None = None
    broken: Broken | None = None
    points_at_key: bool = False


def proposals(fault: Fault, manifest: Json, schema: Schema) -> Iterator[Fix]:
    """What could be done about a fault, best first."""
    match fault.kind:
        case "rules" if fault.broken is not None:
            prefix = fault.path[: len(fault.path) - len(fault.broken.at)]
            yield Fix(fault.broken.fix, below(prefix, fault.broken.edits))
        case "extra_forbidden":
            yield from _for_unknown_field(fault, manifest, schema)
        case "missing":
            yield set_fix(fault.path, example(schema_at(schema, fault.path)), "add")
        case "document":
            yield from _for_no_object(fault.value)
        case _:
            yield from _for_wrong_value(fault, manifest, schema)
    if fault.path:
        yield from _last_resort(fault.path, schema)


def _for_no_object(value: Json) -> Iterator[Fix]:
    match value:
        case [only] if isinstance(only, dict):
            yield Fix("write it without the '-' before it", (SetValue((), only),))
        case _:
            pass


def _for_unknown_field(fault: Fault, manifest: Json, schema: Schema) -> Iterator[Fix]:
    *parent, wrong = fault.path
    holder = tuple(parent)
    siblings = schema_at(schema, holder).get("properties", {})
    if right := nearest_name(str(wrong), siblings):
        if right in (value_at(manifest, holder) or {}):
            yield Fix(f"remove it; {right} is there already", (Remove(fault.path),))
        else:
            yield Fix(f"rename it to {right}", (Rename(fault.path, right),))
        return
    for home in islice(_homes(str(wrong), schema), _MOST_HOMES):
        if value_at(manifest, home) is None:
            move = (SetValue(home, fault.value), Remove(fault.path))
            yield Fix(f"move it to {path_text(home)}", move)
    known = ", ".join(siblings)
    yield Fix(f"remove it; the fields here are {known}" if known else "remove it", (Remove(fault.path),))


def _homes(name: str, schema: Schema) -> Iterator[Path]:
    """Where in the spec a field of this name lives, near the top first; of two pods the executors first."""
    todo: list[Path] = [("spec",)]
    while todo:
        path = todo.pop(0)
        properties = cast(dict[str, Schema], schema_at(schema, path).get("properties", {}))
        if name in properties:
            yield (*path, name)
        todo += sorted(((*path, key) for key in properties), key=lambda inner: inner[-1] != "executors")


def _for_wrong_value(fault: Fault, manifest: Json, schema: Schema) -> Iterator[Fix]:
    field = schema_at(schema, fault.path)
    siblings = value_at(manifest, fault.path[:-1])
    for guess in _guesses(fault, field):
        verb = "put it in quotes:" if _only_lacks_quotes(guess, fault.value) else "write"
        yield set_fix(fault.path, guess, verb, siblings)
    if fault.form is not None:
        yield set_fix(fault.path, fault.form.example, "write, for example,", siblings)


def _only_lacks_quotes(guess: Json, value: Json) -> bool:
    """YAML made a number or a truth value of a text."""
    if not isinstance(guess, str) or isinstance(value, str):
        return False
    return guess == as_text(value) or (isinstance(value, bool) and guess == _YAML_WORDS[value])


def _guesses(fault: Fault, field: Schema) -> Iterator[Json]:
    value = fault.value
    if fault.form is not None and (suggestion := fault.form.suggestion(value)) is not None:
        yield suggestion
    if "enum" in field:
        yield from _near_choices(value, field["enum"])
    match field.get("type"):
        case "integer":
            number = whole_number(value)
            if number is not None:
                yield _clamped(number, field)
        case "boolean":
            if (meant := truth(value)) is not None:
                yield meant
        case "string" if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield str(value)
        case "array":
            yield from _as_list(value, field)
        case "object":
            yield from _as_object(value, field)
        case _:
            pass


def _near_choices(value: Json, choices: list[Json]) -> Iterator[Json]:
    by_text = {str(choice): choice for choice in choices}
    if isinstance(value, bool) and _YAML_WORDS[value] in by_text:
        yield _YAML_WORDS[value]
    if near := nearest_name(str(value), by_text):
        yield by_text[near]
    if len(choices) == 1:
        yield choices[0]


def _clamped(number: int, field: Schema) -> int:
    return min(max(number, field.get("minimum", number)), field.get("maximum", number))


def _as_list(value: Json, field: Schema) -> Iterator[Json]:
    """One thing instead of a list of it; a line of words; a map instead of named items."""
    limit = int(field.get("maxItems", 0))
    match value:
        case list():
            yield cast(list[Json], value)[:limit]
        case dict():
            entries = cast(dict[str, Json], value)
            yield [entries]
            yield [{"name": key, "value": str(item)} for key, item in entries.items()]
        case str():
            yield value.split()
            yield [{"name": value}]
        case _:
            yield [value]
            yield [str(value)]


def _as_object(value: Json, field: Schema) -> Iterator[Json]:
    """A list of small maps, `key=value` lines, or the one value that the object is about."""
    match value:
        case [*items] if items and all(isinstance(item, dict) for item in items):
            merged: dict[str, Json] = {}
            for item in cast(list[dict[str, Json]], items):
                merged |= {item["name"]: item["value"]} if item.keys() == {"name", "value"} else item
            yield merged
        case [*items] if items and all("=" in str(item) for item in items):
            pairs = [str(item).partition("=") for item in items]
            yield {key.strip(): text.strip() for key, _, text in pairs}
        case dict():
            limit = int(field.get("maxProperties", 0))
            yield dict(list(cast(dict[str, Json], value).items())[:limit])
        case str() | int():
            properties = cast(dict[str, Schema], field.get("properties", {}))
            if value in properties:
                yield {str(value): example(properties[str(value)])}
            yield from ({name: value} for name in properties)
        case _:
            pass


def _last_resort(path: Path, schema: Schema) -> Iterator[Fix]:
    """Leave it out if it may be left out; otherwise something that is valid."""
    parent = schema_at(schema, path[:-1])
    field = schema_at(schema, path)
    if path[-1] not in parent.get("required", []):
        default = field.get("default")
        told = f"; the default is {json.dumps(default)}" if default is not None and default != {} else ""
        yield Fix(f"remove it{told}", (Remove(path),))
    yield set_fix(path, example(field), "write")


def set_fix(path: Path, value: Json, verb: str, siblings: object = None) -> Fix:
    told = shown(path, value, siblings)
    if verb == "add":
        told = f"{path_text(path[-1:])}: {told}"
    return Fix(f"{verb} {told}", (SetValue(path, value),))


def schema_at(schema: Schema, path: Path) -> Schema:
    """The schema of the value at a path; empty where nothing is declared."""
    for part in path:
        properties = cast(dict[str, Schema], schema.get("properties", {}))
        inner = schema.get("items") if isinstance(part, int) else properties.get(part)
        if inner is None:
            inner = schema.get("additionalProperties")
        schema = cast(Schema, inner) if isinstance(inner, dict) else {}
    return schema


def example(field: Schema) -> Json:
    """The smallest value that a field accepts, its own rules apart."""
    if "enum" in field:
        return field.get("default", field["enum"][0])
    for key in ("default", EXAMPLE_KEY):
        if field.get(key) is not None:
            return field[key]
    match field.get("type"):
        case "object":
            properties = cast(dict[str, Schema], field.get("properties", {}))
            return {name: example(properties[name]) for name in field.get("required", [])}
        case "array":
            return []
        case "integer":
            return field.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return "text"
