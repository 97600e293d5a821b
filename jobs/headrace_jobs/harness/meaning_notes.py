"""What the state of each query means, noted beside the checkpoint, and compared in a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace_jobs.harness.writer import Start


@dataclass
class Comparison:
    """`complete`: every query that both versions have could be compared."""

    complete: bool = False
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Meanings:
    def __init__(self) -> None:
        self._started: list[str] = []

    def note(self, start: Start) -> None:
        self._started.append(start.name)

    def compare(self, from_run: int, known: list[str]) -> Comparison:
        gone = [name for name in known if name not in self._started]
        return Comparison(differences=[f"query {name} of run {from_run} is not started" for name in gone])
