"""`kubectl streamjob savepoint`: the verbs as StreamSavepoint objects on a fake cluster."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.api import StreamSavepoint
from headrace.cli.cluster import Cluster
from headrace.cli.savepoint_objects import ClusterSavepoints
from headrace.cli.savepoints import SavepointRefused
from headrace.kube.resources import STREAM_SAVEPOINTS
from tests.unit.cli.fakes import NAMESPACE, Run_, add_job, api_of, stored, transport_of
from tests.unit.cli.samples import FINE, a_savepoint

PLACE = (STREAM_SAVEPOINTS.plural, NAMESPACE, "nightly")


def condition(kind: str, status: str, message: str = "", **more: Any) -> dict[str, Any]:
    told = {"type": kind, "status": status, "reason": "R", "message": message, **more}
    return {**told, "lastTransitionTime": "2026-05-01T11:55:00Z"}


def backend(
    cluster: Cluster, steps: Iterator[dict[str, Any]] | None = None, **more: Any
) -> ClusterSavepoints:
    """Whose waits are the operator's passes: each writes the next status."""
    seconds = iter(range(1000))

    def operator_acts(_: float) -> None:
        (place,) = [one for one in api_of(cluster).objects if one[0] == STREAM_SAVEPOINTS.plural]
        assert steps is not None, "nothing is to be waited for"
        api_of(cluster).set(place, {"status": next(steps)})

    return ClusterSavepoints(
        cluster=cluster,
        job="clicks",
        now=lambda: datetime(2026, 5, 1, 3, 0, tzinfo=UTC),
        sleep=operator_acts,
        clock=lambda: float(next(seconds)),
        **more,
    )


def test_create_waits_and_tells_how_far_it_is(cluster: Cluster):
    good = a_savepoint()["status"]
    steps = iter(
        [
            {"conditions": [condition("Ready", "False", "a keeper pod starts")]},
            {"conditions": [condition("Ready", "False", "copying: 30%")], "copiedPercent": 30},
            good,
        ]
    )
    told: list[str] = []
    made = backend(cluster, steps).create(None, told.append)
    assert (made.name, made.state, made.queries[0].batch) == ("clicks-20260501-030000", "Ready", 4711)
    assert told == ["waiting for the operator", "a keeper pod starts", "copying: 30%"]
    ((_, _, _), kept), *_ = api_of(cluster).objects.items()
    assert StreamSavepoint.parse(kept).spec.job.name == "clicks"


def test_a_failed_one_says_why(cluster: Cluster):
    steps = iter([{"conditions": [condition("Stalled", "True", "no such bucket")]}])
    with pytest.raises(SavepointRefused, match="nightly failed: no such bucket"):
        backend(cluster, steps).create("nightly", lambda _: None)


def test_a_slow_one_is_not_waited_for_for_ever(cluster: Cluster):
    steps = iter([{"conditions": []}] * 9)
    with pytest.raises(SavepointRefused, match=r"it goes on\. See: kubectl streamjob savepoint show clicks"):
        backend(cluster, steps, timeout_seconds=3).create("nightly", lambda _: None)


def test_a_name_that_is_taken(cluster: Cluster):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    with pytest.raises(SavepointRefused, match="there is a savepoint nightly already"):
        backend(cluster).create("nightly", lambda _: None)


def test_list_and_show(cluster: Cluster, kubectl: Run_):
    for name in ("clicks-0200", "clicks-0300"):
        api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint(name))
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("orders-0300", job="orders"))
    listed = kubectl("savepoint", "list", "clicks")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()[:3]] == [
        "NAME",
        "clicks-0200",
        "clicks-0300",
    ]
    assert "kubectl streamjob savepoint show clicks clicks-0300" in listed.output
    shown = kubectl("savepoint", "show", "clicks", "clicks-0300")
    assert "Query counts: batch 4711" in shown.output and "run 4" in shown.output
    told = json.loads(kubectl("savepoint", "list", "clicks", "-o", "json").output)
    assert [one["verified"] for one in told] == ["State", "State"]


