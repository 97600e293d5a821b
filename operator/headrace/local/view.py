"""What a person is shown. The session tells; an implementation (cli/views) draws."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from headrace.api import StreamJobStatus
from headrace.core.decision import Sentence


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The job at one moment."""

    name: str
    status: StreamJobStatus
    report: dict[str, Any] | None  # the agent's last answer
    problem: str | None  # what is wrong with the manifest as saved, if anything
    home: Path
    manifest: Path

    @property
    def queries(self) -> list[dict[str, Any]]:
        return list((self.report or {}).get("queries", ()))

    @property
    def log(self) -> Path | None:
        run = self.status.run
        if run is None or run.attempt is None:
            return None
        activation = run.attempt.activation
        own = f"candidate-{activation.candidate}" if activation else f"attempt-{run.attempt.number}"
        return self.home / "runs" / f"run-{run.number}" / own / "driver.log"


class View(Protocol):
    def say(self, sentence: Sentence) -> None:
        """A decision, in words, once."""
        ...

    def problem(self, text: str, *, running: bool) -> None:
        """An edit that cannot be taken; `running` says that the job goes on as it was."""
        ...

    def show(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...
