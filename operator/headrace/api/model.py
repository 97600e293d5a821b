"""How an API object is declared: fields with a description and a change class, rules in Python and CEL.

Everything else is made from these declarations: the CRDs, the reference page, the editor schema, the plan of
an edit and the messages about a bad manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Self, TypeVar, Union, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    Strict,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, PydanticUndefined

from headrace.api.edits import Edit, Path, Remove
from headrace.api.forms import EXAMPLE_KEY

T = TypeVar("T")
M = TypeVar("M", bound="ApiModel")

# Manifests write lists; frozen models hold tuples. Everything inside stays strict.
Items = Annotated[tuple[T, ...], Strict(False)]


CHANGE_KEY = "x-headrace-change"
_LIST_KEYS = "x-kubernetes-list-map-keys"


class Change(StrEnum):
    """What an edit of a field does to a running job. The plan of an edit is the highest class in it."""

    LIVE = "live"
    RESTART = "restart"
    STATE = "state"

    @property
    def rank(self) -> int:
        return list(Change).index(self)

    @property
    def meaning(self) -> str:
        match self:
            case Change.LIVE:
                return "applied without touching the driver"
            case Change.RESTART:
                return "a new run from the same state"
            case Change.STATE:
                return "a new run whose state may not fit: refused unless the spec says how"


@dataclass(frozen=True)
class FieldFacts:
    """What Headrace knows of a field beyond its type."""

    change: Change | None = None
    list_key: str | None = None  # a list that is a map: the field that names an item


@dataclass(frozen=True)
class Broken:
    """A rule that does not hold, seen from the model that declares it."""

    message: str
    at: Path
    fix: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Rule:
    """One rule, said once: `cel` for the API server, the decorated method for everybody else."""

    name: str
    cel: str
    message: str
    transition: bool


def rule(*, cel: str, message: str) -> Callable[[Callable[[M], Broken | None]], Callable[[M], Broken | None]]:
    """Declares a method as the Python twin of a CEL rule. It says what is broken, or None."""

    def declare(check: Callable[[M], Broken | None]) -> Callable[[M], Broken | None]:
        _declare(check, cel=cel, message=message, transition=False)
        return check

    return declare


def transition_rule(
    *, cel: str, message: str
) -> Callable[[Callable[[M, M], Broken | None]], Callable[[M, M], Broken | None]]:
    """The same for a rule about an edit: the method also gets the object as it was (CEL's `oldSelf`)."""

    def declare(check: Callable[[M, M], Broken | None]) -> Callable[[M, M], Broken | None]:
        _declare(check, cel=cel, message=message, transition=True)
        return check

    return declare


def _declare(check: Callable[..., Broken | None], *, cel: str, message: str, transition: bool) -> None:
    declared = Rule(name=check.__name__, cel=cel, message=message, transition=transition)
    setattr(check, "headrace_rule", declared)  # noqa: B010  a function has no such attribute to a type checker


@cache
def rules_of(model: type[ApiModel]) -> Mapping[str, Rule]:
    """The rules a model declares or inherits, by the name of their method."""
    found: dict[str, Rule] = {}
    for owner in reversed(model.__mro__):
        for name, member in vars(owner).items():
            declared = getattr(member, "headrace_rule", None)
            if isinstance(declared, Rule):
                found[name] = declared
    return MappingProxyType(found)


def _add_rules_to_schema(schema: dict[str, Any], model: type[Any]) -> None:
    declared = rules_of(model)
    if declared:
        schema["x-kubernetes-validations"] = [
            {"rule": rule.cel, "message": rule.message} for rule in declared.values()
        ]


class ApiModel(BaseModel):
    """Frozen, strict, camelCase outside and snake_case inside."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        json_schema_extra=_add_rules_to_schema,
    )

    @classmethod
    def parse(cls, manifest: Any) -> Self:
        """From a manifest, as strictly as the API server: camelCase names only, a null is no value."""
        return cls.model_validate(without_nulls(manifest), by_alias=True, by_name=False)

    def to_manifest(self) -> dict[str, Any]:
        """As JSON, with the defaults and without what is not set."""
        return self.model_dump(mode="json", exclude_none=True)

    @model_serializer(mode="wrap")
    def _leave_out_empty(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Empty lists and maps say nothing: they stay out of manifests, as they do in Kubernetes."""
        dumped: dict[str, Any] = dump(self)
        for name, info in type(self).model_fields.items():
            if info.default in ((), {}) and getattr(self, name) == info.default:
                dumped.pop(info.alias or name, None)
        return dumped

    @model_validator(mode="after")
    def _obey_rules(self) -> Self:
        broken = [*_repeated_items(self)]
        for name, declared in rules_of(type(self)).items():
            if not declared.transition and (found := getattr(self, name)()):
                broken.append(found)
        if broken:
            raise PydanticCustomError("rules", "{summary}", _rule_context(broken))
        return self

    def broken_by_edit_of(self, old: Self) -> list[Broken]:
        """The transition rules that do not hold between the object as it was and as it is to be."""
        checks = [getattr(self, name) for name, rule in rules_of(type(self)).items() if rule.transition]
        return [found for check in checks if (found := check(old))]


def _rule_context(broken: list[Broken]) -> dict[str, Any]:
    return {"summary": "; ".join(each.message for each in broken), "broken": tuple(broken)}


def without_nulls(value: Any) -> Any:
    """The API server drops nulls before it applies defaults; so do we."""
    match value:
        case dict():
            entries = cast(dict[str, Any], value).items()
            return {key: without_nulls(item) for key, item in entries if item is not None}
        case list():
            return [without_nulls(item) for item in cast(list[Any], value)]
        case _:
            return value


@cache
def _keyed_lists(model: type[ApiModel]) -> tuple[tuple[str, str, str], ...]:
    """The lists of a model that are maps: attribute, name in the manifest, key of an item."""
    fields = model.model_fields.items()
    keyed = [(name, info.alias or name, facts_of(info).list_key) for name, info in fields]
    return tuple((name, alias, key) for name, alias, key in keyed if key is not None)


def _repeated_items(model: ApiModel) -> Iterator[Broken]:
    """Kubernetes refuses a second item with the same key in a list that is a map."""
    for name, alias, key in _keyed_lists(type(model)):
        seen: set[str] = set()
        for index, item in enumerate(cast(tuple[ApiModel, ...], getattr(model, name))):
            value = str(item.model_dump()[key])
            if value in seen:
                yield Broken(
                    message=f"{key} {value!r} occurs twice in {alias}",
                    at=(alias, index),
                    fix=f"remove the second {value!r}, or give it another {key}",
                    edits=(Remove((alias, index)),),
                )
            seen.add(value)


# ---- Declaring fields


def live_field(
    description: str, *, default: Any = PydanticUndefined, list_key: str | None = None, **bounds: Any
) -> Any:
    """A spec field whose edit is applied without touching the driver."""
    return _field(description, default, FieldFacts(change=Change.LIVE, list_key=list_key), bounds)


def restart_field(
    description: str, *, default: Any = PydanticUndefined, list_key: str | None = None, **bounds: Any
) -> Any:
    """A spec field whose edit makes a new run from the same state."""
    return _field(description, default, FieldFacts(change=Change.RESTART, list_key=list_key), bounds)


def state_field(description: str, *, default: Any = PydanticUndefined, **bounds: Any) -> Any:
    """A spec field whose edit makes a new run that the old state may not fit."""
    return _field(description, default, FieldFacts(change=Change.STATE), bounds)


def section(description: str, *, default: Any = PydanticUndefined) -> Any:
    """A spec field that holds further fields, each with a class of its own."""
    return _field(description, default, FieldFacts(), {})


def plain_field(
    description: str, *, default: Any = PydanticUndefined, list_key: str | None = None, **bounds: Any
) -> Any:
    """A field outside the plan of an edit: part of a list item (the list has the class), or of a status."""
    return _field(description, default, FieldFacts(list_key=list_key), bounds)


def _field(description: str, default: Any, facts: FieldFacts, bounds: dict[str, Any]) -> Any:
    schema: dict[str, Any] = {}
    if "example" in bounds:
        schema[EXAMPLE_KEY] = bounds.pop("example")
    if facts.change:
        schema[CHANGE_KEY] = facts.change.value
    if facts.list_key:
        schema |= {"x-kubernetes-list-type": "map", _LIST_KEYS: [facts.list_key]}
    return Field(default, description=" ".join(description.split()), json_schema_extra=schema, **bounds)


def facts_of(info: FieldInfo) -> FieldFacts:
    """The facts live in the field's schema extensions, the one place pydantic carries through untouched."""
    if not isinstance(info.json_schema_extra, dict):
        return FieldFacts()
    schema = cast(dict[str, Any], info.json_schema_extra)
    return FieldFacts(
        change=Change(schema[CHANGE_KEY]) if CHANGE_KEY in schema else None,
        list_key=schema[_LIST_KEYS][0] if _LIST_KEYS in schema else None,
    )


# ---- Walking the declarations


@dataclass(frozen=True)
class Leaf:
    """A field that holds a value, not a section of further fields."""

    path: tuple[str, ...]
    names: tuple[str, ...]
    info: FieldInfo
    facts: FieldFacts


def section_model(info: FieldInfo) -> type[ApiModel] | None:
    """The model of a field that is a section (`Driver`, `Driver | None`), else None."""
    annotation: Any = info.annotation
    candidates = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, ApiModel):
            return candidate
    return None


def leaves(model: type[ApiModel], path: tuple[str, ...] = (), names: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Every value a model can hold, in the order of declaration."""
    for name, info in model.model_fields.items():
        here, attributes = (*path, info.alias or name), (*names, name)
        if section := section_model(info):
            yield from leaves(section, here, attributes)
        else:
            yield Leaf(here, attributes, info, facts_of(info))


class StatusModel(ApiModel):
    """Written by Headrace itself. An older Headrace may read what a newer one wrote: unknown fields pass."""

    model_config = ConfigDict(extra="ignore")
