"""Sees to it that a query begins where it should, and tells the store what it writes to.

A reader does not know which query it will be part of, so nothing can be done when it is made. When a query
starts, its plan holds its sources with their options; Spark reads those a moment later, in the query's own
thread. So the options are replaced there, in place.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace_jobs.harness.assignment import Assignment
from headrace_jobs.harness.control import StoreUnavailable
from headrace_jobs.harness.kafka import is_kafka
from headrace_jobs.harness.rules import StartRefused
from headrace_jobs.harness.run_store import store_of
from headrace_jobs.harness.runfile import RunFile, Start
from headrace_jobs.harness.start import OWNED, check_seed, check_source, check_topics, kafka_options
from headrace_jobs.harness.writer import Start as QueryStart
from headrace_jobs.store import Seed, StoreError, read_seed
from headrace_jobs.store.runs import tell_sink

log = logging.getLogger("headrace")

_OPTION_FIELDS = ("original", "delegate")


class SeedLookup:
    """What the run was seeded with, read while the JVM starts."""

    def __init__(self, run_file: RunFile) -> None:
        self._run_file = run_file
        self._seed: Seed | None = None
        self._error: StoreError | None = None
        self._thread = threading.Thread(target=self._read, name="headrace-seed", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            self._seed = read_seed(store_of(self._run_file), self._run_file.run)
        except StoreError as error:
            self._error = error

    def result(self) -> Seed | None:
        self._thread.join()
        if self._error is not None:
            raise StoreUnavailable(f"{self._run_file.run_path} cannot be read: {self._error}")
        return self._seed


@dataclass
class Beginnings:
    """For each query as it starts. `begun` names those that have a checkpoint already."""

    start: Start | None
    seed: Seed | None
    begun: Callable[[], frozenset[str]]
    tell: Callable[[str, str], None]

    def __post_init__(self) -> None:
        # Which query a reader's options were set for, by the identity of the options.
        self._set_for: dict[int, tuple[str, dict[str, str]]] = {}

    def watching(self, start: QueryStart) -> QueryStart:
        """The same, but checked before it begins in earnest, and noted after. Raises StartRefused."""

        def begin() -> Any:
            self._admit(start.name, start.frame)
            jsq = start.begin()
            # Some sinks cannot follow a fork; the checkpoint itself does not know its sink.
            with contextlib.suppress(Exception):  # of Spark's insides; it is told again by the next attempt
                self.tell(start.name, str(jsq.streamingQuery().sink().toString()))
            return jsq

        return replace(start, begin=begin)

    def _admit(self, query: str, frame: Any) -> None:
        check_seed(self.seed, query)
        if self.start is not None and query not in self.begun():
            self._set_start(self.start, query, frame)

    def _set_start(self, start: Start, query: str, frame: Any) -> None:
        readers: list[tuple[Any, dict[str, str]]] = []
        for source in streaming_sources(frame._jdf):
            name = str(source.sourceName())
            new_api = "V2" in source.getClass().getSimpleName()  # the old one has its source made already
            check_source(start, query, name, can_start=is_kafka(name) and new_api)
            options = source.extraOptions()
            readers.append((options, {str(key).lower(): str(value) for key, value in options.items()}))
        check_topics(start, query, (given for _, given in readers))
        for options, given in readers:
            wanted = kafka_options(start, query, given)
            self._claim(frame.sparkSession._jvm.System.identityHashCode(options), query, wanted)
            replace_options(options, OWNED, wanted)
            log.info("query %s begins where spec.startFrom says", query)

    def _claim(self, identity: int, query: str, wanted: dict[str, str]) -> None:
        other, before = self._set_for.setdefault(identity, (query, wanted))
        if before != wanted:
            raise StartRefused(
                f"the queries {other} and {query} share one reader, and spec.startFrom.offsets has different "
                "offsets for them: call load() once for each"
            )


def beginnings(
    assignment: Assignment, seed: Seed | None, batches: Callable[[], dict[str, Any]]
) -> Beginnings:
    known: list[frozenset[str]] = []

    def begun() -> frozenset[str]:
        if not known:
            known.append(frozenset(name for name, last in batches().items() if last.offsets >= 0))
        return known[0]

    def tell(query: str, sink: str) -> None:
        _tell_sink(assignment.run_file, query, sink)

    return Beginnings(assignment.run_file.start, seed, begun, tell)


def streaming_sources(frame: Any) -> Iterator[Any]:
    """The sources of a frame, as they are in its analyzed plan."""
    leaves = frame.queryExecution().analyzed().collectLeaves()
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        if leaf.isStreaming() and "StreamingRelation" in leaf.getClass().getSimpleName():
            yield leaf


def replace_options(options: Any, owned: Sequence[str], wanted: dict[str, str]) -> None:
    """In place: Spark's map of options has no method for it, but holds two ordinary ones."""
    for name in _OPTION_FIELDS:
        field = options.getClass().getDeclaredField(name)
        field.setAccessible(True)
        inside = field.get(options)
        for key in [key for key in inside if key.lower() in owned]:
            inside.remove(key)
        for key, value in wanted.items():
            inside.put(key, value)


def _tell_sink(run_file: RunFile, query: str, sink: str) -> None:
    def put() -> None:
        try:
            tell_sink(store_of(run_file), run_file.run, query, sink)
        except Exception as error:
            log.warning("the sink of query %s could not be noted in the store: %s", query, error)

    threading.Thread(target=put, name=f"headrace-sink-{query}", daemon=True).start()
