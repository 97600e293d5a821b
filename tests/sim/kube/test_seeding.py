"""Copies of state, and what may happen around them: none is begun upon, abandoned or trusted by mistake."""

from headrace.kube.resources import CONFIG_MAPS, PODS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster
from tests.sim.kube.kubernetes import runs

CODE = {"metadata": {"name": "code", "namespace": NAMESPACE}, "data": {"job.py": "print(1)"}}
CODE_PLACE = (CONFIG_MAPS.plural, NAMESPACE, "code")


def running(spec: dict | None = None) -> FakeCluster:
    cluster = FakeCluster(spec)
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
    return cluster


def keepers(cluster: FakeCluster) -> list[str]:
    return [name for name in cluster.api.of(PODS) if "-seed-" in name]


def copying(cluster: FakeCluster) -> tuple[str, str, str]:
    """Until a keeper copies; it goes on with that for as long as the test likes."""
    for _ in range(10):
        cluster.pass_once()
        if keepers(cluster):
            break
        cluster.kubelets_work()
    place = (PODS.plural, NAMESPACE, keepers(cluster)[-1])
    cluster.api.set(place, {"status": {"phase": "Running"}})
    return place


def passes(cluster: FakeCluster, number: int = 6) -> None:
    for _ in range(number):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.later(60)


# ---- an earlier lineage, and a change of mind --------------------------------------------------------


def test_who_begins_anew_after_all_does_not_begin_in_the_middle_of_a_copy():
    """The keeper still writes where the driver would: two writers, over half of a state."""
    cluster = FakeCluster()
    cluster.earlier = {"uid": "older", "lastRun": 4}
    cluster.settle()
    cluster.edit(startFrom={"latest": True})
    copying(cluster)
    cluster.edit(startFrom={"latest": None, "none": True})
    passes(cluster)
    assert cluster.started == []
    assert cluster.condition("Stalled") == ("True", "StateCopied")


def test_who_begins_anew_after_a_copy_that_failed_does_not_begin_with_half_of_it():
    cluster = FakeCluster()
    cluster.earlier = {"uid": "older", "lastRun": 4}
    cluster.seed_fails = "not allowed to read one of a thousand"
    cluster.settle()
    cluster.edit(startFrom={"latest": True})
    passes(cluster)
    assert cluster.condition("Stalled") == ("True", "SeedFailed")
    for name in keepers(cluster):
        cluster.api.remove((PODS.plural, NAMESPACE, name))  # no pod is left to tell of it
    cluster.edit(startFrom={"latest": None, "none": True})
    passes(cluster)
    assert cluster.started == []
    assert cluster.condition("Stalled") == ("True", "StateCopied")
    # Back again, the copy is made to the end.
    cluster.seed_fails = None
    cluster.edit(startFrom={"latest": True, "none": None})
    passes(cluster)
    assert runs(cluster) == [(1, 2)]
    assert cluster.seeds == {1: "older/run-4"}


# ---- edits in the middle of an upgrade ---------------------------------------------------------------


def test_an_edit_that_may_not_fit_the_state_is_refused_in_the_middle_of_an_upgrade_too():
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    copying(cluster)
    cluster.edit(checkpoint={"s3": {"endpoint": "https://s3.example.com"}})
    cluster.api.set((PODS.plural, NAMESPACE, keepers(cluster)[0]), {"status": None})
    cluster.settle()
    assert runs(cluster) == [(1, 1), (2, 1)]
    assert cluster.condition("Stalled") == ("True", "StateChange")
    assert "s3.example.com" not in cluster.api.of(CONFIG_MAPS)["clicks-r2"]["data"]["spec.json"]


def test_a_spec_that_cannot_be_read_does_not_turn_an_upgrade_back():
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    place = copying(cluster)
    cluster.edit(application={"file": None})
    cluster.api.set(place, {"status": None})
    cluster.settle()
    assert runs(cluster) == [(1, 1), (2, 1)]
    assert '"--x"' in cluster.api.of(CONFIG_MAPS)["clicks-r2"]["data"]["spec.json"]
    assert cluster.condition("Stalled") == ("True", "InvalidSpec")


