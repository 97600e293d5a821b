"""Conditions by the Kubernetes conventions: a transition time moves only with its status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from headrace.api import Condition


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One condition as it should read now."""

    type: str
    true: bool | None  # None is Unknown
    reason: str
    message: str = ""

    @property
    def status(self) -> Literal["True", "False", "Unknown"]:
        match self.true:
            case None:
                return "Unknown"
            case True:
                return "True"
            case False:
                return "False"


def with_facts(
    conditions: Sequence[Condition], facts: Iterable[Fact], *, now: datetime, generation: int
) -> tuple[Condition, ...]:
    """The conditions after the facts: others are kept, order is stable, quiet when nothing changed."""
    by_type = {condition.type: condition for condition in conditions}
    for fact in facts:
        before = by_type.get(fact.type)
        moved = before is None or before.status != fact.status
        by_type[fact.type] = Condition(
            type=fact.type,
            status=fact.status,
            reason=fact.reason,
            message=fact.message,
            last_transition_time=now if before is None or moved else before.last_transition_time,
            observed_generation=generation,
        )
    return tuple(by_type.values())
