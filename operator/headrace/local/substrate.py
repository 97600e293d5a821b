"""Carries the planner's actions out with processes and directories of this machine."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core.actions import (
    AbandonAttempt,
    Action,
    CollectOrphans,
    DeleteCheckpoints,
    DrainAttempt,
    EndCollecting,
    HoldDeletion,
    PinRun,
    ReleaseDeletion,
    RemoveSavepoint,
    RestoreRun,
    ScaleExecutors,
    SeedRun,
    StartAttempt,
    StartCandidate,
    StopCandidate,
    StopDeleting,
    TakeSavepoint,
)
from headrace.core.last_words import ended_by
from headrace.core.manifests import Candidacy
from headrace.core.model import (
    AttemptPhase,
    Code,
    CodeProblem,
    EarlierLineage,
    Ended,
    Ending,
    Job,
    Observed,
    ObservedAttempt,
    ObservedCandidate,
    PinnedRun,
)
from headrace.core.reports import query_report, seeded_queries, spark_version, starting_report
from headrace.core.revision import revision_of
from headrace.local import code
from headrace.local.agent import AgentClient
from headrace.local.layout import AttemptFiles, Layout, read_json, write_json
from headrace.local.preflight import missing
from headrace.local.processes import DriverProcess, start_driver
from headrace.local.runfile import attempt_environment, run_file
from headrace.local.start_point import find_savepoint, s3_options
from headrace_jobs.store import Seed, open_store, read_seed, seed_after_trial, seed_run
from headrace_jobs.store.savepoints import seed_from

# After its own time limit a driver gets this much to go; then it is killed. Its pending batch is replayed.
KILL_GRACE_SECONDS = 15.0


@dataclass(frozen=True)
class LocalOptions:
    manifest_dir: Path
    code_file: Path | None = None
    once: bool = False
    ui: bool = False


@dataclass
class _Child:
    """A driver that we started, and what we have asked of it."""

    process: subprocess.Popen[bytes]
    token: str
    drain_asked_at: float | None = None


@dataclass
class LocalSubstrate:
    layout: Layout
    options: LocalOptions
    # The last status of the live driver's agent, for the view.
    report: dict[str, Any] | None = None
    _children: dict[tuple[int, int], _Child] = field(default_factory=dict)
    _candidates: dict[int, _Child] = field(default_factory=dict)
    _ended: dict[tuple[int, int], ObservedAttempt] = field(default_factory=dict)
    _seeding: Future[Seed] | None = None
    _seeding_run: int = 0
    _keeper: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "keeper"))

    # ---- observe ------------------------------------------------------------------------------------

    def observe(self, job: Job, status: StreamJobStatus) -> Observed:
        # Every attempt of the state directory is looked at, whatever the status says.
        store = open_store(self._job_store(job).as_uri())
        runs = self._run_numbers()
        seeds = {number: seed for number in runs if (seed := read_seed(store, f"run-{number}")) is not None}
        return Observed(
            code=self._observe_code(job.spec),
            attempts=tuple(self._observe_attempt(*key) for key in self._attempt_keys(runs)),
            candidates=tuple(self._observe_candidate(*key) for key in self._candidate_keys(runs)),
            pinned={number: pinned for number in runs if (pinned := self._pinned(number))},
            seeded_runs=frozenset(seeds),
            seeded_queries={number: seeded_queries(asdict(seed)) for number, seed in seeds.items()},
            seed_problem=self._seed_problem(status),
            earlier=self._earlier_lineage(job),
            savepoint=find_savepoint(self.layout, job, status),
        )

    def _observe_code(self, spec: StreamJobSpec) -> Code | CodeProblem:
        base = self.options.manifest_dir
        if absent := list(missing(spec, base=base, environ=os.environ)):
            return CodeProblem("\n".join(absent))
        return code.observe(spec.application, base, self.options.code_file)

    def _observe_attempt(self, run: int, number: int) -> ObservedAttempt:
        if (ended := self._ended.get((run, number))) is not None:
            return ended
        files = self.layout.attempt(run, number)
        driver = DriverProcess.read(files.process)
        child = self._children.get((run, number))
        exit_code = child.process.poll() if child is not None else None
        child_alive = child is not None and exit_code is None
        if child_alive or (driver is not None and driver.alive()):
            self._reap_headless_jvm(driver, child_alive)
            return self._live_attempt(run, number, driver, child)
        ended = ObservedAttempt(
            run=run,
            number=number,
            uid=driver.uid if driver is not None else "",
            phase=AttemptPhase.ENDED,
            ended=_termination(files, exit_code),
        )
        self._ended[(run, number)] = ended
        return ended

    def _live_attempt(
        self, run: int, number: int, driver: DriverProcess | None, child: _Child | None
    ) -> ObservedAttempt:
        report = None
        if driver is not None and driver.agent_port is not None and child is not None:
            report = AgentClient(driver.agent_port, child.token, driver.uid).status()
        self.report = report or self.report
        # A driver that is not our child has lost its parent: it is draining by itself.
        default = AttemptPhase.STARTING if child is not None else AttemptPhase.DRAINING
        phase = AttemptPhase(report["phase"]) if report is not None else default
        return ObservedAttempt(
            run=run,
            number=number,
            uid=driver.uid if driver is not None else "",
            phase=phase if phase is not AttemptPhase.ENDED else AttemptPhase.DRAINING,
            queries=tuple(query_report(query) for query in (report or {}).get("queries", ())),
            waiting=starting_report(report),
            spark_version=spark_version(report),
        )

    def _reap_headless_jvm(self, driver: DriverProcess | None, child_alive: bool) -> None:
        """A JVM whose Python driver is dead has nobody to answer to. Spark ends it by itself; make sure."""
        if driver is None or driver.jvm is None or child_alive or driver.driver.alive():
            return
        driver.jvm.kill()

    def _attempt_keys(self, runs: list[int]) -> list[tuple[int, int]]:
        keys: list[tuple[int, int]] = []
        for run in runs:
            homes = (self.layout.runs / f"run-{run}").glob("attempt-*")
            keys += [(run, int(home.name.removeprefix("attempt-"))) for home in homes]
        return sorted(keys)

    def _candidate_keys(self, runs: list[int]) -> list[tuple[int, int]]:
        homes = [
            (run, home) for run in runs for home in (self.layout.runs / f"run-{run}").glob("candidate-*")
        ]
        return sorted((run, int(home.name.removeprefix("candidate-"))) for run, home in homes)

    def _observe_candidate(self, run: int, number: int) -> ObservedCandidate:
        files, child = self.layout.candidate(run, number), self._candidates.get(number)
        driver = DriverProcess.read(files.process)
        exit_code = child.process.poll() if child is not None else None
        alive = (child is not None and exit_code is None) or (driver is not None and driver.alive())
        return ObservedCandidate(
            run=run,
            number=number,
            uid=f"c{number}",
            ended=None if alive else _termination(files, exit_code),
            running=alive,
        )

    def _run_numbers(self) -> list[int]:
        return sorted(int(home.name.removeprefix("run-")) for home in self.layout.runs.glob("run-*"))

    def _pinned(self, run: int) -> PinnedRun | None:
        content = read_json(self.layout.pin(run))
        if content is None:
            return None
        spec = StreamJobSpec.parse(content["spec"])
        return PinnedRun(revision=content["revision"], code=content["code"], spec=spec)

    def _seed_problem(self, status: StreamJobStatus) -> str | None:
        if self._seeding is None or not self._seeding.done():
            return None
        if status.beginning is not None and status.beginning.run != self._seeding_run:
            return None  # of a start that is not wanted any more
        problem = self._seeding.exception()
        return str(problem) if problem is not None else None

    def _earlier_lineage(self, job: Job) -> EarlierLineage | None:
        own = self._job_store(job)
        others = [other for other in own.parent.glob("*") if other.name != own.name and other.is_dir()]
        for other in others:
            numbers = [int(run.name.removeprefix("run-")) for run in other.glob("run-*")]
            if numbers:
                return EarlierLineage(uid=other.name, last_run=max(numbers))
        return None

    # ---- perform ------------------------------------------------------------------------------------

    def perform(self, job: Job, action: Action) -> None:
        match action:
            case PinRun():
                self._pin(job, action)
            case SeedRun() | RestoreRun():
                self._seed(job, action)
            case StartAttempt():
                self._start(job, action)
            case StartCandidate():
                self._start_candidate(job, action)
            case StopCandidate():
                self._stop_candidate(action)
            case DrainAttempt():
                self._drain(job, action)
            case AbandonAttempt() | ScaleExecutors():
                raise AssertionError(f"never planned here: {action}")  # nothing is lost, nothing is apart
            case TakeSavepoint() | RemoveSavepoint() | CollectOrphans() | EndCollecting():
                # What is observed here has no savepoints, so that no rule about them applies.
                raise AssertionError(f"never planned here: {action}")
            case HoldDeletion() | ReleaseDeletion() | DeleteCheckpoints() | StopDeleting():
                # A job here has no API server to be deleted from: its directory is the user's to remove.
                raise AssertionError(f"never planned here: {action}")

    def _pin(self, job: Job, action: PinRun) -> None:
        if action.like is not None:
            self._pin_like(job, action.run, action.like)
            return
        sources = code.look(action.spec.application, self.options.manifest_dir, self.options.code_file)
        if isinstance(sources, CodeProblem):
            return  # saved again since it was looked at, here and below: the next look decides
        copied = code.pin(sources, self.layout.code(job.namespace, job.name, job.uid, action.run))
        if revision_of(action.spec, copied.digest) != action.revision:
            return
        entry = sources.place(sources.entry) if sources.entry is not None else None
        pinned = {
            "revision": action.revision,
            "code": copied.digest,
            "spec": action.spec.model_dump(mode="json", exclude_unset=True),
            "root": str(sources.root),
            "entry": entry,
            "pyFiles": [sources.place(path) for path in sources.py_files],
        }
        write_json(self.layout.pin(action.run), pinned)

    def _pin_like(self, job: Job, run: int, like: int) -> None:
        """Another run with the version of this one: its code is kept beside its state, and comes along."""
        kept, copy = (self.layout.code(job.namespace, job.name, job.uid, each) for each in (like, run))
        shutil.rmtree(copy, ignore_errors=True)
        if kept.exists():
            shutil.copytree(kept, copy)
        write_json(self.layout.pin(run), read_json(self.layout.pin(like)))

    def _seed(self, job: Job, action: SeedRun | RestoreRun) -> None:
        if self._seeding is not None and not self._seeding.done():
            return
        lineages, target = self._job_store(job).parent.as_uri(), f"{job.uid}/run-{action.to_run}"
        self._seeding_run = action.to_run
        match action:
            case RestoreRun():
                self._seeding = self._keeper.submit(
                    seed_from,
                    action.path,
                    store=lineages,
                    run=target,
                    lineage=action.lineage,
                    job=f"{job.namespace}/{job.name}",
                    query=action.query,
                    s3=s3_options(job.spec),
                )
            case SeedRun(handover=None):
                source = f"{action.from_uid or job.uid}/run-{action.from_run}"
                begins = action.from_uid not in (None, job.uid)
                self._seeding = self._keeper.submit(
                    seed_run, open_store(lineages), source, target, begins=begins
                )
            case SeedRun():
                self._seeding = self._keeper.submit(
                    seed_after_trial,
                    open_store(lineages),
                    incumbent=f"{job.uid}/run-{action.handover}",
                    candidate=f"{action.from_uid or job.uid}/run-{action.from_run}",
                    to_run=target,
                    rewind=action.rewind,
                )

    def _start(self, job: Job, action: StartAttempt) -> None:
        files = self.layout.attempt(action.run, action.attempt)
        try:
            files.home.mkdir(parents=True)
        except FileExistsError:
            return  # started before, by us or by one that was killed: it is observed, not started again
        self._children[(action.run, action.attempt)] = self._launch(job, action, files)

    def _launch(
        self, job: Job, action: StartAttempt, files: AttemptFiles, candidacy: Candidacy | None = None
    ) -> _Child:
        pinned = read_json(self.layout.pin(action.run))
        assert pinned is not None  # the planner pins before it starts
        spec = StreamJobSpec.parse(pinned["spec"])
        code_dir = self.layout.code(job.namespace, job.name, job.uid, action.run)
        content = run_file(
            job, spec, action, files=files, store=self._job_store(job), code_dir=code_dir, pinned=pinned,
            once=self.options.once, ui=self.options.ui, candidacy=candidacy,
        )  # fmt: skip
        write_json(files.run_file, content)
        token = secrets.token_urlsafe(32)
        env = attempt_environment(spec, code_dir=code_dir, token=token)
        return _Child(start_driver(files, cwd=self.options.manifest_dir, env=env), token)

    def _start_candidate(self, job: Job, action: StartCandidate) -> None:
        files = self.layout.candidate(action.run, action.number)
        try:
            files.home.mkdir(parents=True)
        except FileExistsError:
            return  # started before: it is observed, not started again
        start = StartAttempt(run=action.run, attempt=action.number, epoch=0, repartition=action.repartition)
        candidacy = Candidacy(number=action.number, from_run=action.from_run, policy=job.spec.upgrade)
        self._candidates[action.number] = self._launch(job, start, files, candidacy)

    def _stop_candidate(self, action: StopCandidate) -> None:
        """Nothing to finish: it writes nothing."""
        driver = DriverProcess.read(self.layout.candidate(action.run, action.number).process)
        if (child := self._candidates.get(action.number)) is not None:
            child.process.kill()
            child.process.wait()
        if driver is not None:
            driver.kill()

    def _drain(self, job: Job, action: DrainAttempt) -> None:
        child = self._children.get((action.run, action.attempt))
        if child is None:
            return  # it lost its parent, so it drains by itself
        now = time.monotonic()
        if child.drain_asked_at is None:
            child.drain_asked_at = now
            driver = DriverProcess.read(self.layout.attempt(action.run, action.attempt).process)
            port = driver.agent_port if driver is not None else None
            asked = (
                driver is not None
                and port is not None
                and AgentClient(port, child.token, driver.uid).drain(
                    timeout_seconds=job.spec.drain_timeout.seconds
                )
            )
            if not asked:  # it has no agent yet; a signal says the same
                child.process.send_signal(signal.SIGTERM)
        elif now - child.drain_asked_at > job.spec.drain_timeout.seconds + KILL_GRACE_SECONDS:
            self._kill(action.run, action.attempt, child)

    def halt(self) -> None:
        """Leave at once: what is running is killed. Nothing is lost; a pending batch is replayed."""
        for child in self._candidates.values():
            if child.process.poll() is None:
                child.process.kill()
        for (run, attempt), child in self._children.items():
            if child.process.poll() is None:
                self._kill(run, attempt, child)

    def _kill(self, run: int, attempt: int, child: _Child) -> None:
        driver = DriverProcess.read(self.layout.attempt(run, attempt).process)
        child.process.kill()
        child.process.wait()
        if driver is not None:
            driver.kill()

    def _job_store(self, job: Job) -> Path:
        return self.layout.job_store(job.namespace, job.name, job.uid).absolute()


def _termination(files: AttemptFiles, exit_code: int | None) -> Ended:
    content = read_json(files.termination)
    told = ended_by(content, exit_code=content.get("exitCode")) if content is not None else None
    if told is None:
        how = f" (signal {-exit_code})" if exit_code is not None and exit_code < 0 else ""
        return Ended(
            ending=Ending.KILLED,
            exit_code=exit_code,
            message=f"the driver process was killed{how}; its last words are in {files.log}",
            log_file=str(files.log),
        )
    # The whole log lies here already: a tail of it in the store would be one copy more.
    return replace(told, log_file=str(files.log))
