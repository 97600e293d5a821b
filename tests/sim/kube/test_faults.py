"""The operator's own misfortunes: killed after any write, refused, unanswered, behind the times, doubled."""

import copy
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from headrace.kube.resources import CONFIG_MAPS, PODS, SECRETS, SERVICES, STATEFUL_SETS
from tests.sim.kube.cluster import FakeCluster
from tests.sim.kube.troubles import Troubles

BACKOFF = {"backoff": {"min": "2s", "max": "8s"}}
SPEC = {"application": {"file": "job.py"}, "restart": BACKOFF}


def story(cluster: FakeCluster) -> None:
    """A first run, an upgrade, a crash, a suspend and a resume: every kind of write there is."""
    cluster.settle()
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.settle()
    cluster.edit(executors={"count": 2})
    cluster.settle()
    cluster.edit(suspend=True)
    cluster.settle()
    cluster.edit(suspend=False)
    cluster.settle()


def outcome(cluster: FakeCluster) -> object:
    """What the cluster has come to, whatever happened on the way there."""
    objects = [sorted(cluster.api.of(kind)) for kind in (PODS, SERVICES, SECRETS, CONFIG_MAPS, STATEFUL_SETS)]
    run = cluster.status.run
    assert run is not None
    return (
        cluster.started,
        cluster.seeds,
        objects,
        cluster.status.state,
        run.number,
        cluster.condition("Ready"),
    )


def told() -> FakeCluster:
    cluster = FakeCluster(SPEC)
    story(cluster)
    return cluster


UNHARMED = told()
WRITES = len(UNHARMED.api.writes)


def test_the_story_has_every_kind_of_write():
    kinds = {(verb, plural) for verb, plural, _ in UNHARMED.api.writes}
    assert kinds >= {
        ("patch", "streamjobs"),
        ("create", "pods"),
        ("create", "configmaps"),
        ("create", "secrets"),
        ("create", "services"),
        ("delete", "pods"),
        ("patch", "statefulsets"),
    }
    assert WRITES > 40


@pytest.mark.parametrize("k", range(WRITES + 1))
def test_killed_after_the_kth_write_it_comes_to_the_same_end(k: int):
    cluster = FakeCluster(SPEC)
    cluster.api.writes_left = k
    story(cluster)
    assert outcome(cluster) == outcome(UNHARMED)


FAULTS = ("refused", "lost", "conflict", "busy", "invalid")


# Each fault at every eighth write, in turn; all of them at all writes take minutes.
@pytest.mark.parametrize(
    ("fault", "writes"),
    [
        *((fault, range(k, WRITES, 8)) for k, fault in enumerate(FAULTS)),
        *(pytest.param(fault, range(WRITES), marks=pytest.mark.full) for fault in FAULTS),
    ],
)
def test_any_single_write_may_fail(fault: str, writes: range):
    for k in writes:
        cluster = FakeCluster(SPEC)
        cluster.api.faults = [*([None] * k), fault]
        story(cluster)
        assert outcome(cluster) == outcome(UNHARMED), f"{fault} at write {k}"


@pytest.mark.parametrize(("first", "fault"), [(0, "refused"), (4, "busy")])
def test_any_single_read_may_fail(first: int, fault: str):
    for k in range(first, UNHARMED.api.reads, 8):
        cluster = FakeCluster(SPEC)
        cluster.api.read_faults = [*([None] * k), fault]
        story(cluster)
        assert outcome(cluster) == outcome(UNHARMED), f"{fault} at read {k}"


def test_while_nothing_can_be_read_nothing_is_begun():
    """A driver is gone, and nobody can tell for certain: no other one starts before somebody can."""
    cluster = FakeCluster(SPEC)
    cluster.settle()
    cluster.api.remove(cluster.driver_place())
    cluster.api.read_faults = ["refused"] * 1000
    for _ in range(10):
        cluster.pass_once()
        cluster.kubelets_work()
        cluster.later(30)
    assert cluster.started == [(1, 1, 1)]
    cluster.api.read_faults = []
    cluster.settle()
    assert cluster.started == [(1, 1, 1), (1, 2, 2)]


def test_a_quarter_of_all_writes_may_fail():
    cluster = FakeCluster(SPEC)
    cluster.api.faults = [None, "lost", None, None, "refused", None, None, "conflict"] * 30
    story(cluster)
    assert cluster.started == UNHARMED.started
    assert cluster.status.state == "Running"


def test_an_operator_that_sees_the_past_does_nothing_at_all():
    """A restart against an API server that lags: what it read is not what is, so its writes are refused."""
    past = FakeCluster(SPEC)
    past.pass_once()
    past.pass_once()  # the first attempt is intended, and created
    snapshot = copy.deepcopy(past.api.objects)
    past.settle()
    past.edit(application={"args": ["--x"]})
    past.settle()
    before = outcome(past)
    past.api.stale = snapshot
    past.operator = past.new_operator()
    for _ in range(5):
        past.pass_once()
    past.api.stale = None
    past.settle()
    assert outcome(past) == before
    assert past.writers() == ["clicks-r2-a1"]


def test_a_leader_that_was_paused_can_do_no_harm():
    """Paused after it wrote its intent, it wakes when another operator has long gone on."""
    cluster = FakeCluster(SPEC)
    old = cluster.operator
    cluster.settle()
    cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
    cluster.settle()
    asleep = copy.deepcopy(cluster.api.objects)
    cluster.operator = cluster.new_operator()
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    before = outcome(cluster)
    cluster.leads = False
    cluster.operator, cluster.api.stale = old, asleep
    writes = list(cluster.api.writes)
    cluster.pass_once()
    assert cluster.api.writes == writes
    cluster.leads, cluster.api.stale = True, None
    cluster.operator = cluster.new_operator()
    cluster.settle()
    assert outcome(cluster) == before


