"""What the autoscaler left with a job, read and put in words: its decisions, its looks, what it learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headrace.core.autoscale import Memory
from headrace.core.autoscale.memory import QueryMemory
from headrace.core.autoscale.words import amount, duration, executors, manage, rate
from headrace.simulate.job import Job
from headrace.simulate.traces import Trace

Decision = Mapping[str, Any]
# seconds, rows per second, rows behind, seconds behind, executors asked for, executors ready
Look = Sequence[float | None]

# A look every minute; where there is none for longer, nobody looked.
_GAP_SECONDS = 180.0


@dataclass(frozen=True, kw_only=True)
class Ring:
    decisions: tuple[Decision, ...]
    # With the numbers of its own moment, also where it says what the one before it said.
    newest: Decision | None
    looks: tuple[Look, ...]
    memory: Memory

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Ring:
        """Raises KeyError, TypeError or ValueError where it is not one."""
        decisions = tuple(sorted(content["decisions"], key=lambda one: one["at"]))
        # A driver of an older version keeps what was news only.
        newest = content.get("newest") or (decisions[-1] if decisions else None)
        if newest is not None and not {"at", "reason", "message", "asked", "numbers"} <= newest.keys():
            raise ValueError("that is no decision")
        return cls(
            decisions=decisions,
            newest=newest,
            looks=tuple(sorted(content["looks"], key=lambda one: one[0])),
            memory=Memory.from_json(content["memory"] or {}),
        )

    @property
    def said_since(self) -> float | None:
        """When what it says now was news."""
        newest = self.newest
        if newest is None:
            return None
        last = self.decisions[-1] if self.decisions else newest
        return last["at"] if last["reason"] == newest["reason"] else newest["at"]

    @property
    def partitions(self) -> int | None:
        """None where rows become as many tasks as there is work for."""
        if any(query.divisible for query in self.memory.queries.values()):
            return None
        return max((query.partitions for query in self.memory.queries.values()), default=0) or 1

    @property
    def job(self) -> Job | None:
        """By the query that most arrives for; None before anything was learned."""
        queries = self.memory.queries.values()
        main = max(queries, key=_arriving, default=None)
        if main is None:
            return None
        return Job(
            trigger_seconds=main.trigger_seconds,
            fixed_seconds=main.fit.fixed if main.fit.ready else None,
            startup_seconds=self.memory.startup_seconds,
            shuffle_partitions=main.shuffle_partitions,
            retention_seconds=main.retention_seconds,
        )

    @property
    def rows_per_executor(self) -> float | None:
        """What one executor can do, by the model."""
        newest = () if self.newest is None else (self.newest,)
        for one in (*newest, *reversed(self.decisions)):
            capacity = one["numbers"].get("capacity_rows_per_second")
            if capacity and one["asked"]:
                return float(capacity) / int(one["asked"])
        return None

    def trace(self, name: str) -> Trace | None:
        """The load that the job really had; None if there is too little of it. Holes are taken out."""
        known = [(at, value) for at, value, *_ in self.looks if at is not None and value is not None]
        seconds: list[float] = []
        for index, (at, _) in enumerate(known):
            gap = at - known[index - 1][0] if index else 0.0
            seconds.append(seconds[-1] + min(gap, _GAP_SECONDS) if seconds else 0.0)
        if len(known) < 2 or seconds[-1] < 600:
            return None
        return Trace(name, tuple(seconds), tuple(value for _, value in known))


def _arriving(query: QueryMemory) -> float:
    return sum(flow.ended for flow in query.flows.partitions.values())


def explained(ring: Ring, *, now: datetime, lines: int) -> str:
    parts = [_now(ring, now), _numbers(ring, now), _model(ring), _log(ring, lines)]
    return "\n\n".join(part for part in parts if part)


def _now(ring: Ring, now: datetime) -> str:
    newest = ring.newest
    if newest is None:
        return "The autoscaler has decided nothing yet."
    ago = duration(max(0.0, now.timestamp() - (ring.said_since or newest["at"])))
    return f"{newest['reason']} (for {ago}): {newest['message']}"


def _numbers(ring: Ring, now: datetime) -> str:
    newest = ring.newest
    if newest is None:
        return ""
    numbers: Mapping[str, float] = newest["numbers"]
    rows: list[tuple[str, str]] = []
    if "lag_rows" in numbers:
        waits = f", the oldest for {duration(numbers['lag_seconds'])}" if "lag_seconds" in numbers else ""
        rows.append(("behind", f"{amount(numbers['lag_rows'])} rows{waits}"))
    for key, label in (
        ("arrival_rows_per_second", "arrives"),
        ("need_rows_per_second", "needed"),
        ("capacity_rows_per_second", "possible now"),
        ("capacity_at_max_rows_per_second", "possible at max"),
    ):
        if key in numbers:
            rows.append((label, rate(numbers[key])))
    if "suitable_batch_rows" in numbers:
        limit = f"{amount(numbers['suitable_batch_rows'])} rows; the source has no limit of its own"
        rows.append(("fits a batch", limit))
    if "seconds_to_data_loss" in numbers:
        rows.append(("data loss in", duration(numbers["seconds_to_data_loss"])))
    ago = duration(max(0.0, now.timestamp() - newest["at"]))
    return "\n".join([f"Measured {ago} ago", *(f"  {label:<16} {text}" for label, text in rows)])


def _model(ring: Ring) -> str:
    lines: list[str] = []
    for name, query in ring.memory.queries.items():
        fit = query.fit
        if not fit.ready:
            lines.append(f"  {name}: {fit.batches} batches are known, a model needs 8")
            continue
        lines.append(
            f"  {name}: a batch takes {duration(fit.fixed)}, and {duration(1e6 * fit.per_row_here)} more per "
            f"million rows with {executors(fit.executors)}; {fit.error:.0%} off on average, learned from "
            f"{fit.batches} batches"
        )
    memory = ring.memory
    if memory.block is not None:
        lines.append(
            f"  {manage(memory.block.executors)} {rate(memory.block.capacity)}, "
            f"{max(memory.block.gained, 0.0):.0%} of the gain that was expected: no more are added for now"
        )
    lines.append(f"  executors take {duration(memory.startup_seconds)} to start")
    return "\n".join(["Learned", *lines])


def _log(ring: Ring, lines: int) -> str:
    shown = ring.decisions[-lines:][::-1]
    if not shown:
        return ""
    left = len(ring.decisions) - len(shown)
    text = [f"  {_clock(one['at'])}  {one['message']}" for one in shown]
    more = [f"  … and {left} before: --lines {len(ring.decisions)}"] if left > 0 else []
    return "\n".join(["Decisions, newest first (UTC)", *text, *more])


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%m-%d %H:%M:%S")
