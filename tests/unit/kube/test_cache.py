"""The cache: the newer version stays, whatever the order in which it is told."""

from typing import Any

import pytest

from headrace.kube.cache import Cache, version_of
from headrace.kube.client import Snapshot
from headrace.kube.resources import CONFIG_MAPS, PODS, STREAM_JOBS

KEY = ("shop", "clicks")


def a_pod(name: str = "clicks-r1-a1", *, version: int, job: str = "clicks", namespace: str = "shop") -> dict:
    labels = {"headrace.dev/job": job, "headrace.dev/role": "driver"}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}
    metadata |= {"resourceVersion": str(version), "managedFields": [{"manager": "kubelet"}]}
    return {"metadata": metadata, "spec": {"containers": []}, "status": {"phase": "Pending"}}


def versions(cache: Cache, key: tuple[str, str] = KEY) -> list[int]:
    return [version_of(pod) for pod in cache.children(PODS, key)]


def test_a_version_that_is_no_news_is_no_news():
    cache = Cache()
    assert cache.put(PODS, a_pod(version=9))
    assert not cache.put(PODS, a_pod(version=9))
    assert not cache.put(PODS, a_pod(version=8))
    assert cache.put(PODS, a_pod(version=10))  # numbers, not letters
    assert versions(cache) == [10]


def test_what_was_deleted_does_not_come_back_with_an_answer_that_is_late():
    cache = Cache()
    cache.put(PODS, a_pod(version=5))
    cache.remove(PODS, a_pod(version=7))
    assert not cache.put(PODS, a_pod(version=6))
    assert versions(cache) == []
    assert cache.put(PODS, a_pod(version=8))
    assert versions(cache) == [8]


def test_a_namesake_outlives_the_late_news_of_its_predecessors_end():
    cache = Cache()
    cache.put(PODS, a_pod(version=5))
    cache.put(PODS, a_pod(version=9))
    cache.remove(PODS, a_pod(version=7))
    assert versions(cache) == [9]


def test_a_list_removes_what_is_gone_and_keeps_what_came_after_it():
    cache = Cache()
    for version, name in ((3, "gone"), (4, "there"), (12, "newer-than-the-list")):
        cache.put(PODS, a_pod(name, version=version))
    cache.put(PODS, a_pod("other", version=2, namespace="elsewhere"))
    changed = cache.replace(PODS, Snapshot([a_pod("there", version=4)], 10), namespace="shop")
    assert changed == {KEY}
    assert versions(cache) == [12, 4]
    assert versions(cache, ("elsewhere", "clicks")) == [2]
    assert not cache.put(PODS, a_pod("gone", version=9))


def test_a_list_of_one_job_says_nothing_of_the_others():
    cache = Cache()
    cache.put(PODS, a_pod("a", version=1))
    cache.put(PODS, a_pod("b", version=2, job="orders"))
    assert cache.replace(PODS, Snapshot([], 10), job=KEY) == {KEY}
    assert versions(cache) == []
    assert versions(cache, ("shop", "orders")) == [2]


def test_an_object_that_changes_hands_is_found_under_its_new_job_only():
    cache = Cache()
    cache.put(PODS, a_pod(version=1))
    cache.put(PODS, a_pod(version=2, job="orders"))
    assert versions(cache) == []
    assert versions(cache, ("shop", "orders")) == [2]


@pytest.mark.parametrize("role", ["pin", "attempt"])
def test_only_what_a_pass_needs_is_kept(role: str):
    cache = Cache()
    cache.put(PODS, a_pod(version=1))
    (pod,) = cache.children(PODS, KEY)
    assert pod.keys() == {"metadata", "status"}
    assert "managedFields" not in pod["metadata"]
    config_map: dict[str, Any] = {**a_pod("x", version=1), "data": {"spec.json": "{}"}}
    config_map["metadata"]["labels"]["headrace.dev/role"] = role
    cache.put(CONFIG_MAPS, config_map)
    (kept,) = cache.children(CONFIG_MAPS, KEY)
    assert ("data" in kept) == (role == "pin")


def test_a_job_says_what_it_is_and_is_rid_of_kubectls_copy():
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "headrace.dev/paused": "true"}
    metadata = {"name": "clicks", "namespace": "shop", "resourceVersion": "1", "annotations": annotations}
    cache = Cache()
    cache.put(STREAM_JOBS, {"metadata": metadata, "spec": {}})
    job = cache.job(KEY)
    assert job is not None
    assert job["kind"] == "StreamJob"
    assert job["metadata"]["annotations"] == {"headrace.dev/paused": "true"}
    assert cache.jobs() == [KEY]


def test_what_a_list_did_not_show_does_not_come_back_with_old_news():
    """The cache had never heard of it, so nothing of it was seen to go."""
    cache = Cache()
    cache.replace(PODS, Snapshot([], 10))
    assert not cache.put(PODS, a_pod("late", version=7))
    assert cache.children(PODS, KEY) == []
    assert cache.put(PODS, a_pod("new", version=11))
    # A list that shows it is right, whatever was said before.
    assert cache.replace(PODS, Snapshot([a_pod("late", version=7)], 12), job=KEY) == {KEY}


def test_a_list_of_one_namespace_says_nothing_of_another():
    cache = Cache()
    cache.replace(PODS, Snapshot([], 10), namespace="other")
    assert cache.put(PODS, a_pod("late", version=7))
