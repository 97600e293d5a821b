"""The operator's own web application, scraped by a real Prometheus as the reference tells to."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.runtime.alerts import ALERTS
from headrace.runtime.health import Health, web_application
from headrace.runtime.job_metrics import JobMetrics, JobSample
from headrace.runtime.metrics import Metrics
from headrace_jobs.harness.view import iso
from tests.cluster.console import MissingError
from tests.cluster.controlplane import LOOPBACK, free_ports
from tests.cluster.prometheus import Prometheus, running_prometheus
from tests.unit.runtime.test_monitor import a_report

ROOT = Path(__file__).parents[2]
EXPR = {alert.name: alert.expr for alert in ALERTS}


class OperatorStandIn:
    """Everything that serves metrics is real; only the jobs are not."""

    def __init__(self) -> None:
        self.metrics, self.jobs = Metrics(), JobMetrics(lambda: datetime.now(UTC))
        self.metrics.registry.register(self.jobs)
        self.health = Health(
            clock=time.monotonic, leads=lambda: True, queue_wait=lambda: 0.0, lease_silence=lambda: 0.0
        )

    def has(self, name: str, spec: dict[str, Any], **query: Any) -> None:
        parsed = StreamJobSpec.parse({"application": {"file": "job.py"}, **spec})
        self.jobs.set(("shop", name), JobSample(parsed, StreamJobStatus(), a_report(**query)))

    @contextmanager
    def serving(self) -> Iterator[str]:
        (port,) = free_ports(1)
        loop, runner = asyncio.new_event_loop(), web.AppRunner(web_application(self.health, self.metrics))
        loop.run_until_complete(runner.setup())
        loop.run_until_complete(web.TCPSite(runner, LOOPBACK, port).start())
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield f"{LOOPBACK}:{port}"
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.run_until_complete(runner.cleanup())
            loop.close()


def documented_scrape(target: str) -> dict[str, Any]:
    """The one of the reference page, with a target of ours in place of a cluster's name."""
    page = (ROOT / "docs/reference/metrics.md").read_text()
    text = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert text is not None
    (scrape,) = yaml.safe_load(text[1])["scrape_configs"]
    del scrape["dns_sd_configs"]
    return {**scrape, "static_configs": [{"targets": [target]}]}


@pytest.fixture
def operator() -> OperatorStandIn:
    return OperatorStandIn()


@pytest.fixture
def prometheus(operator: OperatorStandIn, tmp_path: Path) -> Iterator[Prometheus]:
    rules = ROOT / "charts/headrace/files/alerts.yaml"
    try:
        with (
            operator.serving() as target,
            running_prometheus(tmp_path, [documented_scrape(target)], rules=rules) as running,
        ):
            yield running
    except MissingError as missing:
        pytest.exit(str(missing), returncode=2)


def test_what_the_operator_serves_makes_the_alerts_true(operator: OperatorStandIn, prometheus: Prometheus):
    minutes_ago = datetime.now(UTC) - timedelta(minutes=5)
    behind = {"rows": 42, "files": None, "behindSince": iso(minutes_ago.timestamp())}
    operator.has("late", {"autoscaling": {"max": 2, "lagObjective": "1m"}}, lag=behind)
    operator.has("patient", {"autoscaling": {"max": 2, "lagObjective": "1h"}}, lag=behind)
    operator.has("hanging", {}, stuck=True, lag={"rows": 0, "files": None})

    ((labels, value),) = prometheus.wait_for(EXPR["HeadraceLagOverObjective"])
    assert (labels["namespace"], labels["job"], labels["query"]) == ("shop", "late", "counts")
    assert 300 <= value < 400
    ((labels, _),) = prometheus.wait_for(EXPR["HeadraceBatchStuck"])
    assert labels["job"] == "hanging"
    assert prometheus.query("headrace_jobs") == [({**_target(prometheus), "__name__": "headrace_jobs"}, 3.0)]
    # One that need not last is fired by Prometheus itself.
    prometheus.wait_for('ALERTS{alertname="HeadraceBatchStuck", alertstate="firing"}')
    firing = [one["labels"] for one in prometheus.alerts() if one["state"] == "firing"]
    assert [(one["alertname"], one["job"]) for one in firing] == [("HeadraceBatchStuck", "hanging")]

    # What is gone is gone with the next scrape, not when its series grow old.
    operator.jobs.forget(("shop", "hanging"))
    prometheus.wait_for("headrace_jobs == 2")
    assert prometheus.query('{job="hanging", __name__=~"headrace_.*"}') == []
    assert prometheus.query(EXPR["HeadraceBatchStuck"]) == []


def _target(prometheus: Prometheus) -> dict[str, str]:
    ((labels, _),) = prometheus.query("up")
    return {"job": labels["job"], "instance": labels["instance"]}


def test_every_expression_can_be_asked(operator: OperatorStandIn, prometheus: Prometheus):
    """On what a healthy operator serves, each alert is a question with an answer, and the answer is no."""
    now = iso(datetime.now(UTC).timestamp())
    calm = {"lag": {"rows": 0, "files": None}, "lastProgressAt": now, "lastCommitAt": now}
    operator.has("calm", {"objectives": {"latency": "10s"}, "autoscaling": {"max": 2}}, **calm)
    prometheus.wait_for('headrace_job_lag_seconds{job="calm"}')
    assert {name: prometheus.query(expr) for name, expr in EXPR.items()} == {name: [] for name in EXPR}
