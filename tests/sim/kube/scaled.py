"""A job that reads a topic, on the fake cluster: rows arrive, executors work them off, and come and go."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from headrace.api.names import executor_set_name
from headrace.kube.resources import PODS, STATEFUL_SETS
from headrace.runtime.job_metrics import JobMetrics, JobSample
from headrace.runtime.monitor import Monitor
from headrace.runtime.reconcile import Outcome, Reconciler
from headrace.runtime.scaling import Scaling
from headrace_jobs.harness.view import iso
from tests.sim.kube.cluster import JOB, KEY, NAMESPACE, FakeCluster
from tests.sim.kube.fake_api import Object

STEP_SECONDS = 15.0
_STARTUP_SECONDS = 30.0
_UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available",
}
_READY = {"type": "Ready", "status": "True"}


@dataclass
class Topic:
    """What is in it, and what of it was read."""

    ends: list[float] = field(default_factory=lambda: [0.0] * 8)
    committed: list[float] = field(default_factory=lambda: [0.0] * 8)
    rate: float = 100.0
    per_executor: float = 200.0
    retention_seconds: float | None = None
    # The broker does not answer.
    away: bool = False
    # The batch that runs never ends.
    in_batch: bool = False
    # Why nobody but the driver could look at it.
    no_lookout: str | None = None
    batches: list[list[Any]] = field(default_factory=list)
    # (seconds, rows that had come by then)
    came: list[tuple[float, float]] = field(default_factory=list)

    @property
    def unread_since(self) -> float | None:
        return next((at for at, rows in self.came if rows > sum(self.committed) + 1), None)

    def advance(self, seconds: float, *, executors: int, at: float) -> None:
        self.came.append((at, sum(self.ends) + self.rate * seconds))
        for index in range(len(self.ends)):
            self.ends[index] += self.rate * seconds / len(self.ends)
        waiting = sum(self.ends) - sum(self.committed)
        rows = min(waiting, executors * self.per_executor * (seconds - 1))
        if executors == 0 or rows < 1 or self.in_batch or self.away:
            return
        for index, (end, read) in enumerate(zip(self.ends, self.committed, strict=True)):
            self.committed[index] = read + (end - read) * rows / waiting
        number = self.batches[-1][0] + 1 if self.batches else 0
        took = 1 + rows / (executors * self.per_executor)
        self.batches = [*self.batches[-49:], [number, took, round(rows), executors, iso(at - took)]]

    def report(self, *, at: float, executors: int) -> dict[str, Any]:
        offsets = {
            "at": at,
            "retentionSeconds": self.retention_seconds,
            "minPartitions": None,
            "maxRowsPerBatch": None,
            "plannedRows": None,
            "partitions": {
                f"clicks/{index}": [int(end), int(read), 0, self.unread_since]
                for index, (end, read) in enumerate(zip(self.ends, self.committed, strict=True))
            },
        }
        lag = {
            "known": True,
            "rows": int(sum(self.ends) - sum(self.committed)),
            "why": "",
            "offsets": offsets,
        }
        if self.away:
            lag = {"known": False, "rows": None, "why": "Kafka does not tell its offsets", "offsets": None}
        lag["lookout"] = {"able": self.no_lookout is None, "why": self.no_lookout}
        query = {
            "name": "q",
            "active": True,
            "committedBatch": self.batches[-1][0] if self.batches else None,
            "stuck": False,
            "triggerActive": self.in_batch,
            "batchStartedAt": iso(at - 1) if self.in_batch else None,
            "lastProgressAt": iso(at),
            "triggerIntervalMs": 10_000,
            "lag": lag,
            "batches": self.batches,
        }
        return {"queries": [query], "executors": executors, "at": iso(at)}


class ScaledCluster(FakeCluster):
    """The operator with its monitor and its autoscaler, in steps of a quarter of a minute."""

    def __init__(self, autoscaling: Object, *, count: int = 1, **spec: Any) -> None:
        self.topic = Topic()
        # Executors that the cluster has room for.
        self.room = 100
        self.born: dict[str, float] = {}
        # By how much the clock of the drivers' node is ahead.
        self.driver_ahead = 0.0
        self.recheck_at: float | None = None
        super().__init__(
            {
                "application": {"file": "job.py"},
                "executors": {"count": count, "cores": 2},
                "autoscaling": autoscaling,
                **spec,
            }
        )
        self.steps(4)

    parts = (*FakeCluster.parts, "metrics", "scaling", "monitor")

    def new_operator(self) -> Reconciler:
        operator = super().new_operator()
        self.metrics = JobMetrics(self.operator_now)
        self.scaling = Scaling(agents=self.agents, metrics=self.metrics, now=self.operator_now)
        self.monitor = Monitor(
            agents=self.agents,
            metrics=self.metrics,
            scaling=self.scaling,
            clock=lambda: self.moment.timestamp(),  # noqa: PLW0108 (it moves)
        )
        return Reconciler(
            api=operator.api,
            substrate=operator.substrate,
            events=operator.events,
            now=operator.now,
            may_act=operator.may_act,
            advice=self.scaling.advice,
            idleness=self.scaling.idleness,
        )

    def pass_once(self) -> Outcome | None:
        outcome = super().pass_once()
        after = outcome.recheck_after if outcome is not None else None
        self.recheck_at = None if after is None else self.moment.timestamp() + after
        if outcome is not None and outcome.status is not None:
            self.monitor.follow(KEY, outcome)
            spec = outcome.job.spec if outcome.job is not None else None
            self.metrics.set(KEY, JobSample(spec, outcome.status, outcome.report))
        return outcome

    def steps(self, count: int, *, rate: float | None = None) -> None:
        """Time passes: rows come, batches end, pods start, the monitor looks, and who is woken works."""
        self.topic.rate = self.topic.rate if rate is None else rate
        for _ in range(count):
            self.later(STEP_SECONDS)
            self.topic.advance(STEP_SECONDS, executors=self.ready(), at=self.moment.timestamp())
            self.executors_come_and_go()
            for agent in self.agents.by_uid.values():
                at = self.moment.timestamp() + self.driver_ahead
                agent.told = self.topic.report(at=at, executors=self.ready())
            woken: list[Any] = []
            asyncio.run(self.monitor.ask_all_due(woken.append))
            due = self.recheck_at is not None and self.recheck_at <= self.moment.timestamp()
            if woken or due or self.news() or not self.live_drivers():
                self.settle()

    def _time_passes(self, outcome: Outcome | None) -> bool:
        if super()._time_passes(outcome):
            return True
        comes_up = self.live_drivers() and self.ready() == 0 < min(self.replicas(), self.room)
        if comes_up:
            self.later(STEP_SECONDS)
        return bool(comes_up)

    def ready(self) -> int:
        now = self.moment.timestamp()
        names = [f"{JOB}-exec-{number}" for number in range(min(self.replicas(), self.room))]
        return sum(now - self.born.get(name, now) >= _STARTUP_SECONDS for name in names)

    def replicas(self) -> int:
        run = self.status.run
        if run is None or run.attempt is None:
            return 0
        found = self.api.of(STATEFUL_SETS).get(executor_set_name(JOB, run.attempt.epoch))
        return found["spec"]["replicas"] if found is not None else 0

    def executors_come_and_go(self) -> None:
        """They take their time here, and find room or none."""
        wanted = {f"{JOB}-exec-{number}": number for number in range(self.replicas())}
        now, pods = self.moment.timestamp(), self.api.of(PODS)
        for name in [name for name in pods if "-exec-" in name and name not in wanted]:
            self.api.remove((PODS.plural, NAMESPACE, name))
            self.born.pop(name, None)
        drivers = self.live_drivers()
        if not drivers:
            return
        labels = {**pods[drivers[0]]["metadata"]["labels"], "headrace.dev/role": "executor"}
        for name, number in wanted.items():
            if name not in pods:
                meta = {"name": name, "namespace": NAMESPACE, "labels": labels}
                self.api.put_new(PODS, {"metadata": meta})
            place = (PODS.plural, NAMESPACE, name)
            if number >= self.room:
                status = {"phase": "Pending", "conditions": [_UNSCHEDULABLE]}
            else:
                ready = now - self.born.setdefault(name, now) >= _STARTUP_SECONDS
                status = {"phase": "Running", "conditions": [_READY] if ready else []}
            if self.api.objects[place].get("status") != status:
                self.api.set(place, {"status": status})

    # ---- what can be seen ---------------------------------------------------------------------------

    @property
    def target(self) -> int | None:
        return self.status.executors.target

    def status_writes(self, since: int = 0) -> int:
        return sum(write[1] == "streamjobs" for write in self.api.writes[since:])
