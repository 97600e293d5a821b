"""What is known of a query from its progress, as the agent's status and the metrics show it. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from headrace_jobs.harness.backlog import NOTHING_WAITED, Waited, waiting_rows
from headrace_jobs.harness.offsets import SourceOffsets, to_report

_SOURCE_FIELDS = ("description", "startOffset", "endOffset", "latestOffset", "numInputRows")
PROCESSING = "Processing new data"
# Enough for whoever asks every quarter of a minute, also where batches take a tenth of a second.
_BATCHES_KEPT = 200


@dataclass(frozen=True)
class Lag:
    """How far behind a query is. Unknown is never zero: then the numbers are None and `why` says why."""

    known: bool
    rows: int | None
    files: int | None
    why: str
    # About when the oldest unread row came; None if that is unknown, or if nothing is unread.
    behind_since: str | None = None
    # Partition by partition, where the source has any.
    offsets: SourceOffsets | None = None
    # Why nobody could look for work in the driver's place; None if somebody could.
    no_lookout: str | None = "its sources are not noted yet"


NO_PROGRESS_YET = Lag(known=False, rows=None, files=None, why="no batch has ended yet")


@dataclass(frozen=True)
class Latency:
    """From the time of an event to the commit of the batch that read it, over the rows of one batch."""

    mean_seconds: float
    worst_seconds: float


@dataclass(frozen=True)
class FinishedBatch:
    """What an autoscaler learns from."""

    number: int
    started_at: str
    seconds: float
    rows: int
    # Executors that were there when it ended; None where nobody could tell.
    executors: int | None


@dataclass(frozen=True)
class Totals:
    """Sums over all progress of this attempt."""

    batches: int = 0
    input_rows: int = 0
    late_rows_dropped: int = 0
    batch_seconds: float = 0.0


@dataclass(frozen=True)
class QueryView:
    name: str
    id: str
    run_id: str
    active: bool = True
    trigger_active: bool = False
    message: str = ""
    # Since when the query is where it is now (same batch, same message), by a clock that never jumps;
    # None while it waits.
    busy_since: float | None = None
    stuck: bool = False
    error: str | None = None
    # The newest progress (also of a trigger that found nothing), and the newest of a batch.
    progress: dict[str, Any] | None = None
    batch: dict[str, Any] | None = None
    # 0: the next batch begins at once.
    trigger_interval_ms: int | None = None
    # Of the newest batch with rows. None while the query finds nothing: an old number would look like news.
    latency: Latency | None = None
    totals: Totals = Totals()
    # The newest ones, oldest first.
    batches: tuple[FinishedBatch, ...] = ()
    # Rows that waited when each batch was planned: whether the query keeps up.
    waited: Waited = NOTHING_WAITED
    lag: Lag = NO_PROGRESS_YET
    # Longest task over the median one, in shuffles of the newest batch; None where nobody measured it.
    task_skew: float | None = None

    @property
    def committed_batch(self) -> int | None:
        """Spark reports a batch after its commit. A trigger that found nothing carries the next number."""
        if self.progress is None:
            return None
        number = self.progress["batchId"]
        committed = number if is_batch(self.progress) else number - 1
        return committed if committed >= 0 else None

    @property
    def batch_duration_ms(self) -> int | None:
        return _duration_ms(self.batch) if self.batch else None

    @property
    def state_rows(self) -> int | None:
        return self._state_sum("numRowsTotal")

    @property
    def state_bytes(self) -> int | None:
        return self._state_sum("memoryUsedBytes")

    @property
    def watermark(self) -> str | None:
        """None until event time has moved it: Spark begins with 1970."""
        told = ((self.batch or {}).get("eventTime") or {}).get("watermark")
        return None if told is None or told.startswith("1970-01-01T00:00:00.000") else told

    def _state_sum(self, key: str) -> int | None:
        if self.batch is None:
            return None
        return sum(operator.get(key, 0) for operator in self.batch.get("stateOperators") or [])

    @property
    def log_commit_ms(self) -> int | None:
        """What the newest batch waited for the checkpoint's log: its offsets before, its commit after."""
        spent = (self.batch or {}).get("durationMs") or {}
        known = [spent[step] for step in ("walCommit", "commitOffsets") if step in spent]
        return sum(known) if known else None

    @property
    def state_commit_ms(self) -> float | None:
        """Spark adds up over all tasks; this is a partition's share, one operator after the other."""
        operators = (self.batch or {}).get("stateOperators") or []
        shares = [
            operator["commitTimeMs"] / operator["numShufflePartitions"]
            for operator in operators
            if operator.get("numShufflePartitions") and "commitTimeMs" in operator
        ]
        return round(sum(shares), 3) if shares else None

    @property
    def shuffle_partitions(self) -> int | None:
        """The tasks of its stateful stages, which the checkpoint has fixed; None without state."""
        operators = (self.batch or {}).get("stateOperators") or []
        return max((operator.get("numShufflePartitions") or 0 for operator in operators), default=0) or None

    @property
    def state_file_bytes(self) -> int | None:
        return self._rocksdb_bytes("rocksdbSstFileSize")

    @property
    def snapshot_upload_bytes(self) -> int | None:
        """Spark repeats it with every batch until the next snapshot, so it must not be added up."""
        return self._rocksdb_bytes("rocksdbBytesCopied")

    def _rocksdb_bytes(self, key: str) -> int | None:
        """RocksDB tells 0 until its first snapshot, which only means: not known yet."""
        operators = (self.batch or {}).get("stateOperators") or []
        return sum((operator.get("customMetrics") or {}).get(key, 0) for operator in operators) or None

    @property
    def last_progress_at(self) -> str | None:
        """When all that was found had been committed: the end of a batch, or of a look that found nothing."""
        return iso(ended_at(self.progress)) if self.progress else None

    @property
    def last_commit_at(self) -> str | None:
        return iso(ended_at(self.batch)) if self.batch else None


