"""The probes: what they say, and to whom."""

import asyncio

from aiohttp.test_utils import TestClient, TestServer

from headrace.runtime.health import Health, web_application
from headrace.runtime.metrics import Metrics


class World:
    def __init__(self, *, leads: bool = True) -> None:
        self.seconds, self.wait, self.silence, self.leads = 0.0, 0.0, 0.0, leads
        self.health = Health(
            clock=lambda: self.seconds,
            leads=lambda: self.leads,
            queue_wait=lambda: self.wait,
            lease_silence=lambda: self.silence,
        )
        self.health.expect_watch("streamjobs")
        self.metrics = Metrics()

    def get(self, path: str) -> tuple[int, str]:
        async def ask() -> tuple[int, str]:
            application = web_application(self.health, self.metrics)
            async with TestClient(TestServer(application)) as client:
                response = await client.get(path)
                return response.status, await response.text()

        return asyncio.run(ask())


def test_an_operator_at_work_is_well():
    assert World().get("/healthz") == (200, "ok")


def test_a_watch_that_is_not_heard_of_is_told():
    world = World()
    world.seconds = 500
    status, text = world.get("/healthz")
    assert status == 503
    assert "the watch of streamjobs was last heard of 500 s ago" in text
    world.health.watch_heard("streamjobs")
    assert world.get("/readyz") == (200, "ok")


def test_a_job_that_waits_too_long_is_told():
    world = World()
    world.wait = 200
    assert world.get("/readyz") == (503, "a job waits for its pass for 200 s")


def test_a_stand_by_has_no_duties():
    world = World(leads=False)
    world.seconds = 10_000
    assert world.get("/healthz") == (200, "ok")


def test_an_operator_without_rights_to_the_lease_is_alive_but_not_ready():
    world = World(leads=False)
    world.silence = float("inf")
    assert world.get("/healthz") == (200, "ok")
    status, text = world.get("/readyz")
    assert status == 503 and "lease" in text


def test_metrics_are_served():
    world = World()
    world.seconds = 7
    world.metrics.observe_request("get", "pods", 200, 0.01)
    status, text = world.get("/metrics")
    assert status == 200
    assert 'headrace_api_requests_total{code="200",resource="pods",verb="get"} 1.0' in text
    assert 'headrace_watch_age_seconds{resource="streamjobs"} 7.0' in text
    assert "headrace_leader 1.0" in text
