"""Spark's analysed plan as a tree, read from its own JSON; and expressions as text that compares. Pure.

Names of columns and ids of expressions change freely. So a column is followed to what it is made of: `total`
is `sum(source.amount)`, whatever it is called on the way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# The same whatever the plan says, or different in each session.
_NOISE = frozenset(
    {
        "class", "num-children", "exprId", "resultId", "qualifier", "metadata", "nullable", "timeZoneId",
        "nonInheritableMetadataKeys", "nodeId", "dataType", "name", "origin", "jvmId", "udfDeterministic",
    }
)  # fmt: skip
_WITH_TYPE = frozenset({"Cast", "Literal", "TryCast"})
_WITH_NAME = frozenset({"GetStructField", "ScalaUDF", "UserDefinedExpression"})
_TRANSPARENT = frozenset({"Alias", "AggregateExpression", "KnownNullable", "KnownNotNull"})
_INFIX = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%", "EqualTo": "=",
    "EqualNullSafe": "<=>", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<",
    "LessThanOrEqual": "<=", "And": "and", "Or": "or",
}  # fmt: skip
_LEAVES = ("StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation")
_DEEPEST = 200
_LONGEST = 1000


@dataclass(frozen=True)
class Node:
    """One operator or one expression."""

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Node, ...]

    def walk(self) -> Iterator[Node]:
        """Itself first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def expressions(self, name: str) -> list[Node]:
        """A field that holds expressions, one or a list of them."""
        value = self.fields.get(name)
        return list(_expressions(value)) if isinstance(value, list) else []

    def all_expressions(self) -> Iterator[Node]:
        for name in self.fields:
            yield from self.expressions(name)

    @property
    def expr_id(self) -> int | None:
        told = self.fields.get("exprId")
        return told["id"] if isinstance(told, dict) else None

    @property
    def name(self) -> str:
        return str(self.fields.get("name", ""))


def read_tree(nodes: list[dict[str, Any]]) -> Node:
    """From Spark's JSON: all nodes in one list, each before its children."""
    tree, rest = _read(nodes, 0)
    assert rest == len(nodes)
    return tree


def _read(nodes: list[dict[str, Any]], at: int) -> tuple[Node, int]:
    told = nodes[at]
    children: list[Node] = []
    at += 1
    for _ in range(told["num-children"]):
        child, at = _read(nodes, at)
        children.append(child)
    return Node(told["class"].rpartition(".")[2], told, tuple(children)), at


def _expressions(value: list[Any]) -> Iterator[Node]:
    if value and all(isinstance(item, dict) and "num-children" in item for item in value):
        yield read_tree(value)
        return
    for item in value:
        if isinstance(item, list):
            yield from _expressions(item)


@dataclass(frozen=True)
class _MadeBy:
    """A column that an operator as a whole makes: a function over all its input, say."""

    operator: Node
    name: str


