"""Between two passes: who is asked how often, and what is worth a pass."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.kube.agent import AgentAddress
from headrace.runtime.job_metrics import JobMetrics, JobSample
from headrace.runtime.monitor import Monitor
from headrace.runtime.reconcile import Outcome
from headrace.runtime.scaling import Scaling

KEY = ("shop", "clicks")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_report(phase: str = "Running", **query: Any) -> dict[str, Any]:
    known = {
        "name": "counts",
        "active": True,
        "stuck": False,
        "committedBatch": 7,
        "lag": {"rows": 42, "files": None, "behindSince": "2025-12-31T23:59:30.000Z"},
        "inputRowsPerSecond": 10.5,
        "processedRowsPerSecond": None,
        "batchDurationMs": 1500,
        "batchStartedAt": None,
        "triggerIntervalMs": 3000,
        "triggerDurationMs": 1500,
        "watermark": "2025-12-31T23:59:00.000Z",
        "lastProgressAt": "2025-12-31T23:59:57.000Z",
        "lastCommitAt": "2025-12-31T23:59:51.000Z",
        "logCommitMs": 300,
        "stateCommitMs": 40.5,
        "stateFileBytes": 1024,
        "snapshotUploadBytes": None,
        "eventLatencySeconds": 2.5,
        "eventLatencyWorstSeconds": 9.0,
        "stateRows": 3,
        "stateBytes": 99,
        "lateRowsDropped": 0,
    }
    return {"phase": phase, "queries": [{**known, **query}]}


class World:
    def __init__(self) -> None:
        self.seconds = 0.0
        self.report: dict[str, Any] | None = a_report()
        self.asked = 0
        self.woken: list[tuple[str, str]] = []
        self.metrics = JobMetrics(lambda: NOW)
        scaling = Scaling(agents=self, metrics=self.metrics, now=lambda: NOW)
        self.monitor = Monitor(agents=self, metrics=self.metrics, scaling=scaling, clock=lambda: self.seconds)

    async def status(self, address: AgentAddress) -> dict[str, Any] | None:
        self.asked += 1
        return self.report

    async def drain(self, address: AgentAddress, *, timeout_seconds: float) -> bool:
        raise AssertionError("a monitor only looks")

    async def scaling(self, address: AgentAddress) -> dict[str, Any] | None:
        return None

    async def keep_scaling(self, address: AgentAddress, news: dict[str, Any]) -> bool:
        return False

    def follow(self, report: dict[str, Any] | None) -> None:
        address = AgentAddress("10.0.0.1", "uid")
        self.monitor.follow(KEY, Outcome(address=address, report=report))

    def after(self, seconds: float) -> None:
        self.seconds += seconds
        asyncio.run(self.monitor.ask_all_due(self.woken.append))


@pytest.fixture
def world() -> World:
    return World()


def test_a_calm_driver_is_asked_now_and_then_and_wakes_nobody(world: World):
    world.follow(a_report())
    for _ in range(60):
        world.after(1)
    assert 2 <= world.asked <= 5
    assert world.woken == []


def test_a_starting_driver_is_asked_often_and_its_start_is_news(world: World):
    world.follow(a_report("Starting"))
    world.report = a_report("Starting")
    for _ in range(4):
        world.after(1.3)
    assert world.asked == 4
    assert world.woken == []
    world.report = a_report("Running")
    world.after(1.3)
    assert world.woken == [KEY]


def test_a_stuck_query_is_news(world: World):
    world.follow(a_report())
    world.report = a_report(stuck=True)
    world.after(20)
    assert world.woken == [KEY]


def test_silence_is_news_once_and_again_when_it_lasts(world: World):
    world.follow(a_report())
    world.report = None
    world.after(20)
    assert world.woken == [KEY]
    world.after(20)
    assert world.woken == [KEY]
    world.after(20)
    world.after(30)
    assert len(world.woken) >= 2


def test_a_job_that_is_forgotten_is_not_asked(world: World):
    world.follow(a_report())
    world.monitor.forget(KEY)
    world.after(60)
    assert world.asked == 0


def test_what_the_agent_says_becomes_metrics(world: World):
    spec = StreamJobSpec.parse({"application": {"file": "job.py"}})
    world.metrics.set(KEY, JobSample(spec, StreamJobStatus(), None))
    world.follow(None)
    world.after(20)
    found = {one.name for family in world.metrics.collect() for one in family.samples}
    assert "headrace_job_lag_rows" in found
