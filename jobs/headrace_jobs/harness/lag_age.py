"""Since when a query is behind, from the offsets that its sources told over time. Pure.

A source tells how far it reaches at each trigger. Of these we keep a history; the oldest unread row of a
partition came when the partition grew beyond what was read. The partition that waits longest speaks for all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from headrace_jobs.harness.lag import numbers_in

_SPACING_SECONDS = 10.0
_KEPT = 180  # half an hour


@dataclass(frozen=True)
class _Sample:
    at: float
    ends: tuple[int, ...]


@dataclass
class OffsetHistory:
    """Of one query."""

    _partitions: tuple[tuple[str, ...], ...] = ()
    _samples: deque[_Sample] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _newest: _Sample | None = None
    _read: tuple[int, ...] | None = None

    def note(self, progress: dict[str, Any]) -> None:
        sources = enumerate(progress["sources"])
        told = [
            (str(index), source.get("latestOffset"), source.get("endOffset")) for index, source in sources
        ]
        ends = {(name, *path): number for name, end, _ in told for path, number in numbers_in(end)}
        read = {(name, *path): number for name, _, at in told for path, number in numbers_in(at)}
        if not ends or ends.keys() != read.keys():
            self._read = None
            return
        if (partitions := tuple(sorted(ends))) != self._partitions:
            self._partitions = partitions
            self._samples.clear()
        # Offsets are asked for at the begin of a trigger, which is Spark's timestamp.
        at = datetime.fromisoformat(progress["timestamp"]).timestamp()
        self._newest = _Sample(at, tuple(ends[one] for one in partitions))
        self._read = tuple(read[one] for one in partitions)
        if not self._samples or at - self._samples[-1].at >= _SPACING_SECONDS:
            self._samples.append(self._newest)

    def behind_since(self) -> float | None:
        """None if it cannot be known. If everything told was read, what is unread came after it was told."""
        if self._read is None or self._newest is None:
            return None
        history = [*self._samples, self._newest]
        since = [
            _since([(one.at, one.ends[index]) for one in history], read)
            for index, read in enumerate(self._read)
        ]
        known = [one for one in since if one is not None]
        return min(known) if known else None


def _since(history: Sequence[tuple[float, int]], read: int) -> float | None:
    """When the partition grew beyond what was read; None if one sample alone cannot tell."""
    last_at, last_end = history[-1]
    if last_end <= read:
        return last_at
    for (at, end), (next_at, next_end) in reversed(list(pairwise(history))):
        if end <= read < next_end:
            return at + (next_at - at) * (read - end) / (next_end - end)
    first_at, first_end = history[0]
    if last_at <= first_at:
        return None
    # It was behind before we looked: as if rows had always come as they do now, else since the first look.
    per_second = (last_end - first_end) / (last_at - first_at)
    return first_at - (first_end - read) / per_second if per_second > 0 else first_at
