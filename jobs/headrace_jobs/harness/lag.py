"""How far behind its sources a query is: from live offsets of Kafka, those in its progress, or a directory.

What cannot be known is said to be unknown, with the reason: a zero would tell an autoscaler to scale down.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from headrace_jobs.harness.file_lag import FileLag
from headrace_jobs.harness.lag_age import OffsetHistory
from headrace_jobs.harness.offsets import (
    LookFailed,
    PartitionOffsets,
    SourceOffsets,
    numbers_in,
    together,
)
from headrace_jobs.harness.source_notes import NotNoted, SourceNotes
from headrace_jobs.harness.view import NO_PROGRESS_YET, Lag, iso
from headrace_jobs.store import local_directory

_DESCRIBED = re.compile(r"^(?P<kind>\w+)\[(?P<where>.*?)\]?$", re.DOTALL)


class LiveTopics(Protocol):
    """Kafka, asked now."""

    def look(self, query: str, index: int) -> SourceOffsets | None:
        """Raises LookFailed. None: it cannot be asked, and only the query's progress tells."""
        ...

    def descriptions(self, query: str) -> list[str]: ...

    def note(self, query: str, index: int) -> dict[str, Any]:
        """For who looks at them when no driver does. Raises NotNoted."""
        ...


class LagMeter:
    """Measures the queries of one run. For one thread.

    It remembers how far sources reached, which tells since when what is unread waits.
    """

    def __init__(
        self,
        topics: LiveTopics | None = None,
        files: FileLag | None = None,
        clock: Callable[[], float] = time.time,
        notes: SourceNotes | None = None,
    ) -> None:
        self._files = files
        self._topics = topics
        self._clock = clock
        self._notes = notes
        self._histories: dict[str, OffsetHistory] = {}

    def measure(self, query: str, progress: dict[str, Any] | None) -> Lag:
        """`progress` is Spark's newest of the query; None before there was any."""
        if progress is not None:
            sources = progress["sources"]
        else:
            described = self._topics.descriptions(query) if self._topics is not None else []
            sources = [{"description": one} for one in described]
        if progress is None and not sources:
            return NO_PROGRESS_YET
        at = _moment_of(progress) or self._clock()
        lag = total([self._of_source(query, index, source, at) for index, source in enumerate(sources)])
        return replace(self._aged(query, lag), no_lookout=self._no_lookout(query, sources))

    def _no_lookout(self, query: str, sources: list[dict[str, Any]]) -> str | None:
        if self._notes is None:
            return "a rehearsal notes nothing"
        try:
            noted = [self._note_of(query, index, source) for index, source in enumerate(sources)]
        except NotNoted as reason:
            return str(reason)
        return self._notes.keep(query, noted)

    def _note_of(self, query: str, index: int, source: dict[str, Any]) -> dict[str, Any]:
        kind, where = _kind_and_place(source.get("description") or "")
        if kind == "KafkaV2" and self._topics is not None:
            return self._topics.note(query, index)
        directory = local_directory(where) if kind == "FileStreamSource" else None
        if directory is not None and self._files is not None:
            return self._files.note(query, index, str(directory))
        raise NotNoted(f"nobody but the driver can look at the source {kind}[{where}]")

    def _of_source(self, query: str, index: int, source: dict[str, Any], at: float) -> Lag:
        description = source.get("description") or ""
        kind, where = _kind_and_place(description)
        match kind:
            case "FileStreamSource":
                return self._of_files(query, index, where, _log_offset(source))
            case "KafkaV2":
                return self._of_kafka(query, index, source, at)
            case _ if "PythonMicroBatchStream" in description:
                return offsets_behind(source, "in units of the source's own offsets", at, divisible=True)
            case _:
                return unknown(f"the source {kind} does not tell how much is waiting")

    def _of_kafka(self, query: str, index: int, source: dict[str, Any], at: float) -> Lag:
        try:
            live = self._topics.look(query, index) if self._topics is not None else None
        except LookFailed as error:
            return unknown(str(error))
        if live is None:
            return offsets_behind(source, "as of the last progress; Kafka's end offsets move on since", at)
        return of_offsets(live, "Kafka's end offsets, as they are now, less what is committed")

    def _aged(self, query: str, lag: Lag) -> Lag:
        """With the time since when it waits, from records where they could be read, else from the history."""
        history = self._histories.setdefault(query, OffsetHistory())
        if lag.offsets is None or not lag.known:
            history.note(0.0, None)
            return lag
        read = {
            name: one.earliest if one.committed is None else one.committed
            for name, one in lag.offsets.partitions.items()
        }
        told = {
            name: (one.end, at)
            for name, one in lag.offsets.partitions.items()
            if (at := read[name]) is not None
        }
        history.note(lag.offsets.at, told if len(told) == len(read) else None)
        offsets = lag.offsets.with_ages(history.since())
        since = offsets.behind_since
        return replace(lag, offsets=offsets, behind_since=iso(since) if since is not None else None)

    def _of_files(self, query: str, index: int, where: str, read_to: int | None) -> Lag:
        if self._files is None:
            return unknown("nobody counts the unread files")
        try:
            offsets = self._files.look(query, index, where, read_to=read_to)
        except LookFailed as error:
            return unknown(str(error))
        why = f"files in {where} that were not read yet"
        return Lag(known=True, rows=None, files=offsets.behind, why=why, offsets=offsets)


