"""The chart as Helm renders it: what Prometheus' operator would find."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.runtime.alert_pages import rules
from headrace.runtime.alerts import ALERTS

CHART = Path(__file__).parents[2] / "charts/headrace"


def rendered(helm: Path, *values: str) -> dict[str, dict[str, Any]]:
    settings = [part for value in values for part in ("--set", value)]
    done = subprocess.run(
        [helm, "template", "headrace", CHART, "--namespace=headrace", "--kube-version=1.33", *settings],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in found}


def test_by_default_nothing_needs_the_prometheus_operator(helm: Path):
    assert not [one for one in rendered(helm).values() if "monitoring.coreos.com" in one["apiVersion"]]


def test_the_service_monitor_finds_the_service_and_keeps_our_labels(helm: Path):
    chart = rendered(
        helm,
        "metrics.service=false",
        "metrics.serviceMonitor.enabled=true",
        "metrics.serviceMonitor.interval=15s",
        "metrics.serviceMonitor.labels.release=stack",
    )
    monitor, service = chart["ServiceMonitor/headrace"], chart["Service/headrace-metrics"]
    assert monitor["metadata"]["labels"]["release"] == "stack"
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    # Nothing else in the chart is meant.
    others = [one for one in chart.values() if one["kind"] == "Service" and one is not service]
    assert not [one for one in others if wanted.items() <= one["metadata"]["labels"].items()]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint == {"port": service["spec"]["ports"][0]["name"], "honorLabels": True, "interval": "15s"}
    pods = chart["Deployment/headrace"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pods.items()


def test_the_rules_are_ours_as_they_are(helm: Path):
    rule = rendered(helm, "metrics.rules.enabled=true", "metrics.rules.labels.team=data")[
        "PrometheusRule/headrace"
    ]
    assert rule["spec"] == rules()
    assert rule["metadata"]["labels"]["team"] == "data"


def test_a_published_runbook_is_linked_from_every_alert(helm: Path):
    base = "https://docs.example.com/runbook"
    chart = rendered(helm, "metrics.rules.enabled=true", f"metrics.rules.runbookUrl={base}")
    groups = chart["PrometheusRule/headrace"]["spec"]["groups"]
    links = {one["alert"]: one["annotations"]["runbook_url"] for group in groups for one in group["rules"]}
    assert links == {alert.name: f"{base}#{alert.name.lower()}" for alert in ALERTS}


def test_people_get_their_rights_through_the_roles_of_kubernetes(helm: Path):
    chart = rendered(helm)
    view, edit = chart["ClusterRole/headrace-headrace-view"], chart["ClusterRole/headrace-headrace-edit"]
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert "rbac.authorization.k8s.io/aggregate-to-view" not in edit["metadata"]["labels"]
    left = rendered(helm, "userRoles.enabled=false")
    assert not [name for name in left if name.endswith(("-view", "-edit"))]


@pytest.mark.parametrize(
    "value",
    ["metrics.rules.runbookUrl=runbook", "metrics.serviceMonitor.interval=often", "metrics.podMonitor=1"],
)
def test_a_wrong_value_is_refused(helm: Path, value: str):
    with pytest.raises(AssertionError, match=value.split(".")[1].partition("=")[0]):
        rendered(helm, value)
