"""The status of a StreamJob: the operator's write-ahead log, and what people and tools read.

Numbers that move (lag, rows per second) are metrics, not status. Strings have no length limit here: a status
that the API server refuses would leave the operator blind, so whoever writes one keeps it short.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, PlainSerializer, Strict, WithJsonSchema

from headrace.api.model import Items, StatusModel, plain_field
from headrace.api.pods import RawObject


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


Timestamp = Annotated[
    AwareDatetime,
    Strict(False),
    PlainSerializer(_rfc3339, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]

ConditionType = Literal[
    "Ready",
    "Reconciling",
    "Stalled",
    "LagKnown",
    "ScalingLimited",
    "DataLossRisk",
    "Asleep",
    "RolledBack",
    "Rehearsed",
    "Verified",
]

# How an attempt ends: the exit codes of the harness, and what only the platform sees.
EndReason = Literal[
    "Completed",
    "Drained",
    "Refused",
    "ApplicationError",
    "QueryFailed",
    "Fenced",
    "BatchStuck",
    "StoreUnavailable",
    "InternalError",
    "Killed",
    "OutOfMemory",
    "Evicted",
    "NodeLost",
    "StartFailed",
    "Unknown",
    "Rehearsed",
    "StandbyExpired",
    "MeaningChanged",
    "RehearsalTimeout",
]


class Condition(StatusModel):
    """One aspect of the object, as Kubernetes' `metav1.Condition`."""

    type: str = plain_field("What it is about.", max_length=316)
    status: Literal["True", "False", "Unknown"] = plain_field("Whether it holds.")
    observed_generation: int = plain_field("The generation of the spec it was judged by.", default=0, ge=0)
    last_transition_time: Timestamp = plain_field("When `status` last changed.")
    reason: str = plain_field(
        "Why, as one CamelCase word for machines.",
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    )
    message: str = plain_field("Why, as a sentence for people.", default="", max_length=32768)


class ExecutorsStatus(StatusModel):
    """The executors, as `kubectl scale` and a HorizontalPodAutoscaler see them."""

    replicas: int = plain_field("How many there are.", default=0, ge=0)
    ready: int = plain_field("How many of them have registered with the driver.", default=0, ge=0)
    target: int | None = plain_field("How many there should be.", default=None, ge=0)
    selector: str = plain_field("Label selector of their pods.", default="")
    reason: str | None = plain_field("Why this target, in a sentence with numbers.", default=None)
    decided_at: Timestamp | None = plain_field("When the autoscaler last changed the target.", default=None)


class UserFrame(StatusModel):
    """The place in the user's own code."""

    file: str = plain_field("File.")
    line: int = plain_field("Line.", ge=0)
    code: str = plain_field("The line itself.", default="")


class Termination(StatusModel):
    """How an attempt ended."""

    run: int = plain_field("Its run.", ge=0)
    attempt: int = plain_field("Its number.", ge=0)
    reason: EndReason = plain_field("Why it ended.")
    message: str = plain_field("The same in a sentence.", default="")
    error_class: str | None = plain_field("Spark's error class.", default=None)
    exit_code: int | None = plain_field("Exit code of the driver.", default=None)
    user_frame: UserFrame | None = plain_field("Where in the user's code.", default=None)
    at: Timestamp | None = plain_field("When.", default=None)
    log_file: str | None = plain_field("Where the driver's log is kept.", default=None)
    candidate: int | None = plain_field("The candidate that took over as this attempt.", default=None, ge=1)


class Activation(StatusModel):
    """A candidate that takes over as the first attempt of its run, warm. From the moment this is written it
    counts as a writer: the order to take over may have reached it."""

    candidate: int = plain_field("Its number.", ge=1)
    uid: str = plain_field("Identity of its driver.")
    from_run: int = plain_field("The run whose state it copies first.", ge=1)
    handover: int | None = plain_field(
        "The run whose end is the handover point, where that is not the run before: see `operation`.",
        default=None,
        ge=1,
    )
    seeded: bool = plain_field(
        "The state was seen to be copied. Until then nothing may follow this attempt but the copy.",
        default=False,
    )


class Attempt(StatusModel):
    """A driver: attempt k of a run."""

    number: int = plain_field("Counts from 1 within the run.", ge=1)
    epoch: int = plain_field("The job's epoch that it writes with.", ge=1)
    state: Literal["Intended", "Started", "Ended"] = plain_field(
        """`Intended` is written before its driver is started: a new operator then starts it, or finds it
        started."""
    )
    uid: str | None = plain_field(
        "Identity of its driver, once there is one; calls to its agent carry it.", default=None
    )
    started_at: Timestamp | None = plain_field("When it was started.", default=None)
    activation: Activation | None = plain_field(
        "How a candidate took over as this attempt; none of an attempt that was started as such.",
        default=None,
    )


