"""What goes wrong on the way to the cluster: names, rights, servers."""

import pytest

from headrace.cli.cluster import Answer, Cluster
from tests.unit.cli.fakes import Run_, add_job, stored, transport_of
from tests.unit.cli.samples import FINE


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
