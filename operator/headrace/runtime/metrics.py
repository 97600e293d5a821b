"""The operator's own metrics, by the names that platform teams know from other controllers."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_FAST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """One registry per operator: tests make as many as they like."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconciles = Counter(
            "headrace_reconcile",
            "Passes over a job, by result: ok, conflict, refused or error.",
            ["result"],
            registry=self.registry,
        )
        self.reconcile_seconds = Histogram(
            "headrace_reconcile_seconds", "How long a pass takes.", buckets=_FAST, registry=self.registry
        )
        self.queue_depth = Gauge("headrace_queue_depth", "Jobs that wait for a pass.", registry=self.registry)
        self.queue_oldest_seconds = Gauge(
            "headrace_queue_oldest_seconds",
            "How long the job at the head of the queue has waited.",
            registry=self.registry,
        )
        self.api_requests = Counter(
            "headrace_api_requests",
            "Requests to the API server; code 0 stands for no answer.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )
        self.api_seconds = Histogram(
            "headrace_api_request_seconds",
            "How long the API server takes to answer.",
            ["verb"],
            buckets=_FAST,
            registry=self.registry,
        )
        self.leader = Gauge(
            "headrace_leader", "1 while this operator is the one that acts.", registry=self.registry
        )
        self.watch_age_seconds = Gauge(
            "headrace_watch_age_seconds",
            "How long ago the watch of a kind of objects was last heard of.",
            ["resource"],
            registry=self.registry,
        )

    def observe_request(self, verb: str, resource: str, status: int, seconds: float) -> None:
        self.api_requests.labels(verb, resource, str(status)).inc()
        self.api_seconds.labels(verb).observe(seconds)

    def render(self) -> bytes:
        return generate_latest(self.registry)
