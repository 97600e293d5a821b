"""RocksDB's memory lies outside of the heap: without a bound it grows until the container is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.checkpoint.attempts import ROOT, Trial, environment_for
from tests.spark.checkpoint.places import directory_place

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]  # several JVMs each

BOUND_MEBIBYTES = 32
BATCHES = 6
ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"


def memory_used(directory: Path, *, bounded: bool) -> list[int]:
    trial = Trial(directory_place(directory / "store"), directory, rows=[], attempt=1)
    conf = {
        f"{ROCKSDB}.boundedMemoryUsage": str(bounded).lower(),
        f"{ROCKSDB}.maxMemoryUsageMB": str(BOUND_MEBIBYTES),
        "spark.ui.showConsoleProgress": "false",
    }
    directory.mkdir()
    spec = trial.spec(master="local[2]", conf=conf).write(directory / "spec.json")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.checkpoint.state_memory", spec, str(BATCHES)],
        cwd=ROOT,
        env=environment_for(trial.place),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    report = json.loads(ran.stdout)
    assert report["rows"] == 100_000 * BATCHES
    return report["bytes"]


def test_a_growing_state_stays_within_its_bound(tmp_path: Path) -> None:
    bound = BOUND_MEBIBYTES * 1024 * 1024
    assert max(memory_used(tmp_path / "unbounded", bounded=False)) > 2 * bound, (
        "this state is too small to tell"
    )
    # A block stays pinned while it is read: a little more for a moment is in the nature of it.
    assert max(memory_used(tmp_path / "bounded", bounded=True)) < 1.25 * bound
