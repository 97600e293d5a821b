"""Manifests as the API server keeps them: defaults by the schema, and what to ignore in a comparison."""

from __future__ import annotations

import copy
from typing import Any


def with_defaults(value: Any, schema: dict[str, Any]) -> Any:
    """As the server does it: a null is nothing, then every default that is missing is filled in."""
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        others = schema.get("additionalProperties") or {}
        written = {name: below for name, below in value.items() if below is not None}
        missing = {
            name: copy.deepcopy(field["default"])
            for name, field in fields.items()
            if "default" in field and name not in written
        }
        whole = {**written, **missing}
        return {name: with_defaults(below, fields.get(name, others)) for name, below in whole.items()}
    if isinstance(value, list):
        return [with_defaults(one, schema.get("items", {})) for one in value]
    return value


def plain(value: Any) -> Any:
    """An empty list and a missing one mean the same; so do the quantities 1 and "1"."""
    if isinstance(value, dict):
        kept = {
            key: _quantities(below) if key in ("requests", "limits") else plain(below)
            for key, below in value.items()
        }
        return {key: below for key, below in kept.items() if below not in ({}, [], None)}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def _quantities(resources: Any) -> Any:
    return {name: str(amount) for name, amount in resources.items()} if resources else {}
