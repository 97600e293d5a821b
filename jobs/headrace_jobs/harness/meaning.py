"""What the state of a query means: its stateful operators, each with what its state is made of. Pure.

Spark compares the types of the state with the plan's, and nothing else. A `sum` that became a `max` of the
same type is taken without a word, and every total is wrong from then on. So we compare what both plans mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from headrace_jobs.harness.plantree import Columns, Node, read_tree

FORMAT = 1
_STREAMS = ("StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation")
# Its JSON leaves the delay out. With or without the node's id, by Spark's version.
_WATERMARK = re.compile(
    r"EventTimeWatermark (?:[0-9a-f-]{36}, )?\S+#\d+[^:\n]*: \w+, (?P<delay>[^\n]+)$", re.MULTILINE
)
_DEDUPLICATE = ("Deduplicate", "DeduplicateWithinWatermark")
_ARBITRARY = (
    "FlatMapGroupsInPandasWithState", "FlatMapGroupsWithState",
    "TransformWithState", "TransformWithStateInPySpark", "TransformWithStateInPandas",
)  # fmt: skip
_ROLES = {"key": "the key", "aggregate": "", "function": "the function", "condition": "the join condition"}


@dataclass(frozen=True)
class Detail:
    """One thing that a state is made of. `core` compares between versions of Spark, `full` within one."""

    role: str
    shown: str
    core: str
    full: str


@dataclass(frozen=True)
class Operator:
    """One stateful operator. `details` in their order: Spark knows parts of a state by position."""

    kind: str
    details: tuple[Detail, ...]


@dataclass(frozen=True)
class Meaning:
    spark_version: str
    python_version: str
    output_mode: str
    operators: tuple[Operator, ...]
    """From the sources on."""
    sources: tuple[str, ...] | None = None
    """What each of them reads, in the order in which the checkpoint knows them; None: nobody noted it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "sparkVersion": self.spark_version,
            "pythonVersion": self.python_version,
            "outputMode": self.output_mode,
            "operators": [
                {"kind": one.kind, "details": [vars(detail) for detail in one.details]}
                for one in self.operators
            ],
            "sources": self.sources,
        }


def meaning_from_json(told: Mapping[str, Any]) -> Meaning | None:
    """None for a format that this version does not know."""
    if told.get("format") != FORMAT:
        return None
    operators = tuple(
        Operator(one["kind"], tuple(Detail(**detail) for detail in one["details"]))
        for one in told["operators"]
    )
    sources = told.get("sources")
    return Meaning(
        told["sparkVersion"],
        told["pythonVersion"],
        told["outputMode"],
        operators,
        tuple(sources) if sources is not None else None,
    )


def meaning_of(
    plan: list[dict[str, Any]],
    described: str,
    *,
    output_mode: str,
    digests: Mapping[str, str],
    spark_version: str,
    python_version: str,
    sources: tuple[str, ...] | None = None,
) -> Meaning:
    """Of an analysed plan: `plan` is its JSON, `described` Spark's text of it, which tells the delays."""
    tree = read_tree(plan)
    # Twice, because digests count only where both versions run the same Python.
    reading = _Reading(Columns(tree, digests), Columns(tree), _WATERMARK.findall(described))
    operators = tuple(reading.operators(tree))
    return Meaning(spark_version, python_version, output_mode, operators, sources)


