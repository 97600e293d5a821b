"""When a job runs, how it is changed, how it recovers, and what stays of it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from headrace.api.choices import exactly_one, exactly_one_cel
from headrace.api.cron import Cron, TimeZone
from headrace.api.edits import Edit, Remove, SetValue
from headrace.api.forms import Form, free_text
from headrace.api.model import ApiModel, Broken, live_field, restart_field, rule, section
from headrace.api.names import ObjectName
from headrace.api.quantities import Duration, Memory
from headrace.api.storage import Location


class Trigger(ApiModel):
    """When the job's queries look for new data."""

    mode: Literal["Continuous", "AvailableNow"] = restart_field(
        """`Continuous` runs until it is suspended or deleted. `AvailableNow` works off what is there when it
        starts and ends: the job is then `Completed`, which means that every query has committed all the data
        it found and the driver has ended by itself; its checkpoint stays, and the next start goes on from
        it.""",
        default="Continuous",
    )
    interval: Duration | None = restart_field(
        """From the start of one micro-batch to the start of the next. Default: what the code says, else at
        once.""",
        default=None,
    )
    schedule: Cron | None = live_field(
        """When an `AvailableNow` job starts again after it is completed, as a cron expression: the same run,
        from its checkpoint. Times that come while it runs, is tried again or is suspended are left out; if
        nobody could act at its time, it starts once, late. Made or edited, a job starts at once.""",
        default=None,
    )
    time_zone: TimeZone | None = live_field(
        """Time zone of `schedule`, by its name in the IANA database. A time of day that the clock leaps over
        comes right after the leap; one that it shows twice comes once. Default: UTC.""",
        default=None,
    )

    @rule(
        cel="!has(self.schedule) || self.mode == 'AvailableNow'",
        message="schedule needs mode AvailableNow",
    )
    def schedule_needs_an_end(self) -> Broken | None:
        if self.schedule is None or self.mode == "AvailableNow":
            return None
        return Broken(
            message="a Continuous job never ends, so it cannot start on a schedule",
            at=("schedule",),
            fix="set mode: AvailableNow, or remove schedule",
            edits=(
                (SetValue(("mode",), "AvailableNow"),) if self.interval is None else self._without_schedule()
            ),
        )

    def _without_schedule(self) -> tuple[Edit, ...]:
        return (Remove(("schedule",)), Remove(("timeZone",)))

    @rule(
        cel="!has(self.interval) || self.mode == 'Continuous'",
        message="interval needs mode Continuous",
    )
    def interval_needs_continuous(self) -> Broken | None:
        if self.interval is None or self.mode == "Continuous":
            return None
        return Broken(
            message="an AvailableNow job has no interval: it ends when the data is worked off",
            at=("interval",),
            fix="remove interval, or set mode: Continuous",
            edits=(Remove(("interval",)),),
        )

    @rule(
        cel="!has(self.timeZone) || has(self.schedule)",
        message="timeZone needs schedule",
    )
    def zone_needs_schedule(self) -> Broken | None:
        if self.time_zone is None or self.schedule is not None:
            return None
        return Broken(
            message="timeZone has no meaning without schedule",
            at=("timeZone",),
            fix="remove timeZone, or add schedule",
            edits=(Remove(("timeZone",)),),
        )


class Savepoints(ApiModel):
    """When savepoints are taken, and how long they are kept. Never is the last good one removed."""

    schedule: Cron | None = live_field("When to take one, as a cron expression in UTC.", default=None)
    keep: int = live_field(
        """How many to keep of those that Headrace takes by itself: so many for the schedule, so many for
        upgrades, so many for suspensions. What you asked for, imported or pinned stays.""",
        default=10,
        ge=1,
        le=1000,
    )
    max_age: Duration | None = live_field(
        "Remove those that Headrace took by itself when they are older.", default=None
    )
    on_upgrade: bool = live_field("Take one before every upgrade.", default=True)
    on_suspend: bool = live_field("Take one when the job is suspended.", default=True)
    on_delete: bool = live_field(
        """Take one when the job is deleted and `deletionPolicy` is `Retain`. The StreamJob then waits for it,
        so it needs a running operator to go.""",
        default=False,
    )
    verify: Literal["Objects", "State"] = live_field(
        "How far those that Headrace takes by itself are checked.", default="Objects"
    )
    max_copy_rate: Memory | None = live_field(
        """The most bytes per second that one of them copies, such as `100Mi`. Each request counts as at least
        1 MiB: that is also at most 100 requests per second. Default: no limit.""",
        default=None,
    )


