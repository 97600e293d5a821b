"""A cluster for the operator to act on: an API server, kubelets, drivers with agents, a store. All can fail.

The operator is the real one, from the reconciler down; only the network is not there. A pass is one call of
`reconcile`, as a worker would make it; killed after any write, the next pass is made by a fresh process.

What a driver does is in its first argument, as in the name of the code in tests/sim/world.py.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.api import PAUSE_ANNOTATION, StreamJobStatus, StreamSavepointStatus
from headrace.core.manifests import Platform
from headrace.core.manifests.keeper_pod import STORE_CHECK
from headrace.core.manifests.ownership import JOB_LABEL
from headrace.core.verification import is_stable
from headrace.kube.agent import AgentTokens
from headrace.kube.cache import CACHED, OWN_KINDS, Cache, version_of
from headrace.kube.credentials import Credentials
from headrace.kube.errors import ApiError
from headrace.kube.found import is_owned, name_of
from headrace.kube.memory import Memory
from headrace.kube.pods import ended_of
from headrace.kube.remembering import RememberingApi
from headrace.kube.resources import CONFIG_MAPS, PODS, STREAM_JOBS, STREAM_SAVEPOINTS
from headrace.kube.savepoint_substrate import SavepointSubstrate
from headrace.kube.substrate import KubeSubstrate
from headrace.runtime.events import EventRecorder
from headrace.runtime.health import Health
from headrace.runtime.leading import LeadingApi, NoLongerLeader
from headrace.runtime.reconcile import Outcome, Reconciler
from headrace.runtime.relist import Relists
from headrace.runtime.savepoints import SavepointReconciler
from headrace.runtime.watches import Watches
from headrace_jobs.store import seed_after_trial, seed_run
from tests.sim.kube.agents import Agent, FakeAgents
from tests.sim.kube.disorder import Disorder
from tests.sim.kube.executors import Executors
from tests.sim.kube.fake_api import FakeApi, Object, OperatorKilled, Place
from tests.sim.kube.savepoint_store import SavepointStore
from tests.sim.stream import INCOMPATIBLE, Stream

NAMESPACE, JOB = "shop", "clicks"
KEY = (NAMESPACE, JOB)
PLATFORM = Platform(
    job_image="spark:1", headrace_image="headrace:1", checkpoint_location="s3://streams/checkpoints"
)
# As many as a driver makes before a test goes on.
_BATCHES = 3
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class FakeCluster:
    def __init__(self, spec: Object | None = None) -> None:
        self.moment = BEGIN
        self.api = FakeApi(lambda: self.moment)
        self.agents = FakeAgents()
        self.executors = Executors(self.api)
        self.leads = True
        # Who has claimed a run in the store: run -> the newest attempt.
        self.claims: dict[int, int] = {}
        self.started: list[tuple[int, int, int]] = []
        self.seeds: dict[int, str] = {}
        # What candidates have copied: run -> the run before.
        self.copies: dict[int, int] = {}
        self.stream = Stream()
        self.earlier: Object | None = None
        self.seed_fails: str | None = None
        # What keepers of deleted jobs have removed, by the flags that they were given.
        self.removed: list[str] = []
        self.deletion_fails: str | None = None
        # What lookouts say at their next look: nothing of interest, where this is None; {}: they die.
        self.lookout_says: Object | None = None
        self.no_room_for_lookouts = False
        self.savepoint_store = SavepointStore(self.api, lambda: self.moment)
        # Whether the last passes over savepoints have asked for another.
        self.savepoints_wait = False
        # How much of the news the watch tells before each pass; None is all of it.
        self.watch_pace: int | None = None
        # Up to which version each operator, by its cache, has heard.
        self.heard_until: dict[int, int] = {}
        # In which order, and how often, it tells them.
        self.disorder = Disorder()
        # How far the operator's clock is ahead of that of the server and of the nodes.
        self.clock_error = timedelta(0)
        self.operator = self.new_operator()
        self.create_job(spec or {"application": {"file": "job.py"}})

    # ---- the operator -------------------------------------------------------------------------------

    def new_operator(self) -> Reconciler:
        """A fresh process: it knows nothing but what it can read."""
        cache = Cache()
        api = RememberingApi(LeadingApi(self.api, lambda: self.leads), cache)
        # What lasts is measured by a clock that is never put right.
        memory = Memory(clock=lambda: self.moment.timestamp())  # noqa: PLW0108 (it moves)
        substrate = KubeSubstrate(api, self.agents, AgentTokens(b"key" * 8), PLATFORM, cache, memory)
        operator = Reconciler(
            api=api,
            substrate=substrate,
            events=EventRecorder(self.api, "operator"),
            now=self.operator_now,
            may_act=lambda: self.leads,
        )
        self.savepointer = SavepointReconciler(
            substrate=SavepointSubstrate(
                api=api, platform=PLATFORM, cache=cache, memory=substrate.memory, keepers=self.savepoint_store
            ),
            events=operator.events,
            now=self.operator_now,
            may_act=lambda: self.leads,
        )
        self.relist(operator)
        return operator

    # What a process of the operator consists of.
    parts = ("operator", "savepointer")

    def process(self) -> dict[str, Any]:
        return {part: getattr(self, part) for part in self.parts}

    def run_as(self, process: dict[str, Any]) -> None:
        vars(self).update(process)

    def operator_now(self) -> datetime:
        return self.moment + self.clock_error

    def pass_once(self) -> Outcome | None:
        """One pass, and one over each savepoint; None where the first failed in a way that a worker would
        try again."""
        self.hear(self.watch_pace)
        outcome = self._safely(lambda: self.operator.reconcile(KEY))
        outcome = None if outcome is None or outcome.refused else outcome
        self.savepoints_wait = False
        for key in self.operator.cache.savepoints():
            found = self._safely(lambda key=key: self.savepointer.reconcile(key))
            self.savepoints_wait |= found is None or found.recheck_after is not None
        return outcome

    def _safely(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            return at_once(work())
        except OperatorKilled:
            self.api.writes_left = None
            self.operator = self.new_operator()
        except (ApiError, NoLongerLeader):
            pass
        return None

    def hear(self, count: int | None = None) -> None:
        """The watch tells what has happened since, or the first part of it."""
        watches, fresh = _watches(self.operator), self.news()[:count]
        listener = id(watches.cache)
        if fresh:
            self.heard_until[listener] = version_of(fresh[-1][2])
        for gone, plural, thing in self.disorder.told(listener, fresh, past=self.api.told):
            labels = thing["metadata"].get("labels", {})
            resource = next((one for one in CACHED if one.plural == plural), None)
            if resource is None:
                continue
            if resource in OWN_KINDS or JOB_LABEL in labels:
                watches.heard(resource, thing, gone=gone)
            elif (known := watches.cache.known(resource, thing)) is not None:
                # It has left the selection: a watch tells that as its end, as it was before.
                version = {"resourceVersion": thing["metadata"]["resourceVersion"]}
                left = {**known, "metadata": {**known["metadata"], **version}}
                watches.heard(resource, left, gone=True)

    def news(self) -> list[tuple[bool, str, Object]]:
        """What the watch has yet to tell. That of a server of the past has nothing to tell."""
        since = self.heard_until[id(self.operator.cache)]
        told = self.api.told if self.api.stale is None else []
        return [news for news in told if version_of(news[2]) > since]

    def relist(self, operator: Reconciler | None = None) -> None:
        """As after a broken watch: what it would have told is lost, and everything is listed."""
        cache = (operator or self.operator).cache
        relists = Relists(api=self.api, cache=cache, namespaces=(), wake=lambda _key: None)

        async def all_kinds() -> int:
            for resource in CACHED:
                await relists.relist(resource)
            return (await self.api.list(STREAM_JOBS, None)).version

        self.heard_until[id(cache)] = at_once(all_kinds())

    def settle(self, passes: int = 80) -> None:
        """Lets everything that happens by itself happen, until nothing does any more."""
        quiet = 0
        for _ in range(passes):
            before = (len(self.api.writes), self._picture())
            outcome = self.pass_once()
            self._needs_no_other_pass(outcome, self.api.writes[before[0] :])
            self.kubelets_work()
            self.collect_garbage()
            if (len(self.api.writes), self._picture()) != before or self._has_yet_to_hear():
                quiet = 0
                continue
            if self._time_passes(outcome):
                continue
            quiet += 1
            if quiet >= 2 and outcome is not None:
                return
            self.later(10)
        raise AssertionError(f"never settles: {self.status.state}: {self.api.writes[-10:]}")

    def _time_passes(self, outcome: Outcome | None) -> bool:
        """Until something is due that the operator waits for: the next attempt, the end of a trial."""
        due = self.status.restarts.next_at
        if due is not None and due > self.operator_now():
            self.moment = due - self.clock_error
            return True
        for agent in self.agents.by_uid.values():
            if agent.busy and not agent.stuck:
                self.later(1800)
                agent.stuck = True  # the watchdog has had enough of it
                return True
        operation = self.status.operation
        rehearsed = operation is not None and operation.candidate is not None
        watched = self.live_drivers() and (rehearsed or not is_stable(self.status))
        if not watched or outcome is None or not outcome.recheck_after:
            return False
        self.later(outcome.recheck_after)
        return True

    def _needs_no_other_pass(self, outcome: Outcome | None, written: list[tuple[str, str, str]]) -> None:
        """Who asks for no other pass, and has changed nothing whose event would bring one, gets none.

        So everything must have been said: on a cluster the next look may be minutes away.
        """
        wakes = [write for write in written if write[1] not in ("streamjobs", "events")]
        if outcome is None or outcome.recheck_after is not None or self.savepoints_wait or wakes:
            return
        if self.api.faults or self.api.writes_left is not None or self._has_yet_to_hear():
            return
        before = len(self.api.writes)
        self.pass_once()
        assert self.api.writes[before:] == [], "left something for a pass that nobody asked for"

    def _has_yet_to_hear(self) -> bool:
        late = self.disorder.late.get(id(self.operator.cache))
        return bool(late or (self.watch_pace and self.news()))

    def _picture(self) -> str:
        things = [self.api.objects[place] for place in sorted(self.api.objects)]
        return json.dumps([*things, sorted(self.stream.store.objects)], default=str)

    # ---- the kubelets, the drivers and the keepers ---------------------------------------------------

    def kubelets_work(self) -> None:
        self.executors_come_and_go()
        for name, pod in list(self.api.of(PODS).items()):
            place = (PODS.plural, NAMESPACE, name)
            match pod["metadata"].get("labels", {}).get("headrace.dev/role"):
                case "driver":
                    self._driver_works(place, pod)
                case "candidate":
                    self._candidate_works(place, pod)
                case "keeper":
                    self._keeper_works(place, pod)
                case "lookout":
                    self._lookout_works(place, pod)
                case "deletion":
                    self._deletion_works(place, pod)
                case "collector":
                    self.savepoint_store.collector_works(place, pod)
                case "savepoint":
                    self.savepoint_store.keeper_works(place, pod)

    def executors_come_and_go(self) -> None:
        self.executors.come_and_go()

    def _driver_works(self, place: Place, pod: Object) -> None:
        number = _attempt(pod)
        agent = self.agents.by_uid.get(_agent_uid(pod))
        if ended_of(pod) is not None:
            return
        if pod.get("status") is None:
            if not self._is_mounted(pod):
                return  # as long as what it mounts is not there, no container starts
            if not behaviour(self, pod).startswith("never"):
                self._start_driver(place, pod, number)
            elif pod["metadata"].get("deletionTimestamp"):
                self.api.remove(place)
        elif agent is not None and (agent.drains or pod["metadata"].get("deletionTimestamp")):
            leaving = pod["metadata"].get("deletionTimestamp") is not None
            self.end_driver(place, "Drained", 0)
            if leaving:
                self.api.remove(place)
        elif agent is not None and agent.phase in ("Rehearsing", "Standby"):
            pass  # a candidate that has not heard the order yet
        elif agent is not None and agent.phase == "Activating" and not agent.claimed:
            self._take_over(pod, agent, number)
        elif agent is not None and agent.phase in ("Starting", "Activating"):
            self._come_up(place, pod, agent)
        elif agent is not None and agent.phase == "Running":
            self._make_a_batch(place, pod, agent)

    def _is_mounted(self, pod: Object) -> bool:
        name = pod["metadata"]["name"]
        return "run.json" in self.api.of(CONFIG_MAPS).get(name, {}).get("data", {})

    def _candidate_works(self, place: Place, pod: Object) -> None:
        """Comes up, and then says what it found, or waits."""
        does, found = behaviour(self, pod), pod.get("status") or {}
        agent = self.agents.by_uid.get(_agent_uid(pod))
        if pod["metadata"].get("deletionTimestamp"):
            self.agents.by_uid.pop(_agent_uid(pod), None)
            self.api.remove(place)
        elif not found and not does.startswith("never"):
            running = {"name": "driver", "state": {"running": {}}, "imageID": "spark@sha256:abc"}
            status = {"phase": "Running", "podIP": "10.0.0.2", "containerStatuses": [running]}
            self.api.set(place, {"status": status})
            self.agents.by_uid[_agent_uid(pod)] = Agent(place, phase="Rehearsing", claimed=False)
        elif agent is not None and agent.phase == "Rehearsing":
            if does in ("crash", "crash-after-0"):
                self.end_driver(place, "ApplicationError", 65, "no module 'oops'")
            elif run_file_of(self, pod)["rehearsal"]["standbySeconds"] is None:
                self.end_driver(place, "Rehearsed", 0, "3 batches replayed")
            else:
                agent.phase = "Standby"
                self._make_executors(pod)

    def _take_over(self, pod: Object, agent: Agent, number: tuple[int, int]) -> None:
        """As the candidate does it: copy, claim, then start. Each is a step: it can die in between."""
        assert agent.order is not None
        run, attempt = agent.order["run"], agent.order["attempt"]
        source = run_file_of(self, pod)["rehearsal"]["fromRun"]
        assert (run, attempt) == number, "ordered as another attempt than its labels say"
        assert [one for one in self.writers() if one != name_of(pod)] == [], "a second writer takes over"
        if self.seed_fails:
            agent.phase, agent.refusal = "Standby", f"StoreUnavailable: {self.seed_fails}"
        elif not agent.copied:
            seed_run(self.stream.store, f"run-{source}", f"run-{run}")
            agent.copied, self.copies[run] = True, source
        elif self.claims.get(run, 0) >= attempt:
            self.end_driver(agent.pod, "Fenced", 67)
        else:
            self.claims[run] = attempt
            agent.claimed = True
            self.started.append((run, attempt, agent.order["epoch"]))

    def _come_up(self, place: Place, pod: Object, agent: Agent) -> None:
        does, run = behaviour(self, pod), f"run-{_attempt(pod)[0]}"
        self.stream.begin(run)
        if does == "crash":
            self.end_driver(place, "ApplicationError", 65, "ModuleNotFoundError: No module named 'oops'")
        elif not self.stream.can_read(run, _state_format(does)):
            self.end_driver(place, "QueryFailed", 66, "the state does not fit", errorClass=INCOMPATIBLE)
        else:
            agent.phase = "Running"
            self._make_executors(pod)

    def _make_a_batch(self, place: Place, pod: Object, agent: Agent) -> None:
        does, run = behaviour(self, pod), f"run-{_attempt(pod)[0]}"
        size = 1 + sum(does.encode()) % 7
        if does == "hang":
            self.stream.batch(run, size=size, until="offsets")
            agent.busy = True
        elif does == f"crash-after-{agent.batches}":
            self.stream.batch(run, size=size, until="sink")
            self.end_driver(place, "QueryFailed", 66, "KeyError: 'price'")
        elif agent.batches < _BATCHES:
            self.stream.batch(run, size=size, state_format=_state_format(does))
            agent.batches += 1

    def _start_driver(self, place: Place, pod: Object, number: tuple[int, int]) -> None:
        checks = [one for one in pod["spec"]["initContainers"] if one["name"] == STORE_CHECK]
        run, attempt = number
        if checks and self.earlier and run not in self.claims and run not in self.seeds:
            words = {
                "reason": "Refused",
                "errorClass": "EarlierLineage",
                "message": "older",
                "earlier": self.earlier,
            }
            state = {"terminated": {"exitCode": 64, "message": json.dumps(words)}}
            failed = {"phase": "Failed", "initContainerStatuses": [{"name": STORE_CHECK, "state": state}]}
            self.api.set(place, {"status": failed})
            return
        running = {"name": "driver", "state": {"running": {}}, "imageID": "spark@sha256:abc"}
        self.api.set(
            place, {"status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [running]}}
        )
        if self.claims.get(run, 0) >= attempt:
            self.end_driver(place, "Fenced", 67)
            return
        self.claims[run] = attempt
        epoch = int(pod["metadata"]["labels"]["headrace.dev/epoch"])
        self.started.append((run, attempt, epoch))
        self.agents.by_uid[_agent_uid(pod)] = Agent(place)

    def end_driver(
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

    def _make_executors(self, pod: Object) -> None:
        """As many as the run file says, in the ConfigMap that the driver mounts."""
        conf = run_file_of(self, pod)["sparkConf"]
        count = int(conf["spark.executor.instances"])
        self.executors.ask_for(pod, application_id=conf["spark.app.id"], count=count)
        self.executors_come_and_go()

    def _keeper_works(self, place: Place, pod: Object) -> None:
        if pod.get("status") is not None:
            return
        words = {"reason": "Completed", "message": self.seed_fails or ""}
        stamp = self.moment.isoformat().replace("+00:00", "Z")
        terminated = {
            "exitCode": 69 if self.seed_fails else 0,
            "message": json.dumps(words),
            "finishedAt": stamp,
        }
        if not self.seed_fails:
            assert not self.writers(), "state copied under a live writer"
            words["seed"] = self._seed(pod["spec"]["containers"][0]["command"])
            terminated["message"] = json.dumps(words)
        phase = "Failed" if self.seed_fails else "Succeeded"
        state = {"name": "keeper", "state": {"terminated": terminated}}
        self.api.set(place, {"status": {"phase": phase, "containerStatuses": [state]}})

    def _seed(self, command: list[str]) -> Object:
        """What the keeper would do, with the keeper's own code."""
        flags = dict(flag.removeprefix("--").split("=", 1) for flag in command if "=" in flag)
        source, target = (flags[name].rpartition("/")[2] for name in ("from", "to"))
        self.seeds[int(target.removeprefix("run-"))] = flags["from"]
        if "rollback" not in command:
            return asdict(seed_run(self.stream.store, source, target))
        incumbent = flags["incumbent"].rpartition("/")[2]
        return asdict(
            seed_after_trial(
                self.stream.store,
                incumbent=incumbent,
                candidate=source,
                to_run=target,
                rewind="--rewind" in command,
            )
        )

    def _lookout_works(self, place: Place, pod: Object) -> None:
        """Runs, and ends when there is something to say."""
        if pod["metadata"].get("deletionTimestamp"):
            self.api.remove(place)
        elif pod.get("status") is None:
            if not self.no_room_for_lookouts:
                running = {"name": "driver", "state": {"running": {}}}
                self.api.set(place, {"status": {"phase": "Running", "containerStatuses": [running]}})
        elif pod["status"]["phase"] == "Running" and self.lookout_says is not None:
            assert not self.writers(), "somebody looks for a job that is awake"
            words = self.lookout_says
            terminated = {"exitCode": 0 if words else 1, "message": json.dumps(words) if words else "Killed"}
            state = {"name": "driver", "state": {"terminated": terminated}}
            phase = "Succeeded" if words else "Failed"
            self.api.set(place, {"status": {"phase": phase, "containerStatuses": [state]}})

    def _deletion_works(self, place: Place, pod: Object) -> None:
        """Begins, then ends: between the two somebody may change his mind."""
        if pod.get("status") is None:
            self.api.set(place, {"status": {"phase": "Running"}})
            return
        if pod["status"]["phase"] != "Running":
            return
        if pod["metadata"].get("deletionTimestamp"):
            self.api.remove(place)
            return
        words = {"reason": "StoreUnavailable", "message": self.deletion_fails or ""}
        if not self.deletion_fails:
            command = pod["spec"]["containers"][0]["command"]
            self.removed.append(" ".join(flag for flag in command if flag.startswith(("--store", "--lin"))))
            labels = [pod["metadata"].get("labels", {}) for pod in self.api.of(PODS).values()]
            assert not self.writers(), "checkpoints removed under a live writer"
            roles = [each.get("headrace.dev/role") for each in labels]
            assert "executor" not in roles, "checkpoints removed under executors"
            self.claims.clear()
        terminated = {
            "exitCode": 69 if self.deletion_fails else 0,
            "message": json.dumps(words),
            "finishedAt": self.moment.isoformat().replace("+00:00", "Z"),
        }
        phase = "Failed" if self.deletion_fails else "Succeeded"
        state = {"name": "keeper", "state": {"terminated": terminated}}
        self.api.set(place, {"status": {"phase": phase, "containerStatuses": [state]}})

    def collect_garbage(self) -> None:
        """Of a job that is deleted in the foreground, whatever it owns goes, each with its own grace. So does
        what was made for an owner that is gone by then."""
        self._collect_orphans()
        job = self.api.objects.get(self.job_place)
        if job is None or "foregroundDeletion" not in (job["metadata"].get("finalizers") or ()):
            return
        uid = job["metadata"]["uid"]
        owned = [place for place, one in self.api.objects.items() if is_owned(one, uid)]
        for place in owned:
            one = self.api.objects.get(place, {})
            if one.get("status", {}).get("phase") == "Running":
                self.api.set(place, {"metadata": {"deletionTimestamp": self._stamp()}})
            elif one:
                self.api.remove(place)
        if not owned:
            left = [each for each in job["metadata"]["finalizers"] if each != "foregroundDeletion"]
            self.api.set(self.job_place, {"metadata": {"finalizers": left}})

    def _collect_orphans(self) -> None:
        uids = {one["metadata"]["uid"] for one in self.api.objects.values()}
        for place, one in list(self.api.objects.items()):
            owners = [owner["uid"] for owner in one["metadata"].get("ownerReferences", ())]
            if owners and not uids.intersection(owners) and place in self.api.objects:
                self.api.remove(place)

    def _stamp(self) -> str:
        return self.moment.isoformat().replace("+00:00", "Z")

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
            "lastTransitionTime": self._stamp(),
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
        metadata = {"generation": job["metadata"]["generation"] + 1, "deletionTimestamp": self._stamp()}
        if foreground:
            # The server's own: no client could add it now.
            job["metadata"]["finalizers"] = finalizers
        self.api.set(self.job_place, {"metadata": metadata})

    @property
    def exists(self) -> bool:
        return self.job_place in self.api.objects

    def later(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def driver_place(self) -> Place:
        (name,) = self.live_drivers()
        return (PODS.plural, NAMESPACE, name)

    def agent(self) -> Agent:
        return self.agents.by_uid[_agent_uid(self.api.objects[self.driver_place()])]

    # ---- what can be seen ---------------------------------------------------------------------------

    @property
    def job_place(self) -> Place:
        return (STREAM_JOBS.plural, NAMESPACE, JOB)

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

    def live_drivers(self) -> list[str]:
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

    def pins(self) -> list[str]:
        return [name for name, one in self.api.of(CONFIG_MAPS).items() if "spec.json" in one["data"]]


def at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """Nothing here waits for anything, so no event loop is needed: that would take half of the time."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")


def behaviour(cluster: FakeCluster, pod: Object) -> str:
    """The first argument of the application that the pod runs; empty where it has none."""
    mounted = cluster.api.of(CONFIG_MAPS).get(pod["metadata"]["name"])
    arguments = json.loads(mounted["data"]["run.json"])["application"]["args"] if mounted else []
    return next(iter(arguments), "")


def run_file_of(cluster: FakeCluster, pod: Object) -> Object:
    return json.loads(cluster.api.of(CONFIG_MAPS)[pod["metadata"]["name"]]["data"]["run.json"])


def _state_format(does: str) -> str:
    return "other" if does.startswith("other-state") else "usual"


def _watches(operator: Reconciler) -> Watches:
    return Watches(
        credentials=Credentials("http://fake", None, lambda: None),
        namespaces=(),
        health=Health(
            clock=lambda: 0.0, leads=lambda: True, queue_wait=lambda: 0.0, lease_silence=lambda: 0.0
        ),
        cache=operator.cache,
        wake=lambda _key: None,
        note_pod=operator.substrate.note_pod,
        relisted=lambda _plural: None,
    )


def _attempt(pod: Object) -> tuple[int, int]:
    labels = pod["metadata"]["labels"]
    return int(labels["headrace.dev/run"]), int(labels["headrace.dev/attempt"])


def _agent_uid(pod: Object) -> str:
    job, labels = pod["metadata"]["ownerReferences"][0]["uid"], pod["metadata"]["labels"]
    if "headrace.dev/candidate" in labels:
        return f"{job}-c{labels['headrace.dev/candidate']}"
    run, attempt = _attempt(pod)
    return f"{job}-r{run}-a{attempt}"