class Run(StatusModel):
    """One revision of the spec over one checkpoint path."""

    number: int = plain_field("Counts from 1; `run-<number>` in the store.", ge=1)
    revision: str = plain_field("Digest of the fields of the spec that make a run.")
    generation: int = plain_field("The generation of the spec it was made from.", default=0, ge=0)
    image: str | None = plain_field("The image, by digest where it is known.", default=None)
    spark_version: str | None = plain_field(
        "The version of Spark in that image, as its driver told.", default=None
    )
    path: str | None = plain_field("Its path in the store.", default=None)
    seeded_from: str | None = plain_field(
        "Where its state comes from: a run, a savepoint, or `none`.", default=None
    )
    started_from: str | None = plain_field(
        "What `spec.startFrom` said when the job began with this run.", default=None
    )
    changes: Items[str] = plain_field("Fields that differ from the run before.", default=(), max_length=32)
    repartition: bool = plain_field(
        "Its driver splits the state into `spec.state.partitions` before the queries start.", default=False
    )
    state_partitions: int | None = plain_field(
        """Into how many partitions its state is split, where that is not what its spec says: a rollback
        leaves the state as it is.""",
        default=None,
        ge=1,
    )
    left: int | None = plain_field(
        """The run whose state was left behind, where this one, or another on trial before it, began without:
        a rollback goes back to that.""",
        default=None,
        ge=1,
    )
    attempt: Attempt | None = plain_field("Its newest attempt.", default=None)
    started_at: Timestamp | None = plain_field("When it began.", default=None)


class Beginning(StatusModel):
    """A run that is being made from what `spec.startFrom` says, before it can begin."""

    run: int = plain_field("Its number; another start is another run, with a path of its own.", ge=1)
    start: str = plain_field("What it starts from.")


class Candidate(StatusModel):
    """A driver that rehearses the next run beside the one that runs. It writes nothing."""

    number: int = plain_field("Counts from 1 within the job.", ge=1)
    state: Literal["Intended", "Started", "Standby"] = plain_field(
        """`Intended` is written before its driver is started, as for an attempt. In `Standby` it has
        rehearsed well, and waits, warm, for the handover."""
    )
    tries: int = plain_field("How many there were before it that told nothing.", default=0, ge=0)
    started_at: Timestamp | None = plain_field("When it was started.", default=None)


# An operator that meets a word it does not know leaves the job alone: it cannot tell who may be writing.
OperationStep = Literal[
    "Rehearsing", "Draining", "Seeding", "Activating", "Starting", "Verifying", "Undecided"
]


class Operation(StatusModel):
    """A change under way that takes several steps."""

    kind: Literal["Upgrade", "Rollback", "Suspend", "Resume", "Restore", "Delete"] = plain_field(
        "What it is."
    )
    step: OperationStep = plain_field(
        """Where it stands: `Rehearsing`, `Draining`, `Seeding`, then, with the new run, `Activating` or
        `Starting`, `Verifying`, and `Undecided` where it failed and the spec leaves the rollback to you."""
    )
    from_run: int = plain_field("The run that is replaced.", ge=1)
    to_run: int = plain_field("The run that replaces it.", ge=1)
    revision: str = plain_field("What the run that replaces it is to run.", default="")
    reason: str = plain_field("Why.", default="")
    changes: Items[str] = plain_field("Fields that differ from the run before.", default=(), max_length=32)
    candidate: Candidate | None = plain_field(
        "Who rehearses the new run, or has, and waits for the handover.", default=None
    )
    version_of: int | None = plain_field(
        "In a rollback: the run whose version the new run has, spec and code.", default=None, ge=1
    )
    back_to: int | None = plain_field(
        """The run that a rollback returns to: the last whose version was good. Its path ends at the handover
        point.""",
        default=None,
        ge=1,
    )
    state_run: int | None = plain_field(
        "The run whose state is copied, if not the one that is replaced.", default=None, ge=1
    )
    handover: int | None = plain_field(
        """The run whose end is the handover point: what a candidate left uncommitted since then is not taken
        over with its state.""",
        default=None,
        ge=1,
    )
    rewind: bool = plain_field(
        "Back to the handover point under a new lineage: the old version could not read the newer state.",
        default=False,
    )
    without_state: bool = plain_field("The new run begins without state, as the spec asks.", default=False)
    repartition: bool = plain_field(
        "The new run splits the state into another number of partitions before its queries start.",
        default=False,
    )
    answered: str | None = plain_field(
        "The request for a rollback, as the annotation says it, that was given up for a newer edit.",
        default=None,
    )
    problem: str | None = plain_field("Why the new run failed its verification.", default=None)
    backlog: int | None = plain_field(
        "Rows that usually wait for a batch of the old version; none where nobody knows.", default=None, ge=0
    )
    started_at: Timestamp | None = plain_field("When it began.", default=None)
    step_at: Timestamp | None = plain_field("When its step began.", default=None)

    @property
    def on_trial(self) -> bool:
        """The new run has begun: what is left is to see how it does."""
        return self.step in ("Activating", "Starting", "Verifying", "Undecided")