class _Reading:
    def __init__(self, columns: Columns, plain: Columns, delays: list[str]) -> None:
        self._columns, self._plain, self._delays = columns, plain, delays
        marks = [node for node in columns.plan.walk() if node.kind == "EventTimeWatermark"]
        self._delay_of = {id(node): delay for node, delay in zip(marks, delays, strict=False)}

    def operators(self, node: Node) -> Iterator[Operator]:
        for child in node.children:
            yield from self.operators(child)
        if not _is_stream(node):
            return
        details = tuple(self._details(node))
        if details:
            yield Operator(node.kind, details)

    def _details(self, node: Node) -> Iterator[Detail]:
        match node.kind:
            case "EventTimeWatermark":
                yield from self._each("watermark", node.expressions("eventTime"))
                yield self._plainly("delay", self._delay_of.get(id(node), "?"))
            case "Aggregate":
                yield from self._each("key", node.expressions("groupingExpressions"))
                yield from self._aggregates(node)
            case kind if kind in _DEDUPLICATE:
                yield from self._each("key", node.expressions("keys"))
            case "Join" if all(_is_stream(child) for child in node.children):
                yield self._plainly("join type", _word(node.fields.get("joinType")))
                yield from self._each("condition", node.expressions("condition"))
            case kind if kind in _ARBITRARY:
                yield from self._each("key", _keys_of_groups(node))
                yield from self._each("function", node.expressions("functionExpr"))
                for name in ("outputMode", "timeout", "timeMode"):
                    if name in node.fields:
                        yield self._plainly(name, _word(node.fields[name]))
            case "GlobalLimit":
                yield from self._each("limit", node.expressions("limitExpr"))

    def _aggregates(self, node: Node) -> Iterator[Detail]:
        """Each once, in the order of their first use: so they lie in the state. What is computed from them
        afterwards is not kept."""
        seen: set[str] = set()
        found = [
            one
            for expression in node.expressions("aggregateExpressions")
            for one in expression.walk()
            if one.kind == "AggregateExpression"
        ]
        for detail in self._each("aggregate", found):
            if detail.full not in seen:
                seen.add(detail.full)
                yield detail

    def _each(self, role: str, expressions: list[Node]) -> Iterator[Detail]:
        for one in expressions:
            yield Detail(
                role,
                self._columns.shown(one),
                core=self._plain.meaning(one, detailed=False),
                full=self._columns.meaning(one, detailed=True),
            )

    @staticmethod
    def _plainly(role: str, told: str) -> Detail:
        return Detail(role, told, told, told)


def _keys_of_groups(node: Node) -> list[Node]:
    """By name, or as the first columns of what comes in."""
    first = node.fields.get("groupingAttributesLen")
    if isinstance(first, int) and node.children[0].kind == "Project":
        return node.children[0].expressions("projectList")[:first]
    return node.expressions("groupingAttributes")


def _is_stream(node: Node) -> bool:
    return any(one.kind in _STREAMS for one in node.walk())


def _word(told: Any) -> str:
    """Spark's objects and small classes, by their own name."""
    match told:
        case {"object": str(name)} | {"product-class": str(name)}:
            return name.rstrip("$").rpartition(".")[2].rpartition("$")[2]
        case _:
            return str(told)


def differences(query: str, before: Meaning, after: Meaning) -> list[str]:
    """One sentence for each; none: the checkpoint means the same."""
    return [*other_sources(query, before, after), *_of_state(query, before, after)]


def other_sources(query: str, before: Meaning, after: Meaning) -> list[str]:
    """One sentence, or none."""
    old, new = before.sources, after.sources
    if old is None or new is None or old == new:
        return []
    told = [", and ".join(sources) or "none" for sources in (old, new)]
    swapped = sorted(old) == sorted(new)
    why = "Spark knows them by their order" if swapped else "its offsets are of the old ones"
    return [f"query {query}: its sources were {told[0]}; they are {told[1]}, and {why}"]


def _of_state(query: str, before: Meaning, after: Meaning) -> list[str]:
    same = before.spark_version == after.spark_version and before.python_version == after.python_version
    kinds = [[one.kind for one in meaning.operators] for meaning in (before, after)]
    if kinds[0] != kinds[1]:
        told = [", ".join(_in_words(kind) for kind in found) or "none" for found in kinds]
        return [f"query {query}: its stateful operators were {told[0]}; they are {told[1]}"]
    found: list[str] = []
    for old, new in zip(before.operators, after.operators, strict=True):
        for one, other in zip_longest(old.details, new.details):
            told = _difference(one, other, detailed=same)
            if told is not None:
                found.append(f"query {query}: {told}")
    return found


def _difference(before: Detail | None, after: Detail | None, *, detailed: bool) -> str | None:
    if before is None or after is None:
        one, what = (before, "is gone") if after is None else (after, "was added")
        return f"{_called(one)} {what}" if one is not None else None
    same = before.full == after.full if detailed else before.core == after.core
    if before.role == after.role and same:
        return None
    if before.shown == after.shown and before.role == after.role:
        return f"{_called(before)} is computed in another way"
    return f"{_called(before)} became {after.shown}"


def _called(detail: Detail) -> str:
    return f"{_ROLES.get(detail.role, f'the {detail.role}')} {detail.shown}".strip()


def _in_words(kind: str) -> str:
    return "".join(f" {c.lower()}" if c.isupper() and at else c.lower() for at, c in enumerate(kind))
