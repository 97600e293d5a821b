"""How far a savepoint is known to be good, and what is done to know more.

Objects   known of what was taken: the copy is listed again before the manifest is written
State     by a keeper
Restore   by a job that has started from it. Nobody can tell ahead: a query needs the job's own code

What was good once may be damaged since (a lifecycle rule of the bucket, somebody's hand): the annotation
`headrace.dev/verify` has a keeper look again, whatever is known already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, cast, get_args

from headrace.api import VERIFY_ANNOTATION, Check, StreamSavepointStatus, Verification
from headrace.core.conditions import Fact
from headrace.core.decision import Sentence
from headrace.core.model import Problem
from headrace.core.savepoint_contents import in_words
from headrace.core.savepoint_decision import Context, Decision, final_word, give_up, tidy, trouble_with
from headrace.core.savepoint_model import KeeperPhase, KeeperTry, RunKeeper

Level = Literal["None", "Objects", "State", "Restore"]
_LEVELS: tuple[Level, ...] = get_args(Level)
# So often a copy that is good is checked further before it is left at that.
_MOST_TRIES = 5


def verified(context: Context) -> Decision | None:
    """Further than it was, where the spec asks for more. It is as good as before meanwhile."""
    if _reached(context) or _level(context.status) >= _LEVELS.index("State") or not _can_look(context):
        return None
    tries = context.observed.of("verify")
    last = tries[-1] if tries else None
    if last is not None and last.phase is KeeperPhase.SUCCEEDED:
        better = context.status.model_copy(update={"verified": found_by(last, context.now)})
        if _level(better) > _level(context.status):
            return settled(replace(context, status=better))
    if (broken := final_word(last)) is not None and last is not None:
        found = context.status.model_copy(update={"verified": found_by(last, context.now)})
        return give_up(replace(context, status=found), broken)
    if _was_given_up(context):
        return None
    trouble = trouble_with(context, "verify")
    if last is not None and last.phase is KeeperPhase.FAILED and last.number >= _MOST_TRIES:
        return _left_at_that(context, trouble)
    message = trouble.message if trouble is not None else f"checking up to {context.savepoint.spec.verify}"
    return Decision(
        status=context.status,
        state="Verifying",
        facts=(
            _ready(context),
            Fact(type="Reconciling", true=True, reason="Verifying", message=message),
            Fact(type="Stalled", true=False, reason="Verifying"),
            Fact(type="Verified", true=False, reason="Verifying", message=message),
        ),
        actions=(RunKeeper(task="verify", level="State"),),
    )


def checked(context: Context) -> Decision | None:
    """Again, when the annotation asks. It is as good as before meanwhile."""
    asked, before = context.savepoint.check, context.status.check
    if asked is None or (before is not None and before.asked == asked):
        return None
    # `State@2026-01-31`: what follows only makes it another request.
    level = asked.partition("@")[0].strip()
    if level not in ("Objects", "State"):
        return _answered(context, asked, f"{VERIFY_ANNOTATION}: say Objects or State, not {level}")
    if not _can_look(context):
        missing = f"there is no StreamJob {context.savepoint.spec.job.name}, under whose rights it is looked"
        return _answered(context, asked, missing)
    tries = context.observed.of("check")
    last = tries[-1] if tries else None
    if last is not None and last.phase is KeeperPhase.SUCCEEDED:
        return _found_good(context, asked, found_by(last, context.now))
    if last is not None and (broken := final_word(last)) is not None:
        found = found_by(last, context.now)
        answer = Check(asked=asked, message=found.message or broken.message, at=context.now)
        damaged = context.status.model_copy(update={"verified": found, "check": answer})
        return give_up(replace(context, status=damaged), broken)
    trouble = trouble_with(context, "check")
    if last is not None and last.phase is KeeperPhase.FAILED and last.number >= _MOST_TRIES:
        return _answered(context, asked, trouble.message if trouble is not None else "no reason was told")
    message = trouble.message if trouble is not None else f"checking again, up to {level}"
    facts = (
        _ready(context),
        Fact(type="Reconciling", true=True, reason="Verifying", message=message),
        Fact(type="Stalled", true=False, reason="Verifying"),
        _verified_fact(context),
    )
    again = RunKeeper(task="check", level=level)
    return Decision(status=context.status, state="Verifying", facts=facts, actions=(again,))


def _found_good(context: Context, asked: str, found: Verification) -> Decision:
    """What is known beyond this look stays known."""
    reached = found.level if found.level in ("Objects", "State") else "None"
    answer = Check(asked=asked, level=reached, message=found.message, at=context.now)
    more = _LEVELS.index(found.level) >= _level(context.status)
    verification = found if more else context.status.verified
    return settled(
        replace(context, status=context.status.model_copy(update={"check": answer, "verified": verification}))
    )


def _answered(context: Context, asked: str, why: str) -> Decision:
    """Nobody could look: it is as good as it was."""
    answer = Check(asked=asked, message=why, at=context.now)
    decision = settled(replace(context, status=context.status.model_copy(update={"check": answer})))
    return replace(decision, says=(Sentence("CheckFailed", why),))


def settled(context: Context) -> Decision:
    """It is there, and as far verified as it can be."""
    if context.observed.restored_by is not None and context.status.verified.level != "Restore":
        message = f"the job {context.observed.restored_by} has started from it"
        restored = Verification(level="Restore", at=context.now, message=message)
        context = replace(context, status=context.status.model_copy(update={"verified": restored}))
    return Decision(
        status=context.status,
        state="Ready",
        facts=(
            _ready(context),
            Fact(type="Reconciling", true=False, reason="Settled"),
            Fact(type="Stalled", true=False, reason="Settled"),
            _verified_fact(context),
        ),
        actions=tidy(context),
    )


def found_by(done: KeeperTry, now: datetime) -> Verification:
    told = cast(Mapping[str, Any], done.words.get("verified") or {})
    level = told.get("level")
    known: Level = level if level in _LEVELS else "None"
    return Verification(level=known, at=now, message=str(told.get("message") or ""))


def _left_at_that(context: Context, trouble: Problem | None) -> Decision:
    """Not again and again for ever: an edit of the spec asks for it anew."""
    why = trouble.message if trouble is not None else "no reason was told"
    message = f"{why} (tried {_MOST_TRIES} times; edit spec.verify to try again)"
    failed = Fact(type="Verified", true=False, reason="VerificationFailed", message=message)
    decision = settled(context)
    facts = tuple(fact for fact in decision.facts if fact.type != "Verified")
    return replace(decision, facts=(*facts, failed), says=(Sentence(failed.reason, message),))


def _was_given_up(context: Context) -> bool:
    before = context.status.condition("Verified")
    return (
        before is not None
        and before.reason == "VerificationFailed"
        and before.observed_generation == context.savepoint.generation
    )


def _can_look(context: Context) -> bool:
    """Somebody's rights are needed: the job's, or what is kept of them."""
    job = context.observed.job
    return context.status.access is not None or not (job is None or isinstance(job, Problem))


def _ready(context: Context) -> Fact:
    reason = "Taken" if context.savepoint.spec.path is None else "Imported"
    return Fact(type="Ready", true=True, reason=reason, message=in_words(context.status))


def _verified_fact(context: Context) -> Fact:
    found, wanted = context.status.verified, context.savepoint.spec.verify
    if _reached(context):
        return Fact(type="Verified", true=True, reason=found.level, message=found.message)
    before = context.status.condition("Verified")
    if before is not None and before.reason == "VerificationFailed":
        return Fact(type="Verified", true=False, reason=before.reason, message=before.message)
    if wanted == "Restore" and found.level == "State":
        message = "checked up to State. The rest is known when a job has started from it, by spec.startFrom"
        return Fact(type="Verified", true=False, reason="NotRestored", message=message)
    message = f"checked up to {found.level}: there is no StreamJob {context.savepoint.spec.job.name}"
    return Fact(type="Verified", true=False, reason="JobNotFound", message=message)


def _reached(context: Context) -> bool:
    return _level(context.status) >= _LEVELS.index(context.savepoint.spec.verify)


def _level(status: StreamSavepointStatus) -> int:
    return _LEVELS.index(status.verified.level)
