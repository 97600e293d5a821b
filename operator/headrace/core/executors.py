"""How many executors there are to be, and what the status says of them and of the lag.

Without an autoscaler, or with one that only advises, `spec.executors.count` rules. With `mode: Auto` the
target of the status does: it outlives operators, attempts and runs, and moves with the autoscaler's advice.
"""

from __future__ import annotations

from datetime import timedelta

from headrace.api import (
    GROUP,
    Autoscaling,
    Condition,
    ExecutorsStatus,
    LagStatus,
    StreamJobSpec,
    StreamJobStatus,
)
from headrace.core.actions import ScaleExecutors
from headrace.core.advice import Advice
from headrace.core.conditions import Fact
from headrace.core.decision import Context, Sentence
from headrace.core.model import AttemptPhase

# Fewer executors wait so long for the end of a batch; then decommissioning alone has to be gentle enough.
_BOUNDARY_PATIENCE = timedelta(seconds=60)
BOUNDARY_RECHECK = timedelta(seconds=2)
_CONDITIONS = ("LagKnown", "ScalingLimited", "DataLossRisk", "Asleep")


def scales_itself(spec: StreamJobSpec) -> Autoscaling | None:
    """Its limits, if the autoscaler rules."""
    scaling = spec.autoscaling
    return scaling if scaling is not None and scaling.mode == "Auto" else None


def present_target(spec: StreamJobSpec, status: StreamJobStatus) -> int:
    """How many there should be, before any new decision."""
    scaling = scales_itself(spec)
    if scaling is None:
        return spec.executors.count
    # The count is where it starts, and only that.
    if (target := status.executors.target) is None:
        return min(max(spec.executors.count, scaling.min), scaling.max)
    # When the danger of a loss has passed, it is for the policy to say when the lifted ones go.
    return min(max(target, scaling.min), max(scaling.max, scaling.emergency_max or 0))


def wanted_executors(context: Context) -> int:
    spec, advice = context.job.spec, _advice(context)
    present, before = present_target(spec, context.status), context.status.executors.target
    if before is not None and _frozen(context):
        return before
    if scales_itself(spec) is None or advice is None or not _is_due(context, advice, present):
        return present
    return advice.target


def _is_due(context: Context, advice: Advice, present: int) -> bool:
    """Made for the number there is, and not carried out before: afterwards somebody may have put it back."""
    decided = context.status.executors.decided_at
    return advice.asked == present and (decided is None or advice.at > decided)


def executors_status(context: Context) -> ExecutorsStatus:
    """As before where none can be seen: `headrace dev` runs them inside the driver."""
    seen, before = context.observed.executors, context.status.executors
    if seen is None:
        return before
    target, advice = wanted_executors(context), _advice(context)
    rules = scales_itself(context.job.spec) is not None
    moved = before.target is not None and target != before.target
    decided_at = context.now if moved else before.decided_at
    return before.model_copy(
        update={
            "replicas": seen.replicas,
            "ready": seen.ready,
            "target": target,
            "selector": f"{GROUP}/job={context.job.name},{GROUP}/role=executor",
            "reason": _reason(context, advice),
            "decided_at": decided_at if rules else None,
        }
    )


def _reason(context: Context, advice: Advice | None) -> str | None:
    scaling = context.job.spec.autoscaling
    if scaling is None or scaling.mode == "Off":
        return None
    if advice is None:
        return context.status.executors.reason
    return advice.message if scaling.mode == "Auto" else f"advice only: {advice.message}"


def scale(context: Context) -> tuple[ScaleExecutors, ...]:
    """A refused edit is refused as a whole: its number of executors is not taken either."""
    run, executors = context.status.run, context.observed.executors
    assert run is not None and run.attempt is not None  # it is running
    count = wanted_executors(context)
    if executors is None or executors.asked in (None, count) or _frozen(context):
        return ()
    if executors.asked > count and _waits_for_boundary(context):
        return ()
    activation = run.attempt.activation
    return (
        ScaleExecutors(
            run=run.number,
            attempt=run.attempt.number,
            epoch=run.attempt.epoch,
            replicas=count,
            candidate=activation.candidate if activation is not None else None,
        ),
    )


def awaits_boundary(context: Context) -> bool:
    """Whether executors are to go as soon as the batch that runs has ended."""
    executors = context.observed.executors
    asked = executors.asked if executors is not None else None
    if asked is None or _frozen(context):
        return False
    return asked > wanted_executors(context) and _waits_for_boundary(context)


