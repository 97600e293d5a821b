"""The simulated job, in one place.

These values were fixed before the policy was tuned, and stay: tuning the world to the policy proves nothing.
Nothing here was fitted to a cluster yet. Where a value has a source it stands beside it; all others are
guesses, to be replaced by what a long run on a real cluster shows.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Parameters:
    # The job. (guess: a common size)
    partitions: int = 48
    shuffle_partitions: int = 96
    cores: int = 2
    trigger_seconds: float = 10.0
    min_executors: int = 1
    max_executors: int = 20
    initial_executors: int = 10
    objective_seconds: float = 60.0
    retention_seconds: float = 4 * 3600.0
    # The highest minute of the trace takes this part of what `max_executors` can do. (guess)
    peak_of_max: float = 0.7

    # The part of a batch that executors do not share. Planning and commit of an idle query were measured at
    # 1.2 s on one contended core; the spread is a guess.
    planning_seconds: float = 0.8
    task_launch_seconds: float = 0.003
    commit_median_seconds: float = 0.35
    commit_sigma: float = 0.5
    # Now and then something takes long: a garbage collection, a slow object store. (guess)
    hiccup_probability: float = 0.01
    hiccup_seconds: float = 4.0

    # The part that they share: two stages of tasks on cores, first come first served, each task with its
    # own size and luck. (guess)
    read_part: float = 0.55
    partition_sigma: float = 0.25
    shuffle_sigma: float = 0.2
    task_sigma: float = 0.2
    # Contention and coherence of the universal scalability law, per executor: at 20 executors the same
    # work takes 1.38 times the core seconds. (guess)
    contention: float = 0.012
    coherence: float = 0.0004
    # State makes a row slower as more of it is held; it follows the load over this time. (guess)
    state_cost: float = 0.25
    state_seconds: float = 1800.0
    # The sink takes what it takes, whatever the executors: this many times the peak. (guess)
    sink_of_peak: float = 12.0

    # Executors come and go. (guess: image on the node, 2 cores; the tail is a node that has to be made)
    startup_median_seconds: float = 35.0
    startup_sigma: float = 0.35
    new_node_probability: float = 0.15
    new_node_seconds: float = 75.0
    # The first batches of a new executor: cold code, cold caches.
    warm_up_batches: int = 2
    warm_up_slowdown: float = 1.6
    # State of a shuffle partition that changes its executor is loaded anew. (guess)
    reload_seconds: float = 1.5
    # A job that cannot rescale in place is down for this long. (guess; Flink's default belief is 5 minutes)
    restart_seconds: float = 60.0

    # What arrives is not as smooth as the trace: per second, and over minutes. (guess)
    second_sigma: float = 0.05
    minute_sigma: float = 0.03
    # How often a scaler looks; what it sees is that old.
    look_seconds: float = 15.0


DEFAULT = Parameters()
