"""What a plan asks of the substrate. Each action may be carried out again without harm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.api import StreamJobSpec
from headrace.core.savepoints import Cause


@dataclass(frozen=True, kw_only=True)
class PinRun:
    """Keep the spec and a copy of the code for run `run`, before anything of it starts."""

    run: int
    revision: str
    spec: StreamJobSpec
    # Of this run the spec and the code are taken, as they were kept; None: as they stand now.
    like: int | None = None


@dataclass(frozen=True, kw_only=True)
class SeedRun:
    """Copy the state of a run whose writer has ended into the path of a new one."""

    from_run: int
    to_run: int
    from_uid: str | None = None  # another lineage of the same name; None is this job's own
    # The run whose last batch is the handover point: what `from_run` left uncommitted since is not taken.
    handover: int | None = None
    # Back to the handover point, under a new lineage.
    rewind: bool = False
    # The run whose copies of the application's files are taken over; None: the new run fetches them anew.
    code_of: int | None = None

    @property
    def what(self) -> str:
        return f"the state of run {self.from_run}"


@dataclass(frozen=True, kw_only=True)
class RestoreRun:
    """Make a new run from a savepoint, or from a checkpoint that lies somewhere. What is there stays."""

    path: str
    to_run: int
    # `forward`: this job goes on; the store decides whether its sinks allow that. `new`: a fork. `auto`: the
    # one or the other, by the job that the savepoint says it is of.
    lineage: Literal["forward", "new", "auto"]
    # What the query of a plain checkpoint is called.
    query: str | None = None

    @property
    def what(self) -> str:
        return f"the state at {self.path}"


@dataclass(frozen=True, kw_only=True)
class StartAttempt:
    """Start the driver of one attempt. The status already names it, so a crash here starts it once."""

    run: int
    attempt: int
    epoch: int
    # What spec.startFrom said when the job began, as the status has it.
    started_from: str | None = None
    # The state is split into spec.state.partitions before its queries start.
    repartition: bool = False


@dataclass(frozen=True, kw_only=True)
class StartCandidate:
    """Start a driver that rehearses run `run` on a fork of what `from_run` has come to. It writes nothing."""

    run: int
    number: int
    from_run: int
    # As for an attempt: a query that is new begins where the job began, once the candidate has taken over.
    started_from: str | None = None
    # The fork is split into spec.state.partitions, too, once the batches are replayed.
    repartition: bool = False


@dataclass(frozen=True, kw_only=True)
class StopCandidate:
    """End a candidate that nobody waits for any more. There is nothing to drain."""

    run: int
    number: int
    uid: str


@dataclass(frozen=True, kw_only=True)
class ActivateCandidate:
    """Make a candidate in standby the writer: attempt `attempt` of its run. The status already names it so,
    and the run before has no writer any more. The same order may be given again."""

    run: int
    number: int
    uid: str
    attempt: int
    epoch: int
    # Also where the run before was cut in the middle of a batch: it is repeated within the same bounds.
    accept_pending: bool


@dataclass(frozen=True, kw_only=True)
class DrainAttempt:
    """Let the running batch commit, begin no other, end the process."""

    run: int
    attempt: int
    uid: str
    why: str
    # Another run loads its state at once, while nobody commits: two more batches first, with fresh snapshots.
    snapshots_first: bool = False


@dataclass(frozen=True, kw_only=True)
class AbandonAttempt:
    """Give up a driver on a lost node without proof that it has ended. Only where the spec says so."""

    run: int
    attempt: int
    uid: str


@dataclass(frozen=True, kw_only=True)
class ScaleExecutors:
    """Tell the platform how many executors to keep for a running attempt."""

    run: int
    attempt: int
    epoch: int
    replicas: int
    # The candidate that took over as this attempt: its executors are known by that.
    candidate: int | None = None


@dataclass(frozen=True, kw_only=True)
class StartLookout:
    """Start the pod that looks for work while the job sleeps. It reads, and writes nothing."""

    number: int
    # How often it looks.
    every_seconds: float


@dataclass(frozen=True, kw_only=True)
class HoldDeletion:
    """Let the job not be gone, once it is deleted, before its checkpoints are."""


@dataclass(frozen=True, kw_only=True)
class ReleaseDeletion:
    """Nothing is left to do for the job: it may go when it is deleted."""


@dataclass(frozen=True, kw_only=True)
class DeleteCheckpoints:
    """Remove every run of this job from the store. Its savepoints stay."""

    path: str | None
    """Of the newest run; None where the status has lost it."""


@dataclass(frozen=True, kw_only=True)
class StopDeleting:
    """End a removal that is under way: the checkpoints are retained after all."""


@dataclass(frozen=True, kw_only=True)
class TakeSavepoint:
    """Make the StreamSavepoint of this name: it is used once, so a second one is never made."""

    name: str
    cause: Cause


@dataclass(frozen=True, kw_only=True)
class RemoveSavepoint:
    """Delete a StreamSavepoint that retention does not keep."""

    name: str
    uid: str
    why: str


@dataclass(frozen=True, kw_only=True)
class CollectOrphans:
    """Have a keeper look for what savepoints have left behind, and remove it unless it is a dry run; or for
    savepoints."""

    asked: str
    mode: Literal["dry-run", "remove", "list"]
    place: str
    """<location>/<namespace>/<name> of the job; of a list, anything above that, too."""


@dataclass(frozen=True, kw_only=True)
class EndCollecting:
    """What the keeper had to say is in the status: its pod may go."""


Action = (
    PinRun
    | SeedRun
    | RestoreRun
    | StartAttempt
    | StartCandidate
    | StopCandidate
    | ActivateCandidate
    | DrainAttempt
    | AbandonAttempt
    | ScaleExecutors
    | StartLookout
    | HoldDeletion
    | ReleaseDeletion
    | DeleteCheckpoints
    | StopDeleting
    | TakeSavepoint
    | RemoveSavepoint
    | CollectOrphans
    | EndCollecting
)
