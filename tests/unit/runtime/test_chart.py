"""The chart against the code: the rights it gives, the metrics its alerts use, the values it takes."""

import copy
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.kube.resources import CONFIG_MAPS, PODS, STREAM_SAVEPOINTS
from headrace.runtime.job_metrics import JobMetrics, JobSample
from headrace.runtime.metrics import Metrics
from headrace.runtime.options import parse_options
from headrace.runtime.watches import WATCHED_CHILDREN
from tests.sim.kube.cluster import NAMESPACE, FakeCluster
from tests.sim.kube.test_faults import SPEC, story
from tests.unit.runtime.test_monitor import a_report

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts/headrace"
HELPERS = (CHART / "templates/_helpers.tpl").read_text()


def operator_rules() -> set[tuple[str, str]]:
    text = re.search(r'define "headrace.operatorRules" -}}\n(.*?){{- end }}', HELPERS, re.DOTALL)
    assert text is not None
    return {
        (verb, resource)
        for rule in yaml.safe_load(text[1])
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def rights_used() -> set[tuple[str, str]]:
    """By a life with all the accidents that need a right of their own."""
    cluster = FakeCluster({"application": {"configMap": {"name": "code"}}, "restart": SPEC["restart"]})
    code = {"metadata": {"name": "code", "namespace": NAMESPACE}, "data": {"job.py": "print(1)"}}
    cluster.api.put_new(CONFIG_MAPS, code)
    # The answer to the creation of the driver pod is lost; watch and list that follow are behind the times.
    cluster.api.faults = [None] * 6 + ["lost"]
    cluster.pass_once()
    behind = {place: one for place, one in cluster.api.objects.items() if place[0] != PODS.plural}
    cluster.watch_pace, cluster.api.stale_lists = 0, copy.deepcopy(behind)
    cluster.pass_once()
    cluster.watch_pace, cluster.api.stale_lists = None, None
    story(cluster)
    for _ in range(2):
        # The same sentence again: by the same process, then by another.
        place = cluster.driver_place()
        labels = {**cluster.api.objects[place]["metadata"]["labels"], "headrace.dev/role": "executor"}
        executor = {"name": f"executor-{place[2]}", "namespace": NAMESPACE, "labels": labels}
        cluster.api.put_new(PODS, {"metadata": executor})
        cluster.later(600)
        cluster.end_driver(place, "QueryFailed", 66, "boom")
        cluster.pass_once()
        cluster.operator = cluster.new_operator()
        cluster.settle()
    for evictions in ("Block", "Allow"):
        cluster.edit(driver={"evictions": evictions})
        cluster.settle()
    # A driver pod that cannot mount its volumes: why is told by Events only.
    waiting = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    cluster.api.set(cluster.driver_place(), {"status": {**waiting, "containerStatuses": []}})
    cluster.later(60)
    cluster.pass_once()
    for place in [place for place in cluster.api.objects if place[2].startswith("executor-")]:
        cluster.api.remove(place)
    for name in cluster.api.of(STREAM_SAVEPOINTS):
        cluster.create_savepoint(f"{name}-more", cause="Schedule")
    cluster.edit(deletionPolicy="Delete", savepoints={"keep": 1})
    cluster.settle()
    cluster.delete_job()
    cluster.settle()
    assert cluster.removed
    start = FakeCluster({"application": {"file": "job.py"}, "startFrom": {"savepoint": "nightly"}})
    start.add_savepoint("nightly", path="s3://streams/nightly")
    start.settle()
    warm = FakeCluster({"application": {"file": "job.py"}, "upgrade": {"strategy": "Rehearsed"}})
    warm.settle()
    warm.edit(application={"args": ["--x"]})
    warm.settle(200)
    assert warm.agents.orders
    return cluster.api.rights | start.api.rights | warm.api.rights


def test_the_operator_may_do_what_it_does_and_nothing_else():
    needed = rights_used()
    # kopf's part, and what owning an object takes.
    needed |= {("watch", kind) for kind in ("streamjobs", "streamsavepoints", *WATCHED_CHILDREN)}
    needed |= {("update", "streamjobs/finalizers"), ("update", "streamsavepoints/finalizers")}
    assert operator_rules() == needed


def test_secrets_can_be_made_but_never_read_or_removed():
    assert {verb for verb, resource in operator_rules() if resource == "secrets"} == {"create"}


def test_no_right_is_given_by_a_star():
    given = re.compile(r"^ *-? *(verbs|resources|apiGroups): .*$", re.MULTILINE)
    lines = [line[0] for file in (CHART / "templates").iterdir() for line in given.finditer(file.read_text())]
    assert len(lines) > 20
    assert not [line for line in lines if "*" in line]


def exposed_metrics() -> set[str]:
    metrics, jobs = Metrics(), JobMetrics(lambda: datetime.now(UTC))
    metrics.registry.register(jobs)
    spec = StreamJobSpec.parse({"application": {"file": "job.py"}, "trigger": {"interval": "1s"}})
    jobs.set(("shop", "clicks"), JobSample(spec, StreamJobStatus(), a_report()))
    return {line.split()[2] for line in metrics.render().decode().splitlines() if line.startswith("# TYPE")}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((CHART / "files/alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_is_about_something_that_is_measured(rule: dict[str, Any]):
    used = set(re.findall(r"headrace_\w+", rule["expr"]))
    assert used
    assert used <= exposed_metrics()
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert {"summary", "description"} <= rule["annotations"].keys()


def test_every_metric_is_documented():
    page = (ROOT / "docs/reference/metrics.md").read_text()
    documented = set(re.findall(r"`(headrace_\w+)`", page))
    assert documented == {name for name in exposed_metrics() if not name.endswith("_created")}


def test_the_values_obey_their_schema():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.validate(values, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**values, "replica": 3}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**values, "jobs": {"checkpointLocation": "bucket"}}, schema)


def test_the_operator_understands_every_flag_of_the_chart(tmp_path: Path):
    deployment = (CHART / "templates/deployment.yaml").read_text()
    flags = set(re.findall(r"- (--[a-z-]+)=", deployment))
    assert {"--job-image", "--token-key-file", "--lease-name"} <= flags
    values = {
        "--workers": "3",
        "--resync-seconds": "60",
        "--log-level": "info",
        "--image-pull-policy": "Always",
    }
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    values["--token-key-file"] = str(key)
    options = parse_options([f"{flag}={values.get(flag, 'a')}" for flag in sorted(flags)])
    assert (options.workers, options.token_key, options.namespaces) == (3, b"0123456789abcdef", ("a",))
    key.write_text("short")
    with pytest.raises(SystemExit, match="at least 16"):
        parse_options([f"{flag}={values.get(flag, 'a')}" for flag in sorted(flags)])
