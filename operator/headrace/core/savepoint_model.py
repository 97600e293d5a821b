"""What the planner of savepoints is told, and what it may ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from headrace.api import StreamJobSpec, StreamSavepointSpec
from headrace.core.model import Problem

Task = Literal["take", "verify", "check", "discard"]
"""`verify`: further than before, as the spec says. `check`: again, because somebody asks."""


@dataclass(frozen=True, kw_only=True)
class Savepoint:
    """A StreamSavepoint that passed validation."""

    namespace: str
    name: str
    uid: str
    generation: int
    spec: StreamSavepointSpec
    paused: bool = False
    # How far to check it again, by the annotation; each value is carried out once.
    check: str | None = None
    # The finalizer is there that keeps it until its copy is removed.
    held: bool = False
    deleting: bool = False

    @property
    def directory(self) -> str:
        """Of the copy. Not the name alone: what lies under it may be another's of long ago."""
        return f"{self.name}-{self.uid[:8]}"


@dataclass(frozen=True, kw_only=True)
class RunToSave:
    """The run of the job that has its state."""

    number: int
    revision: str
    path: str
    """<location>/<namespace>/<name>/<uid>/run-<n>."""


@dataclass(frozen=True, kw_only=True)
class SavedJob:
    """The job, as far as a savepoint needs it."""

    spec: StreamJobSpec
    """As it stands, or as the run was pinned where it cannot be taken as it stands."""

    generation: int
    run: RunToSave | None


class KeeperPhase(StrEnum):
    WAITING = "Waiting"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, kw_only=True)
class KeeperTry:
    """A pod that does, or did, the work."""

    number: int
    phase: KeeperPhase
    words: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The keeper's last ones; empty where it had none."""

    ended_at: datetime | None = None
    waiting: Problem | None = None
    # Its node does not answer: it may be at work still.
    lost: bool = False

    @property
    def ended(self) -> bool:
        return self.phase in (KeeperPhase.SUCCEEDED, KeeperPhase.FAILED)


@dataclass(frozen=True, kw_only=True)
class SavepointObserved:
    job: SavedJob | Problem | None
    """A problem where there is one, and its spec cannot be read; None where there is none."""

    tries: Mapping[Task, Sequence[KeeperTry]] = field(default_factory=dict[Task, Sequence[KeeperTry]])
    """Oldest first; of checks those of the request that stands."""

    # How far the copy is; None where nobody tells.
    copied_percent: int | None = None
    # How long it has been under way, as far as this operator has seen.
    under_way: timedelta = timedelta(0)
    in_use_by: tuple[str, ...] = ()
    # By jobs of other namespaces, which name its path. They hold up retention, and not whoever deletes it:
    # or anybody could keep what is not theirs.
    in_use_elsewhere: tuple[str, ...] = ()
    # A job that has started from it.
    restored_by: str | None = None
    # Why the platform refused a pod for it.
    refused: Problem | None = None
    # The namespace is being deleted: nothing can be started in it any more.
    namespace_ends: bool = False

    def of(self, task: Task) -> Sequence[KeeperTry]:
        return self.tries.get(task, ())


@dataclass(frozen=True, kw_only=True)
class RunKeeper:
    """Have a keeper do it: one try after another, patiently, until one has."""

    task: Task
    level: Literal["Objects", "State"] = "Objects"


@dataclass(frozen=True, kw_only=True)
class StopKeepers:
    """Remove the pods of these tasks: they are not needed any more."""

    tasks: tuple[Task, ...]


@dataclass(frozen=True, kw_only=True)
class HoldCopy:
    """Let the StreamSavepoint not be gone, once it is deleted, before its copy is."""


@dataclass(frozen=True, kw_only=True)
class ReleaseCopy:
    """Nothing is left to do for it: it may go."""


SavepointAction = RunKeeper | StopKeepers | HoldCopy | ReleaseCopy