def test_another_job_s_savepoint_is_not_ours(cluster: Cluster, kubectl: Run_):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("orders-0300", job="orders"))
    foreign = kubectl("savepoint", "show", "clicks", "orders-0300")
    assert foreign.exit_code == 2 and "is a savepoint of orders, not of clicks" in foreign.output
    near = kubectl("savepoint", "show", "orders", "orders-300")
    assert near.exit_code == 2 and "Did you mean orders-0300?" in near.output


def test_create_without_waiting(cluster: Cluster, kubectl: Run_):
    made = kubectl("savepoint", "create", "clicks", "nightly", "--no-wait")
    assert made.exit_code == 0 and "Taking" in made.output
    assert api_of(cluster).objects[PLACE]["spec"] == {"job": {"name": "clicks"}}


def test_import(cluster: Cluster, kubectl: Run_):
    path = "s3://acme-streams/elsewhere/_savepoints/x"
    assert kubectl("savepoint", "import", "clicks", path, "nightly", "--no-wait").exit_code == 0
    assert api_of(cluster).objects[PLACE]["spec"] == {"job": {"name": "clicks"}, "path": path}


ASKED = "State@2026-05-01T03:00:00Z"


@pytest.mark.parametrize("known", ["Objects", "State", "Restore"])
def test_verify_looks_again_whatever_is_known(cluster: Cluster, known: str):
    before = {"level": known, "message": "was fine"}
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly", verified=before))
    old = {"asked": "State@2026-04-30T03:00:00Z", "level": "State", "message": "was fine"}
    new = {"asked": ASKED, "level": "State", "message": "all there today"}
    steps = iter([{"check": old}, {"check": new, "verified": {"level": max(known, "State")}}])
    found = backend(cluster, steps).verify("nightly", "State")
    assert found.verified_message == "all there today"
    kept = api_of(cluster).objects[PLACE]
    assert kept["metadata"]["annotations"] == {"headrace.dev/verify": ASKED}
    assert kept["spec"].get("verify") == a_savepoint()["spec"].get("verify")  # what is declared stays


DAMAGED = [condition("Ready", "False"), condition("Stalled", "True", "partition 3 of counts is missing")]


def test_verify_tells_what_is_damaged_and_exits_with_one(cluster: Cluster, kubectl: Run_):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    found = backend(cluster, iter([{"conditions": DAMAGED}])).verify("nightly", "State")
    assert (found.verified, found.verified_message) == ("None", "partition 3 of counts is missing")
    again = kubectl("savepoint", "verify", "clicks", "nightly")
    assert again.exit_code == 1 and "partition 3 of counts is missing" in again.output


def test_what_nobody_could_look_at_is_no_verdict(cluster: Cluster):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    answer = {"asked": ASKED, "level": "None", "message": "s3 does not answer"}
    with pytest.raises(SavepointRefused, match="nightly could not be checked: s3 does not answer"):
        backend(cluster, iter([{"check": answer}])).verify("nightly", "State")


def test_what_lies_in_a_store_is_listed_by_the_job_s_own_keeper(cluster: Cluster):
    add_job(cluster)
    asked = "list s3://acme/ckpt@2026-05-01T03:00:00Z"
    found = {"path": "s3://acme/ckpt/shop/old/_savepoints/n", "job": "shop/old", "batches": {"q": 7}}
    answers = iter([{}, {"asked": asked, "message": "1 savepoints", "savepoints": [found]}])

    def operator_acts(_: float) -> None:
        place = next(one for one in api_of(cluster).objects if one[0] == "streamjobs")
        api_of(cluster).set(place, {"status": {"collection": next(answers)}})

    listed, in_words = replace(backend(cluster), sleep=operator_acts).list_in("s3://acme/ckpt")
    assert in_words == "1 savepoints"
    assert [(one.path, one.job, one.state) for one in listed] == [(found["path"], "shop/old", "Ready")]
    assert stored(cluster)["metadata"]["annotations"] == {"headrace.dev/collect-savepoints": asked}


