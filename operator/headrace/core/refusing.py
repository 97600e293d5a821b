"""An edit or a request that is not taken: the reason stays on the Stalled condition as long as it stands."""

from __future__ import annotations

from dataclasses import replace

from headrace.core import idle, verification
from headrace.core.conditions import Fact
from headrace.core.decision import Context, Decision, Sentence


def refuse_edit(context: Context, reason: str, message: str) -> Decision:
    """The edit is not taken; what runs goes on, under the spec it was pinned with."""
    refusing = context.refusing(reason, message)
    watched = idle.rest(refusing) or verification.watch(refusing)
    decided = replace(_still_refusing(watched, reason, message), refused=Sentence(reason, message))
    already = any(
        c.type == "Stalled" and c.reason == reason and c.message == message for c in context.conditions
    )
    return decided if already else decided.saying(Sentence(reason, message))


def _still_refusing(decided: Decision, reason: str, message: str) -> Decision:
    """The edit stands refused also while a driver starts or waits, unless there is worse to say."""
    if any(fact.type == "Stalled" and fact.true for fact in decided.facts):
        return decided
    stalled = Fact(type="Stalled", true=True, reason=reason, message=message)
    return replace(decided, facts=(*(fact for fact in decided.facts if fact.type != "Stalled"), stalled))
