"""Exactly one of several fields: the rule that most objects with alternatives need."""

from __future__ import annotations

import json
from typing import Any

from headrace.api.edits import Remove, SetValue
from headrace.api.model import ApiModel, Broken


def exactly_one_cel(*fields: str) -> str:
    present = ", ".join(f"has(self.{field})" for field in fields)
    return f"[{present}].exists_one(x, x)"


def exactly_one(model: ApiModel, *fields: str, what: str, example: tuple[str, Any]) -> Broken | None:
    """Broken unless one and only one of the fields is set. `what` says what they choose between."""
    manifest = model.model_dump()
    present = [field for field in fields if manifest.get(field) is not None]
    if not present:
        field, value = example
        return Broken(
            message=f"{what}: one of {_listed(fields)} is needed",
            at=(),
            fix=f"set {field}, for example {field}: {json.dumps(value)}",
            edits=(SetValue((field,), value),),
        )
    first, *others = present
    if not others:
        return None
    return Broken(
        message=f"{what}: {' and '.join(present)} exclude each other",
        at=(others[0],),
        fix=f"keep {first} and remove {' and '.join(others)}, or the other way round",
        edits=tuple(Remove((field,)) for field in others),
    )


def _listed(fields: tuple[str, ...]) -> str:
    return f"{', '.join(fields[:-1])} or {fields[-1]}"
