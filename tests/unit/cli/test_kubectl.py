"""`kubectl streamjob` against a fake cluster: what the commands do, refuse, and suggest."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from headrace.api import Condition, Run
from headrace.cli.cluster import Answer, Cluster
from headrace.cli.completion import candidates
from headrace.core.manifests import RunPin, run_pin
from headrace.kube.resources import CONFIG_MAPS, EVENTS, PODS, STREAM_JOBS, STREAM_SAVEPOINTS
from tests.unit.cli.fakes import NAMESPACE, NOW, a_manifest, add_job, api_of, in_yaml, transport_of
from tests.unit.cli.samples import FAILING, FINE, SUSPENDED, UPGRADING, a_run, a_savepoint, a_status

Run_ = Callable[..., Result]


def stored(cluster: Cluster, name: str = "clicks") -> dict[str, Any]:
    return api_of(cluster).objects[(STREAM_JOBS.plural, NAMESPACE, name)]


def pin(cluster: Cluster, job: dict[str, Any], *, run: int = 4, code: str = "spec", **spec: Any) -> None:
    """Keeps what a run was pinned with, as the operator does."""
    from headrace.api import StreamJobSpec

    kept = RunPin(
        namespace=NAMESPACE,
        job=job["metadata"]["name"],
        job_uid=job["metadata"]["uid"],
        run=run,
        revision="abc",
        code_digest=code,
        spec=StreamJobSpec.parse(a_manifest(**spec)["spec"]),
        location="s3://acme",
    )
    api_of(cluster).put_new(CONFIG_MAPS, run_pin(kept))


# ---- list


def test_list_shows_all_jobs_and_what_is_worth_a_look(cluster: Cluster, kubectl: Run_):
    add_job(cluster, "clicks", status=FINE)
    add_job(cluster, "orders", status=FAILING)
    lines = kubectl("list").output.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "clicks", "orders"]
    assert "QueryFailed: job.py:14" in lines[2] and "QueryFailed" not in lines[1]


def test_list_over_all_namespaces_and_as_get(cluster: Cluster, kubectl: Run_):
    add_job(cluster, "clicks", status=FINE)
    add_job(cluster, "web", namespace="web", status=FINE)
    assert "web" not in kubectl("get").output
    assert [line.split()[0] for line in kubectl("get", "-A").output.splitlines()] == [
        "NAMESPACE",
        "shop",
        "web",
    ]


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_list_for_programs(cluster: Cluster, kubectl: Run_, output: str, load: Callable[[str], Any]):
    add_job(cluster, status=FINE)
    found = load(kubectl("list", "-o", output).output)
    assert [one["metadata"]["name"] for one in found["items"]] == ["clicks"]
    assert kubectl("list", "-o", "name").output == "clicks\n"


def test_an_empty_namespace(kubectl: Run_):
    assert kubectl("list").output == "There is no StreamJob in namespace shop.\n"
    assert kubectl("list", "-o", "name").output == ""


# ---- status


def test_status_answers_by_its_exit_code_as_well(cluster: Cluster, kubectl: Run_):
    add_job(cluster, "clicks", status=FINE)
    add_job(cluster, "orders", status=FAILING)
    fine, failing = kubectl("status", "clicks"), kubectl("status", "orders")
    assert (fine.exit_code, failing.exit_code) == (0, 1)
    assert "✔ Running" in fine.output
    assert "kubectl streamjob logs orders -n shop --previous" in failing.output
    assert json.loads(kubectl("status", "clicks", "-o", "json").output)["status"]["state"] == "Running"


def test_status_shows_the_newest_good_savepoint(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FINE)
    older = a_savepoint("older", completedAt="2026-05-01T08:00:00Z")
    api_of(cluster).put_new(STREAM_SAVEPOINTS, older)
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("newer"))
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("foreign", job="orders"))
    assert "newer" in kubectl("status", "clicks").output
    transport_of(cluster).forbidden.add(("list", "streamsavepoints"))
    assert "clicks-0300" in kubectl("status", "clicks").output


def test_a_status_of_another_version_is_no_reason_to_fail(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FINE)
    stored(cluster)["status"] = {"state": "Running", "run": {"number": "four"}, "surprise": 1}
    assert "Running" in kubectl("status", "clicks").output


# ---- what goes wrong on the way to the cluster


def test_a_near_miss_is_suggested(cluster: Cluster, kubectl: Run_):
    add_job(cluster, "clicks-by-page")
    result = kubectl("status", "click-by-page")
    assert result.exit_code == 1
    assert "Did you mean clicks-by-page?" in result.output


def test_a_job_of_another_namespace_is_found(cluster: Cluster, kubectl: Run_):
    add_job(cluster, "orders", namespace="web")
    assert "There is one in web: say -n web" in kubectl("status", "orders").output
    assert kubectl("status", "orders", "-n", "web", "-o", "json").exit_code == 0


def test_what_there_is_instead(cluster: Cluster, kubectl: Run_):
    assert "nor any other" in kubectl("history", "x").output
    add_job(cluster, "orders")
    assert "There are: orders" in kubectl("history", "zzz").output


def test_headrace_is_not_installed(cluster: Cluster, kubectl: Run_):
    transport_of(cluster).unknown.add("streamjobs")
    result = kubectl("list")
    assert result.exit_code == 1
    assert "(test) has no streamjobs: Headrace is not installed there" in result.output


def test_missing_rights_name_verb_resource_and_whom_to_ask(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FINE)
    transport_of(cluster).forbidden |= {("list", "streamjobs"), ("patch", "streamjobs")}
    reading, writing = kubectl("list"), kubectl("suspend", "clicks")
    assert reading.exit_code == writing.exit_code == 1
    assert "you may not list streamjobs.headrace.dev in namespace shop" in reading.output
    assert "ClusterRole view" in reading.output
    assert "kubectl auth can-i patch streamjobs.headrace.dev -n shop" in writing.output
    assert "ClusterRole edit" in writing.output
    assert stored(cluster)["spec"].get("suspend") is None


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "does not know you: log in again"),
        (503, "does not answer: overloaded"),
        (500, "does not answer"),
    ],
)
def test_a_server_that_cannot(
    cluster: Cluster, kubectl: Run_, monkeypatch: pytest.MonkeyPatch, status: int, said: str
):
    answer = Answer(status, {"kind": "Status", "message": "overloaded"})
    monkeypatch.setattr(transport_of(cluster), "request", lambda *_, **__: answer)
    result = kubectl("list")
    assert result.exit_code == 1 and said in result.output


# ---- history and events


def test_history_and_how_to_go_back(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FINE)
    shown = kubectl("history", "clicks").output
    assert "RolledBack" in shown and "rollback clicks --to-run N" in shown
    told = json.loads(kubectl("history", "clicks", "-o", "json").output)
    assert [entry["run"] for entry in told["history"]] == [3, 2]


def test_events_of_the_job_and_its_pods_only(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FINE)
    for number, (kind, name) in enumerate(
        [("StreamJob", "clicks"), ("Pod", "clicks-r4-a1"), ("Pod", "clicks-raw-r1-a1"), ("Pod", "other")]
    ):
        event = {
            "metadata": {"name": f"e{number}", "namespace": NAMESPACE},
            "involvedObject": {"kind": kind, "name": name},
            "reason": f"R{number}",
            "message": "m",
            "lastTimestamp": f"2026-05-01T11:0{9 - number}:00Z",
        }
        api_of(cluster).put_new(EVENTS, event)
    told = json.loads(kubectl("events", "clicks", "-o", "json").output)
    # Oldest first.
    assert [one["reason"] for one in told["items"]] == ["R1", "R0"]
    assert "clicks-r4-a1" in kubectl("events", "clicks").output
    add_job(cluster, "quiet")
    assert "There is none" in kubectl("events", "quiet").output


# ---- logs


def test_the_log_of_the_driver_and_of_the_one_before(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=a_status(run=a_run(attempt=4), last_termination=FAILING.last_termination))
    transport_of(cluster).logs = {"clicks-r4-a4": ["one", "two"], "clicks-r4-a3": ["boom"]}
    assert kubectl("logs", "clicks").output == "one\ntwo\n"
    assert kubectl("logs", "clicks", "--tail", "1").output == "two\n"
    assert kubectl("logs", "clicks", "--previous").output == "boom\n"


def test_a_log_whose_pod_is_gone_is_kept_in_the_store(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FAILING)
    result = kubectl("logs", "clicks", "--previous")
    assert result.exit_code == 1
    assert "run-4/_logs/attempt-3.log" in result.output


def test_a_driver_that_has_not_started(cluster: Cluster, kubectl: Run_):
    add_job(cluster, "new")
    add_job(cluster, "clicks", status=FINE)
    waiting = {"kind": "Status", "message": 'container "driver" in pod "x" is waiting to start: Pending'}
    transport_of(cluster).logs = {"clicks-r4-a1": Answer(400, waiting)}
    assert "has had no driver yet" in kubectl("logs", "new").output
    assert "has not started yet. Why: kubectl streamjob events clicks" in kubectl("logs", "clicks").output
    assert "no attempt of new has ended" in kubectl("logs", "new", "-p").output


def test_followed_logs_go_on_with_the_next_attempt(
    cluster: Cluster, kubectl: Run_, monkeypatch: pytest.MonkeyPatch
):
    add_job(cluster, status=FAILING)
    transport_of(cluster).logs = {"clicks-r4-a3": ["boom"], "clicks-r4-a4": ["again"]}
    looks = iter([a_status(run=a_run(attempt=4)), SUSPENDED.model_copy(update={"run": a_run(attempt=4)})])

    def meanwhile(_: float) -> None:
        api_of(cluster).set((STREAM_JOBS.plural, NAMESPACE, "clicks"), {"status": next(looks).to_manifest()})

    monkeypatch.setattr("headrace.cli.look.time.sleep", meanwhile)
    result = kubectl("logs", "clicks", "-f")
    assert result.stdout == "boom\nagain\n"
    assert "attempt 4 of run 4" in result.stderr and "no other follows" in result.stderr
    assert kubectl("logs", "clicks", "-f", "-p").exit_code == 2


# ---- steering


def test_suspend_resume_restart_change_one_field_each(cluster: Cluster, kubectl: Run_):
    before = add_job(cluster, status=FINE)["spec"]
    assert "kubectl streamjob resume clicks" in kubectl("suspend", "clicks").output
    assert stored(cluster)["spec"] == {**before, "suspend": True}
    kubectl("resume", "clicks")
    assert stored(cluster)["spec"] == {**before, "suspend": False}
    kubectl("restart", "clicks")
    assert stored(cluster)["spec"].keys() - before.keys() == {"suspend", "restartNonce"}


def test_suspending_a_job_that_is_about_to_lose_rows_says_so(cluster: Cluster, kubectl: Run_):
    near = Condition(
        type="DataLossRisk",
        status="True",
        reason="RetentionNear",
        message="the source deletes unread rows in 20 min as things go",
        last_transition_time=NOW,
    )
    add_job(cluster, status=FINE.model_copy(update={"conditions": (*FINE.conditions, near)}))
    shown = kubectl("suspend", "clicks").output
    assert "deletes unread rows in 20 min" in shown and "nothing is read at all" in shown
    assert stored(cluster)["spec"]["suspend"] is True


def test_waiting_tells_every_step_and_ends(cluster: Cluster, kubectl: Run_, monkeypatch: pytest.MonkeyPatch):
    add_job(cluster, status=FINE)
    draining = a_status(observed_generation=2, state="Draining", conditions=UPGRADING.conditions)
    looks = iter([draining, SUSPENDED.model_copy(update={"observed_generation": 2})])

    def meanwhile(_: float) -> None:
        api_of(cluster).set((STREAM_JOBS.plural, NAMESPACE, "clicks"), {"status": next(looks).to_manifest()})

    monkeypatch.setattr("headrace.cli.steer.time.sleep", meanwhile)
    result = kubectl("suspend", "clicks", "--wait")
    assert result.exit_code == 0
    assert [line.strip() for line in result.output.splitlines()[1:]] == [
        "Running: all queries are active",
        "Draining: run 4 finishes its batch",
        "Suspended",
    ]


def test_waiting_for_what_stalls_fails(cluster: Cluster, kubectl: Run_):
    from tests.unit.cli.samples import ROLLED_BACK

    stalled = ROLLED_BACK.model_copy(update={"observed_generation": 2})
    add_job(cluster, status=stalled)
    result = kubectl("restart", "clicks", "--wait")
    assert result.exit_code == 1 and "RolledBack: the spec still asks" in result.output


def test_rollback_names_the_run_to_leave(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FINE)
    assert "run 4 is left for the version of the last stable one" in kubectl("rollback", "clicks").output
    assert stored(cluster)["metadata"]["annotations"] == {"headrace.dev/rollback": "4"}
    kubectl("rollback", "clicks", "--to-run", "2")
    assert stored(cluster)["metadata"]["annotations"] == {"headrace.dev/rollback": "4 to 2"}


def test_rollback_to_nowhere_is_refused(cluster: Cluster, kubectl: Run_):
    add_job(cluster, "new")
    add_job(cluster, "first", status=a_status(run=a_run(1), history=(), last_stable=None))
    add_job(cluster, "clicks", status=FINE)
    assert "has no run yet" in kubectl("rollback", "new").output
    assert "is the first of first" in kubectl("rollback", "first").output
    assert "knows of no such run before. Known: 3, 2" in kubectl("rollback", "clicks", "--to", "9").output
    assert "annotations" not in stored(cluster)["metadata"]


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


# ---- completion


def test_names_are_completed_as_kubectl_asks_for_them(cluster: Cluster, kubectl: Run_):
    add_job(cluster, "clicks")
    add_job(cluster, "orders")
    assert candidates(["sus"]) == ["suspend\tDrain the driver and keep the checkpoint:...", ":4"]
    assert candidates(["status", ""]) == ["clicks", "orders", ":4"]
    assert candidates(["savepoint", "list", "o"]) == ["orders", ":4"]
    assert candidates(["plan", "-f", ""]) == [":0"]
    # What goes wrong is not said here.
    transport_of(cluster).unknown.add("streamjobs")
    assert candidates(["status", ""]) == [":4"]


def test_a_job_without_a_run_has_no_page_that_fails(cluster: Cluster, kubectl: Run_):
    add_job(cluster, status=FINE.model_copy(update={"run": Run(number=1, revision="x"), "history": ()}))
    for page in (("status", "clicks"), ("history", "clicks"), ("list",)):
        assert kubectl(*page).exit_code == 0