class Rehearsal(ApiModel):
    """The new version runs on a copy of the real state, with muted sinks, before it touches anything."""

    batches: int = live_field("How many past batches it replays.", default=3, ge=1, le=100)
    time_limit: Duration = live_field("The upgrade is refused if it takes longer.", default=Duration("10m"))
    call_foreach_batch: bool = live_field(
        """Call functions given to `foreachBatch`, too. Only for code that reads `run.rehearsing` and then
        writes nothing; otherwise their frame is computed and thrown away.""",
        default=False,
    )


class Standby(ApiModel):
    """The rehearsed version waits, warm, for the handover."""

    enabled: bool = live_field(
        """Whether it waits. `false`: it ends when it has rehearsed well, and the new run starts cold; its
        driver and executors then need room beside the old ones for the rehearsal only.""",
        default=True,
    )
    max_age: Duration = live_field(
        "When it has waited longer, its program runs again: values computed at its start go stale.",
        default=Duration("30m"),
    )


class Upgrade(ApiModel):
    """How a new version takes over. It governs the next upgrade, not the one under way."""

    strategy: Literal["Rehearsed", "Cold", "Stateless"] = live_field(
        """`Rehearsed` tries the new version on a copy of the real state, then hands over warm. `Cold` stops
        the old version and starts the new one from its state. `Stateless` starts the new one without the
        state, on purpose.""",
        default="Rehearsed",
    )
    rehearsal: Rehearsal = section("How the rehearsal is done.", default=Rehearsal())
    standby: Standby = section("How long a rehearsed version waits.", default=Standby())
    start_timeout: Duration = live_field(
        "How long the new version may take until its queries run. Then its verification has failed.",
        default=Duration("10m"),
    )
    verify_window: Duration = live_field(
        """How long the new version is watched after the handover: batches commit, lag does not grow, no
        restarts. Then it is the last stable version.""",
        default=Duration("5m"),
    )
    rollback: Literal["Auto", "Manual"] = live_field(
        """`Auto` returns to the last stable version when the new one fails its verification. `Manual` leaves
        it to you.""",
        default="Auto",
    )
    state_compatible: bool = live_field(
        """You declare that the new version means the same by the state it inherits, although Headrace or
        Spark cannot tell (a sum that became a max, say). Remove it after the upgrade: it also vouches for the
        next one.""",
        default=False,
    )


def _timestamp_from_speech(value: object) -> str | None:
    """A date alone, a blank for the T, no zone: all mean UTC."""
    if not isinstance(value, str):
        return None
    day, _, clock = value.strip().replace(" ", "T", 1).upper().partition("T")
    clock = clock.replace("UTC", "Z").replace(" ", "") or "00:00:00Z"
    parts = clock.rstrip("Z").split(":")
    parts += ["00"] * (3 - len(parts))
    zoned = "+" in clock or "-" in clock
    return f"{day}T{clock if zoned else ':'.join(parts) + 'Z'}"


TIMESTAMP = Form(
    expects="a time like 2026-01-31T08:00:00Z",
    pattern=r"^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$",
    example="2026-01-31T08:00:00Z",
    min_length=20,
    max_length=40,
    suggest=_timestamp_from_speech,
)


OFFSETS = free_text(
    "Spark's offsets as JSON text", max_length=65536, example='{"clicks":{"0":4711,"1":4242}}', min_length=2
)


QUERY_NAME = Form(
    expects="the name of a query: letters, digits, '-', '_' and '.'",
    pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$",
    example="clicks",
    max_length=100,
    suggest=lambda value: (
        re.sub(r"[^A-Za-z0-9_.-]+", "-", value).strip("-._") or None if isinstance(value, str) else None
    ),
)


def _only_true(value: object) -> object:
    """`1 == True` in Python, and so to pydantic; not in a manifest."""
    if value is not True:
        raise PydanticCustomError("literal_error", "is not true", {"expected": "True"})
    return value


