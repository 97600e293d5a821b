"""A Kubernetes in memory: an API server, kubelets, drivers with agents, keepers, a store. All can fail.

And the people who use it: what they do to a job, and what they can see of it.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.api import PAUSE_ANNOTATION, StreamJobStatus, StreamSavepointStatus
from headrace.kube.resources import CONFIG_MAPS, PODS, STREAM_JOBS, STREAM_SAVEPOINTS
from tests.sim.kube.agents import Agent, FakeAgents
from tests.sim.kube.checkpoints import Checkpoints
from tests.sim.kube.drivers import Drivers, agent_uid
from tests.sim.kube.executors import Executors
from tests.sim.kube.fake_api import FakeApi, Object, Place
from tests.sim.kube.garbage import collect_garbage
from tests.sim.kube.keepers import Keepers, Lookouts
from tests.sim.kube.savepoint_store import SavepointStore
from tests.sim.stream import Stream

NAMESPACE, JOB = "shop", "clicks"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def _knob(part: str, name: str) -> Any:
    """What tests turn at one of the parts, without a word about the part."""
    return property(
        lambda self: getattr(getattr(self, part), name),
        lambda self, value: setattr(getattr(self, part), name, value),
    )


class FakeKubernetes:
    earlier = _knob("checkpoints", "earlier")
    seed_fails = _knob("checkpoints", "seed_fails")
    deletion_fails = _knob("checkpoints", "deletion_fails")
    lookout_says = _knob("lookouts", "say")
    no_room_for_lookouts = _knob("lookouts", "no_room")

    def __init__(self) -> None:
        self.moment = BEGIN
        self.api = FakeApi(lambda: self.moment)
        self.agents = FakeAgents()
        self.executors = Executors(self.api)
        self.checkpoints = Checkpoints()
        self.drivers = Drivers(
            self.api, self.agents, self.executors, self.checkpoints, self.executors_come_and_go
        )
        self.keepers = Keepers(self.api, self.checkpoints, self.drivers.writers)
        self.lookouts = Lookouts(self.api, self.drivers.writers)
        self.savepoint_store = SavepointStore(self.api)

    # ---- the kubelets and the controllers -----------------------------------------------------------

    def kubelets_work(self) -> None:
        self.executors_come_and_go()
        for name, pod in list(self.api.of(PODS).items()):
            place = (PODS.plural, NAMESPACE, name)
            match pod["metadata"].get("labels", {}).get("headrace.dev/role"):
                case "driver":
                    self.drivers.driver_works(place, pod)
                case "candidate":
                    self.drivers.candidate_works(place, pod)
                case "keeper":
                    self.keepers.seeder_works(place, pod)
                case "lookout":
                    self.lookouts.lookout_works(place, pod)
                case "deletion":
                    self.keepers.remover_works(place, pod)
                case "collector":
                    self.savepoint_store.collector_works(place, pod)
                case "savepoint":
                    self.savepoint_store.keeper_works(place, pod)

    def executors_come_and_go(self) -> None:
        self.executors.come_and_go()

    def collect_garbage(self) -> None:
        collect_garbage(self.api, self.job_place)

    def later(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    # ---- what befalls them --------------------------------------------------------------------------

    def create_job(self, spec: Object) -> None:
        # Rehearsals have tests of their own.
        spec = {**spec, "upgrade": {"strategy": "Cold", **(spec.get("upgrade") or {})}}
        body = {
            "apiVersion": "headrace.dev/v1alpha1",
            "kind": "StreamJob",
            "metadata": {"name": JOB, "namespace": NAMESPACE},
            "spec": spec,
        }
        self.api.put_new(STREAM_JOBS, body)

    def add_savepoint(
        self, name: str, *, path: str | None = None, job: str = JOB, failed: str | None = None
    ) -> Place:
        """A StreamSavepoint as it may be found, paused so that it stays so; being taken, without a path."""
        place = self.create_savepoint(name, job=job)
        self.api.set(place, {"metadata": {"annotations": {PAUSE_ANNOTATION: "true"}}})
        condition = {
            "type": "Stalled" if failed else "Ready",
            "status": "True" if path or failed else "False",
            "lastTransitionTime": self.api.stamp(),
            "reason": "Ready" if path else "Copying",
            "message": failed or "",
        }
        self.api.set(place, {"status": {"path": path, "conditions": [condition]}})
        return place

    def create_savepoint(self, name: str, *, job: str = JOB, **spec: Any) -> Place:
        body = {
            "apiVersion": "headrace.dev/v1alpha1",
            "kind": "StreamSavepoint",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"job": {"name": job}, **spec},
        }
        self.api.put_new(STREAM_SAVEPOINTS, body)
        return (STREAM_SAVEPOINTS.plural, NAMESPACE, name)

    def delete_savepoint(self, name: str) -> None:
        place = (STREAM_SAVEPOINTS.plural, NAMESPACE, name)
        if self.api.objects[place]["metadata"].get("finalizers"):
            self.api.date_deletion(place)
        else:
            self.api.remove(place)

    def edit(self, **changes: Any) -> None:
        job = self.api.objects[self.job_place]
        self.api.set(
            self.job_place, {"spec": changes, "metadata": {"generation": job["metadata"]["generation"] + 1}}
        )

    def delete_job(self, *, foreground: bool = False) -> None:
        """As kubectl does: what has finalizers only gets a date to be deleted at."""
        job = self.api.objects[self.job_place]
        finalizers = [*(job["metadata"].get("finalizers") or ()), *(["foregroundDeletion"] * foreground)]
        metadata = {"generation": job["metadata"]["generation"] + 1, "deletionTimestamp": self.api.stamp()}
        if foreground:
            # The server's own: no client could add it now.
            job["metadata"]["finalizers"] = finalizers
        self.api.set(self.job_place, {"metadata": metadata})

    def end_driver(self, place: Place, reason: str, code: int, message: str = "", **more: Any) -> None:
        self.drivers.end(place, reason, code, message, **more)

    # ---- what can be seen ---------------------------------------------------------------------------

    @property
    def job_place(self) -> Place:
        return (STREAM_JOBS.plural, NAMESPACE, JOB)

    @property
    def exists(self) -> bool:
        return self.job_place in self.api.objects

    @property
    def status(self) -> StreamJobStatus:
        job = self.api.objects.get(self.job_place, {})
        return StreamJobStatus.parse(job.get("status") or {})

    def job_uid(self) -> str:
        return self.api.objects[self.job_place]["metadata"]["uid"]

    def condition(self, kind: Any) -> tuple[str, str]:
        condition = self.status.condition(kind)
        assert condition is not None
        return condition.status, condition.reason

    def savepoint(self, name: str) -> StreamSavepointStatus:
        one = self.api.of(STREAM_SAVEPOINTS)[name]
        return StreamSavepointStatus.parse(one.get("status") or {})

    def savepoint_causes(self) -> dict[str, int]:
        causes = [one["spec"].get("cause", "Manual") for one in self.api.of(STREAM_SAVEPOINTS).values()]
        return dict(sorted(Counter(causes).items()))

    @property
    def stream(self) -> Stream:
        return self.checkpoints.stream

    @property
    def started(self) -> list[tuple[int, int, int]]:
        """The drivers that have claimed their run: (run, attempt, epoch)."""
        return self.drivers.started

    @property
    def seeds(self) -> dict[int, str]:
        """What keepers have copied: run -> the path that it begins from."""
        return self.checkpoints.seeds

    @property
    def copies(self) -> dict[int, int]:
        """What candidates have copied: run -> the run before."""
        return self.checkpoints.copies

    @property
    def removed(self) -> list[str]:
        """What keepers of deleted jobs have removed."""
        return self.checkpoints.removed

    def live_drivers(self) -> list[str]:
        return self.drivers.live()

    def driver_place(self) -> Place:
        (name,) = self.live_drivers()
        return (PODS.plural, NAMESPACE, name)

    def agent(self) -> Agent:
        return self.agents.by_uid[agent_uid(self.api.objects[self.driver_place()])]

    def writers(self) -> list[str]:
        return self.drivers.writers()

    def pins(self) -> list[str]:
        return [name for name, one in self.api.of(CONFIG_MAPS).items() if "spec.json" in one["data"]]


def runs(cluster: FakeKubernetes) -> list[tuple[int, int]]:
    """The attempts that have started: (run, attempt)."""
    return [(run, attempt) for run, attempt, _ in cluster.started]
