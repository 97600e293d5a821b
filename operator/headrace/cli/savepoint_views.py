"""A savepoint for people: a line of a table, a page of its own, or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Level = Literal["None", "Objects", "State", "Restore"]


@dataclass(frozen=True, kw_only=True)
class SavedQuery:
    """One query in a savepoint."""

    name: str
    batch: int
    """The last committed one; -1 before the first."""
    pending: bool = False
    lineage: str = ""
    watermark: datetime | None = None
    offsets: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class Savepoint:
    """A savepoint as people see it."""

    name: str
    job: str
    state: Literal["Ready", "Taking", "Failed", "Unfinished", "Damaged"]
    message: str = ""
    """Why it is not Ready, or how far it is."""
    path: str | None = None
    cause: str = "Manual"
    taken_at: datetime | None = None
    run: str | None = None
    queries: tuple[SavedQuery, ...] = ()
    objects: int | None = None
    size_bytes: int | None = None
    verified: Level = "None"
    verified_message: str = ""
    spark_version: str | None = None


def as_level(text: str) -> Level:
    return text if text in ("Objects", "State", "Restore") else "None"


def as_json(savepoint: Savepoint) -> dict[str, Any]:
    """With the names that a manifest would use, and times as it has them."""
    told = {_camel(key): value for key, value in asdict(savepoint).items()}
    told["takenAt"] = _stamp(savepoint.taken_at)
    told["queries"] = [
        {_camel(key): value for key, value in asdict(query).items()} | {"watermark": _stamp(query.watermark)}
        for query in savepoint.queries
    ]
    return told


def table(savepoints: Sequence[Savepoint]) -> str:
    rows: list[tuple[str, ...]] = [("NAME", "STATE", "TAKEN", "CAUSE", "BATCH", "SIZE", "VERIFIED")]
    return _aligned(rows + [(one.name, *_columns(one)) for one in savepoints])


def places(savepoints: Sequence[Savepoint]) -> str:
    """Of what lies in a store: it is known by its path."""
    rows: list[tuple[str, ...]] = [("JOB", "STATE", "TAKEN", "CAUSE", "BATCH", "SIZE", "VERIFIED", "PATH")]
    return _aligned(rows + [(one.job or "-", *_columns(one), one.path or "-") for one in savepoints])


def _columns(one: Savepoint) -> tuple[str, ...]:
    taken = f"{one.taken_at.astimezone(UTC):%Y-%m-%d %H:%M}" if one.taken_at else "-"
    return one.state, taken, one.cause, _batches(one), size(one.size_bytes), one.verified


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def details(savepoint: Savepoint) -> str:
    one = savepoint
    facts = [
        ("Name", one.name),
        ("Job", one.job),
        ("State", f"{one.state}: {one.message}" if one.message else one.state),
        ("Path", one.path),
        ("Taken", f"{one.taken_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if one.taken_at else None),
        ("Cause", one.cause),
        ("Run", one.run),
        ("Spark", one.spark_version),
        ("Size", f"{size(one.size_bytes)} in {one.objects} objects" if one.objects is not None else None),
        ("Verified", " - ".join(filter(None, (one.verified, one.verified_message)))),
    ]
    lines = [f"{name + ':':<10}{value}" for name, value in facts if value]
    for query in one.queries:
        pending = ", and one that was begun" if query.pending else ""
        lines.append(f"\nQuery {query.name}: batch {query.batch}{pending}")
        lines += [f"  lineage   {query.lineage}"] if query.lineage else []
        lines += [f"  watermark {_stamp(query.watermark)}"] if query.watermark else []
        lines += [f"  source {name}  {json.dumps(offset)}" for name, offset in query.offsets.items()]
    return "\n".join(lines)


def size(size_bytes: int | None) -> str:
    """1234567 -> 1.2Mi, as Kubernetes writes it."""
    if size_bytes is None:
        return "-"
    value, unit = float(size_bytes), ""
    for larger in ("Ki", "Mi", "Gi", "Ti"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f}{unit}" if value >= 10 or not unit else f"{value:.1f}{unit}"


def _batches(savepoint: Savepoint) -> str:
    if len(savepoint.queries) == 1:
        return str(savepoint.queries[0].batch)
    return " ".join(f"{query.name}={query.batch}" for query in savepoint.queries) or "-"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _stamp(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment is not None else None