OnlyTrue = Annotated[Literal[True], BeforeValidator(_only_true)]

_STARTS = ("latest", "savepoint", "path", "timestamp", "offsets", "none")


class StartFrom(ApiModel):
    """Where a job starts that has no run of its own to go on from: exactly one of its fields."""

    latest: OnlyTrue | None = live_field(
        "Go on from the newest lineage of the same namespace and name that lies in the store.", default=None
    )
    savepoint: ObjectName | None = live_field(
        "A StreamSavepoint of this namespace; another job's makes a fork.", default=None
    )
    path: Location | None = live_field(
        """A savepoint in a store, also where no StreamSavepoint is left of it; or a checkpoint to adopt: a
        run of Headrace, or a plain Spark checkpoint of one query. It is copied, never written to.""",
        default=None,
    )
    query: Annotated[str, QUERY_NAME] | None = live_field(
        """With `path` to a plain Spark checkpoint: the name that its query has in the job. Default: the last
        part of the path.""",
        default=None,
    )
    timestamp: Annotated[str, TIMESTAMP] | None = live_field(
        """No state; sources are read from this time on (sources that can: Kafka). It holds for each query
        that has no checkpoint yet.""",
        default=None,
    )
    offsets: dict[str, Annotated[str, OFFSETS]] | None = live_field(
        """No state; for each query by name, the offsets to start at, as the JSON that Spark's
        `startingOffsets` takes.""",
        default=None,
        max_length=32,
    )
    none: OnlyTrue | None = live_field(
        "From nothing, also where an older lineage lies in the store.", default=None
    )

    @rule(
        cel=exactly_one_cel(*_STARTS),
        message="exactly one of latest, savepoint, path, timestamp, offsets and none says where to start",
    )
    def one_start(self) -> Broken | None:
        return exactly_one(self, *_STARTS, what="where to start", example=("latest", True))

    @rule(
        cel="!has(self.query) || has(self.path)",
        message="query names the query of the checkpoint at path, and needs it",
    )
    def query_needs_path(self) -> Broken | None:
        if self.query is None or self.path is not None:
            return None
        return Broken(
            message="query has no meaning without path",
            at=("query",),
            fix="remove query, or say path",
            edits=(Remove(("query",)),),
        )


class Backoff(ApiModel):
    """How long to wait before the next attempt: doubled each time, from `min` to `max`."""

    min: Duration = live_field("The first wait.", default=Duration("10s"))
    max: Duration = live_field("The longest wait.", default=Duration("5m"))

    @rule(
        cel="duration(self.min) <= duration(self.max)",
        message="min must not be longer than max",
    )
    def min_below_max(self) -> Broken | None:
        if self.min.seconds <= self.max.seconds:
            return None
        return Broken(
            message=f"min ({self.min}) is longer than max ({self.max})",
            at=("max",),
            fix=f"set max: {self.min} or longer",
            edits=(SetValue(("max",), str(self.min)),),
        )


class Restart(ApiModel):
    """What happens when a driver fails: a new attempt of the same run, from its checkpoint, for ever.

    A job comes back by itself from an outage of hours; only what no attempt can change (a refused
    application) waits for an edit.
    """

    backoff: Backoff = section("How long to wait before it.", default=Backoff())
    stable_after: Duration = live_field(
        "An attempt that has run this long counts as good: the next failure starts from `backoff.min` again.",
        default=Duration("10m"),
    )


class Watchdog(ApiModel):
    """Finds micro-batches that do not end."""

    batch_timeout: Duration = restart_field("How long a micro-batch may take.", default=Duration("30m"))
    action: Literal["Restart", "Report"] = restart_field(
        "`Restart` writes all stacks to the log and begins a new attempt. `Report` only says so.",
        default="Restart",
    )


class Logs(ApiModel):
    """What is kept in the store beside the checkpoints. The end of a failed driver's log always is."""

    spark_events: bool = restart_field(
        """Keep Spark's event log of the last attempts of a run in its `_events` directory, in rolling files
        of 32 MiB, for Spark's history server. To send it elsewhere, set `spark.eventLog.*` in `sparkConf`
        instead.""",
        default=False,
    )
