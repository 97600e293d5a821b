"""The operator's own metrics, by the names that platform teams know from other controllers."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

RESULTS = ("ok", "conflict", "refused", "error")
_FAST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """One registry per operator: tests make as many as they like."""

    def __init__(self, *, resync_seconds: float = 600.0) -> None:
        self.registry = CollectorRegistry()
        self.reconciles = Counter(
            "headrace_reconcile",
            "passes over a job, by `result`: `ok`, `conflict` (somebody wrote at the same time; it looks "
            "again), `refused` (a quota or an admission rule), `error`.",
            ["result"],
            registry=self.registry,
        )
        for result in RESULTS:
            self.reconciles.labels(result)  # from 0 on, so that the first one is an increase
        self.last_reconcile = Gauge(
            "headrace_last_reconcile_timestamp_seconds",
            "When a pass last ended; before the first one, when this process began.",
            registry=self.registry,
        )
        self.last_reconcile.set_to_current_time()
        self.resync_seconds = Gauge(
            "headrace_resync_seconds",
            "Every job gets a pass at least this often, give or take half.",
            registry=self.registry,
        )
        self.resync_seconds.set(resync_seconds)
        self.reconcile_seconds = Histogram(
            "headrace_reconcile_seconds",
            "how long a pass over a job takes.",
            buckets=_FAST,
            registry=self.registry,
        )
        self.queue_depth = Gauge("headrace_queue_depth", "Jobs that wait for a pass.", registry=self.registry)
        self.queue_oldest_seconds = Gauge(
            "headrace_queue_oldest_seconds",
            "How long the job at the head of the queue has waited.",
            registry=self.registry,
        )
        self.savepoint_failures = Counter(
            "headrace_savepoint_failures",
            "savepoints that this process has given up, by `namespace`, `job` and `reason`: "
            "`NothingToSave`, `CheckpointDamaged`, `TimeLimit`, …",
            ["namespace", "job", "reason"],
            registry=self.registry,
        )
        self.api_requests = Counter(
            "headrace_api_requests",
            "requests to the API server, by `verb`, `resource` and `code`; 0 stands for no answer.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )
        self.api_seconds = Histogram(
            "headrace_api_request_seconds",
            "how long the API server takes to answer, by `verb`.",
            ["verb"],
            buckets=_FAST,
            registry=self.registry,
        )
        self.leader = Gauge(
            "headrace_leader", "1 while this replica is the one that works.", registry=self.registry
        )
        self.watch_age_seconds = Gauge(
            "headrace_watch_age_seconds",
            "How long ago the watch of a `resource` was last heard of. `/healthz` fails at 7 minutes.",
            ["resource"],
            registry=self.registry,
        )

    def observe_pass(self, result: str, seconds: float) -> None:
        self.reconciles.labels(result).inc()
        self.reconcile_seconds.observe(seconds)
        self.last_reconcile.set_to_current_time()

    def observe_request(self, verb: str, resource: str, status: int, seconds: float) -> None:
        self.api_requests.labels(verb, resource, str(status)).inc()
        self.api_seconds.labels(verb).observe(seconds)

    def render(self) -> bytes:
        return generate_latest(self.registry)
