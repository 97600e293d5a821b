"""The chart's alerts, judged by Prometheus' own promtool."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.runtime.alerts import ALERTS, Alert
from tests.prometheus.cases import CASES, Case

RULES = Path(__file__).parents[2] / "charts/headrace/files/alerts.yaml"
BY_NAME = {alert.name: alert for alert in ALERTS}


def test_prometheus_understands_the_rules(promtool: Path):
    done = subprocess.run(
        [promtool, "check", "rules", "--lint=all", "--lint-fatal", RULES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


@pytest.mark.parametrize("alert", BY_NAME)
def test_every_alert_is_seen_firing_and_silent(alert: str):
    kinds = Counter(case.fires is not None for case in CASES if case.alert == alert)
    assert kinds[True] >= 1
    assert kinds[False] >= 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.why}")
def test_it_fires_when_it_should_and_only_then(case: Case, promtool: Path, tmp_path: Path):
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump(as_promtool_test(case)))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def as_promtool_test(case: Case) -> dict[str, Any]:
    expected = [] if case.fires is None else [expected_alert(case, BY_NAME[case.alert], case.fires)]
    at = f"{case.at_minutes}m"
    return {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
                "alert_rule_test": [{"eval_time": at, "alertname": case.alert, "exp_alerts": expected}],
            }
        ],
    }


def expected_alert(case: Case, alert: Alert, summary: str) -> dict[str, Any]:
    described = re.sub(r"{{ \$labels\.(\w+) }}", lambda found: case.labels[found[1]], alert.description)
    described = described.replace("{{ $value | humanizeDuration }}", case.value)
    return {
        "exp_labels": {"severity": alert.severity, **case.labels},
        "exp_annotations": {
            "summary": summary,
            "description": described,
            "runbook": f"docs/runbooks/index.md#{alert.name.lower()}",
        },
    }
