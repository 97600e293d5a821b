"""The least Kubernetes is the same wherever it is said, and what the CRDs ask for."""

import re
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.provider import LEAST_KUBERNETES

ROOT = Path(__file__).parents[3]
LEAST = ".".join(map(str, LEAST_KUBERNETES))

# What a rule may call on every server that is new enough. CEL's own, and Kubernetes' quantities (introduced
# in 1.28; a server takes new rules only with what the version before it knew, too).
KNOWN_TO_THE_LEAST = {
    *("all", "exists", "exists_one", "has", "size", "startsWith", "endsWith", "matches", "duration"),
    *("quantity", "isLessThan", "isGreaterThan", "add"),
}


def test_chart_docs_and_tests_name_the_same():
    chart = yaml.safe_load((ROOT / "charts/headrace/Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={LEAST}.0-0"
    for page in ("docs/how-to/install.md", "docs/contributing/cluster.md"):
        named = re.findall(r"Kubernetes (?:≥ )?(1\.\d+)", (ROOT / page).read_text())
        assert LEAST in named, page
        assert [version for version in named if version < LEAST] == [], page


def test_no_rule_calls_what_a_server_of_that_version_does_not_know():
    rules = [
        rule for file in (ROOT / "crds").glob("*.yaml") for rule in _rules(yaml.safe_load(file.read_text()))
    ]
    assert rules
    called = {name for rule in rules for name in re.findall(r"(\w+)\(", re.sub(r"'[^']*'", "''", rule))}
    assert called <= KNOWN_TO_THE_LEAST, "another function may need a newer Kubernetes: see its documentation"


def _rules(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [rule for one in schema for rule in _rules(one)]
    if not isinstance(schema, dict):
        return []
    own = [one["rule"] for one in schema.get("x-kubernetes-validations", []) if isinstance(one, dict)]
    return own + [rule for below in schema.values() for rule in _rules(below)]
