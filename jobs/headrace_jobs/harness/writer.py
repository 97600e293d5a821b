"""Takes over pyspark's `writeStream`: where a query becomes one of ours.

Each query gets its checkpoint below the run, the trigger the manifest asks for, and a name that it must
bring itself. Faults are raised where the user wrote them, so that the traceback names the line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

from headrace_jobs import run
from headrace_jobs.harness.beginnings import Beginnings
from headrace_jobs.harness.conf import check_session_conf, spark_url
from headrace_jobs.harness.managed import BatchScope, QueryRegistry
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.rules import Refused
from headrace_jobs.harness.runfile import RunFile

_GOOD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_STATE = "_headrace"


class WriterState:
    """What we remember of one DataStreamWriter; Spark's own is write-only."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.scope = BatchScope()


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


def take_over_writers(
    patches: Patches, run_file: RunFile, registry: QueryRegistry, beginnings: Beginnings
) -> None:
    for name, make in (
        ("option", _checked_option),
        ("options", _checked_options),
        ("queryName", _remembered_name),
        ("foreachBatch", _scoped_foreach_batch),
    ):
        patches.replace(DataStreamWriter, name, make)
    set_trigger = DataStreamWriter.__dict__["trigger"]
    patches.replace(DataStreamWriter, "trigger", _checked_trigger)
    prepare = functools.partial(_prepare, run_file=run_file, set_trigger=set_trigger, beginnings=beginnings)
    for name in ("start", "toTable"):
        patches.replace(
            DataStreamWriter, name, functools.partial(_managed_start, prepare, registry, beginnings)
        )


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


def _checked_trigger(original: Any) -> Any:
    def trigger(self: Any, **arguments: Any) -> Any:
        check_trigger(arguments)
        return original(self, **arguments)

    return trigger


def _scoped_foreach_batch(original: Any) -> Any:
    def foreach_batch(self: Any, func: Callable[[Any, int], None]) -> Any:
        return original(self, in_batch_scope(func, _state(self).scope))

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
    prepare: Callable[[Any], str], registry: QueryRegistry, beginnings: Beginnings, original: Any
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
        name = prepare(self)
        jsq = original(self, target)._jsq
        beginnings.started(name, jsq)
        return registry.adopt(name, jsq, _state(self).scope)

    return start


def _prepare(writer: Any, *, run_file: RunFile, set_trigger: Any, beginnings: Beginnings) -> str:
    name = check_name(_state(writer).name)
    check_session_conf(lambda key: writer._spark.conf.get(key, None))
    beginnings.admit(name, writer)
    # Past the check of the option, which is for users.
    writer._jwrite = writer._jwrite.option("checkpointLocation", spark_url(run_file.checkpoint_of(name)))
    trigger = run_file.trigger
    if trigger.mode == "AvailableNow":
        set_trigger(writer, availableNow=True)
    elif trigger.interval_seconds is not None:
        set_trigger(writer, processingTime=f"{round(trigger.interval_seconds * 1000)} milliseconds")
    return name
