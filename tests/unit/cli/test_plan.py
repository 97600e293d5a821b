"""`kubectl streamjob plan` against a fake cluster, and the figures that it rests on."""

import json
from pathlib import Path

from headrace.cli.cluster import Answer, Cluster
from headrace.kube.resources import CONFIG_MAPS, PODS, STREAM_SAVEPOINTS
from tests.unit.cli.fakes import (
    NAMESPACE,
    Run_,
    a_manifest,
    add_job,
    api_of,
    in_yaml,
    pin,
    transport_of,
)
from tests.unit.cli.samples import FINE, a_savepoint

# ---- plan


def test_plan_compares_with_what_the_run_was_pinned_with(cluster: Cluster, kubectl: Run_, tmp_path: Path):
    job = add_job(cluster, status=FINE, image="acme/clicks:2")
    pin(cluster, job, image="acme/clicks:1.4.2")
    file = tmp_path / "job.yaml"
    file.write_text(in_yaml(a_manifest(image="acme/clicks:1.4.2")))
    same = kubectl("plan", "-f", str(file))
    assert (same.exit_code, "nothing changes" in same.output) == (0, True)
    file.write_text(in_yaml(a_manifest(image="acme/clicks:3")))
    result = kubectl("plan", "-f", str(file))
    assert result.exit_code == 10
    assert '"acme/clicks:1.4.2" → "acme/clicks:3"' in result.output
    assert "the driver that rehearsed becomes run 5" in " ".join(result.output.split())


def test_plan_from_standard_input_for_programs(cluster: Cluster, kubectl: Run_):
    pin(cluster, add_job(cluster, status=FINE))
    text = in_yaml(a_manifest(executors={"count": 5}))
    told = json.loads(kubectl("plan", "-f", "-", "-o", "json", stdin=text).output)
    assert told["verdict"] == "Live"
    assert told["changes"] == [{"field": "spec.executors.count", "class": "live", "from": "1", "to": "5"}]


def test_plan_without_a_readable_pin_says_so(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FINE)
    assert "could not be read" in kubectl("plan", "-f", "-", stdin=in_yaml(a_manifest())).output


def test_plan_of_a_bad_manifest_shows_the_line(kubectl: Run_):
    bad = in_yaml(a_manifest()).replace('"image"', '"imgae"')
    result = kubectl("plan", "-f", "-", stdin=bad)
    assert result.exit_code == 20
    assert "there is no such field" in result.output and "fix:" in result.output


def test_plan_shows_the_server_s_refusal_in_our_words(cluster: Cluster, kubectl: Run_):
    pin(cluster, add_job(cluster, status=FINE))
    message = (
        'StreamJob.headrace.dev "clicks" is invalid: spec.executors: Invalid value: "object": too many for '
        "this cluster"
    )
    transport_of(cluster).dry_run = Answer(422, {"kind": "Status", "message": message})
    result = kubectl("plan", "-f", "-", stdin=in_yaml(a_manifest()))
    assert result.exit_code == 20
    assert "Invalid: spec.executors: too many for this cluster" in result.output


def test_plan_without_the_right_to_apply_is_still_a_plan(cluster: Cluster, kubectl: Run_):
    pin(cluster, add_job(cluster, status=FINE))
    transport_of(cluster).forbidden.add(("patch", "streamjobs"))
    result = kubectl("plan", "-f", "-", stdin=in_yaml(a_manifest(image="acme/clicks:2")))
    assert result.exit_code == 10
    assert "was not asked for a dry run: you may not patch" in result.output


def test_plan_of_a_new_job(cluster: Cluster, kubectl: Run_):
    result = kubectl("plan", "-f", "-", stdin=in_yaml(a_manifest()))
    assert result.exit_code == 10 and "a new job" in result.output
    missing = in_yaml(a_manifest(startFrom={"savepoint": "nightly"}))
    refused = kubectl("plan", "-f", "-", stdin=missing)
    assert refused.exit_code == 20 and "there is no StreamSavepoint nightly" in refused.output
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    assert kubectl("plan", "-f", "-", stdin=missing).exit_code == 10


def test_plan_sees_code_in_a_config_map(cluster: Cluster, kubectl: Run_):
    application = {"configMap": {"name": "code"}}
    job = add_job(cluster, status=FINE, application=application)
    pin(cluster, job, code="of yesterday", application=application)
    manifest = in_yaml(a_manifest(application=application))
    assert "there is no ConfigMap code" in kubectl("plan", "-f", "-", stdin=manifest).output
    body = {"metadata": {"name": "code", "namespace": NAMESPACE}, "data": {"job.py": "print(1)\n"}}
    api_of(cluster).put_new(CONFIG_MAPS, body)
    result = kubectl("plan", "-f", "-", stdin=manifest)
    assert result.exit_code == 10 and "other code than what runs" in result.output
    # The same file may bring the code along: it is what counts.
    beside = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "code"},
        "data": {"job.py": "a b"},
    }
    both = f"{manifest}\n---\n{in_yaml(beside)}\n"
    broken = kubectl("plan", "-f", "-", stdin=both)
    assert broken.exit_code == 20 and "CodeProblem: job.py:1: invalid syntax" in broken.output


