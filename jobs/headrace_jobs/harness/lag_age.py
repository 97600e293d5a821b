"""Since when a query is behind, from the offsets that its sources told over time. Pure.

At each look a source tells how far it reaches. Of these we keep a history; the oldest unread row of a
partition came when the partition grew beyond what was read. The partition that waits longest speaks for all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_SPACING_SECONDS = 10.0
_KEPT = 180  # half an hour


@dataclass(frozen=True)
class _Sample:
    at: float
    ends: tuple[int, ...]


@dataclass
class OffsetHistory:
    """Of one query."""

    _partitions: tuple[str, ...] = ()
    _samples: deque[_Sample] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _newest: _Sample | None = None
    _read: tuple[int, ...] | None = None

    def note(self, at: float, told: Mapping[str, tuple[int, int]] | None) -> None:
        """By partition its end and what is read of it; None if that is not known."""
        if not told:
            self._read = None
            return
        if (partitions := tuple(sorted(told))) != self._partitions:
            self._partitions = partitions
            self._samples.clear()
        self._newest = _Sample(at, tuple(told[one][0] for one in partitions))
        self._read = tuple(told[one][1] for one in partitions)
        if not self._samples or at - self._samples[-1].at >= _SPACING_SECONDS:
            self._samples.append(self._newest)

    def since(self) -> dict[str, float | None]:
        """By partition. If everything told was read, what is unread came after it was told."""
        if self._read is None or self._newest is None:
            return {}
        history = [*self._samples, self._newest]
        return {
            name: _since([(one.at, one.ends[index]) for one in history], read)
            for index, (name, read) in enumerate(zip(self._partitions, self._read, strict=True))
        }

    def behind_since(self) -> float | None:
        """None if it cannot be known."""
        known = [one for one in self.since().values() if one is not None]
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
