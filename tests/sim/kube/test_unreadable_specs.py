"""A spec or a pin that is missing, or of another version of Headrace."""

from headrace.kube.resources import CONFIG_MAPS, PODS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster
from tests.sim.kube.kubernetes import runs


def test_a_pin_of_another_version_of_headrace_is_no_obstacle(running: FakeCluster):
    """Of an old run it does not matter. Of the run itself it cannot be compared: so the spec rules."""
    running.edit(application={"args": ["--x"]})
    running.settle()
    for name in ("clicks-r1", "clicks-r2"):
        pin = running.api.objects[(CONFIG_MAPS.plural, NAMESPACE, name)]
        pin["data"]["spec.json"] = pin["data"]["spec.json"].replace("{", '{"ofTheFuture": 1, ', 1)
        running.operator = running.new_operator()
        running.settle()
    assert runs(running) == [(1, 1), (2, 1), (3, 1)]
    assert running.condition("Ready") == ("True", "Running")


def test_an_attempt_of_a_run_without_a_pin_says_what_it_lacks():
    """The pin was deleted by hand, and the code as it stands cannot make another run."""
    cluster = FakeCluster({"application": {"configMap": {"name": "code"}}})
    code = {"metadata": {"name": "code", "namespace": NAMESPACE}, "data": {"job.py": "print(1)"}}
    cluster.api.put_new(CONFIG_MAPS, code)
    cluster.settle()
    cluster.api.set((CONFIG_MAPS.plural, NAMESPACE, "code"), {"data": {"job.py": "print(1"}})
    cluster.api.remove((CONFIG_MAPS.plural, NAMESPACE, "clicks-r1"))
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    for _ in range(4):
        cluster.pass_once()
        cluster.later(60)
    assert cluster.condition("Ready") == ("False", "NoPin")
    cluster.api.set((CONFIG_MAPS.plural, NAMESPACE, "code"), {"data": {"job.py": "print(2)"}})
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")


def test_where_neither_spec_nor_pin_can_be_read_the_status_says_so(running: FakeCluster):
    pin = running.api.objects[(CONFIG_MAPS.plural, NAMESPACE, "clicks-r1")]
    pin["data"]["spec.json"] = pin["data"]["spec.json"].replace("{", '{"ofTheFuture": 1, ', 1)
    running.edit(ofTheFuture=1)
    running.operator = running.new_operator()
    running.pass_once()
    assert running.condition("Stalled") == ("True", "InvalidSpec")
    assert running.live_drivers() == ["clicks-r1-a1"]


def test_a_spec_that_cannot_be_read_leaves_the_running_run_alone(running: FakeCluster):
    running.edit(trigger={"mode": "Sometimes"})
    running.settle()
    assert running.condition("Stalled") == ("True", "InvalidSpec")
    assert running.condition("Ready") == ("True", "Running")
    running.end_driver(running.driver_place(), "QueryFailed", 66)
    running.settle()
    assert runs(running) == [(1, 1), (1, 2)]
    running.edit(trigger={"mode": "Continuous"})
    running.settle()
    assert running.condition("Stalled")[0] == "False"
    assert runs(running) == [(1, 1), (1, 2)]


def test_a_new_job_whose_spec_cannot_be_read_is_stalled():
    cluster = FakeCluster({"application": {}})
    cluster.settle()
    assert cluster.condition("Stalled") == ("True", "InvalidSpec")
    assert cluster.api.of(PODS) == {}
