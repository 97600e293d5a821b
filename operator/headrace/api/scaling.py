"""How many executors, and what the job promises."""

from __future__ import annotations

from typing import Literal

from headrace.api.cron import Cron, TimeZone
from headrace.api.edits import SetValue
from headrace.api.model import ApiModel, Broken, Items, live_field, plain_field, rule, section
from headrace.api.quantities import Duration


class Window(ApiModel):
    """A recurring stretch of time."""

    schedule: Cron = plain_field("When it begins, as a cron expression.")
    duration: Duration = plain_field("How long it lasts.")
    time_zone: TimeZone = plain_field("Time zone of `schedule`.", default="Etc/UTC")


class Idle(ApiModel):
    """A job without work sleeps: its driver and its executors go, its state stays. Only a small pod is left,
    which looks whether there is work."""

    after: Duration = live_field(
        "How long a job must have had no work before it sleeps; a minute or more.", default=Duration("15m")
    )
    look_every: Duration = live_field(
        """How often the end offsets of its sources are looked at while it sleeps: from 10 seconds to an hour.
        More often where a source keeps its rows for less than four times as long.""",
        default=Duration("1m"),
    )
    max_sleep: Duration = live_field(
        """It is woken after this time also without work, which proves that it can still start; an hour or
        more.""",
        default=Duration("24h"),
    )

    @rule(cel="duration(self.after) >= duration('1m')", message="after must be 1m or more")
    def after_a_while(self) -> Broken | None:
        return _too_short("after", self.after, Duration("1m"))

    @rule(
        cel="duration(self.lookEvery) >= duration('10s') && duration(self.lookEvery) <= duration('1h')",
        message="lookEvery must lie between 10s and 1h",
    )
    def looks_now_and_then(self) -> Broken | None:
        if self.look_every.seconds <= 3600:
            return _too_short("lookEvery", self.look_every, Duration("10s"))
        return Broken(
            message=f"lookEvery ({self.look_every}) is above 1h: work would wait for so long",
            at=("lookEvery",),
            fix="set lookEvery: 1h or less",
            edits=(SetValue(("lookEvery",), "1h"),),
        )

    @rule(cel="duration(self.maxSleep) >= duration('1h')", message="maxSleep must be 1h or more")
    def sleeps_for_a_while(self) -> Broken | None:
        return _too_short("maxSleep", self.max_sleep, Duration("1h"))


def _too_short(field: str, value: Duration, least: Duration) -> Broken | None:
    if value.seconds >= least.seconds:
        return None
    return Broken(
        message=f"{field} ({value}) is below {least}",
        at=(field,),
        fix=f"set {field}: {least} or more",
        edits=(SetValue((field,), str(least)),),
    )


class Autoscaling(ApiModel):
    """Executors follow the lag. Set `max` and `lagObjective`; the rest finds itself."""

    mode: Literal["Auto", "Advise", "Off"] = live_field(
        """`Auto` scales. `Advise` only says what it would do. `"Off"` leaves `executors.count` to you, to a
        HorizontalPodAutoscaler or to KEDA. (Write it in quotes: YAML reads a bare Off as false.)""",
        default="Auto",
    )
    min: int = live_field("Never fewer executors than this.", default=1, ge=1, le=1000)
    max: int = live_field(
        "Never more executors than this, data loss apart: see `emergencyMax`.", ge=1, le=1000, example=10
    )
    emergency_max: int | None = live_field(
        "Never more executors than this when the source is about to delete unread data. Default: `max`.",
        default=None,
        ge=1,
        le=1000,
    )
    lag_objective: Duration = live_field("How far behind its source the job may be.", default=Duration("1m"))
    blackout_windows: Items[Window] = live_field(
        "Times without scaling, data loss apart.", default=(), max_length=16
    )
    idle: Idle | None = section(
        "Sleep while there is no work. Without it the job always runs; `idle: {}` takes the defaults.",
        default=None,
    )

    @rule(cel="self.min <= self.max", message="min must not be above max")
    def min_below_max(self) -> Broken | None:
        if self.min <= self.max:
            return None
        return Broken(
            message=f"min ({self.min}) is above max ({self.max})",
            at=("max",),
            fix=f"set max: {self.min} or more, or lower min",
            edits=(SetValue(("max",), self.min),),
        )

    @rule(
        cel="!has(self.emergencyMax) || self.emergencyMax >= self.max",
        message="emergencyMax must not be below max",
    )
    def emergency_above_max(self) -> Broken | None:
        if self.emergency_max is None or self.emergency_max >= self.max:
            return None
        return Broken(
            message=f"emergencyMax ({self.emergency_max}) is below max ({self.max})",
            at=("emergencyMax",),
            fix=f"set emergencyMax: {max(self.max, self.min)} or more, or remove it",
            edits=(SetValue(("emergencyMax",), max(self.max, self.min)),),
        )


class Objectives(ApiModel):
    """What the job promises its users. Alerts watch it."""

    latency: Duration | None = live_field(
        "From the time of an event to its result in the sink.", default=None
    )
