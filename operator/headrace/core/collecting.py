"""What lies in the store: looked for, when the annotation asks. Each value is carried out once.

dry-run         what savepoints of the job have left behind, and whole ones that no object names
remove          the same; what was left behind is removed, whole ones stay
list s3://…     the savepoints below a place, also where no object of any cluster tells of them

A keeper does it, in a pod of its own whose name has the digest of what was asked; what it says goes into the
status, which then answers that value. Failed is an answer, too: another value asks again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from headrace.api import COLLECT_ANNOTATION, Collection, FoundSavepoint, Run
from headrace.core.actions import Action, CollectOrphans, EndCollecting
from headrace.core.decision import Context, Sentence
from headrace.core.model import ObservedCollecting

Mode = Literal["dry-run", "remove", "list"]
# As many as the status has room for.
_MOST_SAVEPOINTS = 64


@dataclass(frozen=True, kw_only=True)
class Collecting:
    status: Collection | None
    actions: tuple[Action, ...] = ()
    says: tuple[Sentence, ...] = ()


def collect_orphans(context: Context) -> Collecting:
    job, before, seen = context.job, context.status.collection, context.observed.collecting
    if context.observed.savepoints is None or job.paused or job.deleting:
        return Collecting(status=before)
    if job.collect is None or (before is not None and before.asked == job.collect):
        return Collecting(status=before, actions=_tidy(context))
    wish = _wish(job.collect, context.status.run)
    if isinstance(wish, str):
        return _answer(context, job.collect, wish)
    mode, place = wish
    if seen is not None and seen.ended and seen.asked == digest_of(job.collect):
        return _answer(context, job.collect, seen.message, seen=seen, place=place)
    look = CollectOrphans(asked=digest_of(job.collect), mode=mode, place=place)
    return Collecting(status=before, actions=(look,))


def _wish(asked: str, run: Run | None) -> tuple[Mode, str] | str:
    """What to do and where, or why not. `remove@2026-01-31`: what follows only makes it another request."""
    text, at, _ = asked.rpartition("@")
    mode, _, place = (text if at else asked).strip().partition(" ")
    match mode:
        case "list" if place.strip().startswith("s3://"):
            return mode, place.strip().rstrip("/")
        case "list":
            return f"{COLLECT_ANNOTATION}: list needs a place, such as list s3://bucket/checkpoints"
        case "dry-run" | "remove" if run is not None and run.path is not None:
            return mode, run.path.rsplit("/", 2)[0]
        case "dry-run" | "remove":
            return "the job has no run yet, so it has left nothing"
        case _:
            return f"{COLLECT_ANNOTATION}: say dry-run, remove or list s3://…, not {mode}"


def digest_of(asked: str) -> str:
    """As it is in the name and the label of the pod."""
    return hashlib.sha256(asked.encode()).hexdigest()[:10]


def _answer(
    context: Context, asked: str, message: str, *, seen: ObservedCollecting | None = None, place: str = ""
) -> Collecting:
    told = Collection(asked=asked, message=message, at=context.now)
    if seen is not None:
        found = tuple(_found(one, place) for one in seen.savepoints[:_MOST_SAVEPOINTS])
        told = told.model_copy(
            update={"objects": seen.objects, "bytes": seen.size_bytes, "savepoints": found}
        )
    return Collecting(status=told, actions=_tidy(context), says=(Sentence("Collected", message),))


def _found(told: Mapping[str, Any], place: str) -> FoundSavepoint:
    """A keeper of another version may tell less."""
    size, taken = told.get("bytes"), told.get("takenAt")
    return FoundSavepoint(
        path=f"{place}/{told.get('path', '')}",
        job=str(told.get("job") or ""),
        cause=str(told.get("cause") or ""),
        taken_at=datetime.fromisoformat(taken) if isinstance(taken, str) else None,
        batches=dict(told.get("batches") or {}),
        bytes=size if isinstance(size, int) else None,
        verified=str(told.get("verified") or ""),
        problem=str(told.get("problem") or "")[:300],
    )


def _tidy(context: Context) -> tuple[Action, ...]:
    seen = context.observed.collecting
    return (EndCollecting(),) if seen is not None and seen.pod else ()
