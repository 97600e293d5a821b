"""`kubectl streamjob` suspends, resumes, restarts and rolls back: one field each, and what it says."""

import pytest

from headrace.api import Condition, HistoryEntry
from headrace.cli.cluster import Cluster
from headrace.kube.resources import STREAM_JOBS
from tests.unit.cli.fakes import NAMESPACE, NOW, Run_, add_job, api_of, stored
from tests.unit.cli.samples import FINE, SUSPENDED, UPGRADING, a_run, a_status


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


def test_a_version_that_was_refused_is_no_run_to_go_back_to(cluster: Cluster, kubectl: Run_):
    refused = HistoryEntry(run=5, revision="r5", outcome="Refused", message="it fails")
    add_job(cluster, status=FINE.model_copy(update={"history": (refused, *FINE.history)}))
    assert "Known: 3, 2" in kubectl("rollback", "clicks", "--to", "5").output
