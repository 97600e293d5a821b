"""The simulated job, in one place.

These values were fixed before the policy was tuned, and stay: tuning the world to the policy proves nothing.
Only a measurement changes one. Each says where it comes from:

    chosen      what kind of job is simulated
    known       documented or measured elsewhere; said beside it
    measured    in the soak on a real cluster, whose record is bench/records/soak.json
                (`python -m bench.soak --replay` tells which value it gives)
    assumed     nobody has measured it
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Parameters:
    # The job: a common size.
    partitions: int = 48  # chosen
    shuffle_partitions: int = 96  # chosen
    cores: int = 2  # chosen
    trigger_seconds: float = 10.0  # chosen
    min_executors: int = 1  # chosen
    max_executors: int = 20  # chosen
    initial_executors: int = 10  # chosen
    objective_seconds: float = 60.0  # chosen
    retention_seconds: float = 4 * 3600.0  # chosen
    # The highest minute of the trace takes this part of what `max_executors` can do.
    peak_of_max: float = 0.7  # chosen

    # The part of a batch that executors do not share.
    planning_seconds: float = 1.25  # measured
    task_launch_seconds: float = 0.003  # assumed
    commit_median_seconds: float = 0.0365  # measured: with an S3 server on the same machine
    commit_sigma: float = 0.208  # measured
    # Now and then something takes long: a garbage collection, a slow object store.
    hiccup_probability: float = 0.01  # assumed
    hiccup_seconds: float = 4.0  # assumed

    # The part that they share: two stages of tasks on cores, first come first served, each task with its
    # own size and luck.
    read_part: float = 0.55  # chosen
    partition_sigma: float = 0.25  # assumed
    shuffle_sigma: float = 0.2  # assumed
    task_sigma: float = 0.2  # assumed
    # Contention and coherence of the universal scalability law, per executor: at 20 executors the same
    # work takes 1.38 times the core seconds.
    contention: float = 0.012  # assumed
    coherence: float = 0.0004  # assumed
    # State makes a row slower as more of it is held; it follows the load over this time.
    state_cost: float = 0.25  # assumed
    state_seconds: float = 1800.0  # assumed
    # The sink takes what it takes, whatever the executors: this many times the peak.
    sink_of_peak: float = 12.0  # assumed

    # Executors come and go. The image is on the node; the tail is a node that has to be made.
    startup_median_seconds: float = 35.0  # assumed
    startup_sigma: float = 0.35  # assumed
    new_node_probability: float = 0.15  # assumed
    new_node_seconds: float = 75.0  # assumed
    # The first batches of a new executor: cold code, cold caches.
    warm_up_batches: int = 2  # assumed
    warm_up_slowdown: float = 1.6  # assumed
    # State of a shuffle partition that changes its executor is loaded anew.
    reload_seconds: float = 2.18  # measured
    # A job that cannot rescale in place is down for this long.
    restart_seconds: float = 60.0  # assumed: Flink's own default belief is 5 minutes

    # What arrives is not as smooth as the trace: per second, and over minutes.
    second_sigma: float = 0.05  # assumed
    minute_sigma: float = 0.03  # assumed
    # How often a scaler looks; what it sees is that old.
    look_seconds: float = 15.0  # known: the operator's own pace


DEFAULT = Parameters()
