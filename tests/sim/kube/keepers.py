"""The keepers of a fake cluster that copy and remove a job's checkpoints, and the lookouts of sleeping jobs.

Those of savepoints are in savepoint_store.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from headrace.kube.resources import PODS
from tests.sim.kube.checkpoints import Checkpoints
from tests.sim.kube.fake_api import FakeApi, Object, Place


@dataclass
class Keepers:
    api: FakeApi
    checkpoints: Checkpoints
    writers: Callable[[], list[str]]

    def seeder_works(self, place: Place, pod: Object) -> None:
        if pod.get("status") is not None:
            return
        problem = self.checkpoints.seed_fails
        words: Object = {"reason": "Completed", "message": problem or ""}
        if not problem:
            assert not self.writers(), "state copied under a live writer"
            words["seed"] = self.checkpoints.seed(pod["spec"]["containers"][0]["command"])
        self._end(place, words, good=not problem)

    def remover_works(self, place: Place, pod: Object) -> None:
        """Begins, then ends: between the two somebody may change his mind."""
        if pod.get("status") is None:
            self.api.set(place, {"status": {"phase": "Running"}})
            return
        if pod["status"]["phase"] != "Running":
            return
        if pod["metadata"].get("deletionTimestamp"):
            self.api.remove(place)
            return
        problem = self.checkpoints.deletion_fails
        words = {"reason": "StoreUnavailable", "message": problem or ""}
        if not problem:
            labels = [pod["metadata"].get("labels", {}) for pod in self.api.of(PODS).values()]
            assert not self.writers(), "checkpoints removed under a live writer"
            roles = [each.get("headrace.dev/role") for each in labels]
            assert "executor" not in roles, "checkpoints removed under executors"
            self.checkpoints.remove(pod["spec"]["containers"][0]["command"])
        self._end(place, words, good=not problem)

    def _end(self, place: Place, words: Object, *, good: bool) -> None:
        terminated = {
            "exitCode": 0 if good else 69,
            "message": json.dumps(words),
            "finishedAt": self.api.stamp(),
        }
        state = {"name": "keeper", "state": {"terminated": terminated}}
        phase = "Succeeded" if good else "Failed"
        self.api.set(place, {"status": {"phase": phase, "containerStatuses": [state]}})


@dataclass
class Lookouts:
    api: FakeApi
    writers: Callable[[], list[str]]
    # What they say at their next look: nothing of interest, where this is None; {}: they die.
    say: Object | None = None
    no_room: bool = False

    def lookout_works(self, place: Place, pod: Object) -> None:
        """Runs, and ends when there is something to say."""
        if pod["metadata"].get("deletionTimestamp"):
            self.api.remove(place)
        elif pod.get("status") is None:
            if not self.no_room:
                running = {"name": "driver", "state": {"running": {}}}
                self.api.set(place, {"status": {"phase": "Running", "containerStatuses": [running]}})
        elif pod["status"]["phase"] == "Running" and self.say is not None:
            assert not self.writers(), "somebody looks for a job that is awake"
            words = self.say
            terminated = {"exitCode": 0 if words else 1, "message": json.dumps(words) if words else "Killed"}
            state = {"name": "driver", "state": {"terminated": terminated}}
            phase = "Succeeded" if words else "Failed"
            self.api.set(place, {"status": {"phase": phase, "containerStatuses": [state]}})
