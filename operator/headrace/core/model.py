"""What the planner is told: the job as it is wanted, and the world as it was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from headrace.api import StreamJobSpec, UserFrame
from headrace.core.advice import Advice
from headrace.core.savepoints import Known


@dataclass(frozen=True)
class Problem:
    """What stands in the way: one word for machines, one sentence for people."""

    reason: str
    message: str


# Somebody else has what has to have this name: nothing changes before he, or somebody, takes it away.
NAME_TAKEN = "NameTaken"


@dataclass(frozen=True, kw_only=True)
class RollbackRequest:
    """Leave this run for an earlier version. Without effect once the run is another."""

    run: int
    # The run whose version is wanted; None is the last good one.
    to: int | None = None

    def __str__(self) -> str:
        """As the annotation says it."""
        return f"{self.run}" if self.to is None else f"{self.run} to {self.to}"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job that passed validation. Nothing re-checks it later."""

    namespace: str
    name: str
    uid: str
    generation: int
    spec: StreamJobSpec
    paused: bool = False
    # A request to go back to a savepoint: its name, and whatever makes it another request than the last.
    restore: str | None = None
    # Asked for by annotation; a Problem where it cannot be read.
    rollback: RollbackRequest | Problem | None = None
    # The spec as it stands cannot be taken; `spec` is then the one that the run was pinned with.
    rejected: Problem | None = None
    # The substrate is going away but the job is not (Ctrl-C in `headrace dev`): drain, keep everything.
    detaching: bool = False
    # spec.deletionPolicy is Delete; read from the manifest as it stands, also where the rest cannot be taken.
    deletes_checkpoints: bool = False
    # spec.savepoints.onDelete, read likewise.
    saves_on_delete: bool = False
    # The finalizer that these two take is there.
    held: bool = False
    deleting: bool = False
    # What the annotation asks for that has orphans of savepoints looked for.
    collect: str | None = None


@dataclass(frozen=True)
class Code:
    """The application's code as it would be pinned for a new run."""

    digest: str


@dataclass(frozen=True)
class CodeProblem:
    """Code that cannot run: known before anything is touched."""

    message: str


class AttemptPhase(StrEnum):
    STARTING = "Starting"
    RUNNING = "Running"
    DRAINING = "Draining"
    ENDED = "Ended"


class Ending(StrEnum):
    """Why a driver process ended; the harness's own words, plus what only an observer can say."""

    COMPLETED = "Completed"
    DRAINED = "Drained"
    REFUSED = "Refused"
    APPLICATION_ERROR = "ApplicationError"
    QUERY_FAILED = "QueryFailed"
    FENCED = "Fenced"
    BATCH_STUCK = "BatchStuck"
    STORE_UNAVAILABLE = "StoreUnavailable"
    INTERNAL_ERROR = "InternalError"
    # What only an observer can say: the driver had no last word.
    KILLED = "Killed"
    OUT_OF_MEMORY = "OutOfMemory"
    EVICTED = "Evicted"
    NODE_LOST = "NodeLost"
    START_FAILED = "StartFailed"
    UNKNOWN = "Unknown"
    # Of a candidate only.
    REHEARSED = "Rehearsed"
    STANDBY_EXPIRED = "StandbyExpired"
    MEANING_CHANGED = "MeaningChanged"
    REHEARSAL_TIMEOUT = "RehearsalTimeout"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a driver ended."""

    ending: Ending
    message: str = ""
    error_class: str | None = None
    exit_code: int | None = None
    user_frame: UserFrame | None = None
    # Where the driver's log is kept; None where nobody could keep it.
    log_file: str | None = None
    # When, where the platform knows it: it may have been long before anybody looked.
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class QueryReport:
    name: str
    active: bool
    committed_batch: int | None = None
    stuck: bool = False
    # A batch is under way.
    busy: bool = False
    # A trigger of this attempt has ended, with a batch or because there was nothing to read.
    looked: bool = False
    # Rows that wait in its sources; None where nobody knows.
    lag_rows: int | None = None
    # Rows that waited when its batches were planned, over the life of the attempt, oldest first.
    waited: tuple[int, ...] = ()
    # Of its newest batch; rows per second that came, and that it got through.
    batch_seconds: float | None = None
    arrival: float | None = None
    capacity: float | None = None
    # As Spark describes it.
    sink: str | None = None


@dataclass(frozen=True, kw_only=True)
class ObservedActivation:
    """What a candidate tells of the order to take over."""

    state: str  # Copying, Starting, Active, Done, Failed
    message: str = ""
    # What each part took.
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def failed(self) -> bool:
        """It came to nothing, and nothing was claimed: it may be ordered again."""
        return self.state == "Failed"


@dataclass(frozen=True, kw_only=True)
class ObservedAttempt:
    """A driver process, known by its uid. Only `ENDED` proves that it can write no more."""

    run: int
    number: int
    uid: str
    phase: AttemptPhase
    ended: Ended | None = None
    queries: tuple[QueryReport, ...] = ()
    # Why it has not started yet: no node has room, the image cannot be pulled, …
    waiting: Problem | None = None
    # Its node does not answer: nobody can tell whether it still writes.
    lost: bool = False
    # The image that really runs, by digest; None where nobody knows it.
    image: str | None = None
    # The Spark that really runs; None before its session is there.
    spark_version: str | None = None
    # Of a candidate that takes over as this attempt; None before it has heard of it.
    activation: ObservedActivation | None = None

    @property
    def live(self) -> bool:
        return self.phase is not AttemptPhase.ENDED


@dataclass(frozen=True, kw_only=True)
class ObservedCandidate:
    """A driver that rehearses. It may write into its own fork only.

    One that was ordered to take over, or may have been, is an attempt.
    """

    run: int
    number: int
    uid: str
    ended: Ended | None = None
    # Its container runs.
    running: bool = False
    # Whether it says that it rehearsed well, and waits; None while it does not answer.
    standby: bool | None = None
    # What it could not check (no rows to repeat, say), and what else is good to know of it.
    notes: tuple[str, ...] = ()
    # Why it, or its executors, have not started yet (no node has room, …), or why it does not answer.
    waiting: Problem | None = None
    # How long it has waited for the same reason, as far as anybody has looked.
    waiting_for: timedelta = timedelta(0)

    @property
    def live(self) -> bool:
        return self.ended is None


@dataclass(frozen=True, kw_only=True)
class PinnedRun:
    """What a run runs, kept beside it: a restart never picks up anything newer."""

    revision: str
    code: str  # digest
    spec: StreamJobSpec
    # Its place in the store; None where the substrate keeps that to itself.
    path: str | None = None


@dataclass(frozen=True, kw_only=True)
class ObservedExecutors:
    """The executors of the live attempt, where they are processes of their own."""

    replicas: int
    ready: int
    # How many the platform was told to keep; None before there is anything to tell.
    asked: int | None = None
    # Why those that are not ready are not, where that is more than the usual wait.
    waiting: Problem | None = None
    # None is ready, which is not worth a word before this.
    expected_by: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Idleness:
    """Of a running job: whether it has work, as far as its driver tells."""

    # Since when there has been none; None where there is some, or where nobody can tell.
    since: datetime | None = None
    # Why nobody could look for work while it sleeps; None if somebody could.
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class ObservedLookout:
    """The pod that looks for work while the job sleeps, as the status names it."""

    number: int
    # False where the platform refused it.
    made: bool = True
    running: bool = False
    # Or about to end: it is not counted on any more.
    ended: bool = False
    # What it found, in the words of its end: `Work`, `Blind`; None where it had none.
    found: str | None = None
    message: str = ""
    # How often it looks.
    every_seconds: float | None = None
    # Why it does not run.
    waiting: Problem | None = None


@dataclass(frozen=True, kw_only=True)
class EarlierLineage:
    """State of the same namespace/name that another uid left in the store."""

    uid: str
    last_run: int


@dataclass(frozen=True, kw_only=True)
class ObservedSavepoint:
    """The savepoint that a job is about to start from."""

    name: str
    # Of the same namespace.
    job: str
    # None until it is Ready.
    path: str | None = None
    # Why it is not, and whether that may change by itself.
    problem: str = ""
    lasting: bool = False


@dataclass(frozen=True, kw_only=True)
class SeededQuery:
    """What a query of a new run begins with, as the keeper decided from the logs (store/rollback.py)."""

    name: str
    how: str  # Handover, Carried, Forward, Rewound
    batch: int | None


class Removal(StrEnum):
    """The removal of a deleted job's checkpoints."""

    UNDER_WAY = "UnderWay"
    DONE = "Done"