def test_the_gravest_of_several_plans_is_the_exit_code(cluster: Cluster, kubectl: Run_):
    pin(cluster, add_job(cluster, status=FINE))
    orders = add_job(cluster, "orders", status=FINE)
    pin(cluster, orders)
    moved = a_manifest("orders", checkpoint={"s3": {"endpoint": "https://s3.example.com"}})
    two = f"{in_yaml(a_manifest())}\n---\n{in_yaml(moved)}\n"
    assert kubectl("plan", "-f", "-", stdin=two).exit_code == 20


def test_plan_offline(kubectl: Run_, tmp_path: Path):
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(in_yaml(a_manifest()))
    new.write_text(in_yaml(a_manifest(image="acme/clicks:2")))
    result = kubectl("plan", "-f", str(new), "--against", str(old))
    assert result.exit_code == 10 and "nothing is known of what runs" in result.output
    assert "run 3 follows with the version of run 1" in " ".join(result.output.split())
    kept = {**a_manifest(), "status": FINE.to_manifest()}
    old.write_text(in_yaml(kept))
    told = kubectl("plan", "-f", str(new), "--against", str(old)).output
    assert "becomes run 5" in " ".join(told.split())
    old.write_text(in_yaml(a_manifest("other")))
    assert "that is another job" in kubectl("plan", "-f", str(new), "--against", str(old)).output


def test_plan_refuses_two_namespaces(cluster: Cluster, kubectl: Run_):
    manifest = a_manifest()
    manifest["metadata"]["namespace"] = "web"
    result = kubectl("plan", "-f", "-", "-n", "shop", stdin=in_yaml(manifest))
    assert result.exit_code == 1 and "leave one of them out" in result.output


# ---- figures


METRICS = """\
# HELP headrace_job_ready 1 if the condition `Ready` is true.
headrace_job_batch_duration_seconds{job="clicks",namespace="shop",query="a"} 4.0
headrace_job_batch_duration_seconds{job="clicks",namespace="shop",query="b"} 1.5
headrace_job_batch_duration_seconds{job="clicks",namespace="web",query="a"} 99.0
headrace_job_input_rows_per_second{job="clicks",namespace="shop",query="a"} 1000.0
headrace_job_input_rows_per_second{job="clicks",namespace="shop",query="b"} 400.0
headrace_job_processed_rows_per_second{job="clicks",namespace="shop",query="a"} 2800.0
headrace_job_sink{job="clicks",namespace="shop",query="a",sink="kafka"} 1.0
headrace_job_sink{job="clicks",namespace="shop",query="b",sink="filesink"} 1.0
headrace_leader 1.0
"""


def an_operator(cluster: Cluster, metrics: str = METRICS) -> None:
    """Two replicas: one waits, and knows nothing."""
    labels = {"app.kubernetes.io/name": "headrace", "app.kubernetes.io/component": "operator"}
    for name in ("headrace-a", "headrace-b"):
        body = {"metadata": {"name": name, "namespace": "headrace", "labels": labels}}
        api_of(cluster).put_new(PODS, body)
    transport_of(cluster).logs |= {
        "headrace-a:8080": ["headrace_leader 0.0"],
        "headrace-b:8080": metrics.split("\n"),
    }


def test_rates_come_from_the_operator_s_metrics(cluster: Cluster, kubectl: Run_):
    pin(cluster, add_job(cluster, status=FINE))
    an_operator(cluster)
    assert "1,400 rows/s come in · 2,800 rows/s while it works · last batch 4.00 s" in (
        kubectl("status", "clicks").output
    )
    told = json.loads(
        kubectl("plan", "-f", "-", "-o", "json", stdin=in_yaml(a_manifest(image="acme/clicks:3"))).output
    )
    assert told["sinksKnown"] and [row["sink"] for row in told["guarantees"]] == ["files", "Kafka"]
    assert told["catchUp"]["text"].startswith("at least 1 times as long as the gap")


def test_without_the_right_to_read_them_they_are_unknown(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FINE)
    an_operator(cluster)
    transport_of(cluster).forbidden.add(("get", "pods/proxy"))
    assert "rows/s while" not in kubectl("status", "clicks").output
    transport_of(cluster).forbidden = {("list", "pods")}
    shown = kubectl("status", "clicks")
    assert shown.exit_code == 0 and "rows/s while" not in shown.output
