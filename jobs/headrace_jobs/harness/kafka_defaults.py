"""Gives `spec.kafka` to each Kafka source and sink of user code, beneath the options that the code sets."""

from __future__ import annotations

import logging
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from headrace_jobs.harness.io_state import IoState, remember
from headrace_jobs.harness.kafka import BOOTSTRAP, is_kafka, names_other_brokers, options_to_add
from headrace_jobs.harness.kafka_sql import with_kafka
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.runfile import Kafka

log = logging.getLogger("headrace")

_STATE = "_headrace_kafka"


def give_kafka_defaults(patches: Patches, kafka: Kafka) -> None:
    """Before `take_over_writers`: by the time `start` comes here, its arguments are set on the writer."""
    for owner in (DataStreamReader, DataFrameReader, DataStreamWriter, DataFrameWriter):
        remember(patches, owner, _state)
    for owner in (DataStreamReader, DataFrameReader):
        patches.replace(owner, "load", lambda original: _load(original, kafka))
    patches.replace(DataFrameWriter, "save", lambda original: _save(original, kafka))
    patches.replace(DataStreamWriter, "start", lambda original: _start(original, kafka))
    patches.replace(SparkSession, "sql", lambda original: _sql(original, kafka))
    patches.replace(Catalog, "createTable", lambda original: _create_table(original, kafka))


def _load(original: Any, kafka: Kafka) -> Any:
    def load(
        self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> Any:
        if format is not None:
            self.format(format)
        self.options(**options)
        add_defaults(self, "_jreader", kafka)
        return original(self, path, schema=schema)

    return load


def _save(original: Any, kafka: Kafka) -> Any:
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - Spark's own parameter name
        **options: Any,
    ) -> None:
        if format is not None:
            self.format(format)
        self.options(**options)
        add_defaults(self, "_jwrite", kafka)
        original(self, path, mode=mode, partitionBy=partitionBy)

    return save


def _start(original: Any, kafka: Kafka) -> Any:
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        add_defaults(self, "_jwrite", kafka)
        return original(self, *args, **kwargs)

    return start


def _sql(original: Any, kafka: Kafka) -> Any:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:  # noqa: N803 - Spark's own
        return original(self, with_kafka(sqlQuery, kafka), args, **kwargs)

    return sql


def _create_table(original: Any, kafka: Kafka) -> Any:
    def createTable(  # noqa: N802, PLR0917 - it becomes one
        self: Any,
        tableName: str,  # noqa: N803 - Spark's own parameter name
        path: str | None = None,
        source: str | None = None,
        schema: Any = None,
        description: str | None = None,
        **options: str,
    ) -> Any:
        if is_kafka(source):
            given = {key.lower(): str(value) for key, value in options.items()}
            options = {**options, **options_to_add(kafka, given)}
        return original(self, tableName, path, source, schema, description, **options)

    return createTable


def add_defaults(io: Any, java: str, kafka: Kafka) -> None:
    """Sets, on Spark's own object behind `io`, what the code left open."""
    state = _state(io)
    if not is_kafka(state.format):
        return
    if names_other_brokers(kafka, state.options):
        log.info(
            "Kafka at %s is not the one of spec.kafka: it gets none of its settings", state.options[BOOTSTRAP]
        )
    for key, value in options_to_add(kafka, state.options).items():
        setattr(io, java, getattr(io, java).option(key, value))


def _state(io: Any) -> IoState:
    return io.__dict__.setdefault(_STATE, IoState())