class PlannedEdit(StatusModel):
    """What the newest edit does, as it was told when it was first seen. Figures are of that moment."""

    generation: int = plain_field("The generation of the spec that it is of.", default=0, ge=0)
    verdict: Literal["live", "new run", "refused"] = plain_field("What becomes of it.")
    sentence: str = plain_field("What changed, and what is done, in a sentence; or why it is refused.")
    run: int | None = plain_field("The run that it makes.", default=None, ge=1)
    change_class: str = plain_field("The highest class of its changes: `live`, `restart` or `state`.")
    changes: Items[str] = plain_field("The fields that changed.", default=(), max_length=32)
    steps: Items[str] = plain_field("What will happen, in this order.", default=(), max_length=12)
    gap: str = plain_field("Expected time without a commit.", default="")
    catch_up: str = plain_field("How long it is behind after that.", default="")
    sinks: Items[str] = plain_field("What each sink of the job keeps.", default=(), max_length=16)
    finds: str = plain_field("What the rehearsal finds before anything is touched.", default="")
    misses: str = plain_field("What it does not find.", default="")


class StableRun(StatusModel):
    """The last run that passed its verification: where a rollback goes."""

    run: int = plain_field("Its number.", ge=1)
    revision: str = plain_field("Digest of its spec.")
    image: str | None = plain_field("The image it ran, by digest where it is known.", default=None)
    at: Timestamp | None = plain_field("When it passed.", default=None)


class Rejection(StatusModel):
    """A version that was rolled back, or refused in its rehearsal. It is not tried again until the spec, or
    the code, is another."""

    run: int = plain_field("The run that had it, or would have had it.", ge=1)
    kind: Literal["RolledBack", "Refused"] = plain_field("Which of the two.", default="RolledBack")
    policy: str = plain_field(
        "Digest of `spec.upgrade`, of one that was refused: a new policy is a new rehearsal.", default=""
    )
    revision: str = plain_field("Digest of its spec.")
    reason: str = plain_field("Why, as one CamelCase word for machines.")
    message: str = plain_field("Why, as a sentence for people.", default="")
    at: Timestamp | None = plain_field("When.", default=None)


class HistoryEntry(StatusModel):
    """One run of the past."""

    run: int = plain_field("Its number.", ge=1)
    revision: str = plain_field("Digest of its spec.")
    outcome: Literal["Replaced", "RolledBack", "Superseded", "Refused", "Completed"] = plain_field(
        "How it ended."
    )
    message: str = plain_field("The same in a sentence.", default="")
    image: str | None = plain_field("The image it ran, by digest where it is known.", default=None)
    spark_version: str | None = plain_field("The version of Spark it ran on.", default=None)
    changes: Items[str] = plain_field("Fields that differed from the run before.", default=(), max_length=32)
    started_at: Timestamp | None = plain_field("When it began.", default=None)
    ended_at: Timestamp | None = plain_field("When it ended.", default=None)


class Restarts(StatusModel):
    """Attempts that failed."""

    total: int = plain_field("Since the job exists.", default=0, ge=0)
    in_a_row: int = plain_field("Since an attempt was last stable.", default=0, ge=0)
    without_progress: int = plain_field("Since every query last committed a batch.", default=0, ge=0)
    next_at: Timestamp | None = plain_field("When the next attempt is due.", default=None)


class LagStatus(StatusModel):
    """How far behind its sources the job is, as a band: the numbers are metrics."""

    band: Literal["Ok", "Behind", "AtRisk", "Unknown"] = plain_field(
        "Within the objective, behind it, or about to lose data.", default="Unknown"
    )
    message: str = plain_field("The same in a sentence.", default="")


class Sleep(StatusModel):
    """A job without work, stopped until there is some. Written before its driver is told to end."""

    since: Timestamp = plain_field("When it was decided.")
    lookout: int = plain_field("Number of the pod that looks for work meanwhile.", ge=1)
    lookout_at: Timestamp = plain_field("When that pod was intended.")
    failures: int = plain_field("Pods before it that ended without a word on the work.", default=0, ge=0)