def is_batch(progress: dict[str, Any]) -> bool:
    return "addBatch" in (progress.get("durationMs") or {})


def ended_at(progress: dict[str, Any]) -> float:
    """Spark's own timestamp is the begin of the batch."""
    return datetime.fromisoformat(progress["timestamp"]).timestamp() + _duration_ms(progress) / 1000


def with_progress(view: QueryView, progress: dict[str, Any], *, executors: int | None = None) -> QueryView:
    """One more progress of Spark's, in the order in which they came."""
    # Whatever was busy has just ended.
    view = replace(view, progress=progress, busy_since=None)
    if not is_batch(progress):
        return replace(view, latency=None)
    operators = progress.get("stateOperators") or []
    late = sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators)
    totals = Totals(
        batches=view.totals.batches + 1,
        input_rows=view.totals.input_rows + progress["numInputRows"],
        late_rows_dropped=view.totals.late_rows_dropped + late,
        batch_seconds=view.totals.batch_seconds + _duration_ms(progress) / 1000,
    )
    finished = FinishedBatch(
        number=progress["batchId"],
        started_at=progress["timestamp"],
        seconds=_duration_ms(progress) / 1000,
        rows=progress["numInputRows"],
        executors=executors,
    )
    return replace(
        view,
        batch=progress,
        totals=totals,
        batches=(*view.batches[1 - _BATCHES_KEPT :], finished),
        waited=view.waited.with_batch(waiting_rows(progress)),
        # A batch without rows only moves the watermark, and says nothing of events.
        latency=_latency(progress) or view.latency,
    )


def _latency(batch: dict[str, Any]) -> Latency | None:
    """None for a query without a watermark: Spark then does not know which column is the event's time."""
    event_time = batch.get("eventTime") or {}
    if "avg" not in event_time or "min" not in event_time:
        return None
    mean, first = (datetime.fromisoformat(event_time[key]).timestamp() for key in ("avg", "min"))
    committed = ended_at(batch)
    return Latency(round(max(0.0, committed - mean), 3), round(max(0.0, committed - first), 3))


