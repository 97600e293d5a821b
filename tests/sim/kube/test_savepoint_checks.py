"""How far a StreamSavepoint is known to be good, when it is looked at again, and who is to start from it."""

import pytest

from headrace.kube.resources import STREAM_JOBS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster
from tests.sim.kube.saved import (
    GOOD,
    conditions,
    edit_savepoint,
    keepers,
    message,
    passes,
    put_starter,
    running,
)


def test_state_is_checked_by_a_keeper_and_it_is_ready_meanwhile():
    cluster = running()
    cluster.create_savepoint("manual", verify="State")
    while "take" not in dict(cluster.savepoint_store.done):
        passes(cluster, 1)
    cluster.pass_once()
    assert conditions(cluster)["Ready"] == ("True", "Taken")
    assert conditions(cluster)["Reconciling"] == ("True", "Verifying")
    assert conditions(cluster)["Verified"] == ("False", "Verifying")
    cluster.settle()
    assert conditions(cluster) == {**GOOD, "Verified": ("True", "State")}
    assert not keepers(cluster)


def test_more_may_be_asked_later_and_damage_is_found():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    cluster.savepoint_store.damaged |= set(cluster.savepoint_store.saved)
    edit_savepoint(cluster, verify="State")
    cluster.settle()
    assert conditions(cluster)["Ready"] == ("False", "SavepointDamaged")
    assert conditions(cluster)["Stalled"] == ("True", "SavepointDamaged")
    assert cluster.savepoint("manual").verified.level == "None"
    assert "commits/41 is missing" in message(cluster, "Ready")
    assert cluster.status.last_savepoint is None


def test_a_check_that_cannot_be_made_is_left_at_that_until_somebody_edits():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    cluster.savepoint_store.fails = {"reason": "StoreUnavailable", "message": "s3 does not answer"}
    edit_savepoint(cluster, verify="State")
    for _ in range(40):
        cluster.later(60)
        passes(cluster, 2)
    assert conditions(cluster) == {**GOOD, "Verified": ("False", "VerificationFailed")}
    assert not keepers(cluster)
    cluster.savepoint_store.fails = None
    cluster.settle()
    assert conditions(cluster)["Verified"] == ("False", "VerificationFailed")
    edit_savepoint(cluster, verify="Restore")
    cluster.settle()
    assert cluster.savepoint("manual").verified.level == "State"


def ask_to_check(cluster: FakeCluster, value: str) -> None:
    place = (STREAM_SAVEPOINTS.plural, NAMESPACE, "manual")
    cluster.api.set(place, {"metadata": {"annotations": {"headrace.dev/verify": value}}})


def test_it_is_checked_again_each_time_that_it_is_asked_and_loss_is_found():
    cluster = running()
    cluster.create_savepoint("manual", verify="State")
    cluster.settle()
    for number in (1, 2):
        ask_to_check(cluster, f"Objects@{number}")
        cluster.settle()
        check = cluster.savepoint("manual").check
        assert check is not None and (check.asked, check.level) == (f"Objects@{number}", "Objects")
        assert conditions(cluster) == {**GOOD, "Verified": ("True", "State")}
    assert [task for task, _ in cluster.savepoint_store.done] == ["take", "verify", "check", "check"]
    before = list(cluster.api.writes)
    passes(cluster)
    assert cluster.api.writes == before and not keepers(cluster)
    cluster.savepoint_store.damaged |= set(cluster.savepoint_store.saved)
    ask_to_check(cluster, "Objects@3")
    cluster.settle()
    assert conditions(cluster)["Stalled"] == ("True", "SavepointDamaged")
    found = cluster.savepoint("manual").check
    assert found is not None and "commits/41 is missing" in found.message


def test_the_word_of_an_earlier_check_is_not_taken_for_the_answer():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    ask_to_check(cluster, "Objects@1")
    passes(cluster, 2)  # its keeper has ended, and nobody has read its words
    cluster.savepoint_store.damaged |= set(cluster.savepoint_store.saved)
    ask_to_check(cluster, "Objects@2")
    cluster.settle()
    assert conditions(cluster)["Stalled"] == ("True", "SavepointDamaged")


def test_restored_is_what_a_job_has_started_from():
    cluster = running()
    cluster.create_savepoint("manual", verify="Restore")
    cluster.settle()
    assert conditions(cluster) == {**GOOD, "Verified": ("False", "NotRestored")}
    assert cluster.savepoint("manual").verified.level == "State"
    put_starter(cluster, {})
    cluster.settle()
    assert cluster.savepoint("manual").in_use_by == ("fork",)
    ready = {"type": "Ready", "status": "True", "reason": "Running"}
    run = {"number": 1, "revision": "r", "seededFrom": cluster.savepoint("manual").path}
    status = {"run": run, "conditions": [ready]}
    cluster.api.set((STREAM_JOBS.plural, NAMESPACE, "fork"), {"status": status})
    cluster.settle()
    assert conditions(cluster)["Verified"] == ("True", "Restore")
    assert "the job fork has started from it" in message(cluster, "Verified")
    assert cluster.savepoint("manual").in_use_by == ()


@pytest.mark.parametrize("why", ["StartRefused", "EarlierLineage"])
def test_one_that_a_job_is_to_start_over_with_is_in_use(why: str):
    """It has a run, and that run never began."""
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    attempt = {"number": 1, "epoch": 1, "state": "Ended"}
    ended = {"run": 1, "attempt": 1, "reason": "Refused", "errorClass": why}
    run = {"number": 1, "revision": "r", "attempt": attempt}
    put_starter(cluster, {"run": run, "lastTermination": ended})
    cluster.settle()
    assert cluster.savepoint("manual").in_use_by == ("fork",)
    begun = {"run": {**run, "number": 2, "attempt": {**attempt, "state": "Started"}}}
    cluster.api.set((STREAM_JOBS.plural, NAMESPACE, "fork"), {"status": begun})
    cluster.settle()
    assert cluster.savepoint("manual").in_use_by == ()


def test_one_that_a_job_is_asked_to_go_back_to_is_in_use_until_it_has():
    cluster = running()
    cluster.create_savepoint("manual")
    cluster.settle()
    asked = {"headrace.dev/restore": "manual@2"}
    put_starter(cluster, {"run": {"number": 3, "revision": "r"}, "restored": "manual@1"}, annotations=asked)
    cluster.settle()
    assert cluster.savepoint("manual").in_use_by == ("fork",)
    cluster.api.set((STREAM_JOBS.plural, NAMESPACE, "fork"), {"status": {"restored": "manual@2"}})
    cluster.settle()
    assert cluster.savepoint("manual").in_use_by == ()
