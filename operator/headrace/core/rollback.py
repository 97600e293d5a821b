"""Back to an earlier version: because a new one failed its verification, or because somebody asks.

      verification failed, rollback: Auto ──┐
      Undecided, and now Auto ──────────────┼──▶ Draining ──▶ Seeding ──▶ Starting ──▶ Verifying
      headrace.dev/rollback: "<run>" ───────┘     (core/upgrade.py)          │
                                                                             │ cannot go on from what the
                                     once more, to the handover point, ◀─────┘ newer version left
                                     under a new lineage (`rewind`)

The spec still holds what failed. `status.rejected` remembers it, written together with the operation, so
that it is not tried again: until the spec or the code is another, which takes the mark away.
"""

from __future__ import annotations

from headrace.api import Operation, Rejection, StreamJobStatus
from headrace.core.conditions import Fact
from headrace.core.decision import Context, Decision, Sentence
from headrace.core.handover import next_to_copy_for
from headrace.core.model import Code, Problem, RollbackRequest
from headrace.core.revision import policy_of
from headrace.core.upgrade import carry_on, way_back

_KIND = "RolledBack"
# Spark's words for state that a query cannot take over.
_STATE_ERRORS = ("STATE_STORE_", "STREAMING_STATEFUL_OPERATOR_")
_OTHER_SOURCES = "sources in the checkpoint"
# And for logs that a newer Spark has written.
_NEWER_SPARK = "produced by a newer version of Spark"
# And for offsets of topics, or of a table, that its code does not read.
_OTHER_DATA = ("KAFKA_DATA_LOSS.PARTITIONS_DELETED", "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE")


def begin(
    context: Context,
    problem: Problem,
    *,
    version_of: int,
    handover: int | None,
    rejecting: str,
    rewind: bool = False,
) -> Decision:
    """`handover` is the run at whose end the good version stopped; None: all since then is good, too.

    `rejecting` is the revision that is not tried again.
    """
    status = context.status
    run, under_way = status.run, status.operation
    assert run is not None  # it is what is left
    # What began without state has nothing that the old version could go on from.
    left = run.left if handover is not None else None
    operation = Operation(
        kind="Rollback",
        step="Draining",
        from_run=run.number,
        to_run=run.number + 1,
        revision=context.observed.pinned[version_of].revision,
        reason=problem.message,
        version_of=version_of,
        back_to=handover,
        state_run=left,
        handover=handover if handover != left else None,
        rewind=rewind,
        backlog=under_way.backlog if under_way is not None else None,
        started_at=context.now,
    )
    if under_way is not None and not under_way.on_trial and under_way.step == "Seeding":
        # The old run goes on no more, and its state is what it was; the code is another version's.
        kept = {"step": under_way.step, "rewind": under_way.rewind}
        operation = operation.model_copy(update={**kept, "to_run": next_to_copy_for(under_way)})
    message = f"{_told(status, problem)}. Run {operation.to_run} runs what run {version_of} ran"
    rejected = Rejection(
        run=run.number,
        revision=rejecting,
        reason=problem.reason,
        message=message,
        at=context.now,
    )
    after = status.model_copy(update={"operation": operation, "rejected": rejected})
    return carry_on(context.with_status(after), operation).saying(Sentence(_KIND, message))


def requested(context: Context) -> Decision | None:
    """Somebody asks for it. What cannot be done is said, and what runs goes on."""
    request, status = context.job.rollback, context.status
    if not isinstance(request, RollbackRequest) or status.run is None or request.run != status.run.number:
        return None
    operation = status.operation
    if operation is not None and operation.kind == "Rollback" and not operation.on_trial:
        return None  # it is being left
    if operation is not None and not operation.on_trial and operation.answered == str(request):
        return None  # it was being left, and then the spec was edited
    chosen = request.to if request.to is not None else last_good(context)
    if request_problem(context) is not None or chosen is None:
        return None
    known = context.job.rejected is None and isinstance(context.observed.code, Code)
    if known and context.wanted_revision == context.observed.pinned[chosen].revision:
        return None  # an edit asks for the same
    # Of a run that is on trial, also where an edit is on its way to take its place.
    handover = operation.back_to if operation is not None else None
    return begin(
        context,
        Problem("Requested", "was left on request"),
        version_of=chosen,
        handover=handover if handover != status.run.number else None,
        # What the spec asks for, where that can be told: it may be newer than the run that is left.
        rejecting=context.wanted_revision if known else status.run.revision,
    )


