"""Muted sinks, for a rehearsal: everything is computed, nothing is written.

The user's own writer is left as it is, for the day it is started in earnest; what runs is a fresh one on the
same frame. Where a sink can be judged without touching it, it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.writer import Start, WriterState, in_batch_scope

# Spark's own, before anything replaces it.
_foreach_batch = DataStreamWriter.__dict__["foreachBatch"]
# Their sink can only append, which Spark says when it starts and not before.
_APPEND_ONLY = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
_WITHOUT_PROVIDER = frozenset({"memory"})
_NOT_FOUND = "DATA_SOURCE_NOT_FOUND"
_WRONG_MODE = "UNSUPPORTED_OUTPUT_MODE"


class SinkImpossible(Exception):
    """The real sink could not be started; with Spark's error class."""

    def __init__(self, message: str, condition: str) -> None:
        super().__init__(message)
        self._condition = condition

    def getCondition(self) -> str:  # noqa: N802 - Spark's name for it
        return self._condition


class Readers:
    """What the user's readers ask for that a rehearsal must know."""

    def __init__(self) -> None:
        self.clean_up = False

    def take_over(self, patches: Patches) -> None:
        def option(original: Any) -> Any:
            def checked(reader: Any, key: str, value: Any) -> Any:
                self._note(key, value)
                return original(reader, key, value)

            return checked

        def options(original: Any) -> Any:
            def checked(reader: Any, **given: Any) -> Any:
                for key, value in given.items():
                    self._note(key, value)
                return original(reader, **given)

            return checked

        patches.replace(DataStreamReader, "option", option)
        patches.replace(DataStreamReader, "options", options)

    def _note(self, key: str, value: Any) -> None:
        if key.lower() == "cleansource" and str(value).lower() != "off":
            self.clean_up = True


@dataclass(frozen=True)
class Muted:
    """How a query is started without its sink."""

    start: Start
    call_foreach_batch: bool

    def writer(self, checkpoint: str, trigger: Any) -> Any:
        """The JVM's writer, to be started."""
        python = DataStreamWriter(self.start.frame)
        function = self.start.state.foreach_batch
        if function is not None:
            _foreach_batch(python, in_batch_scope(self._muted(function), self.start.state.scope))
        else:
            python._jwrite = python._jwrite.format("noop")
        return (
            python._jwrite.queryName(self.start.name)
            .outputMode(self.start.state.output_mode)
            .option("checkpointLocation", checkpoint)
            .trigger(trigger)
        )

    def _muted(self, function: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
        """Instead of a function for foreachBatch: the same way through Spark, and through Python, as later.

        What was never run before takes its time in the first batch in earnest, while nobody else writes.
        """

        def compute(frame: Any, batch_id: int) -> None:
            if self.call_foreach_batch:
                function(frame, batch_id)
            # A function that writes nothing, as it should here, may leave the frame alone: the state would
            # not be computed, and Spark ends the query.
            frame.write.format("noop").mode("append").save()

        return compute

    def note(self) -> str | None:
        if self.start.state.foreach_batch is None or self.call_foreach_batch:
            return None
        return f"query {self.start.name}: its foreachBatch function was not called"


def check_sink(session: Any, start: Start) -> None:
    """Raises SinkImpossible. Touches nothing: no directory is made, no broker or table asked."""
    state = start.state
    if state.foreach_batch is not None or state.foreach:
        return
    name = _format(session, state)
    if name.lower() in _WITHOUT_PROVIDER:
        return
    if not _is_known(session, name):
        raise SinkImpossible(f"there is no data source {name!r} to write to", _NOT_FOUND)
    if name.lower() in _APPEND_ONLY and not start.is_table and state.output_mode != "append":
        raise SinkImpossible(
            f"the {name} sink of query {start.name} cannot write in output mode {state.output_mode}: "
            "use append, or foreachBatch",
            _WRONG_MODE,
        )


def _format(session: Any, state: WriterState) -> str:
    return state.format or session.conf.get("spark.sql.sources.default")


def _is_known(session: Any, name: str) -> bool:
    state = session._jsparkSession.sessionState()
    try:
        session._jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(
            name, state.conf()
        )
    except Py4JJavaError:
        return bool(state.dataSourceManager().dataSourceExists(name))
    except Exception as error:
        # pyspark has made an exception of its own of what it knows: the source is one that must be added.
        if type(error).__name__ == "AnalysisException":
            return False
        raise
    return True
