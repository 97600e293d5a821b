"""Operators beside the one that leads, each of which believes that it is the one.

A process may be paused for minutes between two of its writes, while another takes its place and goes on; when
it wakes, the write that it was about to make is made. And two may act in turns, each with a cache of its own.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from headrace.kube.errors import ApiError
from headrace.runtime.leading import NoLongerLeader
from tests.sim.kube.cluster import KEY, FakeCluster

Pass = Coroutine[Any, Any, Any]


class Rivals:
    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        # Passes of processes that are paused, each before a write.
        self.asleep: list[Pass] = []
        self.other: dict[str, Any] | None = None

    def leader_falls_asleep(self, writes: int) -> bool:
        """In the middle of its pass, after so many writes; another process leads from here on.

        False where the pass was over before.
        """
        cluster = self.cluster
        cluster.hear(cluster.watch_pace)
        work = cluster.operator.reconcile(KEY)
        cluster.api.sleeps_in = writes
        asleep = _goes_on(work)
        cluster.api.sleeps_in = None
        if asleep:
            self.asleep.append(work)
            cluster.operator = cluster.new_operator()
        return asleep

    def sleepers_wake(self, *, knowing: bool) -> None:
        """What they were about to write is written. `knowing`: their clock tells them by then that their
        Lease has ended."""
        self.cluster.leads = not knowing
        for work in self.asleep:
            assert not _goes_on(work), "nobody told it to sleep again"
        self.asleep.clear()
        self.cluster.leads = True

    def other_passes(self, pace: int | None) -> None:
        """One that has led before, and hears of so much only."""
        cluster = self.cluster
        leader, own_pace = cluster.process(), cluster.watch_pace
        if self.other is None:
            cluster.operator = cluster.new_operator()
        else:
            cluster.run_as(self.other)
        cluster.watch_pace = pace
        cluster.pass_once()
        self.other = cluster.process()
        cluster.run_as(leader)
        cluster.watch_pace = own_pace


def _goes_on(work: Pass) -> bool:
    """Whether it fell asleep; else it is over."""
    try:
        work.send(None)
    except (StopIteration, ApiError, NoLongerLeader):
        return False
    return True
