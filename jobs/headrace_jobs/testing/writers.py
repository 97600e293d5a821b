"""Takes over `writeStream` for the time of a test: whatever the sink, the rows come to the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headrace_jobs.harness.managed import BatchScope
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.writer import check_name, check_option, check_trigger, in_batch_scope
from headrace_jobs.testing.player import Capture, Player

_STATE = "_headrace"


class SinkState:
    def __init__(self) -> None:
        self.name: str | None = None
        self.output_mode = "append"
        self.function: Callable[[Any, int], None] | None = None


def take_over_writers(patches: Patches, player: Player, scratch: Path, *, call_foreach_batch: bool) -> None:
    plain = {name: DataStreamWriter.__dict__[name] for name in ("option", "foreachBatch", "start")}
    for name, make in (
        ("option", _checked_option),
        ("options", _checked_options),
        ("queryName", _remembered_name),
        ("outputMode", _remembered_mode),
        ("trigger", _checked_trigger),
        ("foreachBatch", _remembered_function),
        ("format", _ignored),
        ("foreach", _ignored),
        ("partitionBy", _ignored),
        ("clusterBy", _ignored),
    ):
        patches.replace(DataStreamWriter, name, make)

    def start(self: Any, *_target: Any, **given: Any) -> Any:
        for key in ("path", "tableName", "format", "partitionBy"):
            given.pop(key, None)
        for setter, key in ((self.outputMode, "outputMode"), (self.queryName, "queryName")):
            value = given.pop(key, None)
            if value is not None:
                setter(value)
        self.options(**given)
        state = _state(self)
        name = check_name(state.name)
        checkpoint = scratch / "checkpoints" / name
        capture = Capture(
            name, state.output_mode, checkpoint, BatchScope(), state.function if call_foreach_batch else None
        )
        writer = plain["foreachBatch"](self, in_batch_scope(capture.take, capture.scope))
        writer = plain["option"](writer, "checkpointLocation", str(checkpoint))
        return player.add_query(plain["start"](writer)._jsq, capture)

    for name in ("start", "toTable"):
        patches.replace(DataStreamWriter, name, lambda _original: start)
    _take_over_manager(patches, player)


def _take_over_manager(patches: Patches, player: Player) -> None:
    def await_any_termination(_self: Any, timeout: int | None = None) -> bool | None:
        player.play()
        return True if timeout is not None else None

    patches.replace(StreamingQueryManager, "awaitAnyTermination", lambda _original: await_any_termination)
    patches.replace(StreamingQueryManager, "active", lambda _original: property(lambda _self: []))


def _state(writer: Any) -> SinkState:
    return writer.__dict__.setdefault(_STATE, SinkState())


def _checked_option(_original: Any) -> Any:
    def option(self: Any, key: str, value: Any) -> Any:
        check_option(key, value)
        return self

    return option


def _checked_options(_original: Any) -> Any:
    def options(self: Any, **given: Any) -> Any:
        for key, value in given.items():
            check_option(key, value)
        return self

    return options


def _remembered_name(_original: Any) -> Any:
    def query_name(self: Any, queryName: str) -> Any:  # noqa: N803 - Spark's own parameter name
        _state(self).name = check_name(queryName)
        return self

    return query_name


def _remembered_mode(original: Any) -> Any:
    def output_mode(self: Any, outputMode: str) -> Any:  # noqa: N803 - Spark's own parameter name
        _state(self).output_mode = outputMode.lower()
        return original(self, outputMode)

    return output_mode


def _checked_trigger(_original: Any) -> Any:
    def trigger(self: Any, **arguments: Any) -> Any:
        check_trigger(arguments)
        return self  # a test does not wait for the clock

    return trigger


def _remembered_function(_original: Any) -> Any:
    def foreach_batch(self: Any, func: Callable[[Any, int], None]) -> Any:
        _state(self).function = func
        return self

    return foreach_batch


def _ignored(_original: Any) -> Any:
    def ignore(self: Any, *_args: Any, **_given: Any) -> Any:
        return self

    return ignore
