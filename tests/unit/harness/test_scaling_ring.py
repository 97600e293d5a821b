"""The ring of decisions: bounded, read back, and never in anybody's way."""

import json
from types import SimpleNamespace

import pytest

from headrace_jobs.harness.scaling_ring import DECISIONS_KEPT, KEY, ScalingRing, empty, with_news
from headrace_jobs.store import open_store, remove_runs
from tests.spark.harness.conftest import wait_for


def test_the_ring_is_bounded_and_the_oldest_goes():
    ring = empty()
    for number in range(DECISIONS_KEPT + 5):
        ring = with_news(ring, {"decisions": [{"at": number}]})
    assert len(ring["decisions"]) == DECISIONS_KEPT
    assert ring["decisions"][0] == {"at": 5}


def test_what_is_told_twice_is_kept_once():
    ring = with_news(with_news(empty(), {"looks": [[1, 2]]}), {"looks": [[1, 2], [2, 2]]})
    assert ring["looks"] == [[1, 2], [2, 2]]


def test_a_memory_stays_until_there_is_a_newer_one():
    ring = with_news(with_news(empty(), {"memory": {"a": 1}}), {"decisions": []})
    assert ring["memory"] == {"a": 1}


def test_todays_numbers_are_told_to_whoever_asks_and_written_with_the_next_news(tmp_path):
    ring = ScalingRing(SimpleNamespace(store=tmp_path.as_uri(), spark_conf={}))
    ring.start()
    wait_for(lambda: ring.content() is not None, "the ring is never read")
    ring.keep({"newest": {"at": 1}})
    content = ring.content()
    assert content is not None and content["newest"] == {"at": 1}
    assert not ring._changed.is_set() and not (tmp_path / KEY).exists()
    ring.keep({"newest": {"at": 2}, "decisions": []})
    wait_for((tmp_path / KEY).exists, "the ring is never written")
    assert json.loads((tmp_path / KEY).read_text())["newest"] == {"at": 2}


@pytest.mark.parametrize("news", [{"decisions": 7}, {"looks": {"a": 1}}])
def test_what_is_no_list_is_refused(news):
    with pytest.raises(ValueError, match="must be a list"):
        with_news(empty(), news)


def test_the_next_attempt_finds_what_the_last_one_kept(tmp_path):
    run_file = SimpleNamespace(store=tmp_path.as_uri(), spark_conf={})
    first = ScalingRing(run_file)
    first.start()
    wait_for(lambda: first.content() is not None, "the ring is never read")
    first.keep({"memory": {"version": 1}, "decisions": [{"at": 1}]})
    wait_for((tmp_path / KEY).exists, "the ring is never written")
    second = ScalingRing(run_file)
    second.start()
    found = wait_for(second.content, "the ring is never read")
    assert found == {"memory": {"version": 1}, "newest": None, "decisions": [{"at": 1}], "looks": []}


def test_one_that_takes_over_finds_what_was_kept_while_it_waited(tmp_path):
    run_file = SimpleNamespace(store=tmp_path.as_uri(), spark_conf={})
    waits = ScalingRing(run_file)
    waits.start()
    wait_for(lambda: waits.content() is not None, "the ring is never read")
    kept = {"memory": {"version": 1}, "decisions": [{"at": 1}], "looks": [[1, 2]]}
    open_store(tmp_path.as_uri(), None).put(KEY, json.dumps(kept).encode())
    waits.read_again()
    waits.keep({"decisions": [{"at": 2}]})
    wait_for(lambda: json.loads((tmp_path / KEY).read_text())["decisions"][1:], "the ring is never written")
    assert waits.content() == {**kept, "newest": None, "decisions": [{"at": 1}, {"at": 2}]}


def test_a_ring_that_cannot_be_read_is_begun_anew(tmp_path):
    (tmp_path / "_scaling").mkdir()
    (tmp_path / KEY).write_text("{not json")
    ring = ScalingRing(SimpleNamespace(store=tmp_path.as_uri(), spark_conf={}))
    ring.start()
    assert wait_for(ring.content, "the ring is never read") == empty()


def test_it_goes_with_the_runs(tmp_path):
    store = open_store(tmp_path.as_uri(), None)
    store.put(f"uid/{KEY}", json.dumps(empty()).encode())
    assert remove_runs(store, "uid") == ["_scaling"]
