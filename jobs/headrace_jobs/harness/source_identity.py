"""Which data each source of a query reads, in words that compare.

A checkpoint holds offsets, and Spark takes them for offsets of whatever the new code reads: of another topic,
or of another directory. A rehearsal repeats recorded batches, so it does not even ask for the new ones. Only
what tells the data apart counts: not the brokers' addresses, no limits, and never a secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_RELATION, _RELATION_V2 = "StreamingRelation", "StreamingRelationV2"
_FILES = "FileSource["
# What connectors call the option that says what is read. Of the others we know the kind only.
_PLACES = ("path", "topic", "topics", "topicspattern", "streamname", "stream", "table", "dbtable", "queue")
_KAFKA = ("subscribe", "subscribepattern", "assign")


def sources_of(plan: Any) -> tuple[str, ...]:
    """Of an analysed plan in the JVM, in the order in which its checkpoint knows them."""
    leaves = plan.collectLeaves()
    return tuple(_told_by_leaves(leaves.apply(index) for index in range(leaves.size())))


def _told_by_leaves(leaves: Iterator[Any]) -> Iterator[str]:
    for leaf in leaves:
        match leaf.getClass().getSimpleName():
            case kind if kind == _RELATION_V2:
                options = leaf.extraOptions()
                known = {name: value for name in (*_KAFKA, *_PLACES) if (value := options.get(name))}
                yield source_in_words(leaf.sourceName(), known, _given(leaf.identifier()))
            case kind if kind == _RELATION:
                source = leaf.dataSource()
                table = source.catalogTable()
                name = table.get().identifier().unquotedString() if table.isDefined() else None
                yield source_in_words(leaf.sourceName(), _lower_case(source.options()), name)


def source_in_words(name: str, options: Mapping[str, str], table: str | None = None) -> str:
    """`options` by their names in lower case."""
    if table is not None:
        return f"table {table}"
    if name.startswith(_FILES):
        return f"files in {_place(name.removeprefix(_FILES).removesuffix(']'))}"
    if name == "kafka":
        return _kafka(options)
    place = next((options[option] for option in _PLACES if options.get(option)), None)
    return f"{name} {_place(place)}" if place is not None else name


def _kafka(options: Mapping[str, str]) -> str:
    if topics := options.get("subscribe"):
        return f"Kafka topics {', '.join(sorted({one.strip() for one in topics.split(',')}))}"
    if pattern := options.get("subscribepattern"):
        return f"Kafka topics like {pattern}"
    return f"Kafka partitions {', '.join(_partitions(options.get('assign', '')))}"


def _partitions(assigned: str) -> list[str]:
    try:
        return [
            f"{topic}/{number}"
            for topic, numbers in sorted(json.loads(assigned).items())
            for number in sorted(numbers)
        ]
    except (ValueError, AttributeError, TypeError):
        return [assigned]


def _place(path: str) -> str:
    """Spark writes a local path with and without its scheme."""
    local = path.removeprefix("file:")
    local = "/" + local.lstrip("/") if local != path else local
    return local.rstrip("/") or "/"


def _given(option: Any) -> str | None:
    return option.get().toString() if option.isDefined() else None


def _lower_case(options: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    pairs = options.iterator()
    while pairs.hasNext():
        pair = pairs.next()
        found[pair._1().lower()] = pair._2()
    return found
