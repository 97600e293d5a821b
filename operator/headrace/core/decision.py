"""What the questions of the planner are given, and what they answer with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from headrace.api import Attempt, Condition, StreamJobStatus
from headrace.core.actions import Action
from headrace.core.conditions import Fact
from headrace.core.model import Code, Job, Observed, ObservedAttempt
from headrace.core.revision import revision_of
from headrace.core.savepoints import Summary


@dataclass(frozen=True)
class Sentence:
    """A decision in words: the event, the log line and the view all show this."""

    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    status: StreamJobStatus
    actions: tuple[Action, ...] = ()
    says: tuple[Sentence, ...] = ()
    recheck_at: datetime | None = None
    # When a savepoint is due: beside all other reasons to look again.
    schedule_at: datetime | None = None
    # For the metrics; None where there are no such objects.
    savepoints: Summary | None = None


@dataclass(frozen=True, kw_only=True)
class Decision:
    status: StreamJobStatus
    state: str
    facts: tuple[Fact, ...]
    actions: tuple[Action, ...] = ()
    says: tuple[Sentence, ...] = ()
    recheck_at: datetime | None = None
    # Why the edit is not taken, if one is refused: nothing of it counts then.
    refused: Sentence | None = None

    def saying(self, first: Sentence) -> Decision:
        return replace(self, says=(first, *self.says))


@dataclass(frozen=True, kw_only=True)
class Context:
    job: Job
    status: StreamJobStatus
    observed: Observed
    now: datetime
    # Set while an edit is refused: the reason stays on the Stalled condition as long as the edit stands.
    refused: Sentence | None = None

    @property
    def conditions(self) -> Sequence[Condition]:
        return self.status.conditions

    @property
    def live(self) -> tuple[ObservedAttempt, ...]:
        return tuple(attempt for attempt in self.observed.attempts if attempt.live)

    def is_current(self, attempt: ObservedAttempt) -> bool:
        run = self.status.run
        return (
            run is not None
            and run.attempt is not None
            and run.attempt.state != "Ended"
            and (attempt.run, attempt.number) == (run.number, run.attempt.number)
        )

    @property
    def current(self) -> ObservedAttempt | None:
        return next((attempt for attempt in self.observed.attempts if self.is_current(attempt)), None)

    @property
    def wanted_revision(self) -> str:
        assert isinstance(self.observed.code, Code)  # code problems are answered before
        return revision_of(self.job.spec, self.observed.code.digest)

    def with_status(self, status: StreamJobStatus) -> Context:
        return replace(self, status=status)

    def with_attempt(self, **changes: object) -> StreamJobStatus:
        run = self.status.run
        assert run is not None and run.attempt is not None
        return self.status.model_copy(
            update={"run": run.model_copy(update={"attempt": run.attempt.model_copy(update=changes)})}
        )

    def with_started_attempt(self, seen: ObservedAttempt) -> StreamJobStatus:
        run = self.status.run
        assert run is not None and run.attempt is not None
        changes: dict[str, object] = {"state": "Started", "uid": seen.uid}
        if run.attempt.activation is not None:
            changes["activation"] = run.attempt.activation.model_copy(update={"seeded": True})
        status = self.with_attempt(**changes)
        run = status.run
        assert run is not None
        # The first image that is known stays: a crash must not bring another one under the same tag.
        known = {
            "image": run.image or seen.image,
            "spark_version": seen.spark_version or run.spark_version,
        }
        return status.model_copy(update={"run": run.model_copy(update=known)})

    def with_intended_attempt(self, number: int) -> StreamJobStatus:
        """The status that names the next attempt: written before the driver starts."""
        run = self.status.run
        assert run is not None
        epoch = self.status.epoch + 1
        intended = Attempt(number=number, epoch=epoch, state="Intended", started_at=self.now)
        return self.status.model_copy(
            update={
                "epoch": epoch,
                "restarts": self.status.restarts.model_copy(update={"next_at": None}),
                "next_start_at": None,
                "sleep": None,
                "run": run.model_copy(update={"attempt": intended}),
            }
        )

    def refusing(self, reason: str, message: str) -> Context:
        return replace(self, refused=Sentence(reason, message))

    def refusal(self) -> tuple[Fact, Fact] | None:
        if self.refused is None:
            return None
        return (
            Fact(type="Reconciling", true=False, reason="EditRefused"),
            Fact(type="Stalled", true=True, reason=self.refused.reason, message=self.refused.message),
        )


def progress_facts(reason: str, message: str) -> tuple[Fact, Fact, Fact]:
    return (
        Fact(type="Ready", true=False, reason=reason, message=message),
        Fact(type="Reconciling", true=True, reason=reason, message=message),
        Fact(type="Stalled", true=False, reason=reason),
    )


def stalled_facts(reason: str, message: str) -> tuple[Fact, Fact, Fact]:
    return (
        Fact(type="Ready", true=False, reason=reason, message=message),
        Fact(type="Reconciling", true=False, reason=reason),
        Fact(type="Stalled", true=True, reason=reason, message=message),
    )


def stalled(context: Context, reason: str, message: str) -> Decision:
    return Decision(
        status=context.status,
        state="Stalled",
        facts=stalled_facts(reason, message),
        says=(Sentence(reason, message),),
    )
