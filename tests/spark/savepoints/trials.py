"""A job that goes on from a savepoint, beside or after the one it was taken from."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace_jobs.store import last_batches
from headrace_jobs.store.savepoints import (
    About,
    Manifest,
    read_manifest,
    restore_savepoint,
    take_savepoint,
    verify_savepoint,
)
from tests.spark.checkpoint.attempts import Trial, await_condition
from tests.spark.checkpoint.jobs import write_input
from tests.spark.checkpoint.places import Place

HERE = "_savepoints/s1"
# Small retention and eager maintenance: Spark cleans up within seconds.
EAGER = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "300ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
}


def a_trial(place: Place, directory: Path, job: str = "windows", *, files: int = 5, **settings: Any) -> Trial:
    return Trial(place, directory, write_input(directory / "input", files), job=job, settings=settings)


def take(trial: Trial, savepoint: str = HERE, **how: Any) -> Manifest:
    store, about, now = trial.place.store, About(owner="test"), datetime.now(UTC)
    manifest = take_savepoint(store, run=trial.run, savepoint=savepoint, about=about, now=now, **how)
    verification = verify_savepoint(trial.place.store, savepoint, level="State")
    assert verification.problems == ()
    return manifest


class Continued(Trial):
    """Its own output, which begins with what the first job wrote up to the savepoint."""

    @property
    def output(self) -> Path:
        return self.directory / f"output-{self.run}"


def continue_from(trial: Trial, savepoint: str = HERE, *, run: str = "run-2", lineage: Any = "keep") -> Trial:
    """Restores the savepoint, and leaves neither it nor the run it came from: nothing may lean on them."""
    store = trial.place.store
    manifest = read_manifest(store, savepoint)
    if lineage == "keep":
        store.delete_tree("run-1")
    restore_savepoint(store, savepoint=savepoint, run=run, lineage=lineage)
    for tree in ("run-1", savepoint):
        store.delete_tree(tree)
    return continued(trial, run, {query.name: query.batch for query in manifest.queries})


def continued(trial: Trial, run: str, batches: Mapping[str, int]) -> Trial:
    """What goes on in `run`. `batches`: up to which, by query, the output of the first job counts."""
    after = Continued(
        trial.place, trial.directory, trial.rows, trial.job, run, trial.attempt, dict(trial.settings)
    )
    for query, batch in batches.items():
        (after.output / query).mkdir(parents=True)
        for path in (trial.output / query).glob("*.json"):
            if int(path.stem) <= batch:
                shutil.copy(path, after.output / query / path.name)
    return after


def assert_continues_exactly(trial: Trial, savepoint: str = HERE, **changes: Any) -> Trial:
    after = continue_from(trial, savepoint, **changes)
    assert after.run_to_end() == 0, after.log.read_text()[-3000:]
    for query in trial.settings.get("queries", ["q"]):
        after.assert_exact(query)
    return after


@contextlib.contextmanager
def running(trial: Trial, **changes: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = trial.start(**changes)
    try:
        yield process
    finally:
        trial.kill(process)


def freeze_in_mid_batch(trial: Trial, process: subprocess.Popen[bytes], batch: int) -> None:
    """Stops the driver when it has begun a batch after `batch`, and not committed it."""
    pids = trial.pids(trial.attempt)
    while True:
        await_begun(trial, batch + 1, process)
        assert process.poll() is None, "it never was in mid-batch"
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        last = last_batches(trial.place.store, trial.run)["q"]
        if last.pending:
            return
        batch = last.offsets or batch
        thaw(trial)


def thaw(trial: Trial) -> None:
    for pid in trial.pids(trial.attempt):
        os.kill(pid, signal.SIGCONT)


def await_begun(trial: Trial, batch: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Or the process has ended, where that is to be noticed."""

    def begun() -> bool:
        last = last_batches(trial.place.store, trial.run).get("q")
        return last is not None and (last.offsets or 0) >= batch

    def over() -> bool:
        return process is not None and process.poll() is not None

    await_condition(lambda: over() or begun(), f"batch {batch} has begun")
