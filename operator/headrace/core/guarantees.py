"""What a sink keeps when a job is changed, crashes, or goes back: one row per kind of sink.

Batch numbers mean something within a lineage; an upgrade keeps the lineage, a return to an older batch makes
a new one. What follows from that differs by sink, and is said before anybody applies anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SinkKind(StrEnum):
    FILES = "files"
    DELTA = "Delta"
    KAFKA = "Kafka"
    LEDGER = "foreachBatch with a ledger"
    FOREACH_BATCH = "foreachBatch without one"
    CONSOLE = "console, memory, noop"


@dataclass(frozen=True)
class Guarantee:
    """For one kind of sink: after a clean handover every one of them has each row once."""

    sink: SinkKind
    cut: str
    """When a batch was cut in the middle: a crash, or a drain that took longer than `drainTimeout`."""

    back: str
    """When the job goes back to an older batch, under a new lineage."""

    fences: bool
    """Whether it refuses a driver that was thought dead."""


GUARANTEES: tuple[Guarantee, ...] = (
    Guarantee(
        SinkKind.FILES,
        cut="once: the batch is written again under its number, and readers of _spark_metadata see it once",
        back="refused: its own log would skip the new batches",
        fences=False,
    ),
    Guarantee(
        SinkKind.DELTA,
        cut="once: Delta skips a batch that it has of this query",
        back="batches since then are written again, as those of a new query",
        fences=False,
    ),
    Guarantee(
        SinkKind.KAFKA,
        cut="at least once: what was sent of the batch is sent again",
        back="batches since then are sent again",
        fences=False,
    ),
    Guarantee(
        SinkKind.LEDGER,
        cut="once: the ledger skips a batch that it has",
        back="batches since then are written again, unless your key makes them the same rows",
        fences=True,
    ),
    Guarantee(
        SinkKind.FOREACH_BATCH,
        cut="at least once: your function is called again with the same batch number and the same rows",
        back="your function is called again, with numbers it has seen",
        fences=False,
    ),
    Guarantee(
        SinkKind.CONSOLE,
        cut="nothing is kept",
        back="nothing is kept",
        fences=False,
    ),
)

# How Spark describes the sinks in its progress, in small letters.
_DESCRIPTIONS: tuple[tuple[str, tuple[SinkKind, ...]], ...] = (
    ("deltasink", (SinkKind.DELTA,)),
    ("filesink", (SinkKind.FILES,)),
    ("kafka", (SinkKind.KAFKA,)),
    # Spark does not know what a function does.
    ("foreachbatch", (SinkKind.LEDGER, SinkKind.FOREACH_BATCH)),
    ("console", (SinkKind.CONSOLE,)),
    ("memory", (SinkKind.CONSOLE,)),
    ("noop", (SinkKind.CONSOLE,)),
)


def word_for(description: str) -> str:
    """The word in Spark's description that tells the kind, without paths and addresses; else `other`."""
    lowered = description.lower()
    return next((word for word, _ in _DESCRIPTIONS if word in lowered), "other")


def kinds_of(description: str) -> tuple[SinkKind, ...]:
    """What a sink may be, by Spark's words for it; none where we do not know it."""
    return dict(_DESCRIPTIONS).get(word_for(description), ())


def guarantees_for(descriptions: tuple[str, ...]) -> tuple[Guarantee, ...]:
    """The rows that concern these sinks; all of them where one is not known."""
    found = [kinds_of(each) for each in descriptions]
    if not found or not all(found):
        return GUARANTEES
    wanted = {kind for kinds in found for kind in kinds}
    return tuple(row for row in GUARANTEES if row.sink in wanted)