def _waits_for_boundary(context: Context) -> bool:
    """Taken away between two batches, an executor has no task to lose. Only for the autoscaler's moves: who
    edits the count wants it now."""
    if scales_itself(context.job.spec) is None:
        return False
    seen, decided = context.current, context.status.executors.decided_at
    in_batch = seen is not None and any(query.busy for query in seen.queries)
    # Before the status that says when, this is the moment.
    return in_batch and (decided is None or context.now - decided < _BOUNDARY_PATIENCE or _moves(context))


def _moves(context: Context) -> bool:
    return wanted_executors(context) != context.status.executors.target


def _frozen(context: Context) -> bool:
    """A refused edit: its count is not taken, and where it would change the limits neither the old ones nor
    the new ones rule. An autoscaler whose limits stay goes on.

    An edit that was rolled back had been taken: its live fields hold.
    """
    run = context.status.run
    if context.refused is None or run is None or context.status.rejected is not None:
        return False
    pinned = context.observed.pinned.get(run.number)
    unchanged = pinned is not None and pinned.spec.autoscaling == context.job.spec.autoscaling
    return scales_itself(context.job.spec) is None or not unchanged


def _advice(context: Context) -> Advice | None:
    """Of a driver that runs: what was decided for another one is not news of this one."""
    seen = context.current
    running = seen is not None and seen.phase is AttemptPhase.RUNNING
    return context.observed.advice if running else None


def lag_status(context: Context) -> LagStatus | None:
    """As before while nobody can look; none without an objective to compare with."""
    if context.job.spec.autoscaling is None:
        return None
    advice = _advice(context)
    if advice is None:
        return context.status.lag
    return LagStatus(band=advice.band, message=advice.band_message)


def kept_conditions(context: Context) -> tuple[Condition, ...]:
    """Without autoscaling nobody looks any more: what was last seen would stay for ever."""
    scaling = context.job.spec.autoscaling
    dropped = _CONDITIONS if scaling is None else ("Asleep",) if scaling.idle is None else ()
    return tuple(one for one in context.conditions if one.type not in dropped)


def scaling_facts(context: Context) -> tuple[Fact, ...]:
    """LagKnown, ScalingLimited, DataLossRisk: of a job with `autoscaling`, as far as somebody has looked."""
    advice, scaling = _advice(context), context.job.spec.autoscaling
    if advice is None or scaling is None:
        return ()
    known = advice.unknown is None
    facts = [
        Fact(
            type="LagKnown",
            true=known,
            reason="Measured" if known else "LagUnknown",
            message="" if advice.unknown is None else advice.unknown,
        ),
        _limited(context, advice, scaling),
    ]
    if known or advice.loss is not None:  # else nobody can tell, and what was last told stands
        facts.append(
            Fact(
                type="DataLossRisk",
                true=advice.loss is not None,
                reason="RetentionNear" if advice.loss is not None else "InTime",
                message=advice.loss or "",
            )
        )
    return tuple(facts)


def _limited(context: Context, advice: Advice, scaling: Autoscaling) -> Fact:
    if advice.limit is not None and scaling.mode != "Off":
        return Fact(type="ScalingLimited", true=True, reason=advice.limit, message=advice.message)
    if scaling.mode == "Auto" and (both := _both_try(context)) is not None:
        return Fact(type="ScalingLimited", true=False, reason="AutoscalerRules", message=both)
    reason = {"Auto": "NotLimited", "Advise": "AdviceOnly", "Off": "AutoscalingOff"}[scaling.mode]
    return Fact(type="ScalingLimited", true=False, reason=reason)


def _both_try(context: Context) -> str | None:
    """Somebody changes the count of a job whose number the autoscaler sets."""
    run = context.status.run
    pinned = context.observed.pinned.get(run.number) if run is not None else None
    count = context.job.spec.executors.count
    if pinned is None or pinned.spec.executors.count == count:
        return None
    return (
        f"spec.executors.count is {count} now, and is not used: with autoscaling.mode Auto the autoscaler "
        'sets the number. `kubectl scale`, an HPA or KEDA need mode "Off"'
    )


def scaling_said(context: Context) -> tuple[Sentence, ...]:
    """A new target is an event, as is a count that is not used."""
    advice = _advice(context)
    if advice is None or scales_itself(context.job.spec) is None:
        return ()
    said: list[Sentence] = []
    if advice.moves and wanted_executors(context) == advice.target != context.status.executors.target:
        said.append(Sentence(advice.reason, advice.message))
    before, both = context.status.condition("ScalingLimited"), _both_try(context)
    if both is not None and (before is None or before.message != both) and advice.limit is None:
        said.append(Sentence("AutoscalerRules", both))
    return tuple(said)