def test_without_a_job_nobody_may_look_into_the_store(cluster: Cluster, kubectl: Run_):
    refused = kubectl("savepoint", "list", "clicks", "--in", "s3://acme/ckpt")
    assert refused.exit_code == 2 and "apply its manifest with suspend: true first" in refused.output


def test_delete(cluster: Cluster, kubectl: Run_):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    assert kubectl("savepoint", "delete", "clicks", "nightly", "--yes").exit_code == 0
    assert PLACE not in api_of(cluster).objects


HELD = {"finalizers": ["headrace.dev/savepoint"]}


def held(cluster: Cluster, *steps: dict[str, Any] | None) -> ClusterSavepoints:
    """One whose finalizer the operator keeps; each wait is a pass, and None is the last one."""
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    api_of(cluster).set(PLACE, {"metadata": HELD})
    passes = iter(steps)

    def operator_acts(_: float) -> None:
        status = next(passes)
        if status is None:
            api_of(cluster).remove(PLACE)
        else:
            api_of(cluster).set(PLACE, {"status": status})

    return replace(backend(cluster, timeout_seconds=3), sleep=operator_acts)


def test_delete_stays_until_it_is_gone_and_says_what_it_waits_for(cluster: Cluster):
    told: list[str] = []
    leaving = {"conditions": [condition("Ready", "False", "in use by fork")]}
    assert held(cluster, leaving, None).delete("nightly", told.append) == "nightly is removed."
    assert told[-1] == "being removed. in use by fork"


def test_delete_does_not_say_removed_while_the_store_refuses(cluster: Cluster):
    refused = condition("Stalled", "True", "the copy could not be removed: no") | {"reason": "DeletionFailed"}
    with pytest.raises(SavepointRefused, match=r"nightly is not removed yet: .*could not be removed: no"):
        held(cluster, {"conditions": [refused]}).delete("nightly", lambda _: None)


def test_delete_is_not_waited_for_for_ever_nor_when_nobody_wants_to(cluster: Cluster):
    with pytest.raises(SavepointRefused, match="nightly is not removed yet"):
        held(cluster, *[{"conditions": []}] * 9).delete("nightly", lambda _: None)
    asked = replace(backend(cluster), wait=False)
    assert asked.delete("nightly", lambda _: None) == "nightly is being removed."


def test_missing_rights_are_named(cluster: Cluster, kubectl: Run_):
    transport_of(cluster).forbidden.add(("create", "streamsavepoints"))
    refused = kubectl("savepoint", "create", "clicks")
    assert refused.exit_code == 2
    assert "you may not create streamsavepoints.headrace.dev in namespace shop" in refused.output


def test_restore_of_a_job_without_a_run_says_where_it_starts(cluster: Cluster, kubectl: Run_):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    add_job(cluster, startFrom={"latest": True})
    restored = kubectl("savepoint", "restore", "clicks", "nightly", "--yes")
    assert restored.exit_code == 0 and "clicks starts from nightly" in restored.output
    assert stored(cluster)["spec"]["startFrom"] == {"savepoint": "nightly"}


def test_restore_of_a_job_that_runs_is_asked_for_by_an_annotation(cluster: Cluster):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    before = add_job(cluster, status=FINE)["spec"]
    assert "clicks starts from nightly" in backend(cluster).restore("nightly")
    annotations = stored(cluster)["metadata"]["annotations"]
    # Each request is one of its own, also for the same savepoint.
    assert annotations == {"headrace.dev/restore": "nightly@2026-05-01T03:00:00Z"}
    assert stored(cluster)["spec"] == before


def test_restore_when_the_job_is_gone(cluster: Cluster):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly"))
    assert "startFrom: {savepoint: nightly}" in backend(cluster).restore("nightly")


def test_one_that_is_not_ready_is_not_restored(cluster: Cluster):
    api_of(cluster).put_new(STREAM_SAVEPOINTS, a_savepoint("nightly", conditions=[]))
    with pytest.raises(SavepointRefused, match="nightly is Taking"):
        backend(cluster).restore("nightly")
