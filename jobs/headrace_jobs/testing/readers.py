"""Takes over `spark.readStream` (and, for tables that do not stream, `spark.read`) for the time of a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from headrace_jobs.harness.io_state import IoState, remember
from headrace_jobs.harness.patches import Patches
from headrace_jobs.testing.inputs import FIXED_SCHEMAS, InputProblem, Source, Stream
from headrace_jobs.testing.player import Player

_STATE = "_headrace"
_FILE_FORMATS = ("json", "csv", "parquet", "orc", "text", "xml")


@dataclass
class ReaderState(IoState):
    schema: StructType | str | None = None
    name: str | None = None

    @property
    def kind(self) -> str:
        return (self.format or "parquet").lower()


def take_over_stream_readers(patches: Patches, session: SparkSession, player: Player) -> None:
    def read(state: ReaderState, place: str | None) -> Any:
        source = Source(state.kind, state.options, state.name, place)
        feed, schema = player.add_feed(source, lambda stream: _schema_of(session, state, stream))
        plain = DataStreamReader(session).schema(schema)
        # FAILFAST: a value of a wrong type must not become a null that nobody notices.
        java: Any = plain._jreader
        java = java.format("json").option("maxFilesPerTrigger", "1").option("mode", "FAILFAST")
        return plain._df(java.load(str(feed.directory)))

    _take_over(patches, DataStreamReader, lambda state, place, _original: read(state, place))
    patches.replace(DataStreamReader, "table", lambda _o: lambda self, name: read(_table(self), name))
    if "name" in DataStreamReader.__dict__:  # since Spark 4.2
        patches.replace(DataStreamReader, "name", _remembered_name)


def take_over_static_readers(
    patches: Patches, session: SparkSession, tables: Mapping[str, list[dict[str, Any]]]
) -> None:
    """Only what the test gives is replaced: a job may well read a small file of its own."""

    def rows_for(state: ReaderState, place: str | None) -> Any:
        key = next(
            (key for key in Source(state.kind, state.options, None, place).keys if key in tables), None
        )
        if key is None:
            return None
        return session.createDataFrame(tables[key], schema=state.schema)  # type: ignore[arg-type]

    def read(state: ReaderState, place: str | None, original: Callable[[], Any]) -> Any:
        found = rows_for(state, place)
        return original() if found is None else found

    _take_over(patches, DataFrameReader, read)
    for owner in (DataFrameReader, SparkSession):
        patches.replace(owner, "table", lambda original: _static_table(original, rows_for))


def _take_over(patches: Patches, owner: type, read: Callable[..., Any]) -> None:
    remember(patches, owner, _state)
    patches.replace(owner, "schema", _remembered_schema)
    patches.replace(owner, "load", lambda original: _load(original, read))
    for name in _FILE_FORMATS:
        patches.replace(owner, name, lambda original, name=name: _load_format(original, read, name))


def _load(original: Any, read: Callable[..., Any]) -> Any:
    def load(
        self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> Any:
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        return read(_state(self), path, lambda: original(self, path) if path is not None else original(self))

    return load


def _load_format(original: Any, read: Callable[..., Any], name: str) -> Any:
    def load(self: Any, path: Any, *args: Any, **given: Any) -> Any:
        state = _state(self)
        state.format = name
        schema = given.get("schema") or (args[0] if args and isinstance(args[0], str | StructType) else None)
        if schema is not None:
            state.schema = schema
        return read(
            state, path if isinstance(path, str) else None, lambda: original(self, path, *args, **given)
        )

    return load


def _static_table(original: Any, rows_for: Callable[..., Any]) -> Any:
    def table(self: Any, tableName: str) -> Any:  # noqa: N803 - Spark's own parameter name
        found = rows_for(ReaderState(), tableName)
        return original(self, tableName) if found is None else found

    return table


def _schema_of(session: SparkSession, state: ReaderState, stream: Stream) -> StructType:
    """The job's own columns if it names them, else the format's, else what the test says or shows."""
    told = state.schema or FIXED_SCHEMAS.get(state.kind) or stream.schema
    if isinstance(told, StructType):
        return told
    if told is not None:
        return cast(StructType, StructType.fromDDL(told))
    rows = [row for batch in stream.batches for row in batch]
    if not rows:
        raise InputProblem(
            "there are no rows to tell the columns from. Give them: Stream([…], schema='id int, …')"
        )
    return session.createDataFrame(rows).schema


def _state(reader: Any) -> ReaderState:
    return reader.__dict__.setdefault(_STATE, ReaderState())


def _table(reader: Any) -> ReaderState:
    state = _state(reader)
    state.format = "table"
    return state


def _remembered_schema(original: Any) -> Any:
    def schema(self: Any, schema: Any) -> Any:
        _state(self).schema = schema
        return original(self, schema)

    return schema


def _remembered_name(_original: Any) -> Any:
    def name(self: Any, source_name: str) -> Any:
        _state(self).name = source_name
        return self

    return name
