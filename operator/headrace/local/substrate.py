"""Carries the planner's actions out with processes and directories of this machine."""

from __future__ import annotations

import os
import secrets
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core.actions import (
    AbandonAttempt,
    Action,
    ActivateCandidate,
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
from headrace.core.manifests import Candidacy
from headrace.core.model import (
    Code,
    CodeProblem,
    EarlierLineage,
    Job,
    Observed,
    PinnedRun,
)
from headrace.core.reports import seeded_queries
from headrace.core.revision import revision_of
from headrace.local import code
from headrace.local.drivers import Child, Drivers
from headrace.local.layout import AttemptFiles, Layout, read_json, write_json
from headrace.local.preflight import missing
from headrace.local.processes import start_driver
from headrace.local.runfile import attempt_environment, run_file
from headrace.local.start_point import find_savepoint, s3_options
from headrace_jobs.store import (
    Seed,
    directory_url,
    newest_run,
    open_store,
    read_seed,
    seed_after_trial,
    seed_run,
)
from headrace_jobs.store.savepoints import seed_from


@dataclass(frozen=True)
class LocalOptions:
    manifest_dir: Path
    code_file: Path | None = None
    once: bool = False
    ui: bool = False


@dataclass
class LocalSubstrate:
    layout: Layout
    options: LocalOptions
    _seeding: Future[Seed] | None = None
    _seeding_run: int = 0
    _keeper: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "keeper"))

    def __post_init__(self) -> None:
        self.drivers = Drivers(self.layout)

    # ---- observe ------------------------------------------------------------------------------------

    def observe(self, job: Job, status: StreamJobStatus) -> Observed:
        # Every attempt of the state directory is looked at, whatever the status says.
        store = open_store(directory_url(self._job_store(job)))
        runs = self._run_numbers()
        seeds = {number: seed for number in runs if (seed := read_seed(store, f"run-{number}")) is not None}
        return Observed(
            code=self._observe_code(job.spec),
            attempts=self.drivers.attempts(runs, status),
            candidates=self.drivers.candidates(runs, status),
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
        store = open_store(directory_url(own.parent))
        for other in others:
            last = newest_run(store, other.name)
            if last is not None:
                return EarlierLineage(uid=other.name, last_run=last)
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
                self.drivers.stop_candidate(action)
            case ActivateCandidate():
                self.drivers.activate(action)
            case DrainAttempt():
                self.drivers.drain(job, action)
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
        lineages, target = directory_url(self._job_store(job).parent), f"{job.uid}/run-{action.to_run}"
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
        self.drivers.started(files, self._launch(job, action, files))

    def _launch(
        self, job: Job, action: StartAttempt, files: AttemptFiles, candidacy: Candidacy | None = None
    ) -> Child:
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
        return Child(start_driver(files, cwd=self.options.manifest_dir, env=env), token)

    def _start_candidate(self, job: Job, action: StartCandidate) -> None:
        files = self.layout.candidate(action.run, action.number)
        try:
            files.home.mkdir(parents=True)
        except FileExistsError:
            return  # started before: it is observed, not started again
        start = StartAttempt(
            run=action.run,
            attempt=action.number,
            epoch=0,
            started_from=action.started_from,
            repartition=action.repartition,
        )
        candidacy = Candidacy(number=action.number, from_run=action.from_run, policy=job.spec.upgrade)
        self.drivers.started(files, self._launch(job, start, files, candidacy))

    def halt(self) -> None:
        """Leave at once: what is running is killed."""
        self.drivers.halt()

    def _job_store(self, job: Job) -> Path:
        return self.layout.job_store(job.namespace, job.name, job.uid).absolute()
