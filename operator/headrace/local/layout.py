"""Where `headrace dev` keeps things. One directory per job, `.headrace/<name>/` beside the manifest:

lock                          held by the one `headrace dev` of this job
restore.json                  the last request to go back to a savepoint
streamjob.json                the object as a cluster would keep it: uid, generation, spec, status
runs/run-<n>/pin.json         what run n runs
runs/run-<n>/attempt-<k>/     run.json, driver.log, process.json, termination.json
runs/run-<n>/candidate-<k>/   the same, of a driver that rehearses the run; where it was ordered to take over,
                              activated.json says as which attempt
store/<ns>/<name>/<uid>/      checkpoints and pinned code, laid out as in S3
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class AttemptFiles:
    home: Path

    @property
    def run_file(self) -> Path:
        return self.home / "run.json"

    @property
    def log(self) -> Path:
        return self.home / "driver.log"

    @property
    def process(self) -> Path:
        return self.home / "process.json"

    @property
    def termination(self) -> Path:
        return self.home / "termination.json"

    @property
    def activated(self) -> Path:
        return self.home / "activated.json"


@dataclass(frozen=True)
class Layout:
    home: Path

    @property
    def lock(self) -> Path:
        return self.home / "lock"

    @property
    def streamjob(self) -> Path:
        return self.home / "streamjob.json"

    @property
    def restore(self) -> Path:
        return self.home / "restore.json"

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    @property
    def store_root(self) -> Path:
        return self.home / "store"

    def pin(self, run: int) -> Path:
        return self.runs / f"run-{run}" / "pin.json"

    def attempt(self, run: int, attempt: int) -> AttemptFiles:
        return AttemptFiles(self.runs / f"run-{run}" / f"attempt-{attempt}")

    def candidate(self, run: int, number: int) -> AttemptFiles:
        return AttemptFiles(self.runs / f"run-{run}" / f"candidate-{number}")

    def job_store(self, namespace: str, name: str, uid: str) -> Path:
        return self.store_root / namespace / name / uid

    def code(self, namespace: str, name: str, uid: str, run: int) -> Path:
        return self.job_store(namespace, name, uid) / f"run-{run}" / "_code"


def write_json(path: Path, value: Any) -> None:
    """All or nothing, also when killed: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with fresh.open("w") as file:
        json.dump(value, file, indent=1, default=str)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def read_json(path: Path) -> Any | None:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
