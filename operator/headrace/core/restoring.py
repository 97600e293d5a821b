"""A job that has run is taken back to a savepoint: asked for by an annotation, once for each value of it.

      annotation            savepoint is Ready        driver ended           copied
    ──────────────▶ (judged) ────────────────▶ Draining ────────▶ Seeding ────────▶ run n+1, attempt 1
                        │                                            │
                        └── not Ready, no such: said,                └── taken back: run n+2 begins with
                            and the job runs on                          what run n has

Run n keeps its path. What run n+1 starts with is what the store can give it: the lineage goes on if nothing
was done since the savepoint, and is a new one otherwise.
"""

from __future__ import annotations

from headrace.api import Beginning, Operation, StreamJobStatus
from headrace.core import repartition, rollback, upgrade, verification
from headrace.core.actions import DrainAttempt, PinRun, RestoreRun, SeedRun
from headrace.core.decision import Context, Decision, Sentence, progress_facts
from headrace.core.refusing import refuse_edit
from headrace.core.start import restored_name
from headrace.core.starting import Begun, begin_run, copy_state, start_intended


def restore(context: Context) -> Decision | None:
    status, wanted = context.status, context.job.restore
    operation = status.operation
    ours = operation is not None and operation.kind == "Restore"
    asked = wanted is not None and wanted != status.restored
    # What is on trial is left for it; what is on its way to a trial arrives first.
    busy = operation is not None and not ours and not operation.on_trial
    if status.run is None or not (asked or ours) or busy:
        return None
    if not asked and operation is not None and operation.step == "Draining":
        # Taken back in time: nothing was copied yet.
        return verification.watch(context.with_status(status.model_copy(update={"operation": None})))
    source = _source(context, wanted if asked else None)
    if isinstance(source, Sentence):
        return refuse_edit(context, source.reason, source.message) if not ours else _held(context, source)
    return _carry_on(context, source, wanted if asked else None)


def _source(context: Context, wanted: str | None) -> RestoreRun | SeedRun | Sentence:
    run, found = context.status.run, context.observed.savepoint
    assert run is not None  # asked before
    refusal = (
        upgrade.refusal(context) or repartition.beside_a_restore(context) or rollback.stands_rejected(context)
    )
    if refusal is not None:
        return Sentence(refusal.reason, refusal.message)
    if wanted is None:
        return SeedRun(from_run=run.number, to_run=run.number + 1)
    name = restored_name(wanted)
    if found is None:
        message = f"there is no savepoint {name} in the namespace {context.job.namespace} to restore"
        return Sentence("SavepointNotFound", f"{message}. Name one that there is")
    if found.path is None or found.problem:
        why = found.problem or "it is being taken"
        return Sentence("SavepointNotReady", f"the savepoint {name} cannot be restored: {why}")
    lineage = "forward" if found.job == context.job.name else "new"
    return RestoreRun(path=found.path, to_run=run.number + 1, lineage=lineage)


def _carry_on(context: Context, source: RestoreRun | SeedRun, wanted: str | None) -> Decision:
    run = context.status.run
    assert run is not None  # asked before
    words = f"savepoint {restored_name(wanted)}" if wanted is not None else f"run-{run.number}"
    place = source.path if isinstance(source, RestoreRun) else words
    number, revision = _number(context.status, run.number + 1, place), context.wanted_revision
    before = context.status.operation
    begun = before if before is not None and before.kind == "Restore" else None
    operation = Operation(
        kind="Restore",
        step=begun.step if begun is not None else "Draining",
        from_run=run.number,
        to_run=number,
        revision=revision,
        reason=f"restored from {words}",
        started_at=begun.started_at if begun is not None else context.now,
    )
    context = context.with_status(context.status.model_copy(update={"operation": operation}))
    pinned = context.observed.pinned.get(number)
    if pinned is None or pinned.revision != revision:
        pin = PinRun(run=number, revision=revision, spec=context.job.spec)
        decided = _restoring(context, f"keeping a copy of the code for run {number}", pin)
        return decided if begun is not None else decided.saying(Sentence("Restore", operation.reason))
    if context.live:
        attempt = context.live[0]
        drain = DrainAttempt(run=attempt.run, attempt=attempt.number, uid=attempt.uid, why=operation.reason)
        return _restoring(context, f"run {run.number} finishes its batch", drain)
    if number not in context.observed.seeded_runs:
        seeding = operation.model_copy(update={"step": "Seeding"})
        beginning = Beginning(run=number, start=place)
        status = context.status.model_copy(update={"operation": seeding, "beginning": beginning})
        return copy_state(context.with_status(status), _to(source, number))
    restored = Begun(
        number=number,
        revision=revision,
        seeded_from=place,
        started_from=words,
        message=f"run {number}: {operation.reason}",
    )
    # What was stable before has nothing in common with it that an upgrade could be taken back to.
    after = {"restored": wanted or context.status.restored, "last_stable": None}
    return start_intended(context, begin_run(context, restored).model_copy(update=after), operation.reason)


def _number(status: StreamJobStatus, lowest: int, place: str) -> int:
    """Another savepoint is another run: whoever still copies for the first fills a path of his own."""
    begun = status.beginning
    if begun is None or begun.run < lowest:
        return lowest
    return begun.run if begun.start == place else begun.run + 1


def _to(source: RestoreRun | SeedRun, number: int) -> RestoreRun | SeedRun:
    match source:
        case SeedRun():
            return SeedRun(from_run=source.from_run, to_run=number)
        case RestoreRun():
            return RestoreRun(path=source.path, to_run=number, lineage=source.lineage)


def _held(context: Context, said: Sentence) -> Decision:
    """The old run is drained already, and what it is to be replaced by is not there any more."""
    return Decision(
        status=context.status,
        state="Restoring",
        facts=progress_facts(said.reason, f"{said.message}. Remove the annotation to go on without it"),
    )


def _restoring(context: Context, message: str, action: PinRun | DrainAttempt) -> Decision:
    return Decision(
        status=context.status,
        state="Restoring",
        facts=progress_facts("Restoring", message),
        actions=(action,),
    )
