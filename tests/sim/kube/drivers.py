"""The driver pods of a fake cluster: attempts, and candidates, which may become attempts.

What a driver does is in its first argument, as in the name of the code in tests/sim/workloads.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.core.manifests.keeper_pod import STORE_CHECK
from headrace.kube.found import name_of
from headrace.kube.pods import ended_of
from headrace.kube.resources import CONFIG_MAPS, PODS
from tests.sim.kube.agents import Agent, FakeAgents
from tests.sim.kube.checkpoints import Checkpoints
from tests.sim.kube.executors import Executors
from tests.sim.kube.fake_api import FakeApi, Object, Place
from tests.sim.stream import INCOMPATIBLE

# As many as a driver makes before a test goes on.
_BATCHES = 3


@dataclass
class Drivers:
    api: FakeApi
    agents: FakeAgents
    executors: Executors
    checkpoints: Checkpoints
    executors_come_and_go: Callable[[], None]
    # All that have claimed their run: (run, attempt, epoch).
    started: list[tuple[int, int, int]] = field(default_factory=list)

    # ---- what they do -------------------------------------------------------------------------------

    def driver_works(self, place: Place, pod: Object) -> None:
        agent = self.agents.by_uid.get(agent_uid(pod))
        if ended_of(pod) is not None:
            return
        if pod.get("status") is None:
            if not self._is_mounted(pod):
                return  # as long as what it mounts is not there, no container starts
            if not self._behaviour(pod).startswith("never"):
                self._start(place, pod)
            elif pod["metadata"].get("deletionTimestamp"):
                self.api.remove(place)
        elif agent is not None and (agent.drains or pod["metadata"].get("deletionTimestamp")):
            leaving = pod["metadata"].get("deletionTimestamp") is not None
            self.end(place, "Drained", 0)
            if leaving:
                self.api.remove(place)
        elif agent is not None and agent.phase in ("Rehearsing", "Standby"):
            pass  # a candidate that has not heard the order yet
        elif agent is not None and agent.phase == "Activating" and not agent.claimed:
            self._take_over(pod, agent)
        elif agent is not None and agent.phase in ("Starting", "Activating"):
            self._come_up(place, pod, agent)
        elif agent is not None and agent.phase == "Running":
            self._make_a_batch(place, pod, agent)

    def candidate_works(self, place: Place, pod: Object) -> None:
        """Comes up, and then says what it found, or waits."""
        does, found = self._behaviour(pod), pod.get("status") or {}
        agent = self.agents.by_uid.get(agent_uid(pod))
        if pod["metadata"].get("deletionTimestamp"):
            self.agents.by_uid.pop(agent_uid(pod), None)
            self.api.remove(place)
        elif not found and not does.startswith("never"):
            self._runs(place, ip="10.0.0.2")
            self.agents.by_uid[agent_uid(pod)] = Agent(place, phase="Rehearsing", claimed=False)
        elif agent is not None and agent.phase == "Rehearsing":
            if does in ("crash", "crash-after-0"):
                self.end(place, "ApplicationError", 65, "no module 'oops'")
            elif self._run_file_of(pod)["rehearsal"]["standbySeconds"] is None:
                self.end(place, "Rehearsed", 0, "3 batches replayed")
            else:
                agent.phase = "Standby"
                self._make_executors(pod)

    def end(
        self, place: Place, reason: str, code: int, message: str = "", words: bool = True, **more: Any
    ) -> None:
        said = json.dumps({"reason": reason, "message": message, **more}) if words else message
        terminated = {"exitCode": code, "message": said, "reason": reason if not words else "Error"}
        phase = "Succeeded" if code == 0 else "Failed"
        state = {"name": "driver", "state": {"terminated": terminated}}
        self.api.set(place, {"status": {"phase": phase, "containerStatuses": [state]}})
        gone = [uid for uid, agent in self.agents.by_uid.items() if agent.pod == place]
        for uid in gone:
            del self.agents.by_uid[uid]

    def _start(self, place: Place, pod: Object) -> None:
        checks = [one for one in pod["spec"]["initContainers"] if one["name"] == STORE_CHECK]
        run, attempt = _attempt(pod)
        store = self.checkpoints
        if checks and store.earlier and run not in store.claims and run not in store.seeds:
            self._refuse(place, store.earlier)
            return
        self._runs(place, ip="10.0.0.1")
        if not store.claim(run, attempt):
            self.end(place, "Fenced", 67)
            return
        epoch = int(pod["metadata"]["labels"]["headrace.dev/epoch"])
        self.started.append((run, attempt, epoch))
        self.agents.by_uid[agent_uid(pod)] = Agent(place)

    def _refuse(self, place: Place, earlier: Object) -> None:
        words = {"reason": "Refused", "errorClass": "EarlierLineage", "message": "older", "earlier": earlier}
        state = {"terminated": {"exitCode": 64, "message": json.dumps(words)}}
        failed = {"phase": "Failed", "initContainerStatuses": [{"name": STORE_CHECK, "state": state}]}
        self.api.set(place, {"status": failed})

    def _runs(self, place: Place, *, ip: str) -> None:
        running = {"name": "driver", "state": {"running": {}}, "imageID": "spark@sha256:abc"}
        self.api.set(place, {"status": {"phase": "Running", "podIP": ip, "containerStatuses": [running]}})

    def _take_over(self, pod: Object, agent: Agent) -> None:
        """As the candidate does it: copy, claim, then start. Each is a step: it can die in between."""
        assert agent.order is not None
        run, attempt = agent.order["run"], agent.order["attempt"]
        source = self._run_file_of(pod)["rehearsal"]["fromRun"]
        assert (run, attempt) == _attempt(pod), "ordered as another attempt than its labels say"
        assert [one for one in self.writers() if one != name_of(pod)] == [], "a second writer takes over"
        if self.checkpoints.seed_fails:
            agent.phase, agent.refusal = "Standby", f"StoreUnavailable: {self.checkpoints.seed_fails}"
        elif not agent.copied:
            self.checkpoints.copy(source=source, run=run)
            agent.copied = True
        elif not self.checkpoints.claim(run, attempt):
            self.end(agent.pod, "Fenced", 67)
        else:
            agent.claimed = True
            self.started.append((run, attempt, agent.order["epoch"]))

    def _come_up(self, place: Place, pod: Object, agent: Agent) -> None:
        does, run, stream = self._behaviour(pod), f"run-{_attempt(pod)[0]}", self.checkpoints.stream
        stream.begin(run)
        if does == "crash":
            self.end(place, "ApplicationError", 65, "ModuleNotFoundError: No module named 'oops'")
        elif not stream.can_read(run, _state_format(does)):
            self.end(place, "QueryFailed", 66, "the state does not fit", errorClass=INCOMPATIBLE)
        else:
            agent.phase = "Running"
            self._make_executors(pod)

    def _make_a_batch(self, place: Place, pod: Object, agent: Agent) -> None:
        does, run, stream = self._behaviour(pod), f"run-{_attempt(pod)[0]}", self.checkpoints.stream
        size = 1 + sum(does.encode()) % 7
        if does == "hang":
            stream.batch(run, size=size, until="offsets")
            agent.busy = True
        elif does == f"crash-after-{agent.batches}":
            stream.batch(run, size=size, until="sink")
            self.end(place, "QueryFailed", 66, "KeyError: 'price'")
        elif agent.batches < _BATCHES:
            stream.batch(run, size=size, state_format=_state_format(does))
            agent.batches += 1

    def _make_executors(self, pod: Object) -> None:
        """As many as the run file says, in the ConfigMap that the driver mounts."""
        conf = self._run_file_of(pod)["sparkConf"]
        count = int(conf["spark.executor.instances"])
        self.executors.ask_for(pod, application_id=conf["spark.app.id"], count=count)
        self.executors_come_and_go()

    # ---- what can be seen of them -------------------------------------------------------------------

    def live(self) -> list[str]:
        pods = self.api.of(PODS).items()
        return [
            name
            for name, pod in pods
            if pod["metadata"].get("labels", {}).get("headrace.dev/role") == "driver"
            and ended_of(pod) is None
        ]

    def writers(self) -> list[str]:
        """Drivers that have claimed their run: these write."""
        agents = self.agents.by_uid.values()
        return [agent.pod[2] for agent in agents if agent.claimed and agent.pod in self.api.objects]

    def _is_mounted(self, pod: Object) -> bool:
        name = pod["metadata"]["name"]
        return "run.json" in self.api.of(CONFIG_MAPS).get(name, {}).get("data", {})

    def _behaviour(self, pod: Object) -> str:
        """The first argument of the application that the pod runs; empty where it has none."""
        mounted = pod["metadata"]["name"] in self.api.of(CONFIG_MAPS)
        arguments = self._run_file_of(pod)["application"]["args"] if mounted else []
        return next(iter(arguments), "")

    def _run_file_of(self, pod: Object) -> Object:
        return json.loads(self.api.of(CONFIG_MAPS)[pod["metadata"]["name"]]["data"]["run.json"])


def agent_uid(pod: Object) -> str:
    job, labels = pod["metadata"]["ownerReferences"][0]["uid"], pod["metadata"]["labels"]
    if "headrace.dev/candidate" in labels:
        return f"{job}-c{labels['headrace.dev/candidate']}"
    run, attempt = _attempt(pod)
    return f"{job}-r{run}-a{attempt}"


def _attempt(pod: Object) -> tuple[int, int]:
    labels = pod["metadata"]["labels"]
    return int(labels["headrace.dev/run"]), int(labels["headrace.dev/attempt"])


def _state_format(does: str) -> str:
    return "other" if does.startswith("other-state") else "usual"
