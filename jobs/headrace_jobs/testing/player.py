"""Feeds rows to a job batch by batch, and keeps what comes out.

Nothing runs by itself: a query waits until the script waits for it (or ends). Then each batch of rows is
laid down as a file, every query processes it to the end, and the next one follows. So a test's batches are
Spark's batches, and the watermark moves only when the test's rows move it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace_jobs.harness.failure import UserCode, failure_of_exception, failure_of_query
from headrace_jobs.harness.managed import BatchScope, java_chain
from headrace_jobs.harness.view import QueryView, is_batch, with_progress
from headrace_jobs.testing.inputs import Source, Stream, find_stream, json_lines, kafka_rows
from headrace_jobs.testing.results import QueryResult, Row, StepResult


class JobFailed(AssertionError):
    """A query of the tested job failed; the message names the user's own line."""


@dataclass
class Feed:
    """A directory that stands for one source."""

    key: str
    source: Source
    stream: Stream
    directory: Path
    columns: list[str]
    fed: int = 0

    def publish(self, step: int) -> None:
        rows = self.stream.batches[step] if step < len(self.stream.batches) else []
        if self.source.format == "kafka":
            rows = kafka_rows(rows, self.key, self.fed)
        where = f"inputs[{self.key!r}], batch {step}"
        text = json_lines(rows, self.columns, where)
        self.fed += len(rows)
        fresh = self.directory / f".{step:06d}"
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(self.directory / f"{step:06d}.json")


@dataclass
class Capture:
    """What one query gives, collected in its own sink."""

    name: str
    output_mode: str
    checkpoint: Path
    scope: BatchScope
    call: Callable[[Any, int], None] | None
    rows: list[Row] = field(default_factory=list)

    def take(self, frame: Any, batch_id: int) -> None:
        if self.call is not None:
            frame.persist()
            self.call(frame, batch_id)
        self.rows += frame.toArrow().to_pylist()


class TestedQuery(StreamingQuery):
    """A query under test: to wait for it is to play."""

    __test__ = False

    def __init__(self, jsq: Any, player: Player, capture: Capture) -> None:
        super().__init__(jsq)
        self._player = player
        self.capture = capture
        self.steps: list[StepResult] = []
        self.seen = 0

    @property
    def java(self) -> Any:
        return self._jsq

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name, as below
        self._player.play()
        return False

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        self._player.play()
        return True if timeout is not None else None

    def processAllAvailable(self) -> None:  # noqa: N802
        self._player.play()

    def stop(self) -> None:
        self._player.play()


class Player:
    def __init__(
        self, session: SparkSession, streams: dict[str, Stream], scratch: Path, own: UserCode
    ) -> None:
        self._session = session
        self._streams = streams
        self._scratch = scratch
        self._own = own
        self._feeds: list[Feed] = []
        self._queries: list[TestedQuery] = []
        self._waiting_feeds: list[Feed] = []
        self._waiting_queries: list[TestedQuery] = []

    @property
    def sources(self) -> list[Source]:
        return [feed.source for feed in self._feeds]

    @property
    def used_keys(self) -> list[str]:
        return [feed.key for feed in self._feeds]

    def add_feed(self, source: Source, schema_of: Callable[[Stream], Any]) -> tuple[Feed, Any]:
        """The feed for a source, and the schema its rows have."""
        key = find_stream(source, self._streams)
        schema = schema_of(self._streams[key])
        directory = self._scratch / f"source-{len(self._feeds)}"
        directory.mkdir(parents=True)
        feed = Feed(key, source, self._streams[key], directory, list(schema.names))
        self._feeds.append(feed)
        self._waiting_feeds.append(feed)
        return feed, schema

    def add_query(self, jsq: Any, capture: Capture) -> TestedQuery:
        query = TestedQuery(jsq, self, capture)
        self._queries.append(query)
        self._waiting_queries.append(query)
        return query

    def play(self) -> None:
        """Plays what is waiting. A script that starts another query afterwards gets that one played later."""
        feeds, queries = self._waiting_feeds, self._waiting_queries
        if not queries:
            return
        self._waiting_feeds, self._waiting_queries = [], []
        for step in range(max((len(feed.stream.batches) for feed in feeds), default=1)):
            for feed in feeds:
                feed.publish(step)
            for query in queries:
                self._process(query)
        for query in queries:
            query.java.stop()

    def stop(self) -> None:
        """For a script that failed: nothing may go on in the JVM that other tests use."""
        for query in self._queries:
            query.java.stop()

    def results(self) -> dict[str, QueryResult]:
        return {
            query.capture.name: QueryResult(
                query.capture.name,
                query.capture.output_mode,
                tuple(query.steps),
                self._state_reader(query.capture.checkpoint),
            )
            for query in self._queries
        }

    def _process(self, query: TestedQuery) -> None:
        try:
            query.java.processAllAvailable()
        except Exception as error:
            raise JobFailed(self._sentence(query, error)) from error
        recent = [json.loads(progress.json()) for progress in query.java.recentProgress()]
        view = QueryView(query.capture.name, "", "")
        for progress in recent[query.seen :]:
            view = with_progress(view, progress)
        # The watermark of a step is the newest one that a batch was run with.
        latest = next((progress for progress in reversed(recent) if is_batch(progress)), None)
        watermark = with_progress(view, latest).watermark if latest else None
        query.seen = len(recent)
        query.steps.append(StepResult(query.capture.rows, view.totals.late_rows_dropped, watermark))
        query.capture.rows = []

    def _sentence(self, query: TestedQuery, error: Exception) -> str:
        inside = query.capture.scope.error
        if inside is not None:
            failure = failure_of_exception(inside, self._own)
        elif query.java.exception().isDefined():
            failure = failure_of_query(java_chain(query.java.exception().get()), self._own)
        else:
            failure = failure_of_exception(error, self._own)
        return f"query {query.capture.name} failed: {failure.sentence}"

    def _state_reader(self, checkpoint: Path) -> Callable[[dict[str, Any]], list[Row]]:
        def read(options: dict[str, Any]) -> list[Row]:
            reader = self._session.read.format("statestore").options(**options)
            return reader.load(str(checkpoint)).select("key", "value").toArrow().to_pylist()

        return read
