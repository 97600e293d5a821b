"""`kubectl streamjob` on a real API server: what is written, what the server refuses, as which user."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from headrace.api import Attempt, Run, StableRun, StreamJobSpec, StreamJobStatus, StreamSavepoint
from headrace.cli.kubectl import main
from headrace.core.manifests import RunPin, run_pin
from tests.apiserver.test_definitions import JOBS, SAVEPOINTS, a_job
from tests.cluster.api import Api
from tests.cluster.controlplane import ApiServer

CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
Plugin = Callable[..., Result]


@pytest.fixture
def plugin(api_server: ApiServer, api: Api, namespace: str) -> Plugin:
    def run(*arguments: str, stdin: str | None = None, kubeconfig: Path | None = None) -> Result:
        where = ["--kubeconfig", str(kubeconfig or api_server.kubeconfig), "-n", namespace]
        return CliRunner().invoke(main, [*arguments, *where], input=stdin, catch_exceptions=False)

    return run


def running_job(api: Api, namespace: str, name: str = "clicks", **spec: Any) -> dict[str, Any]:
    """A job with a run and its pin, as the operator leaves them."""
    made = api.create(JOBS.format(namespace), a_job(name, **spec)).need()
    attempt = Attempt(number=1, epoch=2, state="Started")
    status = StreamJobStatus(
        state="Running",
        observed_generation=1,
        run=Run(number=2, revision="abc", attempt=attempt),
        last_stable=StableRun(run=2, revision="abc"),
    )
    path = f"{JOBS.format(namespace)}/{name}"
    api.patch(f"{path}/status", {"status": status.to_manifest()}).need()
    pin = RunPin(
        namespace=namespace,
        job=name,
        job_uid=made["metadata"]["uid"],
        run=2,
        revision="abc",
        code_digest="spec",
        spec=StreamJobSpec.parse(made["spec"]),
        location="s3://acme-streams/checkpoints",
    )
    api.create(CONFIG_MAPS.format(namespace), run_pin(pin)).need()
    return made


def manifest(name: str = "clicks", **spec: Any) -> str:
    return yaml.safe_dump(a_job(name, **spec))


def stored(api: Api, namespace: str, name: str = "clicks") -> dict[str, Any]:
    return api.get(f"{JOBS.format(namespace)}/{name}").need()


def test_list_and_status(api: Api, namespace: str, plugin: Plugin):
    running_job(api, namespace)
    assert [line.split()[0] for line in plugin("list").output.splitlines()] == ["NAME", "clicks"]
    everywhere = json.loads(plugin("list", "-A", "-o", "json").output)
    assert (namespace, "clicks") in {
        (one["metadata"]["namespace"], one["metadata"]["name"]) for one in everywhere["items"]
    }
    status = plugin("status", "clicks")
    assert "run 2 · attempt 1 · epoch 2" in status.output
    assert "Did you mean clicks?" in plugin("status", "clikcs").output


def test_plan_by_the_pin_of_the_run(api: Api, namespace: str, plugin: Plugin):
    running_job(api, namespace)
    same = plugin("plan", "-f", "-", stdin=manifest())
    assert (same.exit_code, same.output.strip().endswith("nothing changes")) == (0, True)
    live = plugin("plan", "-f", "-", stdin=manifest(executors={"count": 5, "cores": 2, "memory": "4Gi"}))
    assert live.exit_code == 0 and "2 → 5" in live.output
    new_run = plugin("plan", "-f", "-", stdin=manifest(image="acme/clicks:2"))
    assert new_run.exit_code == 10
    assert "the driver that rehearsed becomes run 3" in " ".join(new_run.output.split())
    split = plugin("plan", "-f", "-", stdin=manifest(state={"partitions": 7}))
    assert split.exit_code == 10
    assert "splits its copy into 7 partitions" in " ".join(split.output.split())
    elsewhere = {"location": "s3://acme-streams/checkpoints", "s3": {"endpoint": "https://other:9000"}}
    refused = plugin("plan", "-f", "-", stdin=manifest(checkpoint=elsewhere))
    assert refused.exit_code == 20 and "StateChange" in refused.output
    # Nothing of it was applied.
    assert stored(api, namespace)["metadata"]["generation"] == 1


def test_a_rule_of_the_server_is_shown_in_our_words_and_once(api: Api, namespace: str, plugin: Plugin):
    running_job(api, namespace)
    moved = manifest(checkpoint={"location": "s3://acme-streams/other"})
    result = plugin("plan", "-f", "-", "-o", "json", stdin=moved)
    assert result.exit_code == 20
    (refusal,) = json.loads(result.output)["refusals"]
    assert refusal["reason"] == "Immutable"
    assert "put it back to s3://acme-streams/checkpoints" in refusal["message"]


def test_what_only_the_server_knows_is_refused_as_well(api: Api, namespace: str, plugin: Plugin):
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"no-latest-{namespace}"},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [
                    {
                        "apiGroups": ["headrace.dev"],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["streamjobs"],
                    }
                ],
            },
            "validations": [
                {"expression": "!object.spec.image.endsWith(':latest')", "message": "images by version only"}
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"no-latest-{namespace}"},
        "spec": {"policyName": f"no-latest-{namespace}", "validationActions": ["Deny"]},
    }
    root = "/apis/admissionregistration.k8s.io/v1"
    api.create(f"{root}/validatingadmissionpolicies", policy).need()
    api.create(f"{root}/validatingadmissionpolicybindings", binding).need()
    running_job(api, namespace)
    from tests.cluster.processes import wait_until

    def refused() -> bool:
        result = plugin("plan", "-f", "-", stdin=manifest(image="acme/clicks:latest"))
        return result.exit_code == 20 and "images by version only" in result.output

    # The server takes a moment to obey a new policy.
    assert wait_until(refused, seconds=30)


def test_steering_writes_one_field_each(api: Api, namespace: str, plugin: Plugin):
    before = running_job(api, namespace)["spec"]
    assert plugin("suspend", "clicks").exit_code == 0
    assert stored(api, namespace)["spec"] == {**before, "suspend": True}
    assert plugin("resume", "clicks").exit_code == 0
    assert stored(api, namespace)["spec"] == before
    assert plugin("restart", "clicks").exit_code == 0
    assert stored(api, namespace)["spec"].keys() - before.keys() == {"restartNonce"}


def test_rollback_is_an_annotation_that_names_the_run(api: Api, namespace: str, plugin: Plugin):
    running_job(api, namespace)
    assert plugin("rollback", "clicks").exit_code == 0
    assert stored(api, namespace)["metadata"]["annotations"]["headrace.dev/rollback"] == "2"
    assert "knows of no such run" in plugin("rollback", "clicks", "--to-run", "9").output


def test_savepoints_are_objects(api: Api, namespace: str, plugin: Plugin):
    running_job(api, namespace)
    assert plugin("savepoint", "create", "clicks", "nightly", "--no-wait").exit_code == 0
    path = f"{SAVEPOINTS.format(namespace)}/nightly"
    assert StreamSavepoint.parse(api.get(path).need()).spec.job.name == "clicks"
    assert "nightly" in plugin("savepoint", "list", "clicks").output
    assert "Taking" in plugin("savepoint", "show", "clicks", "nightly").output
    # Nobody acts here: it is asked for, and not waited for long.
    verified = plugin("savepoint", "verify", "clicks", "nightly", "--level", "State", "--timeout", "1")
    assert verified.exit_code == 2 and "is not done after 1 s; it goes on" in verified.output
    asked = api.get(path).need()["metadata"]["annotations"]["headrace.dev/verify"]
    assert asked.startswith("State@")
    location = "s3://acme-streams/elsewhere"
    assert plugin("savepoint", "import", "clicks", location, "moved", "--no-wait").exit_code == 0
    taken = plugin("savepoint", "create", "clicks", "nightly", "--no-wait")
    assert taken.exit_code == 2 and "there is a savepoint nightly already" in taken.output
    assert plugin("savepoint", "delete", "clicks", "nightly", "--yes").exit_code == 0
    assert api.get(path).status == 404


def test_a_bad_savepoint_is_refused_with_the_server_s_reason(namespace: str, plugin: Plugin):
    result = plugin("savepoint", "import", "clicks", "not a place", "x", "--no-wait")
    assert result.exit_code == 2 and "spec.path" in result.output


def test_restore_tells_a_new_job_where_to_start(api: Api, namespace: str, plugin: Plugin):
    api.create(JOBS.format(namespace), a_job(startFrom={"latest": True})).need()
    plugin("savepoint", "create", "clicks", "nightly", "--no-wait")
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Taken",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    path = f"{SAVEPOINTS.format(namespace)}/nightly/status"
    api.patch(path, {"status": {"conditions": [ready]}}).need()
    assert "starts from nightly" in plugin("savepoint", "restore", "clicks", "nightly", "--yes").output
    assert stored(api, namespace)["spec"]["startFrom"] == {"savepoint": "nightly"}


def test_a_cluster_without_headrace(bare_api: Api, api_server: ApiServer, tmp_path: Path):
    """By another path of the same server: a group that nobody serves."""
    config = json.loads(api_server.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] += "/nowhere"
    elsewhere = tmp_path / "kubeconfig"
    elsewhere.write_text(json.dumps(config))
    result = CliRunner().invoke(main, ["list", "--kubeconfig", str(elsewhere)])
    assert result.exit_code == 1 and "Headrace is not installed there" in result.output


def test_errors_on_the_way(api_server: ApiServer, tmp_path: Path):
    context = CliRunner().invoke(
        main, ["list", "--kubeconfig", str(api_server.kubeconfig), "--context", "no"]
    )
    assert context.exit_code == 1 and "there is no context no in" in context.output
    config = json.loads(api_server.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    gone = tmp_path / "kubeconfig"
    gone.write_text(json.dumps(config))
    result = CliRunner().invoke(main, ["list", "--kubeconfig", str(gone)])
    assert result.exit_code == 1 and "does not answer" in result.output
    none = CliRunner().invoke(main, ["list"], env={"KUBECONFIG": "", "HOME": str(tmp_path)})
    assert none.exit_code == 1


def test_kubectl_finds_the_plugin_and_its_completion(
    api: Api, api_server: ApiServer, namespace: str, tmp_path: Path
):
    """As people call it: programs of these names on the PATH."""
    for name, module in (("kubectl-streamjob", "kubectl"), ("kubectl_complete-streamjob", "completion")):
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}\nfrom headrace.cli.{module} import main\nmain()\n")
        program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "KUBECONFIG": str(api_server.kubeconfig),
    }
    where = ["--kubeconfig", str(api_server.kubeconfig), "-n", namespace]
    listed = subprocess.run(
        [api_server.kubectl, "streamjob", "list", *where],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert listed.stdout == f"There is no StreamJob in namespace {namespace}.\n", listed.stderr
    api.create(JOBS.format(namespace), a_job("clicks")).need()
    completed = subprocess.run(
        [api_server.kubectl, "__complete", "streamjob", "status", "-n", namespace, "cl"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert completed.stdout.splitlines() == ["clicks", ":4"], completed.stderr
