"""Any life of a job that may sleep: rows come or not, lookouts die, the operator is killed, people edit."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from headrace.kube.resources import PODS
from tests.sim.kube.scaled import ScaledCluster
from tests.sim.kube.troubles import Troubles

LIMITS = {"max": 4, "lagObjective": "60s", "idle": {"after": "1m", "lookEvery": "10s", "maxSleep": "1h"}}
SPEC: dict[str, Any] = {
    "restart": {"backoff": {"min": "2s", "max": "8s"}},
    "savepoints": {"onUpgrade": False, "onSuspend": False},
}
WORK = {"reason": "Work", "message": "7 rows wait"}
BLIND = {"reason": "Blind", "message": "Kafka does not tell its offsets"}


class SleepyLife(Troubles):
    cluster: ScaledCluster

    @initialize()
    def begin(self):
        self.befall(ScaledCluster(LIMITS, **SPEC))
        self.cluster.topic.rate = 0.0

    def look(self) -> None:
        """As the monitor does between two passes."""
        cluster = self.cluster
        at = cluster.moment.timestamp()
        cluster.topic.advance(1.0, executors=len(cluster.writers()) * 2, at=at)
        for agent in cluster.agents.by_uid.values():
            agent.told = cluster.topic.report(at=at, executors=1)
        asyncio.run(cluster.monitor.ask_all_due(lambda _key: None))

    @rule()
    def operator_passes(self):
        self.look()
        self.cluster.pass_once()

    @rule()
    def kubelets_work(self):
        self.cluster.kubelets_work()

    @rule(seconds=st.sampled_from([5, 30, 90, 600, 4000]))
    def time_passes(self, seconds):
        self.cluster.later(seconds)
        self.look()

    @rule(rate=st.sampled_from([0.0, 0.0, 0.0, 5.0]))
    def rows_come_or_not(self, rate):
        self.cluster.topic.rate = rate

    @rule(words=st.sampled_from([None, {}, WORK, BLIND]))
    def a_lookout_has_something_to_say(self, words):
        self.cluster.lookout_says = words
        if not self.cluster.live_drivers():
            self.cluster.kubelets_work()
        self.cluster.lookout_says = None

    @rule(room=st.booleans())
    def there_is_room_for_lookouts_or_not(self, room):
        self.cluster.no_room_for_lookouts = not room

    @rule(suspend=st.booleans())
    def suspend_is_set(self, suspend):
        self.cluster.edit(suspend=suspend)

    @rule(args=st.sampled_from([[], ["--a"], ["--b"]]))
    def arguments_are_edited(self, args):
        self.cluster.edit(application={"args": args})

    @rule(idle=st.sampled_from([None, LIMITS["idle"], {**LIMITS["idle"], "lookEvery": "30s"}]))
    def sleep_is_edited(self, idle):
        self.cluster.edit(autoscaling={"idle": idle})

    @rule(reason=st.sampled_from(["QueryFailed", "Drained"]))
    def the_driver_ends(self, reason):
        for agent in list(self.cluster.agents.by_uid.values()):
            self.cluster.end_driver(agent.pod, reason, 1)

    @invariant()
    def epochs_grow(self):
        epochs = [epoch for _, _, epoch in self.cluster.started]
        assert epochs == sorted(set(epochs))

    @invariant()
    def who_sleeps_is_named_in_the_status(self):
        names = [name for name in self.cluster.api.of(PODS) if "-lookout-" in name]
        assert len(names) <= 1 + self.cluster.status.lookouts
        assert self.cluster.status.state != "Sleeping" or self.cluster.status.sleep is not None

    def teardown(self):
        """Left in peace, with work: it is awake, and nobody looks in its place."""
        self.troubles_end()
        cluster = self.cluster
        cluster.no_room_for_lookouts = False
        cluster.topic.rate = 5.0
        cluster.edit(suspend=False, autoscaling={"idle": LIMITS["idle"]}, application={"args": ["--last"]})
        cluster.later(600)
        for _ in range(24):
            cluster.steps(1)
        assert cluster.condition("Ready") == ("True", "Running")
        assert cluster.status.sleep is None
        assert [name for name in cluster.api.of(PODS) if "-lookout-" in name] == []
        # And without any, it sleeps.
        cluster.topic.rate = 0.0
        cluster.steps(24)
        assert cluster.status.state == "Sleeping"


SleepyLife.TestCase.settings = settings(
    max_examples=10,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestSleepyLife = SleepyLife.TestCase


class LongSleepyLife(SleepyLife):
    pass


LongSleepyLife.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLongSleepyLife = pytest.mark.full(LongSleepyLife.TestCase)
