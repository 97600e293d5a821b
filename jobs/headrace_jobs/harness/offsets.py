"""Where the partitions of a query's sources stand: what an autoscaler needs to know of the lag. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

# More partitions than this are told of in groups: the report stays small, and shares hardly change.
MOST_PARTITIONS = 256


class LookFailed(Exception):
    """Nobody can tell now how far a source reaches; the message says why."""


@dataclass(frozen=True)
class PartitionOffsets:
    """One partition. `committed` is None before a batch has read from it."""

    end: int
    committed: int | None
    earliest: int | None = None
    # When the oldest unread row was written, in seconds since the epoch.
    unread_since: float | None = None

    @property
    def behind(self) -> int | None:
        """What the source has deleted cannot be read any more, and does not wait."""
        if self.committed is None:
            return None if self.earliest is None else max(0, self.end - self.earliest)
        return max(0, self.end - max(self.committed, self.earliest or 0))


@dataclass(frozen=True)
class Retention:
    """How long a source keeps a row: `seconds` is None where it does not delete by age."""

    seconds: float | None
    # Whether it deletes by size as well; None where nobody may know.
    by_size: bool | None


UNKNOWN_RETENTION = Retention(None, None)


def retention_in(setting: Callable[[str], str]) -> Retention:
    """From the settings of a Kafka topic. A topic that is only compacted deletes no row for good."""
    if "delete" not in setting("cleanup.policy"):
        return Retention(None, False)
    milliseconds = int(setting("retention.ms"))
    return Retention(milliseconds / 1000 if milliseconds >= 0 else None, int(setting("retention.bytes")) >= 0)


def shortest(each: Sequence[Retention]) -> Retention:
    """Of several topics: the first row to go counts, whichever it is of."""
    return Retention(_least(one.seconds for one in each), any(one.by_size for one in each))


@dataclass(frozen=True, kw_only=True)
class SourceOffsets:
    """All partitions at one moment, and what the source says of itself."""

    at: float
    partitions: Mapping[str, PartitionOffsets]
    # Whether `at` is when somebody asked. Otherwise it is when the last batch began: nobody else is told.
    live: bool = True
    # Whether its rows become as many tasks as there is work for: files do, partitions of a topic do not.
    divisible: bool = False
    # How long the source keeps a row; None where it deletes by size only, not at all, or does not tell.
    retention_seconds: float | None = None
    deletes_by_size: bool | None = None
    min_partitions: int | None = None
    max_rows_per_batch: int | None = None
    # What the batch that runs will have read; None where nobody can tell.
    planned_rows: int | None = None

    @property
    def behind(self) -> int | None:
        """None as soon as one partition is unknown: one that does not answer is not empty."""
        each = [partition.behind for partition in self.partitions.values()]
        known = [behind for behind in each if behind is not None]
        return sum(known) if each and len(known) == len(each) else None

    @property
    def behind_since(self) -> float | None:
        """When the oldest of all unread rows came; None if nothing is unread, or nobody can tell."""
        waiting = [one for one in self.partitions.values() if one.behind]
        known = [one.unread_since for one in waiting if one.unread_since is not None]
        return min(known) if known and len(known) == len(waiting) else None

    def with_ages(self, since: Mapping[str, float | None]) -> SourceOffsets:
        """What nobody could read the age of gets the one that was reckoned."""
        aged = {
            name: replace(one, unread_since=since.get(name))
            for name, one in self.partitions.items()
            if one.behind and one.unread_since is None
        }
        return replace(self, partitions={**self.partitions, **aged})


def together(sources: Iterable[SourceOffsets]) -> SourceOffsets | None:
    """All sources of a query as one. Rows of the same topic that is read twice wait twice."""
    each = list(sources)
    if not each:
        return None
    partitions: dict[str, PartitionOffsets] = {}
    for index, source in enumerate(each):
        for name, one in source.partitions.items():
            partitions[name if name not in partitions else f"{index}:{name}"] = one
    return SourceOffsets(
        # The oldest of the looks: nothing is newer than it says.
        at=min(source.at for source in each),
        partitions=partitions,
        live=all(source.live for source in each),
        divisible=any(source.divisible for source in each),
        retention_seconds=_least(source.retention_seconds for source in each),
        deletes_by_size=_any(source.deletes_by_size for source in each),
        min_partitions=_sum(source.min_partitions for source in each),
        max_rows_per_batch=_sum(source.max_rows_per_batch for source in each),
        planned_rows=_sum(source.planned_rows for source in each),
    )


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _any(values: Iterable[bool | None]) -> bool | None:
    """Unknown as long as no one says yes."""
    each = list(values)
    return True if True in each else None if None in each else False


def _sum(values: Iterable[int | None]) -> int | None:
    each = list(values)
    return None if None in each else sum(value for value in each if value is not None)


def to_report(offsets: SourceOffsets) -> dict[str, Any]:
    """Its entry in GET /v1/status. Partitions are lists: end, committed, earliest, unread since."""
    return {
        "at": round(offsets.at, 3),
        "live": offsets.live,
        "divisible": offsets.divisible,
        "retentionSeconds": offsets.retention_seconds,
        "deletesBySize": offsets.deletes_by_size,
        "minPartitions": offsets.min_partitions,
        "maxRowsPerBatch": offsets.max_rows_per_batch,
        "plannedRows": offsets.planned_rows,
        # However many of them are told of in groups.
        "partitionCount": len(offsets.partitions),
        "partitions": {
            name: [one.end, one.committed, one.earliest, one.unread_since]
            for name, one in grouped(offsets.partitions, MOST_PARTITIONS).items()
        },
    }


def grouped(partitions: Mapping[str, PartitionOffsets], most: int) -> Mapping[str, PartitionOffsets]:
    """At most so many: neighbours are added up where there are more.

    Each one stays in its group, whatever is added: a sum that went back would look like a topic made anew.
    """
    if len(partitions) <= most:
        return partitions
    groups: dict[int, list[PartitionOffsets]] = {}
    for name in sorted(partitions):
        groups.setdefault(_group_of(name, most), []).append(partitions[name])
    return {f"group/{index}": _group(group) for index, group in sorted(groups.items())}


def _group_of(name: str, most: int) -> int:
    """Partitions of a topic go round, so that groups are of one size."""
    topic, _, number = name.rpartition("/")
    return (crc32(topic.encode()) + int(number)) % most if number.isdigit() else crc32(name.encode()) % most


def _group(partitions: list[PartitionOffsets]) -> PartitionOffsets:
    return PartitionOffsets(
        end=sum(one.end for one in partitions),
        # One that no batch has read from counts from its first offset, as Spark will read it.
        committed=_sum(one.earliest if one.committed is None else one.committed for one in partitions),
        earliest=_sum(one.earliest for one in partitions),
        unread_since=_least(one.unread_since for one in partitions if one.behind),
    )


def numbers_in(offset: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """The leaves of nested maps; nothing at all if one of them is no number."""
    if isinstance(offset, int) and not isinstance(offset, bool):
        yield path, offset
    elif isinstance(offset, dict):
        for key, value in offset.items():
            yield from numbers_in(value, (*path, key))