@dataclass(frozen=True, kw_only=True)
class ObservedCollecting:
    """A keeper that looks for orphans, or did."""

    # Digest of what was asked.
    asked: str
    ended: bool
    # False where the platform refused it.
    pod: bool = True
    message: str = ""
    objects: int | None = None
    size_bytes: int | None = None
    # Savepoints that it found, as it tells them; their paths are below the place where it looked.
    savepoints: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Observed:
    code: Code | CodeProblem
    attempts: tuple[ObservedAttempt, ...] = ()
    candidates: tuple[ObservedCandidate, ...] = ()
    # Why the platform refused to start the intended candidate.
    candidate_problem: Problem | None = None
    pinned: dict[int, PinnedRun] = field(default_factory=dict)
    seeded_runs: frozenset[int] = frozenset()
    # What the keeper told of those that came out of a rollback.
    seeded_queries: dict[int, tuple[SeededQuery, ...]] = field(default_factory=dict)
    seed_problem: str | None = None
    # Why a copy of state that was asked for has not begun: no node has room, …
    seed_waiting: Problem | None = None
    # Why the platform refused to start the intended attempt: a quota, an admission rule.
    start_problem: Problem | None = None
    # Why what a run runs could not be kept.
    pin_problem: Problem | None = None
    # None where there are none to be seen: `headrace dev` runs them inside the driver.
    executors: ObservedExecutors | None = None
    # What the autoscaler last had to say that is worth a word; None before it has looked.
    advice: Advice | None = None
    # None where nobody has looked: the job does not run, or has no `autoscaling.idle`.
    idleness: Idleness | None = None
    # None where there is none of the number in the status.
    lookout: ObservedLookout | None = None
    earlier: EarlierLineage | None = None
    # None where there is none of that name, or where nobody needs to know.
    savepoint: ObservedSavepoint | None = None
    # Of a deleted job: whoever beside its drivers may still write into the store, by name.
    lingering: tuple[str, ...] = ()
    removal: Removal | None = None
    # Why the last try to remove the checkpoints failed, or could not begin.
    removal_problem: Problem | None = None
    # Savepoints of the job, but those that are being deleted. None where there are no such objects
    # (`headrace dev`): then none is taken before a step, none by schedule.
    savepoints: tuple[Known, ...] | None = None
    # Why the platform refused to make one.
    savepoint_problem: Problem | None = None
    # The look for what savepoints have left behind; None where there is none.
    collecting: ObservedCollecting | None = None
