"""The reference pages and the editor schema, made from the models. Pure: models in, text out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from headrace.api.crd import KINDS, Kind
from headrace.api.cron import CRON
from headrace.api.forms import EXAMPLE_KEY
from headrace.api.model import CHANGE_KEY, Change
from headrace.api.names import GROUP, VERSION
from headrace.api.quantities import DURATION, MEMORY
from headrace.api.schema import Schema, plain_schema
from headrace.api.sparkconf import OWNED
from headrace.api.streamjob import StreamJob

_GENERATED = (
    "<!-- Generated from operator/headrace/api by `make generate`. Edit the models, not this file. -->\n"
)

_INTRO = f"""{_GENERATED}
# API reference

Group `{GROUP}`, version `{VERSION}`. `kubectl explain streamjob.spec` shows the same text.

Editors that know JSON Schema check a manifest while it is written, with
[streamjob.schema.json](streamjob.schema.json). The first line of a manifest can name it:
`# yaml-language-server: $schema=<path or URL of streamjob.schema.json>`.

Durations are written like `30s`, `5m` or `1h30m`; memory with its unit, like `512Mi` or `4Gi`.

Each field of a spec has a **change class**: what an edit of it does to a running job. An edit does the most
that any of its fields asks for.

| class | meaning |
|---|---|
"""

_NAMED_PATTERNS = {DURATION.pattern: "duration", MEMORY.pattern: "memory", CRON.pattern: "cron expression"}


def api_page() -> str:
    """docs/reference/api.md"""
    classes = "".join(f"| `{change}` | {change.meaning} |\n" for change in Change)
    contents = "".join(f"- [{kind.name}](#{kind.name.lower()})\n" for kind in KINDS)
    return _INTRO + classes + "\n" + contents + "".join(_kind_chapter(kind) for kind in KINDS)


def _kind_chapter(kind: Kind) -> str:
    schema = plain_schema(kind.model)
    text = f"\n## {kind.name}\n\n{schema['description']}\n\nShort name `{kind.short}`, category `headrace`.\n"
    text += _rules(schema)
    seen: dict[str, str] = {}
    for part in ("spec", "status"):
        for path, section in _sections((kind.name, part), schema["properties"][part]):
            text += _section_text(path, section, seen)
    return text


def _sections(path: tuple[str, ...], schema: Schema) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """A section and, after it, the sections inside it."""
    yield path, schema
    for name, field in _properties(schema).items():
        items = cast(Schema, field.get("items", {}))
        if _properties(field):
            yield from _sections((*path, name), field)
        elif _properties(items):
            yield from _sections((*path, f"{name}[]"), items)


def _section_text(path: tuple[str, ...], section: Schema, seen: dict[str, str]) -> str:
    heading = ".".join(path)
    text = f"\n### {heading}\n\n{section.get('description', '')}\n"
    content = json.dumps([section["properties"], section.get("x-kubernetes-validations")], sort_keys=True)
    if content in seen:
        return f"{text}\nThe same fields as [{seen[content]}]({_anchor(seen[content])}).\n"
    seen[content] = heading
    # Inside a list the list itself has the class.
    classed = path[1] == "spec" and "[]" not in heading
    titles = ["field", "type", "default", *(["change"] if classed else []), "description"]
    text += f"\n| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"
    required = cast(list[str], section.get("required", []))
    for name, field in _properties(section).items():
        default = "**required**" if name in required else _default(field)
        cells = [f"`{name}`", _linked_type(f"{heading}.{name}", field), default]
        if classed:
            cells.append(f"`{field[CHANGE_KEY]}`" if CHANGE_KEY in field else "")
        text += f"| {' | '.join([*cells, _cell(field.get('description', ''))])} |\n"
    return text + _rules(section)


def _linked_type(path: str, field: Schema) -> str:
    """The type; an object with fields of its own links to its section."""
    if _properties(field):
        return f"[object]({_anchor(path)})"
    if _properties(field.get("items", {})):
        return f"list of [object]({_anchor(path)})"
    return _type(field)


def _anchor(heading: str) -> str:
    """The link to a heading, as GitHub and most renderers make it."""
    return "#" + heading.lower().replace(".", "").replace("[]", "")


def _default(field: Schema) -> str:
    if "default" not in field or _properties(field):
        return ""
    return f"`{_cell(json.dumps(field['default']).strip(chr(34)))}`"


def _type(field: Schema) -> str:
    """The type in a reader's words, with its bounds."""
    if "enum" in field:
        return " \\| ".join(f"`{json.dumps(value).strip(chr(34))}`" for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    match field.get("type"):
        case "array":
            return f"list of {_type(field['items'])}"
        case "object" if isinstance(field.get("additionalProperties"), dict):
            return f"map of {_type(field['additionalProperties'])}"
        case "object":
            return "object"
        case "string":
            return _NAMED_PATTERNS.get(field.get("pattern", ""), "time" if "format" in field else "string")
        case "integer":
            return f"integer{_bounds(field)}"
        case other:
            return str(other)


def _bounds(field: Schema) -> str:
    match field.get("minimum"), field.get("maximum"):
        case int(low), int(high):
            return f", {low} to {high}"
        case int(low), None:
            return f", at least {low}"
        case _:
            return ""


def _rules(section: Schema) -> str:
    rules = cast(list[dict[str, str]], section.get("x-kubernetes-validations", []))
    if not rules:
        return ""
    return "\nRules:\n\n" + "".join(f"- {rule['message']}\n" for rule in rules)


def _properties(schema: Schema) -> dict[str, Schema]:
    return cast(dict[str, Schema], schema.get("properties", {}))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def sparkconf_page() -> str:
    """docs/reference/sparkconf.md"""
    rows = "".join(
        f"| {'<br>'.join(f'`{key}`' for key in owned.keys)} | {owned.reason} | {owned.instead or ''} |\n"
        for owned in OWNED
    )
    allowed = "".join(f"- `{key}`\n" for owned in OWNED for key in owned.but_not)
    return f"""{_GENERATED}
# Settings of Spark that Headrace owns

`spec.sparkConf` takes any setting of Spark except these: Headrace sets them itself, or its promises depend on
them. A manifest that sets one is refused, with the reason and the field to use instead. `*` stands for any
ending.

| setting | why | use instead |
|---|---|---|
{rows}
Not owned, although they look like it:

{allowed}"""


def editor_schema() -> dict[str, Any]:
    """docs/reference/streamjob.schema.json: for editors, which also like to hear of misspelt fields."""
    schema = _for_editors(plain_schema(StreamJob))
    properties = cast(dict[str, Schema], schema["properties"])
    properties["metadata"] = {
        "type": "object",
        "description": "Name, namespace, labels, annotations.",
        "required": ["name"],
        "properties": {"name": {"type": "string"}},
    }
    # Written by Headrace, never by hand.
    del properties["status"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "StreamJob",
        **schema,
        "required": ["apiVersion", "kind", "metadata", "spec"],
    }


def _for_editors(schema: Schema) -> Schema:
    """Without the words that only the API server understands."""
    kept = {key: value for key, value in schema.items() if not key.startswith("x-")}
    if schema.get("x-kubernetes-int-or-string"):
        kept["type"] = ["integer", "string"]
    if EXAMPLE_KEY in schema:
        kept["examples"] = [schema[EXAMPLE_KEY]]
    if "properties" in kept:
        kept["properties"] = {name: _for_editors(each) for name, each in _properties(kept).items()}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _for_editors(kept[key])
    return kept
