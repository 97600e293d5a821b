"""How far behind its source a query is, from offsets per partition.

Unknown is never zero: what cannot be computed is None, and the caller has to say what it does then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

# Rates per partition forget with this time constant: longer than a batch, shorter than a change of load.
RATE_MEMORY_SECONDS = 300.0
# Of the times at which a source deleted rows these are kept; deletions that follow sooner are one.
DELETIONS_KEPT = 4
DELETIONS_APART_SECONDS = 60.0
# For this long after partitions were added, only what arrives now tells how it spreads over them.
NEW_SPREAD_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Partition:
    """One partition as the broker and the checkpoint have it."""

    end: int
    # None before a batch has read from it: it then counts from the earliest offset.
    committed: int | None = None
    earliest: int | None = None
    # When the oldest unread row was written, in seconds since the epoch; None where nobody can tell.
    unread_since: float | None = None

    @property
    def behind(self) -> int | None:
        """Offsets between what is read and the end. What the source has deleted cannot be read any more."""
        earliest = self.earliest or 0
        if self.committed is None:
            return None if self.earliest is None else max(0, self.end - earliest)
        return max(0, self.end - max(self.committed, earliest))


@dataclass(frozen=True)
class Offsets:
    """All partitions of a query's sources at one moment."""

    partitions: Mapping[str, Partition]


@dataclass(frozen=True)
class UnknownLag:
    """Nobody can tell how much is waiting, and why."""

    why: str


def rows_behind(offsets: Offsets) -> int | None:
    """None as soon as one partition is unknown: a partition that does not answer is not an empty one."""
    each = [partition.behind for partition in offsets.partitions.values()]
    if not each:
        return None
    known = [behind for behind in each if behind is not None]
    return sum(known) if len(known) == len(each) else None


def seconds_behind(offsets: Offsets, *, rows_per_second: float | None, now: float) -> float | None:
    """The age of the oldest unread row; without timestamps, how long the unread rows took to arrive."""
    waiting = [partition for partition in offsets.partitions.values() if partition.behind != 0]
    if not waiting:
        return 0.0
    ages = [max(0.0, now - one.unread_since) for one in waiting if one.unread_since is not None]
    if len(ages) == len(waiting):
        return max(ages)
    rows = rows_behind(offsets)
    return rows / rows_per_second if rows is not None and rows_per_second else None


