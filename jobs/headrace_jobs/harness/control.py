"""The JVM's side of checkpoints, as the harness sees it. Imports no py4j: needed before there is a JVM."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from headrace_jobs.harness.runfile import RunFile


class Batches(NamedTuple):
    """The newest entries of a query's logs; -1 where there is none."""

    offsets: int
    commits: int

    @property
    def at_boundary(self) -> bool:
        return self.offsets == self.commits


NO_BATCH = Batches(-1, -1)


class Fenced(Exception):
    """A newer attempt holds the run."""


class StoreUnavailable(Exception):
    """The checkpoint store did not do what was asked; the message is its own."""


class Control(Protocol):
    def claim(self, run_file: RunFile, body: str) -> None: ...
    def want_snapshots(self) -> bool: ...
    def drain(self, timeout_seconds: float) -> bool: ...
    def batches(self) -> dict[str, Batches]: ...
