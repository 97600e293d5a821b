"""Whether this operator does its work: what the probes answer, and why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from aiohttp import web

from headrace.runtime.metrics import Metrics


@dataclass(frozen=True)
class Limits:
    # The API server ends each watch within this time at the latest, so it must have been heard of.
    watch_age_seconds: float = 420.0
    queue_wait_seconds: float = 120.0
    lease_silence_seconds: float = 30.0


@dataclass(kw_only=True)
class Health:
    clock: Callable[[], float]
    leads: Callable[[], bool]
    queue_wait: Callable[[], float]
    lease_silence: Callable[[], float]
    limits: Limits = Limits()
    _heard: dict[str, float] = field(default_factory=dict)

    def expect_watch(self, resource: str) -> None:
        self._heard.setdefault(resource, self.clock())

    def watch_heard(self, resource: str) -> None:
        if resource in self._heard:
            self._heard[resource] = self.clock()

    def watch_ages(self) -> dict[str, float]:
        return {resource: self.clock() - heard for resource, heard in self._heard.items()}

    def problems(self) -> Iterator[str]:
        """A stand-by has no duties, so it has no problems."""
        if not self.leads():
            return
        for resource, age in self.watch_ages().items():
            if age > self.limits.watch_age_seconds:
                yield f"the watch of {resource} was last heard of {age:.0f} s ago"
        if (wait := self.queue_wait()) > self.limits.queue_wait_seconds:
            yield f"a job waits for its pass for {wait:.0f} s"

    def unready(self) -> Iterator[str]:
        """An operator that cannot even look at the Lease (rights, address, certificate) would be no help."""
        if self.lease_silence() > self.limits.lease_silence_seconds:
            yield "the API server does not let us look at the lease: see the log"
        yield from self.problems()


def web_application(health: Health, metrics: Metrics) -> web.Application:
    def probe(problems: Callable[[], Iterator[str]]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(_request: web.Request) -> web.Response:
            found = list(problems())
            return web.Response(text="\n".join(found) or "ok", status=503 if found else 200)

        return answer

    async def serve_metrics(_request: web.Request) -> web.Response:
        metrics.leader.set(float(health.leads()))
        metrics.queue_oldest_seconds.set(health.queue_wait())
        for resource, age in health.watch_ages().items():
            metrics.watch_age_seconds.labels(resource).set(age)
        return web.Response(body=metrics.render(), content_type="text/plain", charset="utf-8")

    application = web.Application()
    application.add_routes(
        [
            web.get("/healthz", probe(health.problems)),
            web.get("/readyz", probe(health.unready)),
            web.get("/metrics", serve_metrics),
        ]
    )
    return application
