"""What needs pyspark, in one place: it is imported while the JVM starts, not before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headrace_jobs.harness.beginnings import SeedLookup, beginnings
from headrace_jobs.harness.checkpoint_control import CheckpointControl
from headrace_jobs.harness.conf import spark_url
from headrace_jobs.harness.driver_jvm import Gateway
from headrace_jobs.harness.endings import QueryEnd
from headrace_jobs.harness.failure import UserCode
from headrace_jobs.harness.kafka_defaults import give_kafka_defaults
from headrace_jobs.harness.kafka_lag import KafkaTopics
from headrace_jobs.harness.lag import LagMeter
from headrace_jobs.harness.managed import QueryRegistry
from headrace_jobs.harness.manager import take_over_manager
from headrace_jobs.harness.observer import Observer
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.harness.session import guard_session, open_session
from headrace_jobs.harness.tracker import Tracker
from headrace_jobs.harness.writer import take_over_writers
from headrace_jobs.jvm import check_spark_version


@dataclass(frozen=True)
class SparkSide:
    session: SparkSession
    registry: QueryRegistry
    control: CheckpointControl
    observer: Observer

    def stop_spark(self) -> None:
        java_context: Any = self.session.sparkContext._jsc
        java_context.stop()


def take_over_spark(
    run_file: RunFile,
    gateway: Gateway,
    *,
    own: UserCode,
    seed: SeedLookup,
    claim_body: str,
    on_query_end: Callable[[str, QueryEnd], None],
) -> SparkSide:
    """Opens the session, claims the run, and makes every query of user code one of ours.

    Raises UnsupportedSpark, Fenced or StoreUnavailable.
    """
    session = open_session(gateway)
    check_spark_version(session.version)
    for path in run_file.application.py_files:
        if not Path(path).is_dir():  # directories are on the import path already
            session.sparkContext.addPyFile(path)
    control = CheckpointControl(session, spark_url(run_file.run_path))
    control.claim(run_file.attempt, claim_body)
    registry = QueryRegistry(on_query_end, own)
    patches = Patches()
    guard_session(patches)
    if run_file.kafka is not None:
        give_kafka_defaults(patches, run_file.kafka)
    take_over_writers(patches, run_file, registry, beginnings(run_file, seed.result(), control.batches))
    take_over_manager(patches, registry)
    context: Any = session.sparkContext
    tracker = Tracker(context._jvm, context._gateway, context._jsc.sc())
    topics = KafkaTopics(context._jvm, registry.java_query)
    observer = Observer(
        registry,
        LagMeter(run_file.run_path, topics).measure,
        time.monotonic,
        count_executors=tracker.executors,
        measure_skew=tracker.task_skew,
    )
    observer.start()
    return SparkSide(session, registry, control, observer)
