"""What needs pyspark, in one place: it is imported while the JVM starts, not before."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headrace_jobs.harness.assignment import Assignment, claim_body
from headrace_jobs.harness.beginnings import Beginnings, SeedLookup, beginnings
from headrace_jobs.harness.checkpoint_control import CheckpointControl
from headrace_jobs.harness.driver_jvm import Gateway
from headrace_jobs.harness.endings import Event, QueryEnd
from headrace_jobs.harness.failure import UserCode
from headrace_jobs.harness.file_lag import FileLag, ListFiles, jvm_files, jvm_patterns
from headrace_jobs.harness.kafka import references_of
from headrace_jobs.harness.kafka_defaults import give_kafka_defaults
from headrace_jobs.harness.kafka_lag import KafkaTopics
from headrace_jobs.harness.lag import LagMeter
from headrace_jobs.harness.managed import ManagedQuery, QueryRegistry
from headrace_jobs.harness.manager import take_over_manager
from headrace_jobs.harness.meaning_notes import Functions, Meanings, note_when_proven
from headrace_jobs.harness.muting import Readers
from headrace_jobs.harness.observer import MeasureLag, Observer
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.rehearsal import Rehearsal
from headrace_jobs.harness.repartition import Repartition
from headrace_jobs.harness.run_store import store_of
from headrace_jobs.harness.session import guard_session, open_session
from headrace_jobs.harness.source_notes import SourceNotes
from headrace_jobs.harness.tracker import Tracker
from headrace_jobs.harness.view import Lag
from headrace_jobs.harness.writer import Start, take_over_writers
from headrace_jobs.jvm import check_spark_version
from headrace_jobs.store import Store


@dataclass(frozen=True)
class SparkSide:
    session: SparkSession
    registry: QueryRegistry
    control: CheckpointControl
    observer: Observer
    rehearsal: Rehearsal | None
    repartition: Repartition | None

    def stop_spark(self) -> None:
        java_context: Any = self.session.sparkContext._jsc
        java_context.stop()


@dataclass(frozen=True)
class Hooks:
    """How the driver hears of what happens."""

    on_query_end: Callable[[str, QueryEnd], None]
    tell: Callable[[Event], None]
    application_finished: Callable[[], bool]


def take_over_spark(
    assignment: Assignment,
    gateway: Gateway,
    *,
    own: UserCode,
    seed: SeedLookup,
    hooks: Hooks,
) -> SparkSide:
    """Opens the session, claims the run, and makes every query of user code one of ours.

    Raises UnsupportedSpark, Fenced or StoreUnavailable.
    """
    run_file = assignment.run_file
    session = open_session(gateway)
    check_spark_version(session.version)
    for path in run_file.application.py_files:
        if not Path(path).is_dir():  # directories are on the import path already
            session.sparkContext.addPyFile(path)
    control = CheckpointControl(session, assignment)
    control.claim(run_file, claim_body(run_file, spark_version=session.version))
    registry = QueryRegistry(hooks.on_query_end, own)
    patches = Patches()
    guard_session(patches)
    if run_file.kafka is not None:
        give_kafka_defaults(patches, run_file.kafka)
    functions = Functions(own)
    functions.take_over(patches)
    meanings = Meanings(session, functions)
    store = functools.partial(store_of, run_file)
    repartition = _repartition(assignment, session, store)
    rehearsal = None
    if assignment.rehearsing:
        readers = Readers()
        readers.take_over(patches)
        rehearsal = Rehearsal(
            assignment,
            registry,
            control,
            session,
            store=store(),
            readers=readers,
            meanings=meanings,
            tell=hooks.tell,
            application_finished=hooks.application_finished,
            repartition=repartition,
        )
    starts = beginnings(assignment, seed.result(), control.batches)
    launcher = _Launcher(assignment, registry, meanings, store, rehearsal, starts)
    take_over_writers(patches, assignment, launcher.launch)
    take_over_manager(patches, registry)
    context: Any = session.sparkContext
    tracker = Tracker(context._jvm, context._gateway, context._jsc.sc())
    topics = KafkaTopics(context._jvm, registry.java_query, references_of(run_file.kafka))
    observer = Observer(
        registry,
        _lag_meter(assignment, topics, store, jvm_files(context._jvm, context._jsc.hadoopConfiguration)),
        time.monotonic,
        count_executors=tracker.executors,
        measure_skew=tracker.task_skew,
    )
    observer.start()
    return SparkSide(session, registry, control, observer, rehearsal, repartition)


@dataclass(frozen=True)
class _Launcher:
    """Starts what the user's code starts: in earnest, or on a fork."""

    assignment: Assignment
    registry: QueryRegistry
    meanings: Meanings
    store: Callable[[], Store]
    rehearsal: Rehearsal | None
    beginnings: Beginnings

    def launch(self, start: Start) -> ManagedQuery:
        start = self.beginnings.watching(start)
        if self.rehearsal is not None and self.rehearsal.takes():
            return self.rehearsal.launch(start)
        meaning = self.meanings.note(start)
        query = self.registry.adopt(start.name, start.begin(), start.state.scope)
        if meaning is not None:
            note_when_proven(self.store, self.assignment.run_file.run, query, meaning)
        return query


def _repartition(
    assignment: Assignment, session: SparkSession, store: Callable[[], Store]
) -> Repartition | None:
    run_file = assignment.run_file
    if run_file.repartition is None:
        return None
    return Repartition(
        session, store(), run_file.directory, run_file.checkpoint_of, partitions=run_file.repartition
    )


def _lag_meter(
    assignment: Assignment, topics: KafkaTopics, store: Callable[[], Store], list_files: ListFiles
) -> MeasureLag:
    """Of the run that the driver works on: a candidate goes from the fork to the run."""
    meters: dict[str, LagMeter] = {}

    def measure(query: str, progress: dict[str, Any] | None) -> Lag:
        run_file = assignment.run_file
        if run_file.run_path not in meters:
            notes = None if assignment.rehearsing else SourceNotes(store, run_file.run)
            patterns = jvm_patterns(topics.find_query)
            files = FileLag(store, run_file.directory, list_files, pattern_of=patterns)
            meters[run_file.run_path] = LagMeter(topics, files, notes=notes)
        return meters[run_file.run_path].measure(query, progress)

    return measure