def with_status(view: QueryView, status: dict[str, Any], now: float) -> QueryView:
    """Spark's answer to what the query does just now."""
    active, message = bool(status["isTriggerActive"]), str(status["message"])
    same = active and view.trigger_active and message == view.message
    return replace(
        view,
        trigger_active=active,
        message=message,
        busy_since=None if not active else view.busy_since if same and view.busy_since is not None else now,
    )


def _duration_ms(progress: dict[str, Any]) -> int:
    return int(progress.get("batchDuration") or progress.get("durationMs", {}).get("triggerExecution") or 0)


def to_status(view: QueryView, *, clock_offset: float) -> dict[str, Any]:
    """The query's entry in GET /v1/status. `clock_offset` leads from the view's clock to the calendar."""
    progress, batch = view.progress, view.batch
    committed = view.committed_batch
    since = view.busy_since if view.trigger_active and view.message == PROCESSING else None
    return {
        "name": view.name,
        "id": view.id,
        "runId": view.run_id,
        "active": view.active,
        "batch": committed + 1 if committed is not None and since is not None else committed,
        "committedBatch": committed,
        "triggerActive": view.trigger_active,
        "message": view.message,
        "batchStartedAt": iso(since + clock_offset) if since is not None else None,
        "batchDurationMs": view.batch_duration_ms,
        "triggerIntervalMs": view.trigger_interval_ms,
        "triggerDurationMs": _duration_ms(progress) if progress else None,
        "inputRows": batch["numInputRows"] if batch else None,
        "totalInputRows": view.totals.input_rows,
        "inputRowsPerSecond": _rate(progress, "inputRowsPerSecond"),
        "processedRowsPerSecond": _rate(progress, "processedRowsPerSecond"),
        "watermark": view.watermark,
        "stateRows": view.state_rows,
        "stateBytes": view.state_bytes,
        "stateFileBytes": view.state_file_bytes,
        "snapshotUploadBytes": view.snapshot_upload_bytes,
        "logCommitMs": view.log_commit_ms,
        "stateCommitMs": view.state_commit_ms,
        "eventLatencySeconds": view.latency.mean_seconds if view.latency else None,
        "eventLatencyWorstSeconds": view.latency.worst_seconds if view.latency else None,
        "lateRowsDropped": view.totals.late_rows_dropped,
        "lag": _lag(view.lag),
        "batches": [_finished(batch) for batch in view.batches],
        "waitedRows": list(view.waited.rows),
        "shufflePartitions": view.shuffle_partitions,
        "taskSkew": view.task_skew,
        "lastProgressAt": view.last_progress_at,
        "lastCommitAt": view.last_commit_at,
        "sources": [_source(source) for source in progress["sources"]] if progress else [],
        "sink": progress["sink"].get("description") if progress else None,
        "stuck": view.stuck,
        "error": view.error,
    }


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rate(progress: dict[str, Any] | None, key: str) -> float | None:
    """Spark writes NaN and infinity where it cannot divide; JSON knows neither."""
    value = progress.get(key) if progress else None
    return round(value, 3) if isinstance(value, int | float) and math.isfinite(value) else None


def _lag(lag: Lag) -> dict[str, Any]:
    return {
        "known": lag.known,
        "rows": lag.rows,
        "files": lag.files,
        "why": lag.why,
        "behindSince": lag.behind_since,
        "offsets": to_report(lag.offsets) if lag.known and lag.offsets is not None else None,
        "lookout": {"able": lag.no_lookout is None, "why": lag.no_lookout},
    }


def _finished(batch: FinishedBatch) -> list[Any]:
    """A list, because there are many: number, seconds, rows, executors, begin."""
    return [batch.number, batch.seconds, batch.rows, batch.executors, batch.started_at]


def _source(source: dict[str, Any]) -> dict[str, Any]:
    return {key: source.get(key) for key in _SOURCE_FIELDS}
