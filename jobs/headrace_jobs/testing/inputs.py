"""The rows a test gives, and which source of the job each of them stands for."""

from __future__ import annotations

import base64
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

KAFKA_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long,"
    " timestamp timestamp, timestampType int"
)
# Sources whose columns are always the same.
FIXED_SCHEMAS = {
    "kafka": KAFKA_SCHEMA,
    "rate": "timestamp timestamp, value long",
    "rate-micro-batch": "timestamp timestamp, value long",
    "socket": "value string",
    "text": "value string",
}


class InputProblem(Exception):
    """The inputs of a test do not fit the job; the message says which and how to fix it."""


@dataclass(frozen=True)
class Stream:
    """Rows for one source. `batches` are fed one by one; each is a list of rows, and may be empty.

    Columns come from the job's own `.schema(…)` or from the format; give `schema` where neither tells.
    """

    batches: Sequence[Sequence[Any]]
    schema: str | None = None


def as_stream(key: str, given: Any) -> Stream:
    """A list of lists is batches; a plain list of rows is one batch."""
    if isinstance(given, Stream):
        return given
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InputProblem(f"inputs[{key!r}] is no list of rows: {type(given).__name__}")
    if all(isinstance(batch, list | tuple) for batch in given):
        return Stream(given)
    return Stream([given])


@dataclass(frozen=True)
class Source:
    """What a job reads, as far as its `readStream` tells."""

    format: str
    options: Mapping[str, str]
    name: str | None = None
    place: str | None = None  # a path or a table

    @property
    def keys(self) -> list[str]:
        """The names under which a test may give its rows, the most exact first."""
        keys = [self.name] if self.name else []
        topics = self.options.get("subscribe") or self.options.get("subscribepattern")
        if topics:
            keys += [topics, *(topic.strip() for topic in topics.split(","))]
        place = self.place or self.options.get("path")
        if place:
            path = PurePosixPath(place.rstrip("/"))
            keys += [place, str(path), path.name, path.stem, place.rpartition(".")[2]]
        return list(dict.fromkeys([*keys, self.format]))


def find_stream(source: Source, streams: Mapping[str, Stream]) -> str:
    """The key of the rows for a source. A test never reads the real one, so there must be some."""
    for key in source.keys:
        if key in streams:
            return key
    given = f"inputs has: {', '.join(streams)}" if streams else "inputs is empty"
    raise InputProblem(
        f"the job reads {_in_words(source)}, and {given}."
        f" Add rows for it: inputs={{{source.keys[0]!r}: [[…rows of the first batch…], …]}}"
    )


def check_all_used(streams: Iterable[str], used: Iterable[str], sources: Sequence[Source]) -> None:
    unused = [key for key in streams if key not in set(used)]
    if unused:
        read = ", ".join(_in_words(source) for source in sources) or "nothing"
        raise InputProblem(f"inputs[{unused[0]!r}] is never read; the job reads {read}")


def json_lines(rows: Sequence[Any], columns: Sequence[str], where: str) -> str:
    """A file for Spark's JSON source."""
    lines = []
    for row in rows:
        if not isinstance(row, Mapping):
            raise InputProblem(f"{where}: a row must be a dict, not {type(row).__name__}: {row!r}")
        for name in row:
            if name not in columns:
                near = difflib.get_close_matches(str(name), columns, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"columns are: {', '.join(columns)}"
                raise InputProblem(f"{where}: there is no column {name!r}; {hint}")
        lines.append(json.dumps(dict(row), default=_plain) + "\n")
    return "".join(lines)


def kafka_rows(rows: Sequence[Any], topic: str, first_offset: int) -> list[dict[str, Any]]:
    """Rows of a topic as Kafka's source gives them. A row without `value` is itself the value, as JSON."""
    records = []
    for offset, row in enumerate(rows, first_offset):
        given = row if isinstance(row, Mapping) and "value" in row else {"value": row}
        record = {"key": None, "topic": topic, "partition": 0, "offset": offset, "timestampType": 0, **given}
        records.append(record | {"key": _to_bytes(record["key"]), "value": _to_bytes(record["value"])})
    return records


def _to_bytes(value: Any) -> bytes | None:
    match value:
        case None | bytes():
            return value
        case str():
            return value.encode()
        case _:
            return json.dumps(value, default=_plain).encode()


def _plain(value: Any) -> Any:
    """What JSON does not know, as Spark's JSON source reads it."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case set() | frozenset():
            return sorted(value)
        case _:
            raise InputProblem(f"a value of type {type(value).__name__} cannot be given to Spark: {value!r}")


def _in_words(source: Source) -> str:
    key = source.keys[0]
    return f"{source.format} {key!r}" if key != source.format else f"{source.format!r}"
