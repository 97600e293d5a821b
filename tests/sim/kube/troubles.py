"""Everything that may befall an operator, as rules for the lives that hypothesis makes up.

Whatever the life is about, it inherits these: the process is killed, paused or doubled; the server refuses,
does not answer, answers late or of the past; the watch is late, breaks, or tells its news in any order; the
clock jumps; other people's objects have the names that are needed next.
"""

from __future__ import annotations

import re
from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.kube.resources import STREAM_JOBS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import FakeCluster
from tests.sim.kube.rivals import Rivals
from tests.sim.kube.strangers import KINDS, Strangers, names_to_come

WRITE_FAULTS = [None, "refused", "lost", "busy", "conflict", "invalid", "quota"]
READ_FAULTS = [None, "refused", "busy"]


class Troubles(RuleBasedStateMachine):
    cluster: FakeCluster

    def befall(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.rivals, self.strangers = Rivals(cluster), Strangers(cluster)

    # ---- the process

    @rule(writes=st.integers(0, 4))
    def operator_is_killed_in_a_pass(self, writes: int) -> None:
        self.cluster.api.writes_left = writes
        self.cluster.pass_once()
        self.cluster.api.writes_left = None

    @rule(writes=st.integers(0, 6))
    def the_leader_falls_asleep_in_a_pass(self, writes: int) -> None:
        self.rivals.leader_falls_asleep(writes)

    @rule(knowing=st.booleans())
    def who_slept_wakes(self, knowing: bool) -> None:
        self.rivals.sleepers_wake(knowing=knowing)

    @rule(pace=st.sampled_from([0, 1, None]))
    def another_believes_that_it_leads(self, pace: int | None) -> None:
        self.rivals.other_passes(pace)

    # ---- the server and its watch

    @rule(faults=st.lists(st.sampled_from(WRITE_FAULTS), max_size=4))
    def the_api_server_has_a_bad_moment(self, faults: list[str | None]) -> None:
        self.cluster.api.faults = faults
        self.cluster.pass_once()
        self.cluster.api.faults = []

    @rule(faults=st.lists(st.sampled_from(READ_FAULTS), min_size=1, max_size=3))
    def the_api_server_does_not_tell(self, faults: list[str | None]) -> None:
        self.cluster.api.read_faults = faults
        self.cluster.pass_once()
        self.cluster.api.read_faults = []

    @rule(pace=st.sampled_from([0, 1, 3, None]))
    def the_watch_is_late_or_not(self, pace: int | None) -> None:
        self.cluster.watch_pace = pace

    @rule(seed=st.none() | st.integers(0, 9))
    def the_watch_tells_in_any_order_or_in_the_right_one(self, seed: int | None) -> None:
        self.cluster.disorder.chance = None if seed is None else Random(seed)

    @rule()
    def the_watch_breaks_and_everything_is_listed(self) -> None:
        self.cluster.relist()

    # ---- the rest of the world

    @rule(seconds=st.sampled_from([0, 5, -5, 3600, -3600, 86_400, -86_400]))
    def the_operators_clock_is_wrong_or_put_right(self, seconds: int) -> None:
        self.cluster.clock_error = timedelta(seconds=seconds)

    @rule(data=st.data())
    def a_stranger_has_a_name_that_is_needed(self, data: st.DataObject) -> None:
        resource = data.draw(st.sampled_from(KINDS))
        self.strangers.come(resource, data.draw(st.sampled_from(names_to_come(self.cluster))))

    @rule()
    def strangers_go(self) -> None:
        self.strangers.go()

    @invariant()
    def what_is_not_ours_is_left_alone(self) -> None:
        self.strangers.are_as_they_were()

    @invariant()
    def there_are_never_two_writers(self) -> None:
        assert len(self.cluster.writers()) <= 1

    @invariant()
    def conditions_are_well_formed(self) -> None:
        for resource in (STREAM_JOBS, STREAM_SAVEPOINTS):
            for one in self.cluster.api.of(resource).values():
                well_formed((one.get("status") or {}).get("conditions") or [])

    def troubles_end(self) -> None:
        cluster = self.cluster
        cluster.watch_pace, cluster.disorder.chance = None, None
        cluster.clock_error = timedelta(0)
        self.strangers.go()
        self.rivals.sleepers_wake(knowing=True)
        for agent in cluster.agents.by_uid.values():
            agent.deaf = False
        # From the first look at what has failed on, its next try is waited for.
        cluster.pass_once()


def well_formed(conditions: list[dict[str, Any]]) -> None:
    for one in conditions:
        assert one["status"] in ("True", "False", "Unknown")
        assert re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", one["reason"])
        assert one["lastTransitionTime"] and one["observedGeneration"] > 0
        assert len(one.get("message", "")) <= 32_768
    types = [one["type"] for one in conditions]
    assert len(types) == len(set(types))
