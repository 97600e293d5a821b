"""Spark's two logs of a query, as far as copies of it must understand them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace_jobs.store.errors import CheckpointDamagedError

_NO_OFFSET = "-"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PARTITIONS = "spark.sql.shuffle.partitions"
# Of the table that a source of Delta reads.
_TABLE_ID = "reservoirId"
ROCKSDB = "RocksDBStateStoreProvider"


@dataclass(frozen=True, kw_only=True)
class OffsetsEntry:
    """`offsets/<batch>`: what a batch reads, and the settings that are fixed for the query's life."""

    sources: Mapping[str, Any]
    conf: Mapping[str, str]

    @property
    def provider(self) -> str | None:
        """The last part of the class name: RocksDBStateStoreProvider."""
        name = self.conf.get(_PROVIDER)
        return name.rpartition(".")[2] if name else None

    @property
    def partitions(self) -> int | None:
        """Into how many the state is split from this batch on; the session's setting is not asked."""
        told = self.conf.get(_PARTITIONS)
        return int(told) if told else None

    def repartitions(self, before: OffsetsEntry) -> bool:
        """Whether it is no batch, but the offline change of that number: nothing else ever changes it."""
        return self.partitions != before.partitions

    def goes_on_from(self, before: OffsetsEntry) -> bool:
        """Whether code that wrote `before` could have written this one, as far as the offsets tell.

        They tell which topics are read: one more, or one less, fails whoever does not read it. Partitions
        are added to a topic, and never taken away.
        """
        if self.sources.keys() != before.sources.keys():
            return False
        return all(_same_data(before.sources[name], self.sources[name]) for name in self.sources)

    def log_limits(self) -> dict[str, int]:
        """For sources that keep a log of their own (files): the newest entry that the batch reads."""
        return {
            name: offset["logOffset"]
            for name, offset in self.sources.items()
            if isinstance(offset, dict) and isinstance(offset.get("logOffset"), int)
        }


@dataclass(frozen=True, kw_only=True)
class CommitEntry:
    """`commits/<batch>`: the batch is done, and these are the state files that belong to it."""

    watermark_ms: int | None
    state_ids: frozenset[str] | None
    """Ids of the state files of this batch, of all operators; None in the old format, which has none."""
    partitions: Mapping[str, int]
    """Number of state partitions by operator; empty in the old format."""


def read_offsets(key: str, content: bytes) -> OffsetsEntry:
    version, lines = _lines(key, content)
    try:
        metadata = json.loads(lines[0]) if lines and lines[0] else {}
        sources = dict(_source(version, number, line) for number, line in enumerate(lines[1:]))
        return OffsetsEntry(sources=sources, conf=metadata.get("conf", {}))
    except (ValueError, AttributeError) as error:
        raise _damaged(key, str(error)) from None


def read_commit(key: str, content: bytes) -> CommitEntry:
    version, lines = _lines(key, content)
    try:
        body = json.loads(lines[0]) if lines and lines[0] else {}
        ids = body.get("stateUniqueIds") if version >= 2 else None
        return CommitEntry(
            watermark_ms=body.get("nextBatchWatermarkMs"),
            state_ids=None
            if ids is None
            else frozenset(one for parts in ids.values() for stores in parts for one in stores),
            partitions={operator: len(parts) for operator, parts in (ids or {}).items()},
        )
    except (ValueError, AttributeError, TypeError) as error:
        raise _damaged(key, str(error)) from None


def format_of(key: str, content: bytes) -> int:
    """The version of its format, which the writing Spark chose: an older one refuses what is newer."""
    return _lines(key, content)[0]


def read_lineage(key: str, content: bytes) -> str:
    try:
        return str(json.loads(content)["id"])
    except (ValueError, KeyError, TypeError):
        raise _damaged(key, "there is no query id in it") from None


def _lines(key: str, content: bytes) -> tuple[int, list[str]]:
    try:
        first, *rest = content.decode().splitlines()
        return int(first.removeprefix("v")), rest
    except ValueError:
        raise _damaged(key, "it is empty or cut off") from None


def _source(version: int, number: int, line: str) -> tuple[str, Any]:
    """The first version knows sources by their position, later ones by name."""
    name, offset = (str(number), line) if version == 1 else tuple(line.split(":", 1))
    if offset == _NO_OFFSET:
        return name, None
    try:
        return name, json.loads(offset)
    except ValueError:
        return name, offset


def _same_data(before: Any, now: Any) -> bool:
    """What is not in a form that we know tells nothing against it."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return True
    if _TABLE_ID in before or _TABLE_ID in now:
        return before.get(_TABLE_ID) == now.get(_TABLE_ID)
    topics, topics_now = _topics(before), _topics(now)
    if topics is None or topics_now is None:
        return True
    return topics.keys() == topics_now.keys() and all(
        partitions <= topics_now[topic] for topic, partitions in topics.items()
    )


def _topics(offset: dict[str, Any]) -> dict[str, set[str]] | None:
    """Kafka's form: topic by topic, the offset of each partition."""
    if not offset or not all(isinstance(partitions, dict) for partitions in offset.values()):
        return None
    return {topic: set(partitions) for topic, partitions in offset.items()}


def _damaged(key: str, why: str) -> CheckpointDamagedError:
    return CheckpointDamagedError(
        f"{key} is not readable ({why}): the query itself could not start from this checkpoint"
    )
