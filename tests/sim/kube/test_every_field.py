"""Every field of the spec does something, and undoing it undoes that: whatever a job was before, what it
becomes is what a fresh job of the same spec is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from headrace.api import Change, StreamJob, StreamJobSpec
from headrace.api.model import leaves
from headrace.core.changes import classify
from headrace.core.manifests.keeper_pod import KEEPER_ROLE
from headrace.core.manifests.ownership import ROLE_LABEL
from headrace.kube.resources import CONFIG_MAPS, PODS, STREAM_SAVEPOINTS
from headrace.runtime.job_metrics import JOB_GAUGES, JobSample
from tests.sim.kube.children import Picture, children, pinned
from tests.sim.kube.cluster import JOB, NAMESPACE, FakeCluster
from tests.sim.kube.fake_api import Object
from tests.sim.kube.fields import CODE, EDITS

# What is made of a spec, and what the run has kept of it.
Seen = tuple[Picture, Object | None]

CLASSES = {".".join(leaf.path): leaf.facts.change for leaf in leaves(StreamJobSpec)}
LIVE = [path for path, change in CLASSES.items() if change is Change.LIVE]

# Read when a job has no run yet, and only then; an edit of a location is refused by the API server.
AT_THE_START = [path for path in CLASSES if path.startswith("startFrom.")]
FIXED = ["checkpoint.location"]

# Fields whose whole meaning is that a new value makes a new run.
MAKES_A_RUN = ["restartNonce"]

# Fields of the autoscaler: they show where a topic fills, each in test_autoscaling.py.
ONLY_UNDER_LOAD = [
    f"autoscaling.{name}" for name in ("mode", "min", "max", "emergencyMax", "blackoutWindows")
]
# Fields of a job that sleeps: each in test_idle.py.
ONLY_ASLEEP = [path for path in CLASSES if path.startswith("autoscaling.idle.")]


# ---- what a field does where no child shows it: each tells how a job behaves --------------------------


def restarts(cluster: FakeCluster) -> Any:
    """Three failures, a minute apart: how many count in a row, and the wait after each."""
    seen = []
    for _ in range(3):
        cluster.later(60)
        cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
        cluster.pass_once()
        restarts = cluster.status.restarts
        assert restarts.next_at is not None
        seen.append((restarts.in_a_row, (restarts.next_at - cluster.moment).total_seconds()))
        cluster.settle()
    return seen


def next_start(cluster: FakeCluster) -> Any:
    cluster.end_driver(cluster.driver_place(), "Completed", 0)
    cluster.settle()
    assert cluster.status.state == "Completed"
    return cluster.status.next_start_at


def lost_node(cluster: FakeCluster) -> Any:
    agent = cluster.agent()
    agent.deaf = True
    cluster.api.set(cluster.driver_place(), {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    cluster.pass_once()
    cluster.later(300)
    cluster.pass_once()
    return cluster.status.state, agent.pod in cluster.api.objects


def state_change(cluster: FakeCluster) -> Any:
    cluster.edit(checkpoint={"s3": {"endpoint": "https://s3.example.com"}})
    cluster.settle()
    assert cluster.status.run is not None
    return cluster.status.run.number, cluster.condition("Stalled")


def upgrade(cluster: FakeCluster) -> Any:
    """What the new run begins with."""
    cluster.edit(restartNonce="again")
    cluster.settle()
    assert cluster.status.run is not None
    return cluster.status.run.seeded_from


def bad_upgrade(cluster: FakeCluster) -> Any:
    cluster.edit(application={"args": ["crash"]}, savepoints={"onUpgrade": False})
    for _ in range(20):
        cluster.pass_once()
        cluster.kubelets_work()
    assert cluster.status.run is not None
    return cluster.status.run.number


def watched(cluster: FakeCluster) -> Any:
    """Whether the next run is promoted after seven minutes."""
    return _after(cluster, 420, "--x")


def never_started(cluster: FakeCluster) -> Any:
    """Whether the next run is given up after a quarter of an hour."""
    return _after(cluster, 900, "never")


def _after(cluster: FakeCluster, seconds: float, argument: str) -> Any:
    cluster.edit(application={"args": [argument]}, savepoints={"onUpgrade": False})
    for _ in range(10):
        cluster.pass_once()
        cluster.kubelets_work()
    cluster.later(seconds)
    cluster.pass_once()
    status = cluster.status
    assert status.last_stable is not None
    return status.last_stable.run, status.operation.kind if status.operation is not None else None


def rehearsal(cluster: FakeCluster) -> Any:
    """What the candidate is told, and for how long it is waited for."""
    cluster.edit(application={"args": ["--x"]})
    for _ in range(6):
        cluster.pass_once()
    mounted = cluster.api.of(CONFIG_MAPS)[f"{JOB}-c1"]["data"]["run.json"]
    return json.loads(mounted)["rehearsal"]


def objectives(cluster: FakeCluster) -> Any:
    outcome = cluster.pass_once()
    assert outcome is not None and outcome.job is not None and outcome.status is not None
    sample = JobSample(spec=outcome.job.spec, status=outcome.status, report=outcome.report)
    return {name: of(sample) for name, _, of in JOB_GAUGES if "objective" in name}


def savepoints(cluster: FakeCluster) -> Any:
    """How many of each cause stay, and how many of those by the clock: of a dozen, after days, after an
    upgrade and a suspension."""

    def counted() -> Any:
        by_clock = [name for name in cluster.api.of(STREAM_SAVEPOINTS) if name.startswith(f"{JOB}-2026")]
        limits = {
            (one["spec"].get("verify"), one["spec"].get("maxCopyRate"))
            for one in cluster.api.of(STREAM_SAVEPOINTS).values()
        }
        return cluster.savepoint_causes(), len(by_clock), limits

    for number in range(12):
        cluster.create_savepoint(f"hourly-{number}", cause="Schedule")
    cluster.settle()
    seen = [counted()]
    for step in ({}, {"application": {"args": ["--again"]}}, {"suspend": True}):
        cluster.later(100 * 3600)
        if step:
            cluster.edit(**step)
        cluster.settle()
        seen.append(counted())
    return seen


_SAVEPOINT_FIELDS = ("schedule", "keep", "maxAge", "onUpgrade", "onSuspend", "verify", "maxCopyRate")
BEHAVIOURS: dict[str, Callable[[FakeCluster], Any]] = {
    "restart.backoff.min": restarts,
    "restart.backoff.max": restarts,
    "restart.stableAfter": restarts,
    "trigger.schedule": next_start,
    "trigger.timeZone": next_start,
    "lostNode": lost_node,
    "upgrade.stateCompatible": state_change,
    **{f"savepoints.{name}": savepoints for name in _SAVEPOINT_FIELDS},
    "upgrade.strategy": upgrade,
    **dict.fromkeys(
        [path for path in CLASSES if path.startswith(("upgrade.rehearsal.", "upgrade.standby."))], rehearsal
    ),
    "upgrade.rollback": bad_upgrade,
    "upgrade.verifyWindow": watched,
    "upgrade.startTimeout": never_started,
    "objectives.latency": objectives,
    "autoscaling.lagObjective": objectives,
}


# ---- lives ------------------------------------------------------------------------------------------


class Life:
    """A job that has one spec after the other, and comes to rest with each."""

    def __init__(self, spec: Object, *, live: bool = False) -> None:
        self.spec, self.live = spec, live
        self.cluster = FakeCluster(copy.deepcopy(spec))
        for name, data in CODE.items():
            metadata = {"name": name, "namespace": NAMESPACE}
            self.cluster.api.put_new(CONFIG_MAPS, {"metadata": metadata, "data": dict(data)})
        self.cluster.settle()

    def become(self, spec: Object) -> Life:
        self.cluster.edit(**_merge_patch(_as_made(self.spec), _as_made(spec)))
        self.cluster.settle()
        self.spec = spec
        return self

    def seen(self) -> Seen:
        """A live edit leaves the driver alone, so what it brings to drivers shows in the next one only."""
        cluster = self.cluster
        if self.live and cluster.live_drivers():
            cluster.end_driver(cluster.driver_place(), "QueryFailed", 66)
            cluster.settle()
        # The pin of a run stays as it was made: live fields are read from the spec itself.
        return children(cluster), None if self.live else pinned(cluster)


def _as_made(spec: Object) -> Object:
    """The fake cluster makes its jobs with cold upgrades, where a test does not say otherwise."""
    return {**spec, "upgrade": {"strategy": "Cold", **spec.get("upgrade", {})}}


def _merge_patch(before: Object, after: Object) -> Object:
    """As `kubectl apply` makes it: what is no longer in the manifest is null."""
    both_maps = {key for key in after if isinstance(after[key], dict) and isinstance(before.get(key), dict)}
    return {
        **{key: None for key in before if key not in after},
        **{key: _merge_patch(before[key], after[key]) if key in both_maps else after[key] for key in after},
    }


def fresh(spec: Object, *, live: bool) -> Seen:
    return _fresh(json.dumps(spec), live)


@cache
def _fresh(spec: str, live: bool) -> Seen:
    return Life(json.loads(spec), live=live).seen()


# ---- the tests --------------------------------------------------------------------------------------


def test_there_is_an_edit_of_every_field():
    assert sorted(EDITS) == sorted(CLASSES)
    for path, edit in EDITS.items():
        before, after = StreamJobSpec.parse(edit.before()), StreamJobSpec.parse(edit.after(path))
        changed = [one.path for one in classify(before, after).changed]
        assert any(one.startswith(f"spec.{path}") for one in changed), path


def test_no_list_speaks_of_a_field_that_is_not_there():
    spoken_of = {*AT_THE_START, *FIXED, *MAKES_A_RUN, *ONLY_UNDER_LOAD, *ONLY_ASLEEP, *BEHAVIOURS}
    assert spoken_of <= set(CLASSES)


def test_all_that_a_job_stands_on_is_compared():
    picture, pin = fresh({"application": {"file": "job.py"}, "driver": {"evictions": "Block"}}, live=False)
    assert set(picture) == {
        "status",
        "streamjobs/clicks",
        *(f"{kind}/clicks-r#-a#" for kind in ("pods", "configmaps", "secrets", "services")),
        "configmaps/code",
        "poddisruptionbudgets/clicks-driver",
        "statefulsets/spark-s-clicks-#-0",
    }
    assert picture["status"]["state"] == "Running"
    assert pin is not None and pin["spec.json"]["driver"] == {"evictions": "Block"}


@pytest.mark.parametrize("path", [path for path in EDITS if path not in (*AT_THE_START, *FIXED)])
def test_an_edited_job_is_as_a_fresh_one_and_so_it_is_when_the_edit_is_undone(path: str):
    live, edit = path in LIVE, EDITS[path]
    before, after = edit.before(), edit.after(path)
    life = Life(before, live=live)
    assert life.become(after).seen() == fresh(after, live=live)
    assert life.become(before).seen() == fresh(before, live=live)
    assert {run for run, _, _ in life.cluster.started} == ({1} if live else {1, 2, 3})


ELSEWHERE = (*AT_THE_START, *MAKES_A_RUN, *ONLY_UNDER_LOAD, *ONLY_ASLEEP, *BEHAVIOURS)
SHOWN = [path for path in EDITS if path not in ELSEWHERE]


@pytest.mark.parametrize("path", SHOWN)
def test_a_field_shows_in_what_is_made_of_it(path: str):
    live, edit = path in LIVE, EDITS[path]
    (without, _), (with_it, _) = (fresh(spec, live=live) for spec in (edit.before(), edit.after(path)))
    assert {**without, "status": None} != {**with_it, "status": None}


@pytest.mark.parametrize("path", [path for path in EDITS if path.startswith("checkpoint.s3.")])
def test_how_the_store_is_reached_is_known_to_all_who_reach_it(path: str):
    """A keeper is gone when a job has come to rest, so it is not among its children."""

    def keeper(*specs: Object) -> Object:
        life = Life(specs[0]).become(specs[1])
        (seeding,) = (
            thing["spec"]
            for gone, plural, thing in life.cluster.api.told
            if gone and plural == PODS.plural and thing["metadata"]["labels"][ROLE_LABEL] == KEEPER_ROLE
        )
        return seeding

    before, after = EDITS[path].before(), EDITS[path].after(path)
    assert keeper(before, after) != keeper(after, before)


@pytest.mark.parametrize("path", BEHAVIOURS)
def test_a_field_that_no_child_shows_changes_what_the_operator_does(path: str):
    behaves, edit = BEHAVIOURS[path], EDITS[path]
    before, after = edit.before(), edit.after(path)
    without, with_it = (behaves(Life(spec).cluster) for spec in (before, after))
    assert without != with_it
    assert behaves(Life(before).become(after).cluster) == with_it
    assert behaves(Life(before).become(after).become(before).cluster) == without


def test_a_running_driver_is_drained_by_the_limit_of_now():
    edit = EDITS["drainTimeout"]
    for specs, seconds in (
        ((edit.before(), edit.after("drainTimeout")), 30),
        ((edit.after("drainTimeout"), edit.before()), 120),
    ):
        cluster = Life(specs[0]).become(specs[1]).cluster
        cluster.edit(suspend=True)
        cluster.settle()
        assert cluster.agents.drain_limits == [seconds]


@pytest.mark.parametrize(
    ("path", "state", "seeded"),
    [
        (None, "Stalled", {}),
        ("startFrom.none", "Running", {}),
        ("startFrom.latest", "Running", {1: "old-uid/run-7"}),
        ("startFrom.savepoint", "Running", {1: "s3://streams/checkpoints/shop/clicks/_savepoints/s1"}),
        ("startFrom.path", "Running", {1: "s3://streams/savepoints/clicks-1"}),
        ("startFrom.query", "Running", {1: "s3://old/checkpoint"}),
        ("startFrom.timestamp", "Running", {}),
        ("startFrom.offsets", "Running", {}),
    ],
)
def test_where_to_start_decides_how_a_job_starts(path: str | None, state: str, seeded: dict[int, str]):
    """On a store that holds an older lineage."""
    cluster = FakeCluster(EDITS[path].after(path) if path else None)
    cluster.earlier = {"uid": "old-uid", "lastRun": 7}
    cluster.add_savepoint("clicks-1", path="s3://streams/checkpoints/shop/clicks/_savepoints/s1")
    cluster.settle()
    assert (cluster.status.state, cluster.seeds) == (state, seeded)
    start = None
    if cluster.live_drivers():
        (name,) = cluster.live_drivers()
        start = json.loads(cluster.api.of(CONFIG_MAPS)[name]["data"]["run.json"])["start"]
    match path:
        case "startFrom.timestamp":
            assert start == {"timestampMillis": 1769846400000, "offsets": None}
        case "startFrom.offsets":
            assert start == {"timestampMillis": None, "offsets": {"q": {"clicks": {"0": 4711}}}}
        case _:
            assert start is None


@pytest.mark.parametrize("path", AT_THE_START)
def test_where_to_start_is_of_no_matter_to_a_job_that_has_started(path: str):
    edit = EDITS[path]
    life = Life(edit.before(), live=True).become(edit.after(path))
    assert life.seen() == fresh(edit.before(), live=True)
    assert life.become(edit.before()).seen() == fresh(edit.before(), live=True)
    assert {run for run, _, _ in life.cluster.started} == {1}


@pytest.mark.parametrize("path", FIXED)
def test_a_field_that_is_fixed_cannot_be_edited_once_there_is_a_run(path: str):
    edit = EDITS[path]
    has_run = Life(edit.before()).cluster.status.to_manifest()
    old, new = (
        StreamJob.parse({"metadata": {"name": JOB}, "spec": spec, "status": has_run})
        for spec in (edit.before(), edit.after(path))
    )
    assert [broken.at for broken in new.broken_by_edit_of(old)] == [("spec", *path.split("."))]
    assert new.broken_by_edit_of(new) == []
