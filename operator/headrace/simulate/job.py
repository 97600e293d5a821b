"""A real job, as far as it is known, in the simulated world."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headrace.simulate.parameters import Parameters

# A batch that begins at once begins when the one before it has ended, and somebody has looked.
_SHORTEST_TRIGGER_SECONDS = 1.0
_FOR_EVER = 10 * 365 * 86_400.0


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is known of a real job; without it the simulated one is a common one."""

    trigger_seconds: float
    # What a batch takes whatever its rows.
    fixed_seconds: float | None
    startup_seconds: float
    # Tasks of its stateful stages; None: it keeps no state.
    shuffle_partitions: int | None
    # None: its source does not delete by age, as far as anybody knows.
    retention_seconds: float | None


def as_job(parameters: Parameters, job: Job) -> Parameters:
    """The simulated job with what is known of a real one. How starts and commits spread stays as it is."""
    p = replace(
        parameters,
        trigger_seconds=max(job.trigger_seconds, _SHORTEST_TRIGGER_SECONDS),
        retention_seconds=_FOR_EVER if job.retention_seconds is None else job.retention_seconds,
    )
    usual_start = p.startup_median_seconds * _mean(p.startup_sigma)
    slower = job.startup_seconds / (usual_start + p.new_node_probability * p.new_node_seconds)
    p = replace(
        p,
        startup_median_seconds=slower * p.startup_median_seconds,
        new_node_seconds=slower * p.new_node_seconds,
    )
    if job.shuffle_partitions is None:
        p = replace(p, shuffle_partitions=1, read_part=1.0, state_cost=0.0, reload_seconds=0.0)
    else:
        p = replace(p, shuffle_partitions=job.shuffle_partitions)
    if job.fixed_seconds is None:
        return p
    launches = (p.partitions + p.shuffle_partitions) * p.task_launch_seconds
    usual_fixed = p.planning_seconds + launches + p.commit_median_seconds * _mean(p.commit_sigma)
    longer = job.fixed_seconds / usual_fixed
    return replace(
        p,
        planning_seconds=longer * p.planning_seconds,
        task_launch_seconds=longer * p.task_launch_seconds,
        commit_median_seconds=longer * p.commit_median_seconds,
    )


def _mean(sigma: float) -> float:
    """Of a log-normal number, in its medians."""
    return math.exp(sigma * sigma / 2)
