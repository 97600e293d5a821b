"""Every scenario of a job's life, with the operator killed after every write of it: the end is the same.

Beside the long stories of the other files, which mix many steps, each scenario here is a step of its own,
from a job that runs. That of a job that sleeps is in test_idle.py, those of starts from savepoints in
test_start_from.py: they need more of a world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from headrace.api import ROLLBACK_ANNOTATION
from headrace.kube.resources import CONFIG_MAPS, PODS, SERVICES, STATEFUL_SETS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import FakeCluster

BASE: dict[str, Any] = {
    "application": {"file": "job.py"},
    "restart": {"backoff": {"min": "2s", "max": "8s"}},
    "savepoints": {"onUpgrade": False, "onSuspend": False, "onDelete": False},
}
WARM = {"upgrade": {"strategy": "Rehearsed"}}


@dataclass(frozen=True)
class Scenario:
    # Told from a job that has come to rest; of one that is new there is nothing before.
    story: Callable[[FakeCluster], None]
    spec: dict[str, Any] = field(default_factory=dict)
    new: bool = False


def edits(*changes: dict[str, Any]) -> Callable[[FakeCluster], None]:
    def story(cluster: FakeCluster) -> None:
        for change in changes:
            cluster.edit(**change)
            cluster.settle(200)

    return story


def is_deleted(*, foreground: bool = False) -> Callable[[FakeCluster], None]:
    def story(cluster: FakeCluster) -> None:
        cluster.delete_job(foreground=foreground)
        cluster.settle(200)

    return story


def is_retained_after_all(cluster: FakeCluster) -> None:
    """Of one that would have been retained in the first place nothing is written."""
    edits({"deletionPolicy": "Retain"})(cluster)
    is_deleted()(cluster)


def goes_back_by_hand(cluster: FakeCluster) -> None:
    edits({"application": {"args": ["--x"]}})(cluster)
    cluster.api.set(cluster.job_place, {"metadata": {"annotations": {ROLLBACK_ANNOTATION: "2"}}})
    cluster.settle(200)


def takes_a_savepoint(cluster: FakeCluster) -> None:
    cluster.create_savepoint("manual", verify="State")
    cluster.settle()
    cluster.delete_savepoint("manual")
    cluster.settle()


def completes_and_starts_again(cluster: FakeCluster) -> None:
    for _ in range(2):
        cluster.end_driver(cluster.driver_place(), "Completed", 0)
        cluster.settle()
        cluster.later(3600)
        cluster.settle()


def completes(cluster: FakeCluster) -> None:
    cluster.end_driver(cluster.driver_place(), "Completed", 0)
    cluster.settle()
    edits({"restartNonce": "again"})(cluster)


def loses_its_node(cluster: FakeCluster) -> None:
    place = cluster.driver_place()
    cluster.agent().deaf = True
    cluster.api.set(place, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    for _ in range(20):
        cluster.pass_once()
        cluster.later(10)
    cluster.settle()


def nothing_more(cluster: FakeCluster) -> None:
    cluster.settle()


SAVED = {"savepoints": {"onUpgrade": True, "onSuspend": True, "onDelete": True}}
NEW_CODE = {"application": {"args": ["--x"]}}
SCENARIOS: dict[str, Scenario] = {
    "create": Scenario(nothing_more, new=True),
    "create-and-hold": Scenario(nothing_more, {"deletionPolicy": "Delete"}, new=True),
    "scale": Scenario(edits({"executors": {"count": 3}}, {"executors": {"count": 1}})),
    "suspend-resume": Scenario(edits({"suspend": True}, {"suspend": False})),
    "suspend-resume-saved": Scenario(edits({"suspend": True}, {"suspend": False}), SAVED),
    "delete-retain-after-all": Scenario(is_retained_after_all, {"deletionPolicy": "Delete"}),
    "delete-retain-saved": Scenario(is_deleted(), SAVED),
    "delete-all": Scenario(is_deleted(), {"deletionPolicy": "Delete"}),
    "delete-foreground": Scenario(is_deleted(foreground=True), {"deletionPolicy": "Delete"}),
    "upgrade-cold": Scenario(edits(NEW_CODE)),
    "upgrade-cold-saved": Scenario(edits(NEW_CODE), SAVED),
    "upgrade-stateless": Scenario(edits({**NEW_CODE, "upgrade": {"strategy": "Stateless"}})),
    "upgrade-warm": Scenario(edits(NEW_CODE), WARM),
    "upgrade-warm-saved": Scenario(edits(NEW_CODE), {**WARM, **SAVED}),
    "rehearsal-refused": Scenario(edits({"application": {"args": ["crash"]}}), WARM),
    "rollback": Scenario(edits({"application": {"args": ["crash-after-1"]}})),
    "rollback-never-started": Scenario(edits({"application": {"args": ["never"]}})),
    "rollback-by-hand": Scenario(goes_back_by_hand),
    "savepoint": Scenario(takes_a_savepoint),
    "repartition": Scenario(edits({"state": {"partitions": 32}})),
    "finite": Scenario(completes, {"trigger": {"mode": "AvailableNow"}}),
    "cron": Scenario(
        completes_and_starts_again, {"trigger": {"mode": "AvailableNow", "schedule": "0 * * * *"}}
    ),
    "lost-node": Scenario(loses_its_node, {"lostNode": "Force"}),
}


def begun(scenario: Scenario) -> FakeCluster:
    cluster = FakeCluster({**BASE, **scenario.spec})
    if not scenario.new:
        cluster.settle()
    return cluster


def outcome(cluster: FakeCluster) -> object:
    """What the cluster has come to, whatever happened on the way there."""
    kinds = (PODS, SERVICES, CONFIG_MAPS, STATEFUL_SETS)
    names = [sorted(name for name in cluster.api.of(kind) if "-take-" not in name) for kind in kinds]
    status = cluster.status
    return {
        "exists": cluster.exists,
        "writers": cluster.writers(),
        "started": cluster.started,
        "seeds": cluster.seeds,
        "copies": cluster.copies,
        "names": names,
        "state": status.state,
        "conditions": {(one.type, one.status, one.reason) for one in status.conditions},
        "stable": status.last_stable.run if status.last_stable is not None else None,
        "history": [(entry.run, entry.outcome) for entry in status.history],
        "savepoints": (cluster.savepoint_causes(), states_of_savepoints(cluster)),
        "in the store": (len(cluster.savepoint_store.saved), len(cluster.removed) > 0),
        "rows": (cluster.stream.sink.lost(), cluster.stream.sink.repeated()),
    }


def states_of_savepoints(cluster: FakeCluster) -> list[str | None]:
    return sorted(cluster.savepoint(name).state for name in cluster.api.of(STREAM_SAVEPOINTS))


def come_to_the_same_end(name: str, kills: Callable[[int], Iterable[int]]) -> None:
    scenario = SCENARIOS[name]
    unharmed = begun(scenario)
    before = len(unharmed.api.writes)
    scenario.story(unharmed)
    writes = len(unharmed.api.writes) - before
    assert writes > 0
    for k in kills(writes):
        cluster = begun(scenario)
        cluster.api.writes_left = k
        scenario.story(cluster)
        assert outcome(cluster) == outcome(unharmed), f"killed after write {k} of {writes}"
        rest = len(cluster.api.writes)
        for _ in range(3):
            cluster.pass_once()
        assert cluster.api.writes[rest:] == [], f"killed after write {k}: it does not come to rest"


# Every third here, beginning elsewhere in each; all of them take most of a minute.
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_after_some_writes_it_comes_to_the_same_end(name: str):
    first = list(SCENARIOS).index(name) % 3
    come_to_the_same_end(name, lambda writes: range(min(first, writes), writes + 1, 3))


@pytest.mark.full
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_after_the_kth_write_it_comes_to_the_same_end(name: str):
    come_to_the_same_end(name, lambda writes: range(writes + 1))
