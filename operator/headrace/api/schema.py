"""The schema of a model in plain form: nothing to look up, no unions with null, no titles.

The CRDs, the editor schema and the reference page are made from it.
"""

from __future__ import annotations

from typing import Any, cast

from headrace.api.model import ApiModel, without_nulls

Schema = dict[str, Any]

_REF = "#/$defs/"


def plain_schema(model: type[ApiModel]) -> Schema:
    """The schema of a model, with every part written out where it is used."""
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _plain(raw, raw.get("$defs", {}))


def _plain(schema: Schema, parts: dict[str, Schema]) -> Schema:
    schema = _inlined(_without_null(schema), parts)
    schema = {key: value for key, value in schema.items() if key not in ("title", "$defs")}
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    schema = _with_default(schema)
    if "properties" in schema:
        properties = cast(dict[str, Schema], schema["properties"])
        schema["properties"] = {name: _plain(each, parts) for name, each in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            schema[key] = _plain(schema[key], parts)
    return schema


def _inlined(schema: Schema, parts: dict[str, Schema]) -> Schema:
    """What a field says of itself wins over what its type says."""
    if "$ref" not in schema:
        return schema
    part = parts[schema["$ref"].removeprefix(_REF)]
    own = {key: value for key, value in schema.items() if key != "$ref"}
    return {**_inlined(part, parts), **own}


def _without_null(schema: Schema) -> Schema:
    """`X or null` is X that need not be there: Kubernetes has no other way to leave a field out."""
    choices = cast(list[Schema], schema.get("anyOf", []))
    present = [choice for choice in choices if choice.get("type") != "null"]
    if len(present) != 1:
        return schema
    own = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**present[0], **own}


def _with_default(schema: Schema) -> Schema:
    """A section's default is written out: the API server holds it against the rules as it stands.

    Empty values need no default; they are left out, as Kubernetes does.
    """
    if "default" not in schema:
        return schema
    default = without_nulls(schema["default"])
    if default is None or default == [] or (default == {} and "properties" not in schema):
        return {key: value for key, value in schema.items() if key != "default"}
    return {**schema, "default": default}
