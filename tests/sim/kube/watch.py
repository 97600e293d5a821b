"""The watch of a fake cluster: what each operator hears of what happens, and when."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.core.manifests.ownership import JOB_LABEL
from headrace.kube.cache import CACHED, OWN_KINDS, Cache, version_of
from headrace.kube.credentials import Credentials
from headrace.kube.resources import STREAM_JOBS
from headrace.runtime.health import Health
from headrace.runtime.reconcile import Reconciler
from headrace.runtime.relist import Relists
from headrace.runtime.watches import Watches
from tests.sim.kube.disorder import Disorder, News
from tests.sim.kube.fake_api import FakeApi, at_once


@dataclass
class Watch:
    api: FakeApi
    # Up to which version each operator, by its cache, has heard.
    heard_until: dict[int, int] = field(default_factory=dict)
    # In which order, and how often, it tells them.
    disorder: Disorder = field(default_factory=Disorder)

    def tell(self, operator: Reconciler, count: int | None = None) -> None:
        """What has happened since, or the first part of it."""
        watches, fresh = _watches(operator), self.news(operator.cache)[:count]
        listener = id(watches.cache)
        if fresh:
            self.heard_until[listener] = version_of(fresh[-1][2])
        for gone, plural, thing in self.disorder.told(listener, fresh, past=self.api.told):
            labels = thing["metadata"].get("labels", {})
            resource = next((one for one in CACHED if one.plural == plural), None)
            if resource is None:
                continue
            if resource in OWN_KINDS or JOB_LABEL in labels:
                watches.heard(resource, thing, gone=gone)
            elif (known := watches.cache.known(resource, thing)) is not None:
                # It has left the selection: a watch tells that as its end, as it was before.
                version = {"resourceVersion": thing["metadata"]["resourceVersion"]}
                left = {**known, "metadata": {**known["metadata"], **version}}
                watches.heard(resource, left, gone=True)

    def news(self, cache: Cache) -> list[News]:
        """What is yet to be told. The watch of a server of the past has nothing to tell."""
        since = self.heard_until[id(cache)]
        told = self.api.told if self.api.stale is None else []
        return [news for news in told if version_of(news[2]) > since]

    def is_late(self, cache: Cache) -> bool:
        return bool(self.disorder.late.get(id(cache)))

    def relist(self, cache: Cache) -> None:
        """As after a broken watch: what it would have told is lost, and everything is listed."""
        relists = Relists(api=self.api, cache=cache, namespaces=(), wake=lambda _key: None)

        async def all_kinds() -> int:
            for resource in CACHED:
                await relists.relist(resource)
            return (await self.api.list(STREAM_JOBS, None)).version

        self.heard_until[id(cache)] = at_once(all_kinds())


def _watches(operator: Reconciler) -> Watches:
    return Watches(
        credentials=Credentials("http://fake", None, lambda: None),
        namespaces=(),
        health=Health(
            clock=lambda: 0.0, leads=lambda: True, queue_wait=lambda: 0.0, lease_silence=lambda: 0.0
        ),
        cache=operator.cache,
        wake=lambda _key: None,
        note_pod=operator.substrate.note_pod,
        relisted=lambda _plural: None,
    )
