"""The StreamSavepoint: a copy of a job's checkpoint at a committed batch, with a manifest."""

from __future__ import annotations

from typing import Literal

from headrace.api.edits import Edit, Remove, SetValue
from headrace.api.metadata import ObjectMeta, badly_named
from headrace.api.model import (
    ApiModel,
    Broken,
    Items,
    StatusModel,
    live_field,
    plain_field,
    restart_field,
    rule,
    section,
    transition_rule,
)
from headrace.api.names import API_VERSION, JobName
from headrace.api.pods import RawObject
from headrace.api.quantities import Duration, Memory
from headrace.api.status import Condition, ConditionType, Timestamp
from headrace.api.storage import Location

# The name is also a label of the pods that work on it.
SAVEPOINT_NAME_MAX = 63


class JobReference(ApiModel):
    """A StreamJob of the same namespace."""

    name: JobName = restart_field("Its name.")


class StreamSavepointSpec(ApiModel):
    """What to take or import. Edits concern what becomes of it, not what it is."""

    job: JobReference = section(
        "The job: whose checkpoint is copied, and under whose rights the copy is made."
    )
    path: Location | None = restart_field(
        "Import the savepoint that lies here, instead of taking a new one.", default=None
    )
    cause: Literal["Manual", "Schedule", "Upgrade", "Suspend", "Delete"] = restart_field(
        "Why it is taken. Retention removes all but `Manual` ones by count and age.", default="Manual"
    )
    verify: Literal["Objects", "State", "Restore"] = live_field(
        """How far it is checked: all objects are there with the right sizes; the logs and the state fit
        together; a job has started from it. The last one nobody can do ahead: the condition `Verified` is
        false until a job of this namespace has.""",
        default="Objects",
    )
    pinned: bool = live_field("Never removed by retention.", default=False)
    deletion_policy: Literal["Retain", "Delete"] | None = live_field(
        """What happens to the copy when the StreamSavepoint is deleted. Default: `Delete` for one that was
        taken, `Retain` for one that was imported.""",
        default=None,
    )
    time_limit: Duration = live_field("It has failed if it takes longer.", default=Duration("1h"))
    max_copy_rate: Memory | None = live_field(
        """The most bytes per second to copy, such as `100Mi`. Each request counts as at least 1 MiB: that is
        also at most 100 requests per second. Default: no limit.""",
        default=None,
    )

    @transition_rule(
        cel="self.job.name == oldSelf.job.name && self.cause == oldSelf.cause && "
        "has(self.path) == has(oldSelf.path) && (!has(self.path) || self.path == oldSelf.path)",
        message="job, path and cause say what a savepoint is and cannot change: make a new one",
    )
    def identity_stays(self, old: StreamSavepointSpec) -> Broken | None:
        before, after = old.to_manifest(), self.to_manifest()
        changed = [field for field in ("job", "path", "cause") if before.get(field) != after.get(field)]
        if not changed:
            return None
        edits: list[Edit] = [
            SetValue((field,), before[field]) if field in before else Remove((field,)) for field in changed
        ]
        return Broken(
            message=f"{' and '.join(changed)} cannot change: a savepoint is what it is",
            at=(changed[0],),
            fix="put it back, and make a new StreamSavepoint",
            edits=tuple(edits),
        )


class SavedQuery(StatusModel):
    """One query in a savepoint."""

    name: str = plain_field("Name of the query.")
    lineage: str = plain_field("Its lineage: the query id in the checkpoint's metadata.")
    batch: int = plain_field("The last committed batch in it.", ge=-1)
    pending: bool = plain_field("Whether it carries a batch that was begun and not committed.", default=False)
    watermark: Timestamp | None = plain_field("Event time up to which results are final.", default=None)
    offsets: RawObject = plain_field("Offsets of the sources after that batch.", default={})
    partitions: int | None = plain_field("Number of state partitions.", default=None, ge=1)
    state_format: int | None = plain_field("Format of the state checkpoint.", default=None, ge=1)


class Verification(StatusModel):
    """How far a savepoint has been checked."""

    level: Literal["None", "Objects", "State", "Restore"] = plain_field(
        "The highest level it passed.", default="None"
    )
    at: Timestamp | None = plain_field("When.", default=None)
    message: str = plain_field("What was found.", default="")


