"""Savepoints and the operator's misfortunes: killed after any write, refused, unanswered, behind, doubled.

Whatever happens: none says Ready whose copy is not whole, none is taken twice, and at the end nobody writes.
"""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from headrace.kube.resources import PODS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import NAMESPACE, FakeCluster
from tests.sim.kube.troubles import Troubles

SPEC = {
    "application": {"file": "job.py"},
    "savepoints": {"schedule": "0 * * * *", "keep": 1, "onDelete": True},
}
ELSEWHERE = "s3://backup/shop/old/_savepoints/nightly-1"


def story(cluster: FakeCluster) -> None:
    """Taken by hand and verified, imported, by schedule, pruned, before every step, removed."""
    cluster.settle()
    cluster.savepoint_store.import_from_elsewhere(ELSEWHERE)
    cluster.create_savepoint("manual", verify="State")
    cluster.create_savepoint("imported", path=ELSEWHERE)
    cluster.settle()
    for _ in range(2):
        cluster.later(3600)
        cluster.settle()
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    cluster.delete_savepoint("manual")
    cluster.settle()
    cluster.edit(suspend=True)
    cluster.settle()
    cluster.delete_job()
    cluster.settle()


def outcome(cluster: FakeCluster) -> object:
    """What it came to. Uids are part of some names, and another number of writes makes other uids."""
    store = cluster.savepoint_store
    causes = cluster.savepoint_causes()
    states = sorted(cluster.savepoint(name).state for name in cluster.api.of(STREAM_SAVEPOINTS))
    return cluster.started, causes, states, len(store.saved), cluster.exists, keepers(cluster)


def is_keeper(pod: Any) -> bool:
    return pod["metadata"].get("labels", {}).get("headrace.dev/role") == "savepoint"


def keepers(cluster: FakeCluster) -> list[str]:
    pods = cluster.api.of(PODS).items()
    return [name for name, pod in pods if is_keeper(pod)]


def honest(cluster: FakeCluster) -> None:
    """What says Ready is there, whole, and its own."""
    for name, one in cluster.api.of(STREAM_SAVEPOINTS).items():
        status = cluster.savepoint(name)
        ready = status.condition("Ready")
        if ready is None or ready.status != "True" or "deletionTimestamp" in one["metadata"]:
            continue
        assert status.path in cluster.savepoint_store.saved, f"{name} says Ready and is not there"
        owner = cluster.savepoint_store.saved[status.path]["owner"]
        assert owner in (one["metadata"]["uid"], "nobody")


def told() -> FakeCluster:
    cluster = FakeCluster(SPEC)
    story(cluster)
    return cluster


UNHARMED = told()
WRITES = len(UNHARMED.api.writes)


def test_the_story_has_every_kind_of_write():
    kinds = {(verb, plural) for verb, plural, _ in UNHARMED.api.writes}
    assert kinds >= {
        ("create", "streamsavepoints"),
        ("delete", "streamsavepoints"),
        ("patch", "streamsavepoints"),
    }
    tasks = {task for task, _ in UNHARMED.savepoint_store.done}
    assert tasks == {"take", "verify", "discard"}
    assert UNHARMED.savepoint_causes() == {
        "Delete": 1,
        "Manual": 1,
        "Schedule": 1,
        "Suspend": 1,
        "Upgrade": 1,
    }
    assert not keepers(UNHARMED) and not UNHARMED.exists
    honest(UNHARMED)


@pytest.mark.parametrize("k", range(WRITES + 1))
def test_killed_after_the_kth_write_it_comes_to_the_same_end(k: int):
    cluster = FakeCluster(SPEC)
    cluster.api.writes_left = k
    story(cluster)
    assert outcome(cluster) == outcome(UNHARMED)
    honest(cluster)
    rests(cluster)


# Not "invalid": a savepoint that the server refuses is one that a suspension and a deletion go on without.
FAULTS = ("refused", "lost", "conflict", "busy")


@pytest.mark.parametrize(
    ("fault", "writes"),
    [
        *((fault, range(k, WRITES, 9)) for k, fault in enumerate(FAULTS)),
        *(pytest.param(fault, range(WRITES), marks=pytest.mark.full) for fault in FAULTS),
    ],
)
def test_any_single_write_may_fail(fault: str, writes: range):
    for k in writes:
        cluster = FakeCluster(SPEC)
        cluster.api.faults = [*([None] * k), fault]
        story(cluster)
        assert outcome(cluster) == outcome(UNHARMED), f"{fault} at write {k}"
        honest(cluster)


@pytest.mark.parametrize("pace", [1, 3])
def test_a_watch_that_is_late_changes_nothing_in_the_end(pace: int):
    cluster = FakeCluster(SPEC)
    cluster.watch_pace = pace
    story(cluster)
    assert outcome(cluster)[1:5] == outcome(UNHARMED)[1:5]  # type: ignore[index]
    honest(cluster)


def rests(cluster: FakeCluster) -> None:
    before = list(cluster.api.writes)
    for _ in range(3):
        cluster.pass_once()
    assert cluster.api.writes == before


def test_two_operators_take_one_savepoint():
    """Both believe that they lead, and take turns; one of them sees what the other wrote late or never."""
    cluster = FakeCluster(SPEC)
    cluster.settle()
    first = (cluster.operator, cluster.savepointer)
    second_operator = cluster.new_operator()
    second = (second_operator, cluster.savepointer)
    cluster.create_savepoint("manual", verify="State")
    cluster.later(3600)
    for turn in range(12):
        cluster.operator, cluster.savepointer = (first, second)[turn % 2]
        cluster.watch_pace = (None, 0)[turn % 2]
        cluster.pass_once()
        cluster.kubelets_work()
    cluster.operator, cluster.savepointer = first
    cluster.watch_pace = None
    cluster.settle()
    assert cluster.savepoint_causes() == {"Manual": 1, "Schedule": 1}
    assert len(cluster.savepoint_store.saved) == 2
    honest(cluster)


