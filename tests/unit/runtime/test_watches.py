"""What the watch tells: news wakes the job, an echo of our own write does not."""

import asyncio
from typing import Any

from headrace.kube.cache import CACHED, OWN_KINDS, Cache
from headrace.kube.client import Snapshot
from headrace.kube.credentials import Credentials
from headrace.kube.errors import Unavailable
from headrace.kube.resources import PODS, Resource
from headrace.runtime import relist
from headrace.runtime.health import Health
from headrace.runtime.relist import Relists
from headrace.runtime.watches import Watches

KEY = ("shop", "clicks")


def a_pod(version: int) -> dict[str, Any]:
    labels = {"headrace.dev/job": "clicks", "headrace.dev/role": "driver"}
    metadata = {"name": "clicks-r1-a1", "namespace": "shop", "uid": "u", "labels": labels}
    return {"metadata": {**metadata, "resourceVersion": str(version)}, "status": {}}


def test_news_wakes_the_job_and_an_echo_does_not():
    cache, woken = Cache(), []
    watches = Watches(
        credentials=Credentials("http://x", None, lambda: None),
        namespaces=(),
        health=Health(
            clock=lambda: 0.0, leads=lambda: True, queue_wait=lambda: 0.0, lease_silence=lambda: 0.0
        ),
        cache=cache,
        wake=woken.append,
        note_pod=lambda _pod: None,
        relisted=lambda _plural: None,
    )
    cache.put(PODS, a_pod(5))  # the answer to our own write
    watches.heard(PODS, a_pod(5), gone=False)
    assert woken == []
    watches.heard(PODS, a_pod(6), gone=False)
    watches.heard(PODS, a_pod(7), gone=True)
    assert woken == [KEY, KEY]
    assert cache.children(PODS, KEY) == []


class Lists:
    """An API server that fails the first time, for each kind."""

    def __init__(self) -> None:
        self.asked: list[Resource] = []

    async def list(
        self, resource: Resource, namespace: str | None, *, selector: str | None = None
    ) -> Snapshot:
        assert (selector is None) == (resource in OWN_KINDS)
        self.asked.append(resource)
        if self.asked.count(resource) == 1:
            raise Unavailable("no leader")
        return Snapshot([a_pod(5)] if resource is PODS else [], 9)


def test_a_view_is_complete_when_every_kind_was_listed_however_often_that_fails(monkeypatch):
    monkeypatch.setattr(relist, "_AGAIN_SECONDS", 0.0)
    api, woken = Lists(), []

    async def listed() -> None:
        relists = Relists(api=api, cache=Cache(), namespaces=(), wake=woken.append)  # type: ignore[arg-type]
        running = asyncio.create_task(relists.run())
        for resource in CACHED[:-1]:
            relists.ask(resource.plural)
        waiting = asyncio.create_task(relists.complete())
        while len(api.asked) < 2 * (len(CACHED) - 1):
            await asyncio.sleep(0)
        assert not waiting.done()
        relists.ask(CACHED[-1].plural)
        async with asyncio.timeout(10):
            await waiting
        running.cancel()

    asyncio.run(listed())
    assert woken == [KEY]