@dataclass
class Columns:
    """What each column of a plan is made of. `digests` are those of the user's own functions, by name."""

    plan: Node
    digests: Mapping[str, str] = field(default_factory=dict)
    _definitions: dict[int, Node | _MadeBy | str] = field(default_factory=dict)
    _unions: dict[int, list[Node]] = field(default_factory=dict)
    _known: dict[tuple[int | None, bool], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sources = [node for node in self.plan.walk() if node.kind in _LEAVES]
        for number, source in enumerate(sources):
            prefix = "source" if len(sources) == 1 else f"source{number}"
            for column in source.expressions("output"):
                self._define(column, f"{prefix}.{column.name}")
        for operator in self.plan.walk():
            self._read_definitions(operator)

    def _read_definitions(self, operator: Node) -> None:
        if operator.kind == "Union" and all(child.kind == "Project" for child in operator.children):
            lists = [child.expressions("projectList") for child in operator.children]
            for branches in zip(*lists, strict=False):
                if branches[0].expr_id is not None:
                    self._unions[branches[0].expr_id] = list(branches[1:])
        for expression in operator.all_expressions():
            if expression.kind == "Alias":
                self._define(expression, expression.children[0])
        # Columns that are neither named in an expression nor passed through: the operator makes them.
        for name in ("generatorOutput", "output", "outputAttrs", "outAttributes", "outputAttributes"):
            for column in operator.expressions(name):
                if column.kind == "AttributeReference":
                    self._define(column, _MadeBy(operator, column.name))

    def _define(self, column: Node, definition: Node | _MadeBy | str) -> None:
        if column.expr_id is not None:
            self._definitions.setdefault(column.expr_id, definition)

    def shown(self, expression: Node) -> str:
        """As a user would write it, with the names of the query."""
        told = [self.shown(child) for child in expression.children]
        match expression.kind:
            case "AttributeReference" | "OuterReference":
                return expression.name
            case "Literal":
                return str(expression.fields.get("value"))
            case "Cast" | "TryCast" | "PromotePrecision" | "CheckOverflow":
                return told[0]
            case "PythonUDF" | "ScalaUDF":
                return f"{expression.name or expression.fields.get('udfName')}({', '.join(told)})"
            case "AggregateExpression":
                return _distinct(told[0], expression) + (f" where {told[1]}" if len(told) > 1 else "")
            case kind if kind in _TRANSPARENT:
                return told[0]
            case kind if kind in _INFIX and len(told) == 2:
                return f"{told[0]} {_INFIX[kind]} {told[1]}"
            case kind:
                return f"{_snake(kind)}({', '.join(told)})"

    def meaning(self, expression: Node, *, detailed: bool, depth: int = 0) -> str:
        """To be compared, not to be read. `detailed`: with what may differ between versions of Spark."""
        if depth > _DEEPEST:
            return "…"
        if expression.kind == "AttributeReference":
            return self._column(expression, detailed=detailed, depth=depth)
        told = [self.meaning(child, detailed=detailed, depth=depth + 1) for child in expression.children]
        if expression.kind == "Alias":
            return told[0]
        if expression.kind == "AggregateExpression":
            return _distinct(told[0], expression) + "".join(f" where {one}" for one in told[1:])
        own = _own_fields(expression, self.digests, detailed=detailed)
        return f"{expression.kind}({', '.join([*own, *told])})"

    def _column(self, column: Node, *, detailed: bool, depth: int) -> str:
        """Each once: a plan that uses each column twice to make the next would double with every step."""
        known = (column.expr_id, detailed)
        if column.expr_id is None or known not in self._known:
            told = self._defined(column, detailed=detailed, depth=depth)
            if len(told) > _LONGEST:
                told = f"#{hashlib.sha256(told.encode()).hexdigest()[:32]}"
            self._known[known] = told
        return self._known[known]

    def _defined(self, column: Node, *, detailed: bool, depth: int) -> str:
        definition = self._definitions.get(column.expr_id) if column.expr_id is not None else None
        match definition:
            case None:
                return column.name
            case str():
                told = definition
            case Node():
                told = self.meaning(definition, detailed=detailed, depth=depth + 1)
            case _MadeBy(operator, name):
                told = f"{self.operator(operator, detailed=detailed, depth=depth + 1)}.{name}"
        others = self._unions.get(column.expr_id or -1, ())
        branches = [self.meaning(one, detailed=detailed, depth=depth + 1) for one in others]
        return " | ".join([told, *branches])

    def operator(self, operator: Node, *, detailed: bool, depth: int) -> str:
        """By the functions it applies; what it is applied to is said by their arguments."""
        functions = [
            self.meaning(expression, detailed=detailed, depth=depth + 1)
            for expression in operator.all_expressions()
            if expression.kind not in ("AttributeReference", "Alias")
        ]
        return f"{operator.kind}[{', '.join(functions)}]"


def _own_fields(expression: Node, digests: Mapping[str, str], *, detailed: bool) -> Iterable[str]:
    fields = expression.fields
    match expression.kind:
        case "Literal":
            return [f"{fields.get('value')}: {_type(fields.get('dataType'))}"]
        case "PythonUDF":
            digest = digests.get(expression.name)
            return [f"{expression.name}#{digest}" if digest else expression.name]
    own = [_type(fields["dataType"])] if expression.kind in _WITH_TYPE and "dataType" in fields else []
    if expression.kind in _WITH_NAME and fields.get("name"):
        own.append(str(fields["name"]))
    if detailed:
        own += [
            f"{name}={value}"
            for name, value in sorted(fields.items())
            if name not in _NOISE and isinstance(value, str | int | bool)
        ]
    return own


def _distinct(told: str, expression: Node) -> str:
    return f"distinct {told}" if expression.fields.get("isDistinct") is True else told


def _type(told: Any) -> str:
    return told if isinstance(told, str) else str(told.get("type", told)) if isinstance(told, dict) else "?"


def _snake(kind: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and at else c.lower() for at, c in enumerate(kind))