@dataclass(frozen=True)
class Flow:
    """What is remembered of one partition: its offsets at the last look, and how they have been moving."""

    end: int
    committed: int | None
    earliest: int | None
    ended: float = 0.0
    read: float = 0.0
    # When the oldest unread row was written, or the look itself if none was unread; and by how many seconds
    # that moved on.
    position: float | None = None
    advanced: float = 0.0
    # The newest deletions: when, and the first offset after it.
    deletions: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Flows:
    """The movement of all partitions, with old movement forgotten."""

    at: float | None = None
    seconds: float = 0.0
    partitions: Mapping[str, Flow] = field(default_factory=dict[str, Flow])
    # When partitions were last added.
    added_at: float | None = None

    def rate(self, moved: float) -> float | None:
        return moved / self.seconds if self.seconds > 0 else None

    @property
    def hottest_share(self) -> tuple[str, float] | None:
        """The partition that gets most of what arrives, and its share."""
        total = sum(flow.ended for flow in self.partitions.values())
        if total <= 0:
            return None
        name = max(self.partitions, key=lambda one: self.partitions[one].ended)
        return name, self.partitions[name].ended / total


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What happened between two looks."""

    flows: Flows
    arrived: int
    read: int
    # Partitions whose end went back, or that are gone: the topic is another one now.
    reset: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    # Whether `read` is all that was read. Not with the first commit of a partition: its begin is not known.
    read_is_whole: bool = False


def follow(before: Flows, offsets: Offsets, *, at: float) -> Moved:
    """The movement since the last look. A source that went back begins a new memory."""
    known, now = before.partitions, offsets.partitions
    reset = tuple(name for name, flow in known.items() if name not in now or now[name].end < flow.end)
    if before.at is None or reset:
        fresh = {
            name: Flow(one.end, one.committed, one.earliest, position=_position(one, at))
            for name, one in now.items()
        }
        return Moved(flows=Flows(at=at, partitions=fresh), arrived=0, read=0, reset=reset)
    elapsed = max(0.0, at - before.at)
    keep = math.exp(-elapsed / RATE_MEMORY_SECONDS)
    flows = {name: _followed(known.get(name), one, keep, at) for name, one in now.items()}
    added = tuple(name for name in now if name not in known)
    added_at = at if added else before.added_at
    if added_at is not None and at - added_at <= NEW_SPREAD_SECONDS:
        steps = {name: one.end - _known_end(known.get(name), one) for name, one in now.items()}
        flows = _spread_anew(flows, steps)
    seconds = before.seconds * keep + elapsed
    return Moved(
        flows=Flows(at=at, seconds=seconds, partitions=flows, added_at=added_at),
        arrived=sum(one.end - _known_end(known.get(name), one) for name, one in now.items()),
        read=sum(_step(known[name].committed, one.committed) for name, one in now.items() if name in known),
        added=added,
        read_is_whole=all(_was_followed(known.get(name), one) for name, one in now.items()),
    )


def _was_followed(flow: Flow | None, now: Partition) -> bool:
    return now.committed is None or (flow is not None and flow.committed is not None)


def _spread_anew(flows: Mapping[str, Flow], steps: Mapping[str, int]) -> dict[str, Flow]:
    """As much as before has arrived in all, by the shares of now. With what they got while there were fewer,
    the old partitions would seem hot beside the new ones.
    """
    arrived, total = sum(steps.values()), sum(flow.ended for flow in flows.values())
    if arrived <= 0:
        return dict(flows)
    return {name: replace(flow, ended=total * steps[name] / arrived) for name, flow in flows.items()}


def _known_end(flow: Flow | None, now: Partition) -> int:
    """What a partition that is new holds has arrived since the last look."""
    if flow is not None:
        return flow.end
    return now.end if now.earliest is None else now.earliest


def _followed(flow: Flow | None, now: Partition, keep: float, at: float) -> Flow:
    before = flow or Flow(_known_end(None, now), None, None)
    position = _position(now, at)
    advanced = 0.0 if position is None or before.position is None else position - before.position
    return Flow(
        now.end,
        now.committed,
        now.earliest,
        before.ended * keep + now.end - before.end,
        before.read * keep + _step(before.committed, now.committed),
        # What nobody could tell at this look shows at the next one.
        before.position if position is None else position,
        before.advanced * keep + advanced,
        _deletions(before, now, at),
    )


def _position(now: Partition, at: float) -> float | None:
    return at if now.behind == 0 else now.unread_since


def _deletions(before: Flow, now: Partition, at: float) -> tuple[tuple[float, int], ...]:
    known = before.deletions
    if now.earliest is None or not _step(before.earliest, now.earliest):
        return known
    if known and at - known[-1][0] < DELETIONS_APART_SECONDS:
        return known
    return (*known[1 - DELETIONS_KEPT :], (at, now.earliest))


def _step(before: int | None, now: int | None) -> int:
    return 0 if before is None or now is None else max(0, now - before)


def rows_lost(before: Flows, offsets: Offsets) -> int:
    """Rows that the source deleted since the last look before they were read."""
    lost = 0
    for name, partition in offsets.partitions.items():
        flow = before.partitions.get(name)
        if flow is not None and partition.committed is not None and partition.earliest is not None:
            already = max(partition.committed, flow.earliest or 0)
            lost += max(0, partition.earliest - already)
    return lost


def flows_to_json(flows: Flows) -> dict[str, Any]:
    return {
        "at": flows.at,
        "seconds": round(flows.seconds, 3),
        "addedAt": flows.added_at,
        "partitions": {
            name: [
                one.end,
                one.committed,
                one.earliest,
                round(one.ended),
                round(one.read),
                None if one.position is None else round(one.position, 1),
                round(one.advanced, 1),
                [[round(at, 1), earliest] for at, earliest in one.deletions],
            ]
            for name, one in flows.partitions.items()
        },
    }


def flows_from_json(data: Mapping[str, Any]) -> Flows:
    return Flows(
        at=data["at"],
        seconds=data["seconds"],
        added_at=data.get("addedAt"),
        partitions={
            name: Flow(*values[:-1], deletions=tuple((at, earliest) for at, earliest in values[-1]))
            for name, values in data["partitions"].items()
        },
    )