def request_problem(context: Context) -> Problem | None:
    """Why a rollback that was asked for is not made, if so."""
    request, run = context.job.rollback, context.status.run
    if isinstance(request, Problem):
        return request
    if request is None or run is None or request.run != run.number:
        return None
    chosen = request.to if request.to is not None else last_good(context)
    pinned = context.observed.pinned
    if chosen is None or chosen not in pinned or chosen not in (*_have_run(context), run.number):
        known = ", ".join(str(number) for number in _have_run(context) if number in pinned) or "none"
        wanted = f"what run {chosen} ran is not kept" if chosen is not None else "there is no earlier version"
        return Problem("NoVersion", f"headrace.dev/rollback: {wanted}. Runs to go back to: {known}")
    if pinned[chosen].revision == run.revision:
        return Problem("SameVersion", f"headrace.dev/rollback: run {run.number} runs what run {chosen} ran")
    return None


def _have_run(context: Context) -> list[int]:
    """Runs before the present one. What was pinned for an edit that was refused, or taken back, is none."""
    past = {each.run for each in context.status.history if each.outcome != "Refused"}
    target, run = way_back(context), context.status.run
    assert run is not None  # it is what is left
    return sorted((past | {target if target is not None else run.number}) - {run.number})


def last_good(context: Context) -> int | None:
    """The newest version before the present one that was not itself given up."""
    run, pinned = context.status.run, context.observed.pinned
    assert run is not None  # it is what is left
    past = [each.run for each in context.status.history if each.outcome in ("Replaced", "Completed")]
    target = way_back(context)
    others = [number for number in (target, *past) if number is not None and number in pinned]
    return next((number for number in others if pinned[number].revision != run.revision), None)


def cannot_go_on(context: Context, operation: Operation) -> bool:
    """Whether a rollback failed because what the newer version left is not for it."""
    last, run = context.status.last_termination, context.status.run
    assert run is not None  # it is on trial
    if last is None or last.run != run.number or operation.rewind or operation.handover is None:
        return False
    if (last.error_class or "").startswith(_OTHER_DATA):
        return True  # also of one entry that was taken along with its own state: it is met a batch later
    if last.attempt != 1 or run.seeded_from != f"run-{operation.state_run or operation.from_run}":
        return False  # it began with its own state
    told = any(words in last.message for words in (_OTHER_SOURCES, _NEWER_SPARK))
    return told or (last.error_class or "").startswith(_STATE_ERRORS)


def without_answered_rejection(context: Context) -> Context:
    """Another spec, or other code: what was rolled back is not asked for any more."""
    rejected, job = context.status.rejected, context.job
    if rejected is None or job.rejected is not None or not isinstance(context.observed.code, Code):
        return context
    same_policy = rejected.kind == "RolledBack" or rejected.policy == policy_of(job.spec)
    if context.wanted_revision == rejected.revision and same_policy:
        return context
    return context.with_status(context.status.model_copy(update={"rejected": None}))


def stands_rejected(context: Context) -> Problem | None:
    """Why the spec as it stands is not tried again, if so."""
    rejected = context.status.rejected
    if rejected is None or context.wanted_revision != rejected.revision:
        return None
    if rejected.kind == "Refused":
        return Problem("RehearsalFailed", rejected.message)
    return Problem(
        _KIND,
        f"the spec still asks for what was rolled back: {rejected.message}. A corrected spec or corrected "
        "code is taken at once; to try the same again, change spec.restartNonce",
    )


def facts(status: StreamJobStatus) -> tuple[Fact, ...]:
    """The conditions, from what the status remembers; none where nothing was ever rolled back or refused."""
    rejected, refused = status.rejected, status.condition("Rehearsed")
    found: list[Fact] = []
    if rejected is not None and rejected.kind == _KIND:
        found.append(Fact(type=_KIND, true=True, reason=rejected.reason, message=rejected.message))
    elif status.condition(_KIND) is not None:
        found.append(Fact(type=_KIND, true=False, reason="Edited"))
    stands = rejected is not None and rejected.kind == "Refused"
    if refused is not None and refused.status == "False" and not stands:
        message = "what failed its rehearsal is not asked for any more"
        found.append(Fact(type="Rehearsed", true=None, reason="Edited", message=message))
    return tuple(found)


def _told(status: StreamJobStatus, problem: Problem) -> str:
    """What happened so far; of a second step back, also what led to the first."""
    run, operation, before = status.run, status.operation, status.rejected
    assert run is not None
    if operation is not None and operation.kind == "Rollback" and before is not None:
        return f"{before.message}. Run {run.number} {problem.message}"
    why = f" ({operation.reason})" if operation is not None and operation.kind == "Upgrade" else ""
    return f"run {run.number}{why} {problem.message}"
