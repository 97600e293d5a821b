"""`headrace dev`: the operator for one job, on this machine. Saving a file is `kubectl apply`."""

from __future__ import annotations

import fcntl
import os
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from headrace.api import StreamJob, StreamJobSpec, StreamJobStatus
from headrace.core.changes import classify
from headrace.core.decision import Plan
from headrace.core.model import Job
from headrace.core.plan import plan
from headrace.core.validate import rollback_request
from headrace.local.forgetting import forget
from headrace.local.layout import Layout, read_json, write_json
from headrace.local.restore import asked_restore
from headrace.local.substrate import LocalOptions, LocalSubstrate
from headrace.local.view import Snapshot, View

TICK_SECONDS = 0.2

# Loads the manifest: the job, or the problems as a text for the user.
LoadManifest = Callable[[], StreamJob | str]


class StateDirInUse(Exception):
    """Another `headrace dev` has this state directory."""


@dataclass(frozen=True)
class DevOptions:
    manifest: Path
    state_dir: Path
    code_file: Path | None = None
    fresh: bool = False
    once: bool = False
    ui: bool = False


def home_of(state_dir: Path, job_name: str) -> Path:
    return state_dir / job_name


class DevSession:
    """One `headrace dev`: holds the lock, the object that a cluster would hold in etcd, and the loop."""

    def __init__(self, options: DevOptions, first: StreamJob, load: LoadManifest, view: View) -> None:
        self._options, self._load, self._view = options, load, view
        self._layout = Layout(home_of(options.state_dir, first.metadata.name).absolute())
        self._lock = _take_lock(self._layout)
        if options.fresh:
            forget(self._layout)
        self._job, self._status = self._adopt(first)
        self._substrate = LocalSubstrate(
            self._layout,
            LocalOptions(
                manifest_dir=options.manifest.parent.absolute(),
                code_file=options.code_file,
                once=options.once,
                ui=options.ui,
            ),
        )
        self._seen = _signature(options.manifest)
        self._manifest_problem: str | None = None
        self._wake = threading.Event()
        self._stops = 0

    # ---- the loop -----------------------------------------------------------------------------------

    def run(self) -> int:
        """Until the job is done or `stop` is called. The exit code says which."""
        try:
            while True:
                made = self._pass()
                if (code := self._exit_code(made)) is not None:
                    return code
                self._wake.wait(TICK_SECONDS)
                self._wake.clear()
        finally:
            self._substrate.halt()
            self._view.close()
            self._lock.close()

    def stop(self) -> None:
        """Drain and leave; asked twice, leave at once. May be called from a signal handler."""
        self._stops += 1
        if self._stops > 1:
            self._substrate.halt()
        self._wake.set()

    def _pass(self) -> Plan:
        self._take_edit()
        self._job = replace(self._job, restore=asked_restore(self._layout), detaching=self._stops > 0)
        observed = self._substrate.observe(self._job, self._status)
        made = plan(self._job, self._status, observed, datetime.now(UTC))
        if made.status != self._status:
            self._status = made.status
            self._save()  # the intent first, then the act
        for sentence in made.says:
            self._view.say(sentence)
        for action in made.actions:
            self._substrate.perform(self._job, action)
        self._view.show(self._snapshot())
        return made

    def _exit_code(self, made: Plan) -> int | None:
        if made.actions:
            return None
        match self._status.state:
            case "Detached":
                return 0
            case "Completed" if self._options.once or self._status.next_start_at is None:
                return 0
            case "Stalled" | "Failed" | "Backoff" if self._options.once:
                return 1
            case _:
                return None

    # ---- edits --------------------------------------------------------------------------------------

    def _take_edit(self) -> None:
        signature = _signature(self._options.manifest)
        if signature == self._seen or signature is None:  # gone for a moment while an editor replaces it
            return
        self._seen = signature
        loaded = self._load()
        if isinstance(loaded, str):
            self._manifest_problem = loaded
            self._view.problem(loaded, running=self._status.state == "Running")
            return
        self._manifest_problem = None
        if loaded.metadata.name != self._job.name:
            self._view.problem(
                f"metadata.name is now {loaded.metadata.name}: that is another job. Stop (Ctrl-C) and start "
                f"headrace dev again to run it, or put {self._job.name} back",
                running=True,
            )
            return
        self._job = replace(self._job, rollback=rollback_request(loaded.metadata.annotations))
        self._apply(loaded.spec)

    def _apply(self, spec: StreamJobSpec) -> None:
        if not classify(self._job.spec, spec).changed:
            return
        self._job = replace(self._job, spec=spec, generation=self._job.generation + 1)
        self._save()

    # ---- the object ---------------------------------------------------------------------------------

    def _adopt(self, first: StreamJob) -> tuple[Job, StreamJobStatus]:
        """The job as it was left, with the manifest as it is now; or a new one."""
        kept: dict[str, Any] | None = read_json(self._layout.streamjob)
        namespace = first.metadata.namespace or "default"
        rollback = rollback_request(first.metadata.annotations)
        if kept is None:
            job = Job(
                namespace=namespace,
                name=first.metadata.name,
                uid=str(uuid.uuid4()),
                generation=1,
                spec=first.spec,
                rollback=rollback,
            )
            return job, StreamJobStatus()
        metadata = kept["metadata"]
        before = StreamJobSpec.parse(kept["spec"])
        edited = bool(classify(before, first.spec).changed)
        job = Job(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            generation=metadata["generation"] + int(edited),
            spec=first.spec,
            rollback=rollback,
        )
        return job, StreamJobStatus.parse(kept.get("status") or {})

    def _save(self) -> None:
        job = self._job
        write_json(
            self._layout.streamjob,
            {
                "apiVersion": "headrace.dev/v1alpha1",
                "kind": "StreamJob",
                "metadata": {
                    "namespace": job.namespace,
                    "name": job.name,
                    "uid": job.uid,
                    "generation": job.generation,
                },
                "spec": job.spec.model_dump(mode="json", exclude_unset=True),
                "status": self._status.to_manifest(),
            },
        )

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            name=self._job.name,
            status=self._status,
            report=self._substrate.drivers.report,
            problem=self._manifest_problem,
            home=self._layout.home,
            manifest=self._options.manifest,
        )


def _take_lock(layout: Layout) -> IO[str]:
    """One `headrace dev` per job. The kernel frees the lock however the holder dies."""
    layout.home.mkdir(parents=True, exist_ok=True)
    lock = layout.lock.open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip()
        raise StateDirInUse(
            f"another headrace dev (pid {holder}) is running this job. Stop it, "
            "or keep this one apart with --state-dir DIR"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
