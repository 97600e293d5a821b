"""The roles that the chart makes for people, against what the commands ask for."""

import re
from pathlib import Path
from typing import Any

import yaml

from headrace.cli.cluster import Cluster
from headrace.kube.resources import STREAM_SAVEPOINTS
from tests.unit.cli.fakes import Run_, a_manifest, add_job, api_of, in_yaml, transport_of
from tests.unit.cli.samples import FINE, a_savepoint
from tests.unit.cli.test_savepoint_objects import ASKED, backend

TEMPLATE = Path(__file__).parents[3] / "charts/headrace/templates/user-roles.yaml"
LOOKING = (
    ("list",), ("list", "-A"), ("status", "clicks"), ("history", "clicks"), ("events", "clicks"),
    ("savepoint", "list", "clicks"), ("savepoint", "show", "clicks", "nightly"),
)  # fmt: skip
STEERING = (
    ("suspend", "clicks"), ("resume", "clicks"), ("restart", "clicks"), ("rollback", "clicks"),
    ("savepoint", "create", "clicks", "now", "--no-wait"),
    ("savepoint", "restore", "clicks", "nightly", "--yes"),
    ("savepoint", "delete", "clicks", "nightly", "--yes"),
)  # fmt: skip


def roles() -> dict[str, dict[str, Any]]:
    """By the word at the end of their names, without what only Helm can fill in."""
    text = re.sub(r"{{-? (if|end|include)[^}]*}}", "", TEMPLATE.read_text())
    text = re.sub(r"{{[^}]*}}", "x", text)
    return {one["metadata"]["name"].rpartition("-")[2]: one for one in yaml.safe_load_all(text) if one}


def rights(role: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (verb, resource) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]
    }


def used(cluster: Cluster, kubectl: Run_, commands: tuple[tuple[str, ...], ...]) -> set[tuple[str, str]]:
    add_job(cluster, status=FINE)
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly", verified={"level": "Objects"}))
    for command in commands:
        result = kubectl(*command)
        assert result.exit_code == 0, (command, result.output)
    kubectl("plan", "-f", "-", stdin=in_yaml(a_manifest()))
    return asked_of(cluster)


def asked_of(cluster: Cluster) -> set[tuple[str, str]]:
    asked = {
        (verb, re.sub(r".*/(stream\w+)(/.*)?$", r"\1", path)) for verb, path in transport_of(cluster).asked
    }
    return {(verb, plural) for verb, plural in asked if plural.startswith("stream")}


def test_who_may_view_can_look(cluster: Cluster, kubectl: Run_):
    needed = used(cluster, kubectl, LOOKING) - {("patch", "streamjobs")}  # a plan does without the dry run
    assert needed <= rights(roles()["view"])


def test_who_may_edit_can_steer(cluster: Cluster, kubectl: Run_):
    needed = used(cluster, kubectl, STEERING)
    assert ("create", "streamsavepoints") in needed
    assert needed <= rights(roles()["view"]) | rights(roles()["edit"])


def test_who_may_edit_can_have_a_savepoint_checked(cluster: Cluster):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    answer = {"asked": ASKED, "level": "State", "message": "all there"}
    backend(cluster, iter([{"check": answer}])).verify("nightly", "State")
    assert ("patch", "streamsavepoints") in asked_of(cluster)
    assert asked_of(cluster) <= rights(roles()["view"]) | rights(roles()["edit"])


def test_they_are_added_to_the_roles_of_kubernetes():
    added = {
        name: {
            key.partition("aggregate-to-")[2] for key in role["metadata"]["labels"] if "aggregate-to" in key
        }
        for name, role in roles().items()
    }
    assert added == {"view": {"view", "edit", "admin"}, "edit": {"edit", "admin"}}


def test_nobody_is_given_the_operator_s_own():
    for role in roles().values():
        assert not [right for right in rights(role) if right[1].endswith("/status") and right[0] != "get"]
