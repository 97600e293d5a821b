"""What `kubectl streamjob` shows: jobs, their status, history, events and logs."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from headrace.api import Run
from headrace.cli.cluster import Answer, Cluster
from headrace.cli.completion import candidates
from headrace.kube.resources import EVENTS, STREAM_JOBS, STREAM_SAVEPOINTS
from tests.unit.cli.fakes import (
    NAMESPACE,
    Run_,
    add_job,
    api_of,
    stored,
    transport_of,
)
from tests.unit.cli.samples import FAILING, FINE, SUSPENDED, a_run, a_savepoint, a_status

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