class Check(StatusModel):
    """The answer to a request to check a savepoint again."""

    asked: str = plain_field("The value of the annotation `headrace.dev/verify` it answers.")
    level: Literal["None", "Objects", "State"] = plain_field(
        "How far it was found good: `None` where it is damaged, or could not be looked at.", default="None"
    )
    message: str = plain_field("What was found, or why nobody could look.", default="")
    at: Timestamp | None = plain_field("When.", default=None)


class StreamSavepointStatus(StatusModel):
    """What a savepoint holds."""

    observed_generation: int = plain_field(
        "The generation of the spec that was last acted on.", default=0, ge=0
    )
    state: str = plain_field(
        "In a word what happens to it now. For people: tools read the conditions.", default=""
    )
    conditions: Items[Condition] = plain_field(
        "Ready, Reconciling, Stalled, Verified.", default=(), max_length=16, list_key="type"
    )
    path: str | None = plain_field("Where it lies.", default=None)
    source: str | None = plain_field(
        "The run it is taken from, in the job's place in the store.", default=None
    )
    run: int | None = plain_field("The run it was taken from.", default=None, ge=1)
    revision: str | None = plain_field("Digest of that run's spec.", default=None)
    spark_version: str | None = plain_field("Version of Spark that wrote it.", default=None)
    queries: Items[SavedQuery] = plain_field("Its queries.", default=(), max_length=64, list_key="name")
    more_queries: int | None = plain_field(
        "How many more it has, for which there was no room here; its manifest has them all.",
        default=None,
        ge=1,
    )
    offsets_left_out: Items[str] = plain_field(
        "Queries whose offsets had no room here; its manifest has them.", default=(), max_length=64
    )
    batch: int | None = plain_field("The batch, where there is only one query.", default=None, ge=-1)
    objects: int | None = plain_field("How many objects it has.", default=None, ge=0)
    bytes: int | None = plain_field("How big they are together.", default=None, ge=0)
    size: str | None = plain_field("The same for people, such as `1.2Gi`.", default=None)
    copied_percent: int | None = plain_field(
        "How far the copy is, in tens: it is written when that changes. None before it has begun and when it "
        "is done.",
        default=None,
        ge=0,
        le=100,
    )
    started_at: Timestamp | None = plain_field("When copying began.", default=None)
    completed_at: Timestamp | None = plain_field("When its manifest was written.", default=None)
    failed_at: Timestamp | None = plain_field(
        "When it was given up, or found damaged. It stays so: make another one.", default=None
    )
    verified: Verification = plain_field("How far it has been checked.", default=Verification())
    check: Check | None = plain_field("The last check that the annotation asked for.", default=None)
    in_use_by: Items[str] = plain_field(
        """Jobs that start from it or roll back to it: retention keeps it for them. Those of other namespaces,
        which name its path, as `<namespace>/<name>`.""",
        default=(),
        max_length=32,
    )
    access: RawObject | None = plain_field(
        """Under whose rights its store is reached when the job is gone: of the job's spec, what names a
        place, an account or a Secret.""",
        default=None,
    )

    def condition(self, kind: ConditionType) -> Condition | None:
        return next((each for each in self.conditions if each.type == kind), None)


class StreamSavepoint(ApiModel):
    """A point in the life of a StreamJob that it, or another job, can start from."""

    api_version: Literal["headrace.dev/v1alpha1"] = plain_field(
        "The version of the API.", default=API_VERSION
    )
    kind: Literal["StreamSavepoint"] = plain_field("The kind of object.", default="StreamSavepoint")
    metadata: ObjectMeta = plain_field("Name, namespace, labels, …")
    spec: StreamSavepointSpec = plain_field("What to take or import.")
    status: StreamSavepointStatus | None = plain_field("What it holds.", default=None)

    @rule(
        cel=f"self.metadata.name.size() <= {SAVEPOINT_NAME_MAX}",
        message=f"a savepoint's name has at most {SAVEPOINT_NAME_MAX} characters: it is also a label",
    )
    def name_fits(self) -> Broken | None:
        name = self.metadata.name
        if len(name) <= SAVEPOINT_NAME_MAX:
            return None
        message = f"the name has {len(name)} characters; a savepoint's has at most {SAVEPOINT_NAME_MAX}"
        return badly_named(name, message, longest=SAVEPOINT_NAME_MAX)
