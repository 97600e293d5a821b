"""Orphans of savepoints: looked for, and removed, when the annotation asks. Each value is carried out once.

A keeper does it, in a pod of its own whose name has the digest of what was asked; what it says goes into the
status, which then answers that value. Failed is an answer, too: another value asks again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from headrace.api import COLLECT_ANNOTATION, Collection
from headrace.core.actions import Action, CollectOrphans, EndCollecting
from headrace.core.decision import Context, Sentence

_MODES = ("dry-run", "remove")


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
    # `remove@2026-01-31`: what follows only makes it another request.
    mode, run = job.collect.partition("@")[0].strip(), context.status.run
    if mode not in _MODES:
        return _answer(context, job.collect, f"{COLLECT_ANNOTATION}: say dry-run or remove, not {mode}")
    if run is None or run.path is None:
        return _answer(context, job.collect, "the job has no run yet, so it has left nothing")
    if seen is not None and seen.ended and seen.asked == digest_of(job.collect):
        return _answer(context, job.collect, seen.message, objects=seen.objects, size_bytes=seen.size_bytes)
    look = CollectOrphans(asked=digest_of(job.collect), path=run.path, dry_run=mode == "dry-run")
    return Collecting(status=before, actions=(look,))


def digest_of(asked: str) -> str:
    """As it is in the name and the label of the pod."""
    return hashlib.sha256(asked.encode()).hexdigest()[:10]


def _answer(
    context: Context, asked: str, message: str, *, objects: int | None = None, size_bytes: int | None = None
) -> Collecting:
    told = Collection(asked=asked, message=message, objects=objects, bytes=size_bytes, at=context.now)
    return Collecting(status=told, actions=_tidy(context), says=(Sentence("Collected", message),))


def _tidy(context: Context) -> tuple[Action, ...]:
    seen = context.observed.collecting
    return (EndCollecting(),) if seen is not None and seen.pod else ()
