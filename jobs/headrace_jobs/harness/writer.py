"""Takes over pyspark's `writeStream`: where a query becomes one of ours.

Each query gets its checkpoint below the run, the trigger the manifest asks for, and a name that it must
bring itself. Faults are raised where the user wrote them, so that the traceback names the line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

from headrace_jobs import run
from headrace_jobs.harness.assignment import Assignment
from headrace_jobs.harness.conf import check_session_conf, spark_url
from headrace_jobs.harness.managed import BatchScope, ManagedQuery
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.rules import Refused

_GOOD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_STATE = "_headrace"


class WriterState:
    """What we remember of one DataStreamWriter; Spark's own is write-only."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.scope = BatchScope()
        self.output_mode = "append"
        self.format: str | None = None
        self.foreach_batch: Callable[[Any, int], None] | None = None
        self.foreach = False


@dataclass(frozen=True)
class Start:
    """A query that the user's code starts."""

    name: str
    frame: Any
    state: WriterState
    is_table: bool
    begin: Callable[[], Any]
    """Starts it in the JVM, in earnest, on the run that the driver works on by then."""


Launch = Callable[[Start], ManagedQuery]


def check_name(name: str | None) -> str:
    if name is None:
        raise Refused(
            "this query has no name, and its checkpoint is found by it."
            ' Add .queryName("…") before .start(), and keep that name'
        )
    if not _GOOD_NAME.fullmatch(name):
        raise Refused(
            f"the query name {name!r} cannot be part of a path."
            " Use letters, digits, '-', '_' and '.', at most 100, and begin with a letter or digit"
        )
    return name


def check_option(key: str, value: Any) -> None:
    match key.lower():
        case "checkpointlocation":
            raise Refused(
                f"the checkpoint location {value!r} is hard-coded; Headrace gives each query its own,"
                " or savepoints and upgrades could not work. Remove the checkpointLocation option"
            )
        case "asyncprogresstrackingenabled" if str(value).lower() == "true":
            raise Refused(
                "asyncProgressTrackingEnabled leaves gaps in the checkpoint, so there can be no savepoint."
                " Remove the option"
            )


def check_trigger(arguments: dict[str, Any]) -> None:
    for kind in ("continuous", "realTime"):
        if arguments.get(kind) is not None:
            raise Refused(
                f"trigger({kind}=…) does not write its checkpoint as batches do, and cannot be drained."
                " Use trigger(processingTime=…) or none"
            )


def take_over_writers(patches: Patches, assignment: Assignment, launch: Launch) -> None:
    for name, make in (
        ("option", _checked_option),
        ("options", _checked_options),
        ("queryName", _remembered_name),
        ("outputMode", _remembered_output_mode),
        ("format", _remembered_format),
        ("foreach", _remembered_foreach),
        ("foreachBatch", _scoped_foreach_batch),
    ):
        patches.replace(DataStreamWriter, name, make)
    set_trigger = DataStreamWriter.__dict__["trigger"]
    patches.replace(DataStreamWriter, "trigger", _checked_trigger)
    prepare = functools.partial(_prepare, assignment=assignment, set_trigger=set_trigger)
    for name in ("start", "toTable"):
        make = functools.partial(_managed_start, prepare, launch, is_table=name == "toTable")
        patches.replace(DataStreamWriter, name, make)


def _state(writer: Any) -> WriterState:
    return writer.__dict__.setdefault(_STATE, WriterState())


def _checked_option(original: Any) -> Any:
    def option(self: Any, key: str, value: Any) -> Any:
        check_option(key, value)
        return original(self, key, value)

    return option


def _checked_options(original: Any) -> Any:
    def options(self: Any, **given: Any) -> Any:
        for key, value in given.items():
            check_option(key, value)
        return original(self, **given)

    return options


def _remembered_name(original: Any) -> Any:
    def query_name(self: Any, queryName: str) -> Any:  # noqa: N803 - Spark's own parameter name
        result = original(self, queryName)
        _state(self).name = check_name(queryName)
        return result

    return query_name


def _remembered_output_mode(original: Any) -> Any:
    def output_mode(self: Any, outputMode: str) -> Any:  # noqa: N803 - Spark's own parameter name
        result = original(self, outputMode)
        _state(self).output_mode = outputMode.lower()
        return result

    return output_mode


def _remembered_format(original: Any) -> Any:
    def format(self: Any, source: str) -> Any:
        _state(self).format = source
        return original(self, source)

    return format


def _remembered_foreach(original: Any) -> Any:
    def foreach(self: Any, f: Any) -> Any:
        _state(self).foreach = True
        return original(self, f)

    return foreach


def _checked_trigger(original: Any) -> Any:
    def trigger(self: Any, **arguments: Any) -> Any:
        check_trigger(arguments)
        return original(self, **arguments)

    return trigger


def _scoped_foreach_batch(original: Any) -> Any:
    def foreach_batch(self: Any, func: Callable[[Any, int], None]) -> Any:
        state = _state(self)
        state.foreach_batch = in_batch_scope(func, state.scope)
        return original(self, state.foreach_batch)

    return foreach_batch


def in_batch_scope(func: Callable[[Any, int], None], scope: BatchScope) -> Callable[[Any, int], None]:
    """The user's function, with `run.batch_id` set and its own exception kept: Spark passes on text only."""

    @functools.wraps(func)
    def process(frame: Any, batch_id: int) -> None:
        scope.error = None
        with run.batch(batch_id, scope.lineage):
            try:
                func(frame, batch_id)
            except BaseException as error:
                scope.error = error
                raise

    return process


def _managed_start(
    prepare: Callable[[Any, str], None], launch: Launch, original: Any, *, is_table: bool
) -> Any:
    def start(  # noqa: PLR0917 - Spark's own parameters
        self: Any,
        target: Any = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        partitionBy: Any = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> Any:
        target = options.pop("path", options.pop("tableName", target))
        self.options(**options)
        for setter, value in (
            (self.outputMode, outputMode),
            (self.partitionBy, partitionBy),
            (self.format, format),
            (self.queryName, queryName),
        ):
            if value is not None:
                setter(value)
        name = check_name(_state(self).name)
        check_session_conf(lambda key: self._spark.conf.get(key, None))

        def begin() -> Any:
            prepare(self, name)
            return original(self, target)._jsq

        return launch(Start(name, self._df, _state(self), is_table, begin))

    return start


def _prepare(writer: Any, name: str, *, assignment: Assignment, set_trigger: Any) -> None:
    run_file = assignment.run_file
    tell_tasks(writer._spark, assignment)
    # Past the check of the option, which is for users.
    writer._jwrite = writer._jwrite.option("checkpointLocation", spark_url(run_file.checkpoint_of(name)))
    trigger = run_file.trigger
    if trigger.mode == "AvailableNow":
        set_trigger(writer, availableNow=True)
    elif trigger.interval_seconds is not None:
        set_trigger(writer, processingTime=f"{round(trigger.interval_seconds * 1000)} milliseconds")


def tell_tasks(session: Any, assignment: Assignment) -> None:
    """A query that this thread starts next hands it on to its tasks."""
    session.sparkContext.setLocalProperty(run.CONTEXT_PROPERTY, assignment.context())
