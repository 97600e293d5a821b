"""The cache behind the times: late, cut off, or of the past. Nothing that it leads to may do harm."""

import copy
from random import Random

import pytest

from headrace.kube.found import name_of
from headrace.kube.resources import CONFIG_MAPS, PODS, SERVICES, STREAM_JOBS
from tests.sim.kube.cluster import KEY, NAMESPACE, FakeCluster
from tests.sim.kube.test_faults import SPEC, UNHARMED, story


def running() -> FakeCluster:
    cluster = FakeCluster(SPEC)
    cluster.settle()
    return cluster


def test_a_new_job_takes_one_pass_and_two_reads():
    """What it costs: the pods are listed once, before it is decided that the first writer starts, and the job
    is read just before it does; nothing else is read."""
    cluster = FakeCluster(SPEC)
    cluster.hear()
    cluster.api.rights.clear()
    cluster.watch_pace = 0
    cluster.pass_once()
    reads = {right for right in cluster.api.rights if right[0] in ("get", "list")}
    assert reads == {("list", "pods"), ("get", "streamjobs")}
    assert [write[:2] for write in cluster.api.writes] == [
        ("create", "configmaps"),
        ("patch", "streamjobs"),
        ("create", "events"),
        ("create", "configmaps"),
        ("create", "secrets"),
        ("create", "services"),
        ("create", "pods"),
    ]
    cluster.pass_once()  # its own writes are known without any watch
    assert cluster.status.run is not None and cluster.status.run.attempt is not None
    assert cluster.status.run.attempt.state == "Started"
    writes = len(cluster.api.writes)
    cluster.pass_once()
    assert len(cluster.api.writes) == writes


def test_a_pin_that_cannot_be_made_leaves_a_status_that_says_what_is_waited_for():
    cluster = FakeCluster(SPEC)
    cluster.api.faults = ["refused", None, "refused"]
    cluster.pass_once()
    assert cluster.pins() == []
    assert cluster.condition("Ready") == ("False", "Starting")
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")


def test_a_driver_that_the_cache_does_not_know_is_not_taken_for_gone():
    """Its pod is missing in the cache alone: no ending is written, and no other attempt begins."""
    cluster = running()
    pod = cluster.api.objects[cluster.driver_place()]
    gone = copy.deepcopy(pod)
    cluster.operator.cache.remove(PODS, gone)
    cluster.operator.cache._kinds["pods"].gone_at.clear()
    assert [name_of(one) for one in cluster.operator.cache.children(PODS, KEY)] == ["spark-s-clicks-1-0-0"]
    before = list(cluster.api.writes)
    cluster.pass_once()
    assert cluster.api.writes == before
    assert cluster.started == [(1, 1, 1)]


def test_an_intent_of_long_ago_is_not_carried_out():
    """The view is that of the moment before the first driver was created; the job is suspended by now."""
    cluster = FakeCluster(SPEC)
    # Pin, status, Event; then again status and Event: killed twice before anything of the attempt exists.
    for cluster.api.writes_left in (3, 2):
        cluster.pass_once()
    past = copy.deepcopy(cluster.api.objects)
    cluster.settle()
    cluster.edit(suspend=True)
    cluster.settle()
    for place in [place for place in cluster.api.objects if place[2] == "clicks-r1-a1"]:
        if place in cluster.api.objects:
            cluster.api.remove(place)  # so that its name is free, and nobody is in the way
    # A process that lists the past, and then asks a server that is of today.
    cluster.api.stale = past
    cluster.operator = cluster.new_operator()
    cluster.api.stale, cluster.watch_pace = None, 0
    writes = list(cluster.api.writes)
    cluster.pass_once()
    assert cluster.api.writes == writes
    cluster.watch_pace = None
    cluster.settle()
    assert cluster.live_drivers() == []
    assert cluster.started == [(1, 1, 1)]


def test_nothing_is_tidied_away_by_an_old_status():
    """An old status beside new objects: those of an attempt that it does not know are not leftovers."""
    cluster = running()
    cluster.edit(suspend=True)
    cluster.settle()
    suspended = copy.deepcopy(cluster.api.objects[cluster.job_place])
    cluster.edit(suspend=False)
    cluster.api.writes_left = 5  # status, Event, Secret, ConfigMap, Service: killed before there is a pod
    cluster.pass_once()
    assert (SERVICES.plural, NAMESPACE, "clicks-r1-a2") in cluster.api.objects
    cluster.operator.cache._kinds[STREAM_JOBS.plural].by_name[KEY] = suspended
    before, cluster.watch_pace = set(cluster.api.objects), 0
    cluster.pass_once()
    assert set(cluster.api.objects) == before


@pytest.mark.parametrize("resource", [PODS, CONFIG_MAPS])
def test_what_was_deleted_in_a_gap_of_the_watch_is_found_missing_by_the_next_list(resource):
    cluster = running()
    place = next(
        place for place in cluster.api.objects if place[0] == resource.plural and place[2] == "clicks-r1-a1"
    )
    cluster.api.remove(place)
    cluster.relist()  # the news of its end is lost
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Running")
    assert len(cluster.live_drivers()) == 1
    wanted = [(1, 1, 1), (1, 2, 2)] if resource is PODS else [(1, 1, 1)]
    assert cluster.started == wanted


@pytest.mark.parametrize("seed", range(6))
def test_a_watch_that_tells_twice_and_out_of_order_changes_nothing_in_the_end(seed: int):
    """Some news come late, some again, some long after the fact."""
    cluster = FakeCluster(SPEC)
    cluster.disorder.chance = Random(seed)
    story(cluster)
    assert (cluster.started, cluster.seeds) == (UNHARMED.started, UNHARMED.seeds)
    assert cluster.condition("Ready") == UNHARMED.condition("Ready")
    assert cluster.live_drivers() == UNHARMED.live_drivers()


@pytest.mark.parametrize("pace", [1, 2, 3, 5])
def test_a_watch_that_is_late_changes_nothing_in_the_end(pace: int):
    """Of everything that happens, only so much is told before each pass."""
    cluster = FakeCluster(SPEC)
    cluster.watch_pace = pace
    story(cluster)
    # A driver may be stopped by a signal where an agent that is known would have been asked: the same end.
    assert (cluster.started, cluster.seeds) == (UNHARMED.started, UNHARMED.seeds)
    assert cluster.condition("Ready") == UNHARMED.condition("Ready")
    assert cluster.live_drivers() == UNHARMED.live_drivers()


def test_a_driver_that_only_the_cache_knows_is_not_waited_for():
    """The news of its end was lost. Whoever wants to end it hears from the server that it is gone."""
    cluster = running()
    place = cluster.driver_place()
    known = copy.deepcopy(cluster.api.objects[place])
    cluster.api.remove(place)
    cluster.agents.by_uid.clear()
    cluster.relist()
    cache = cluster.operator.cache
    kind = cache._kinds[PODS.plural]
    kind.gone_at.clear()
    kind.listed_at.clear()
    assert cache.put(PODS, known)
    cluster.edit(suspend=True)
    cluster.settle()
    assert cluster.condition("Ready") == ("True", "Suspended")