def total(lags: list[Lag]) -> Lag:
    """The lag of a query over all its sources: known only if each one is."""
    if not lags:
        return unknown("the query has no source")
    for lag in lags:
        if not lag.known:
            return lag
    rows = [lag.rows for lag in lags if lag.rows is not None]
    files = [lag.files for lag in lags if lag.files is not None]
    return Lag(
        known=True,
        rows=sum(rows) if rows else None,
        files=sum(files) if files else None,
        why="; ".join(dict.fromkeys(lag.why for lag in lags)),
        offsets=together(lag.offsets for lag in lags if lag.offsets is not None),
    )


def of_offsets(offsets: SourceOffsets, why: str) -> Lag:
    behind = offsets.behind
    if behind is None:
        return unknown("not every partition tells its offsets")
    return Lag(known=True, rows=behind, files=None, why=why, offsets=offsets)


def offsets_behind(source: dict[str, Any], why: str, at: float = 0.0, *, divisible: bool = False) -> Lag:
    """Latest minus read, over all partitions; both are nested maps of numbers."""
    latest, read = source.get("latestOffset"), source.get("endOffset")
    if latest is None:
        return unknown("the source does not report its latest offset")
    ends, reads = dict(numbers_in(latest)), dict(numbers_in(read))
    if not ends or ends.keys() - reads.keys():
        return unknown("the source's offsets are not plain numbers")
    partitions = {"/".join(key) or "0": PartitionOffsets(ends[key], reads[key]) for key in ends}
    return of_offsets(SourceOffsets(at=at, partitions=partitions, live=False, divisible=divisible), why)


def _log_offset(source: dict[str, Any]) -> int | None:
    """The newest entry of a file source's log that a batch has read to its end; None before there was one."""
    end = source.get("endOffset")
    number = end.get("logOffset") if isinstance(end, dict) else None
    return number if isinstance(number, int) else None


def _moment_of(progress: dict[str, Any] | None) -> float | None:
    """Offsets are asked for at the begin of a trigger, which is Spark's timestamp."""
    stamp = (progress or {}).get("timestamp")
    return datetime.fromisoformat(stamp).timestamp() if stamp else None


def unknown(why: str) -> Lag:
    return Lag(known=False, rows=None, files=None, why=why)


def _kind_and_place(description: str) -> tuple[str, str]:
    match = _DESCRIBED.match(description)
    return (match["kind"], match["where"]) if match else (description.partition("@")[0], "")