class QueryLineage(StatusModel):
    """The scope in which a query's batch numbers mean something."""

    query: str = plain_field("Name of the query.")
    id: str = plain_field("Id in its checkpoint's metadata; sinks de-duplicate by it.")


class FoundSavepoint(StatusModel):
    """A savepoint that lies in a store."""

    path: str = plain_field("Where it lies: it can be imported by this.")
    job: str = plain_field("The job that it was taken of, with its namespace.", default="")
    cause: str = plain_field("Why it was taken.", default="")
    taken_at: Timestamp | None = plain_field("When.", default=None)
    batches: RawObject = plain_field("The last committed batch of each query.", default={})
    bytes: int | None = plain_field("How big it is.", default=None, ge=0)
    verified: str = plain_field("How far it was checked.", default="")
    problem: str = plain_field("Why nobody can start from it, if so.", default="")


class Collection(StatusModel):
    """What was found of savepoints in a store, or of what they have left behind."""

    asked: str = plain_field("The value of the annotation `headrace.dev/collect-savepoints` it answers.")
    message: str = plain_field("What was found or removed, or why it could not be.", default="")
    objects: int | None = plain_field("How many objects.", default=None, ge=0)
    bytes: int | None = plain_field("How big they are together.", default=None, ge=0)
    savepoints: Items[FoundSavepoint] = plain_field(
        """Of `list`: the newest below that place, as many as the answer has room for. Otherwise: whole ones
        of this job that no StreamSavepoint of the namespace names. They are never removed.""",
        default=(),
        max_length=64,
    )
    at: Timestamp | None = plain_field("When.", default=None)


class StreamJobStatus(StatusModel):
    """What Headrace knows and does about a StreamJob."""

    observed_generation: int = plain_field(
        "The generation of the spec that was last acted on.", default=0, ge=0
    )
    state: str = plain_field(
        "In one word or two what the job does now. For people: tools read the conditions.", default=""
    )
    conditions: Items[Condition] = plain_field(
        "Ready, Reconciling, Stalled, LagKnown, ScalingLimited, DataLossRisk, Asleep, RolledBack.",
        default=(),
        max_length=16,
        list_key="type",
    )
    epoch: int = plain_field(
        "Counts every attempt that may write; sinks refuse an older one.", default=0, ge=0
    )
    run: Run | None = plain_field("The run that writes, or is about to.", default=None)
    operation: Operation | None = plain_field("The change under way.", default=None)
    plan: PlannedEdit | None = plain_field(
        "What the newest edit does: written once for each edit, and kept until the next.", default=None
    )
    beginning: Beginning | None = plain_field("What the job is about to begin with.", default=None)
    restored: str | None = plain_field(
        "The last value of the annotation `headrace.dev/restore` that was carried out.", default=None
    )
    executors: ExecutorsStatus = plain_field("The executors.", default=ExecutorsStatus())
    lag: LagStatus | None = plain_field("How far behind.", default=None)
    sleep: Sleep | None = plain_field("Set while the job sleeps, or falls asleep.", default=None)
    restless: int = plain_field(
        "How many sleeps in a row have ended because nobody could tell whether there was work.",
        default=0,
        ge=0,
    )
    lookouts: int = plain_field("Counts the pods that looked for work while the job slept.", default=0, ge=0)
    lineage: Items[QueryLineage] = plain_field(
        "Lineage of each query.", default=(), max_length=64, list_key="query"
    )
    restarts: Restarts = plain_field("Attempts that failed.", default=Restarts())
    last_termination: Termination | None = plain_field("How the last attempt ended.", default=None)
    last_stable: StableRun | None = plain_field("The last run that passed its verification.", default=None)
    rejected: Rejection | None = plain_field(
        "The version that was rolled back or refused, while the spec still asks for it.", default=None
    )
    candidates: int = plain_field("Counts the drivers that rehearsed.", default=0, ge=0)
    last_savepoint: str | None = plain_field("Name of the newest good StreamSavepoint.", default=None)
    collection: Collection | None = plain_field(
        "The last look for what savepoints have left behind.", default=None
    )
    completed_at: Timestamp | None = plain_field("When a finite job last ended by itself.", default=None)
    next_start_at: Timestamp | None = plain_field("When a scheduled job is due.", default=None)
    history: Items[HistoryEntry] = plain_field("Runs of the past, newest first.", default=(), max_length=10)

    def condition(self, kind: ConditionType) -> Condition | None:
        return next((each for each in self.conditions if each.type == kind), None)
