"""What a driver's agent reports, as the policy sees it. Pure.

The report comes out of a container in which user code runs: what cannot be read of it is unknown, and never
an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from headrace.api import Autoscaling
from headrace.core.autoscale.observation import Batch, Limits, Query
from headrace.core.lag import Offsets, Partition, UnknownLag
from headrace.core.schedule import UnknownTimeZone, next_time

# Offsets that are older than this tell nothing of now.
STALE_SECONDS = 60.0
# The driver's clock is believed if it is wrong by less.
WRONG_CLOCK_SECONDS = 600.0


@dataclass(frozen=True)
class Reading:
    """The queries at one moment. When each one's sources were looked at, it says itself."""

    at: float
    queries: tuple[Query, ...]
    executors: int | None


def read(report: Mapping[str, Any], *, now: float) -> Reading:
    """`now` by this process's clock; the driver's may differ by a little."""
    reported = _moment(report.get("at")) or now
    # A clock that is wrong by hours would make the next look seem to be of the past.
    at = reported if abs(reported - now) < WRONG_CLOCK_SECONDS else now
    queries = [_query(one, now=reported, ahead=reported - at) for one in _list(report.get("queries"))]
    executors = report.get("executors")
    return Reading(
        at=at,
        queries=tuple(query for query in queries if query is not None),
        executors=executors if isinstance(executors, int) and not isinstance(executors, bool) else None,
    )


def _query(told: Any, *, now: float, ahead: float) -> Query | None:
    """None for what has ended or has no name. `now` is by the driver's clock, `ahead` of the reading's."""
    if not isinstance(told, Mapping):
        return None
    one = cast(Mapping[str, Any], told)
    name = one.get("name")
    if not isinstance(name, str) or one.get("active") is not True:
        return None
    try:
        return _readable(one, name, now=now, ahead=ahead)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        why = f"the driver's report of it cannot be read: {error}"
        return Query(name=name, trigger_seconds=0.0, source=UnknownLag(why[:300]))


def _readable(one: Mapping[str, Any], name: str, *, now: float, ahead: float) -> Query:
    lag: Mapping[str, Any] = one.get("lag") or {}
    offsets: Mapping[str, Any] = lag.get("offsets") or {}
    began, progress = _moment(one.get("batchStartedAt")), _moment(one.get("lastProgressAt"))
    running = None if began is None else max(0.0, now - began)
    quiet = max(0.0, now - progress) if progress is not None else running or 0.0
    trigger = _finite(one.get("triggerIntervalMs") or 0) / 1000
    live = offsets.get("live") is not False
    # What is told at the begin of each batch is as new as it can be while the next one runs.
    as_new_as_can_be = not live and (running is not None or quiet <= max(STALE_SECONDS, 3 * trigger))
    return Query(
        name=name,
        trigger_seconds=trigger,
        source=_source(lag, offsets, now=now, old=as_new_as_can_be),
        looked_at=_finite(offsets["at"]) - ahead if offsets else None,
        live=live,
        batches=tuple(_batch(batch) for batch in one.get("batches") or () if batch[3]),
        quiet_seconds=quiet,
        idle=not one.get("triggerActive"),
        running_seconds=running,
        running_rows=_whole(offsets.get("plannedRows")) if running is not None else None,
        shuffle_partitions=_whole(one.get("shufflePartitions")),
        partition_count=_whole(offsets.get("partitionCount")),
        divisible=offsets.get("divisible") is True,
        min_partitions=_whole(offsets.get("minPartitions")),
        max_rows_per_batch=_whole(offsets.get("maxRowsPerBatch")),
        task_skew=None if one.get("taskSkew") is None else _finite(one["taskSkew"]),
        retention_seconds=(
            None if offsets.get("retentionSeconds") is None else _finite(offsets["retentionSeconds"])
        ),
        deletes_by_size=by_size if isinstance(by_size := offsets.get("deletesBySize"), bool) else None,
        committed_batch=None if one.get("committedBatch") is None else _count(one["committedBatch"]),
        no_lookout=_no_lookout(lag.get("lookout")),
    )


def _no_lookout(told: Any) -> str | None:
    if not isinstance(told, Mapping):
        return "its driver is of an older version, and has not noted its sources"
    note = cast(Mapping[str, Any], told)
    return None if note.get("able") is True else str(note.get("why") or "its driver does not say why")[:300]


def _source(
    lag: Mapping[str, Any], offsets: Mapping[str, Any], *, now: float, old: bool
) -> Offsets | UnknownLag:
    """`old`: offsets may be."""
    if lag.get("known") is not True:
        return UnknownLag(str(lag.get("why") or "the driver does not say why")[:300])
    if not offsets:
        return UnknownLag("its source does not tell how much is waiting, partition by partition")
    if now - _finite(offsets["at"]) > STALE_SECONDS and not old:
        return UnknownLag(f"its offsets were last read {now - float(offsets['at']):.0f} s ago")
    return Offsets(
        {
            name: Partition(
                end=_count(end),
                committed=None if committed is None else _count(committed),
                earliest=None if earliest is None else _count(earliest),
                unread_since=None if since is None else _finite(since),
            )
            for name, (end, committed, earliest, since) in offsets["partitions"].items()
        }
    )


def _batch(told: Sequence[Any]) -> Batch:
    number, seconds, rows, executors = told[:4]
    return Batch(
        number=_count(number), seconds=_finite(seconds), rows=_count(rows), executors=_count(executors)
    )


def _count(value: Any) -> int:
    """Of what was learned from a number that cannot be, nobody would ever get rid."""
    count = int(value)
    if not 0 <= count < 2**63:
        raise ValueError(f"{value} is no number of anything")
    return count


def _finite(value: Any) -> float:
    number = float(value)
    if not 0 <= number < 1e12:
        raise ValueError(f"{value} is no time")
    return number


def limits_of(autoscaling: Autoscaling, *, now: datetime) -> Limits:
    return Limits(
        min=autoscaling.min,
        max=autoscaling.max,
        emergency_max=autoscaling.emergency_max,
        lag_objective_seconds=autoscaling.lag_objective.seconds,
        blackout=_blackout(autoscaling, now),
    )


def _blackout(autoscaling: Autoscaling, now: datetime) -> str | None:
    for window in autoscaling.blackout_windows:
        lasts = timedelta(seconds=window.duration.seconds)
        try:
            began = next_time(window.schedule, window.time_zone, now - lasts)
        except UnknownTimeZone:
            return f"{window.schedule} (there is no time zone {window.time_zone}: it always holds)"
        if began is not None and began <= now:
            return f"{window.schedule} for {window.duration} ({window.time_zone})"
    return None


def _moment(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []
