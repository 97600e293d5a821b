"""A cluster that the operator acts on.

The operator is the real one, from the reconciler down; only the network is not there. A pass is one call of
`reconcile`, as a worker would make it; killed after any write, the next pass is made by a fresh process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

from headrace.core.manifests import Platform
from headrace.core.verification import is_stable
from headrace.kube.agent import AgentTokens
from headrace.kube.cache import Cache
from headrace.kube.errors import ApiError
from headrace.kube.memory import Memory
from headrace.kube.savepoint_substrate import SavepointSubstrate
from headrace.kube.substrate import KubeSubstrate
from headrace.runtime.events import EventRecorder
from headrace.runtime.leading import LeadingApi, NoLongerLeader
from headrace.runtime.reconcile import Outcome, Reconciler
from headrace.runtime.savepoints import SavepointReconciler
from tests.sim.kube.disorder import News
from tests.sim.kube.fake_api import Object, OperatorKilled, at_once
from tests.sim.kube.kubernetes import JOB, NAMESPACE, FakeKubernetes
from tests.sim.kube.watch import Watch

KEY = (NAMESPACE, JOB)
PLATFORM = Platform(
    job_image="spark:1", headrace_image="headrace:1", checkpoint_location="s3://streams/checkpoints"
)


class FakeCluster(FakeKubernetes):
    def __init__(self, spec: Object | None = None) -> None:
        super().__init__()
        self.leads = True
        self.watch = Watch(self.api)
        self.disorder = self.watch.disorder
        # Whether the last passes over savepoints have asked for another.
        self.savepoints_wait = False
        # How much of the news the watch tells before each pass; None is all of it.
        self.watch_pace: int | None = None
        # How far the operator's clock is ahead of that of the server and of the nodes.
        self.clock_error = timedelta(0)
        self.operator = self.new_operator()
        self.create_job(spec or {"application": {"file": "job.py"}})

    # ---- the operator -------------------------------------------------------------------------------

    def new_operator(self) -> Reconciler:
        """A fresh process: it knows nothing but what it can read."""
        cache = Cache()
        api = LeadingApi(self.api, lambda: self.leads, cache)
        # What lasts is measured by a clock that is never put right.
        memory = Memory(clock=lambda: self.moment.timestamp())  # noqa: PLW0108 (it moves)
        substrate = KubeSubstrate(api, self.agents, AgentTokens(b"key" * 8), PLATFORM, cache, memory)
        operator = Reconciler(
            api=api,
            substrate=substrate,
            events=EventRecorder(self.api, "operator"),
            now=self.operator_now,
            may_act=lambda: self.leads,
        )
        self.savepointer = SavepointReconciler(
            substrate=SavepointSubstrate(
                api=api, platform=PLATFORM, cache=cache, memory=substrate.memory, keepers=self.savepoint_store
            ),
            events=operator.events,
            now=self.operator_now,
            may_act=lambda: self.leads,
        )
        self.watch.relist(cache)
        return operator

    # What a process of the operator consists of.
    parts = ("operator", "savepointer")

    def process(self) -> dict[str, Any]:
        return {part: getattr(self, part) for part in self.parts}

    def run_as(self, process: dict[str, Any]) -> None:
        vars(self).update(process)

    def operator_now(self) -> datetime:
        return self.moment + self.clock_error

    def pass_once(self) -> Outcome | None:
        """One pass, and one over each savepoint; None where the first failed in a way that a worker would
        try again."""
        self.hear(self.watch_pace)
        outcome = self._safely(lambda: self.operator.reconcile(KEY))
        outcome = None if outcome is None or outcome.refused else outcome
        self.savepoints_wait = False
        for key in self.operator.cache.savepoints():
            found = self._safely(lambda key=key: self.savepointer.reconcile(key))
            self.savepoints_wait |= found is None or found.recheck_after is not None
        return outcome

    def _safely(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            return at_once(work())
        except OperatorKilled:
            self.api.writes_left = None
            self.operator = self.new_operator()
        except (ApiError, NoLongerLeader):
            pass
        return None

    def hear(self, count: int | None = None) -> None:
        """The watch tells what has happened since, or the first part of it."""
        self.watch.tell(self.operator, count)

    def news(self) -> list[News]:
        """What the watch has yet to tell."""
        return self.watch.news(self.operator.cache)

    def relist(self) -> None:
        """As after a broken watch."""
        self.watch.relist(self.operator.cache)

    def settle(self, passes: int = 80) -> None:
        """Lets everything that happens by itself happen, until nothing does any more."""
        quiet = 0
        for _ in range(passes):
            before = (len(self.api.writes), self._picture())
            outcome = self.pass_once()
            self._needs_no_other_pass(outcome, self.api.writes[before[0] :])
            self.kubelets_work()
            self.collect_garbage()
            if (len(self.api.writes), self._picture()) != before or self._has_yet_to_hear():
                quiet = 0
                continue
            if self._time_passes(outcome):
                continue
            quiet += 1
            if quiet >= 2 and outcome is not None:
                return
            self.later(10)
        raise AssertionError(f"never settles: {self.status.state}: {self.api.writes[-10:]}")

    def _time_passes(self, outcome: Outcome | None) -> bool:
        """Until something is due that the operator waits for: the next attempt, the end of a trial."""
        due = self.status.restarts.next_at
        if due is not None and due > self.operator_now():
            self.moment = due - self.clock_error
            return True
        for agent in self.agents.by_uid.values():
            if agent.busy and not agent.stuck:
                self.later(1800)
                agent.stuck = True  # the watchdog has had enough of it
                return True
        operation = self.status.operation
        rehearsed = operation is not None and operation.candidate is not None
        watched = self.live_drivers() and (rehearsed or not is_stable(self.status))
        if not watched or outcome is None or not outcome.recheck_after:
            return False
        self.later(outcome.recheck_after)
        return True

    def _needs_no_other_pass(self, outcome: Outcome | None, written: list[tuple[str, str, str]]) -> None:
        """Who asks for no other pass, and has changed nothing whose event would bring one, gets none.

        So everything must have been said: on a cluster the next look may be minutes away.
        """
        wakes = [write for write in written if write[1] not in ("streamjobs", "events")]
        if outcome is None or outcome.recheck_after is not None or self.savepoints_wait or wakes:
            return
        if self.api.faults or self.api.writes_left is not None or self._has_yet_to_hear():
            return
        before = len(self.api.writes)
        self.pass_once()
        assert self.api.writes[before:] == [], "left something for a pass that nobody asked for"

    def _has_yet_to_hear(self) -> bool:
        return self.watch.is_late(self.operator.cache) or bool(self.watch_pace and self.news())

    def _picture(self) -> str:
        things = [self.api.objects[place] for place in sorted(self.api.objects)]
        return json.dumps([*things, sorted(self.stream.store.objects)], default=str)