def test_a_zombie_pod_of_an_old_run_is_drained_and_never_joined_by_another_writer():
    """The worst that a woken leader can do: create the pod of an attempt that is over."""
    cluster = FakeCluster(SPEC)
    cluster.settle()
    first = copy.deepcopy(cluster.api.of(PODS)["clicks-r1-a1"])
    cluster.edit(application={"args": ["--x"]})
    cluster.settle()
    for place in [place for place in cluster.api.objects if place[2] == "clicks-r1-a1"]:
        if place in cluster.api.objects:
            cluster.api.remove(place)
    del first["status"]
    cluster.api.put_new(PODS, first)
    cluster.kubelets_work()  # it starts, and finds that its attempt was claimed before
    assert cluster.writers() == ["clicks-r2-a1"]
    cluster.settle()
    assert cluster.live_drivers() == ["clicks-r2-a1"]
    assert cluster.condition("Ready") == ("True", "Running")


def test_back_to_what_it_was_is_as_if_nothing_had_been():
    def made(*edits: dict) -> dict:
        cluster = FakeCluster(SPEC)
        cluster.settle()
        for edit in edits:
            cluster.edit(**edit)
            cluster.settle()
        run = cluster.status.run
        assert run is not None
        return cluster.api.of(CONFIG_MAPS)[f"clicks-r{run.number}"]["data"]

    plain, other, bad = (
        {"application": {"args": []}},
        {"application": {"args": ["--x"]}},
        {"trigger": {"mode": "No"}},
    )
    assert made(other, plain)["spec.json"] == made(plain)["spec.json"]
    good = {"trigger": {"mode": "Continuous"}}
    assert made(bad, good)["revision"] == made(good)["revision"]


class AnyLife(Troubles):
    @initialize()
    def begin(self):
        self.befall(FakeCluster(SPEC))

    @rule()
    def operator_passes(self):
        self.cluster.pass_once()

    @rule()
    def kubelets_work(self):
        self.cluster.kubelets_work()

    @rule(args=st.sampled_from([[], ["--a"], ["--b"], ["crash"], ["crash-after-1"], ["never"]]))
    def arguments_are_edited(self, args):
        self.cluster.edit(application={"args": args})

    @rule(count=st.integers(1, 3))
    def executors_are_edited(self, count):
        self.cluster.edit(executors={"count": count})

    @rule(text=st.sampled_from([None, "1", "2", "2 to 1", "4 to 3", "soon"]))
    def a_rollback_is_asked_for(self, text):
        annotations = {"annotations": {"headrace.dev/rollback": text}}
        self.cluster.api.set(self.cluster.job_place, {"metadata": annotations})

    @rule(suspend=st.booleans())
    def suspend_is_set(self, suspend):
        self.cluster.edit(suspend=suspend)

    @precondition(lambda self: self.cluster.writers())
    @rule(reason=st.sampled_from(["QueryFailed", "Drained", "BatchStuck", "Fenced"]))
    def driver_ends(self, reason):
        for agent in list(self.cluster.agents.by_uid.values()):
            self.cluster.end_driver(agent.pod, reason, 1)

    @precondition(lambda self: self.cluster.writers())
    @rule(deaf=st.booleans())
    def agents_go_deaf(self, deaf):
        for agent in self.cluster.agents.by_uid.values():
            agent.deaf = deaf

    @rule(problem=st.sampled_from([None, "the store does not answer"]))
    def the_store_fails_or_recovers(self, problem):
        self.cluster.seed_fails = problem

    @rule(seconds=st.sampled_from([1, 30, 600]))
    def time_passes(self, seconds):
        self.cluster.later(seconds)

    @invariant()
    def epochs_grow(self):
        epochs = [epoch for _, _, epoch in self.cluster.started]
        assert epochs == sorted(set(epochs))

    @invariant()
    def later_runs_began_from_their_predecessor(self):
        for run, _, _ in self.cluster.started:
            assert run == 1 or self.cluster.seeds[run].endswith(f"/run-{run - 1}")

    @invariant()
    def the_way_back_is_kept(self):
        stable = self.cluster.status.last_stable
        assert stable is None or f"clicks-r{stable.run}" in self.cluster.pins()

    @invariant()
    def every_row_is_in_the_sink_once(self):
        assert self.cluster.stream.sink.lost() == []
        assert self.cluster.stream.sink.repeated() == 0

    def teardown(self):
        """Left in peace, it comes to rest with what was last wanted, and then writes nothing."""
        self.troubles_end()
        cluster = self.cluster
        cluster.api.set(cluster.job_place, {"metadata": {"annotations": {"headrace.dev/rollback": None}}})
        cluster.edit(application={"args": ["--last"]})
        cluster.seed_fails = None
        cluster.later(600)
        cluster.edit(suspend=False)
        since = cluster.moment
        cluster.settle(200)
        assert cluster.moment - since < timedelta(hours=6)
        self.there_are_never_two_writers()
        assert cluster.condition("Ready") == ("True", "Running")
        assert cluster.status.last_stable.run == cluster.status.run.number
        wanted = cluster.api.objects[cluster.job_place]
        assert cluster.status.observed_generation == wanted["metadata"]["generation"]
        writes = list(cluster.api.writes)
        for _ in range(3):
            cluster.pass_once()
        assert cluster.api.writes == writes


AnyLife.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestAnyLife = AnyLife.TestCase


class LongLife(AnyLife):
    pass


LongLife.TestCase.settings = settings(
    max_examples=250, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLongLife = pytest.mark.full(LongLife.TestCase)