def test_an_operator_that_sees_the_past_removes_and_takes_nothing():
    cluster = FakeCluster(SPEC)
    cluster.settle()
    cluster.create_savepoint("manual")
    cluster.pass_once()
    past = copy.deepcopy(cluster.api.objects)
    cluster.settle()
    before, saved = outcome(cluster), set(cluster.savepoint_store.saved)
    cluster.api.stale = past
    cluster.operator = cluster.new_operator()
    for _ in range(4):
        cluster.pass_once()
    cluster.api.stale = None
    cluster.relist()
    cluster.settle()
    assert outcome(cluster) == before
    assert set(cluster.savepoint_store.saved) == saved


class AnySavepoints(Troubles):
    """Savepoints asked for, deleted, failing; the job edited, suspended, crashed; kills and faults."""

    @initialize()
    def begin(self) -> None:
        self.befall(FakeCluster(SPEC))
        self.cluster.savepoint_store.import_from_elsewhere(ELSEWHERE)
        self.number = 0
        # Of every savepoint: the run it was first meant to be taken from.
        self.sources: dict[str, Any] = {}

    @rule()
    def operator_passes(self) -> None:
        self.cluster.pass_once()

    @rule()
    def kubelets_work(self) -> None:
        self.cluster.kubelets_work()

    @rule(verify=st.sampled_from(["Objects", "State"]), path=st.sampled_from([None, ELSEWHERE]))
    def one_is_asked_for(self, verify: str, path: str | None) -> None:
        self.number += 1
        more = {"path": path} if path else {}
        self.cluster.create_savepoint(f"manual-{self.number}", verify=verify, **more)

    @precondition(lambda self: self.cluster.api.of(STREAM_SAVEPOINTS))
    @rule(data=st.data())
    def one_is_deleted(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.api.of(STREAM_SAVEPOINTS))))
        self.cluster.delete_savepoint(name)

    @precondition(lambda self: keepers(self.cluster))
    @rule(data=st.data())
    def a_keeper_vanishes(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(keepers(self.cluster))))
        self.cluster.api.remove((PODS.plural, NAMESPACE, name))

    @rule(
        problem=st.sampled_from(
            [
                None,
                {"reason": "StoreUnavailable", "message": "s3 does not answer"},
                {"reason": "CheckpointDamaged", "message": "offsets/40 is missing"},
                {"message": "killed"},
            ]
        )
    )
    def the_store_fails_or_recovers(self, problem: Any) -> None:
        self.cluster.savepoint_store.fails = problem

    @precondition(lambda self: self.cluster.exists)
    @rule(args=st.sampled_from([[], ["--a"], ["--b"]]))
    def arguments_are_edited(self, args: list[str]) -> None:
        self.cluster.edit(application={"args": args})

    @precondition(lambda self: self.cluster.exists)
    @rule(suspend=st.booleans())
    def suspend_is_set(self, suspend: bool) -> None:
        self.cluster.edit(suspend=suspend)

    @precondition(lambda self: self.cluster.writers())
    @rule()
    def the_driver_crashes(self) -> None:
        for agent in list(self.cluster.agents.by_uid.values()):
            self.cluster.end_driver(agent.pod, "QueryFailed", 66)

    @rule(seconds=st.sampled_from([1, 30, 600, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.cluster.later(seconds)

    @invariant()
    def none_says_ready_that_is_not(self) -> None:
        honest(self.cluster)

    @invariant()
    def what_was_meant_stays(self) -> None:
        for name, one in self.cluster.api.of(STREAM_SAVEPOINTS).items():
            status = self.cluster.savepoint(name)
            meant = (status.path, status.source if one["spec"].get("path") is None else None)
            if status.started_at is not None:
                assert self.sources.setdefault(one["metadata"]["uid"], meant) == meant

    @invariant()
    def what_failed_or_is_done_stays_so(self) -> None:
        for name in self.cluster.api.of(STREAM_SAVEPOINTS):
            status = self.cluster.savepoint(name)
            assert not (status.failed_at and status.condition("Ready").status == "True")  # type: ignore[union-attr]

    def teardown(self) -> None:
        """Left in peace, everything comes to rest, nothing is left behind, and then nobody writes."""
        self.troubles_end()
        cluster = self.cluster
        cluster.savepoint_store.fails = None
        cluster.later(600)
        if cluster.exists:
            cluster.edit(suspend=False)
        cluster.settle(400)
        honest(cluster)
        assert not keepers(cluster)
        objects = cluster.api.of(STREAM_SAVEPOINTS)
        paths = {cluster.savepoint(name).path for name in objects}
        assert set(cluster.savepoint_store.saved) <= paths | {ELSEWHERE}
        for name in objects:
            assert cluster.savepoint(name).state in ("Ready", "Failed")
        rests(cluster)


AnySavepoints.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestAnySavepoints = AnySavepoints.TestCase


class ManySavepoints(AnySavepoints):
    pass


ManySavepoints.TestCase.settings = settings(
    max_examples=120, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
TestManySavepoints = pytest.mark.full(ManySavepoints.TestCase)
