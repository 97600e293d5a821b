"""How many executors, and what the job promises."""

from __future__ import annotations

from typing import Literal

from headrace.api.cron import Cron, TimeZone
from headrace.api.edits import SetValue
from headrace.api.model import ApiModel, Broken, Items, live_field, plain_field, rule
from headrace.api.quantities import Duration


class Window(ApiModel):
    """A recurring stretch of time."""

    schedule: Cron = plain_field("When it begins, as a cron expression.")
    duration: Duration = plain_field("How long it lasts.")
    time_zone: TimeZone = plain_field("Time zone of `schedule`.", default="Etc/UTC")


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
