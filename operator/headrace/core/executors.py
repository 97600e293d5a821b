"""The executors as the status shows them: numbers that `kubectl scale` and an autoscaler read."""

from __future__ import annotations

from headrace.api import GROUP, ExecutorsStatus
from headrace.core.decision import Context


def executors_status(context: Context) -> ExecutorsStatus:
    """As before where none can be seen: `headrace dev` runs them inside the driver."""
    seen, before = context.observed.executors, context.status.executors
    if seen is None:
        return before
    return before.model_copy(
        update={
            "replicas": seen.replicas,
            "ready": seen.ready,
            "target": context.job.spec.executors.count,
            "selector": f"{GROUP}/job={context.job.name},{GROUP}/role=executor",
        }
    )
