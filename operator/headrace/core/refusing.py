"""An edit or a request that is not taken: the reason stays on the Stalled condition as long as it stands."""

from __future__ import annotations

from dataclasses import replace

from headrace.core import verification
from headrace.core.decision import Context, Decision, Sentence


def refuse_edit(context: Context, reason: str, message: str) -> Decision:
    """The edit is not taken; what runs goes on, under the spec it was pinned with."""
    decided = replace(
        verification.watch(context.refusing(reason, message)), refused=Sentence(reason, message)
    )
    already = any(
        c.type == "Stalled" and c.reason == reason and c.message == message for c in context.conditions
    )
    return decided if already else decided.saying(Sentence(reason, message))
