"""Any life of a job whose upgrades are rehearsed: candidates wait, take over, fall silent and die."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from headrace.kube.resources import CONFIG_MAPS, SECRETS, SERVICES
from tests.sim.kube.cluster import FakeCluster
from tests.sim.kube.test_faults import SPEC, AnyLife, LongLife


class WarmLife(AnyLife):
    @initialize()
    def begin(self):
        self.edits = 0
        self.befall(FakeCluster({**SPEC, "upgrade": {"strategy": "Rehearsed"}}))
        self.cluster.settle()

    @rule(edits=st.booleans(), ticks=st.integers(1, 16))
    def everything_goes_on_for_a_while(self, edits, ticks):
        """Else chance seldom comes as far as a handover."""
        if edits:
            self.edits += 1
            self.cluster.edit(application={"args": [f"--{self.edits}"]})
        for _ in range(ticks):
            self.cluster.pass_once()
            self.cluster.kubelets_work()
            self.there_are_never_two_writers()

    @rule(reason=st.sampled_from(["Killed", "StandbyExpired", "QueryFailed", "StoreUnavailable"]))
    def candidates_end(self, reason):
        for agent in list(self.cluster.agents.by_uid.values()):
            if not agent.claimed:
                self.cluster.end_driver(agent.pod, reason, 1)

    @rule(deaf=st.booleans())
    def candidates_fall_silent(self, deaf):
        for agent in self.cluster.agents.by_uid.values():
            if not agent.claimed:
                agent.deaf = deaf

    @rule(enabled=st.booleans())
    def standby_is_edited(self, enabled):
        self.cluster.edit(upgrade={"standby": {"enabled": enabled}})

    @invariant()
    def later_runs_began_from_their_predecessor(self):
        for run, _, _ in self.cluster.started:
            seeded = self.cluster.seeds.get(run, "").endswith(f"/run-{run - 1}")
            assert run == 1 or seeded or self.cluster.copies.get(run) == run - 1

    def teardown(self):
        super().teardown()
        (own,) = self.cluster.live_drivers()
        for kind in (SERVICES, SECRETS, CONFIG_MAPS):
            assert {name for name in self.cluster.api.of(kind) if name.startswith("clicks-c")} <= {own}


WarmLife.TestCase.settings = settings(AnyLife.TestCase.settings, max_examples=60)
TestWarmLife = WarmLife.TestCase


class LongWarmLife(WarmLife):
    pass


# Each of them goes a longer way.
LongWarmLife.TestCase.settings = settings(LongLife.TestCase.settings, max_examples=80)
TestLongWarmLife = pytest.mark.full(LongWarmLife.TestCase)
