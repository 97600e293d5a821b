"""The written forms of strings: each is checked, explained and corrected in one place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

EXAMPLE_KEY = "x-headrace-example"


def _no_idea(_value: object) -> str | None:
    return None


@dataclass(frozen=True)
class Form:
    """A pattern with words. `pattern` is anchored and keeps to what RE2 and Python both understand."""

    expects: str
    pattern: str | None
    example: str
    max_length: int
    min_length: int = 1
    suggest: Callable[[object], str | None] = _no_idea

    def problem_with(self, value: object) -> str | None:
        """Why a value does not have this form; None if it has."""
        if not isinstance(value, str):
            return f"is not {self.expects}"
        if len(value) > self.max_length:
            return f"is longer than {self.max_length} characters"
        fits = self.pattern is None or re.fullmatch(self.pattern, value)
        return None if fits and len(value) >= self.min_length else f"is not {self.expects}"

    def check(self, value: object) -> str:
        problem = self.problem_with(value)
        if problem is None:
            return str(value)
        raise PydanticCustomError("form", "{problem}", {"problem": problem, "form": self})

    def suggestion(self, value: object) -> str | None:
        """What a person who wrote `value` most likely meant, if that has this form."""
        guess = self.suggest(value)
        return guess if guess is not None and self.problem_with(guess) is None else None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return self.json_schema()

    def json_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        if self.min_length:
            schema["minLength"] = self.min_length
        schema["maxLength"] = self.max_length
        if self.pattern:
            schema["pattern"] = self.pattern
        return schema | {EXAMPLE_KEY: self.example}


def free_text(expects: str, *, max_length: int, example: str = "text", min_length: int = 0) -> Form:
    """Any text, but bounded: the API server prices its rules by the longest value a field may have."""
    return Form(
        expects=expects,
        pattern=None,
        example=example,
        max_length=max_length,
        min_length=min_length,
        suggest=as_text,
    )


def as_text(value: object) -> str | None:
    """The text YAML made a number or a truth value of."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return value.strip()
        case _:
            return None


def stripped_lower(value: object) -> str | None:
    text = as_text(value)
    return text.lower() if text else None