def test_a_run_whose_state_was_copied_does_not_go_on():
    """The store keeps the copy: what the old run wrote after it would be lost to the new one."""
    cluster = FakeCluster({"application": {"configMap": {"name": "code"}}})
    cluster.api.put_new(CONFIG_MAPS, CODE)
    cluster.settle()
    cluster.api.set(CODE_PLACE, {"data": {"job.py": "print(2)"}})
    copying(cluster)
    # A newer edit: killed between taking the old pin of run 2 away and making the new one.
    cluster.api.set(CODE_PLACE, {"data": {"job.py": "print(3)"}})
    cluster.api.writes_left = 2
    cluster.pass_once()
    assert cluster.pins() == ["clicks-r1"]
    cluster.api.set((PODS.plural, NAMESPACE, keepers(cluster)[0]), {"status": None})
    cluster.kubelets_work()
    assert 2 in cluster.seeds
    cluster.api.set(CODE_PLACE, {"data": {"job.py": "print(3"}})
    passes(cluster)
    assert runs(cluster) == [(1, 1)]
    assert cluster.condition("Stalled") == ("True", "CodeProblem")
    cluster.api.set(CODE_PLACE, {"data": {"job.py": "print(4)"}})
    cluster.settle()
    assert runs(cluster) == [(1, 1), (2, 1)]
    assert cluster.condition("Ready") == ("True", "Running")


# ---- the keeper's own life ---------------------------------------------------------------------------


def test_a_keeper_that_is_leaving_still_copies_and_is_waited_for():
    """Evicted, it has its time of grace, and hears no polite signal: a second one would not be alone, and
    nor would the driver after it."""
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    place = copying(cluster)
    cluster.api.set(place, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:30Z"}})
    passes(cluster)
    assert keepers(cluster) == ["clicks-r2-seed-1"]
    assert runs(cluster) == [(1, 1)]
    cluster.api.remove(place)
    cluster.settle()
    assert runs(cluster) == [(1, 1), (2, 1)]


def test_a_keeper_that_finds_no_node_says_so_and_a_corrected_edit_replaces_it():
    cluster = running()
    cluster.edit(driver={"nodeSelector": {"disk": "sdd"}})
    place = copying(cluster)
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}
    cluster.api.set(place, {"status": {"phase": "Pending", "conditions": [unschedulable]}})
    cluster.pass_once()
    assert cluster.condition("Reconciling") == ("True", "Unschedulable")
    cluster.edit(driver={"nodeSelector": {"disk": "ssd"}})
    cluster.settle()
    assert runs(cluster) == [(1, 1), (2, 1)]
    assert cluster.condition("Ready") == ("True", "Running")


def test_a_keeper_that_the_platform_refuses_is_told_in_its_words():
    cluster = running()
    cluster.edit(application={"args": ["--x"]})
    create = cluster.api.create

    async def full(resource, namespace, body):
        if resource is PODS and "-seed-" in body["metadata"]["name"]:
            cluster.api.faults = ["quota"]
        return await create(resource, namespace, body)

    cluster.api.create = full
    passes(cluster, 10)
    assert cluster.condition("Stalled") == ("True", "SeedFailed")
    assert "exceeded quota" in cluster.status.condition("Stalled").message
    cluster.api.create = create
    cluster.settle()
    assert runs(cluster) == [(1, 1), (2, 1)]


def test_another_s3_server_is_not_gone_to_without_a_word():
    """The state lies on the old one. On the new one nothing would be found, and be begun with."""
    s3 = {"location": "s3://streams/checkpoints", "s3": {"endpoint": "http://old:9000"}}
    cluster = running({"application": {"file": "job.py"}, "checkpoint": s3})
    cluster.edit(checkpoint={"s3": {"endpoint": "http://new:9000"}})
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "StateChange")
    assert runs(cluster) == [(1, 1)]
    cluster.edit(upgrade={"stateCompatible": True})  # another name of the same server, say
    cluster.settle()
    assert runs(cluster) == [(1, 1), (2, 1)]
