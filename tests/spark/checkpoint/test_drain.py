"""Drain: the running batch commits, the next one does not begin, and no sink call is repeated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.spark.checkpoint.attempts import ROOT, Trial, environment_for
from tests.spark.checkpoint.places import Place

DRAINS = 10


def drain_again_and_again(trial: Trial) -> None:
    """Each drain ends at a clean boundary, in time, and no sink call is repeated."""
    trial.attempt += 1
    trial.output.mkdir(exist_ok=True)
    spec = trial.spec(master="local[2]").write(trial.directory / "drains.json")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.checkpoint.drains", spec, str(DRAINS)],
        cwd=ROOT,
        env=environment_for(trial.place, trial.packages),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    *drains, last = (json.loads(line) for line in ran.stdout.splitlines())
    assert len(drains) == DRAINS
    for drain in drains:
        assert drain["settled"]
        assert drain["cause"].startswith("dev.headrace.DrainedException")
        assert drain["offsets"] == drain["commits"]
        assert drain["seconds"] <= drain["longestBatchMs"] / 1000 + 1
    assert last["calls"] == list(range(drains[-1]["commits"] + 1))


def test_ten_drains_under_load_end_at_clean_boundaries_and_repeat_nothing(
    place: Place, tmp_path: Path
) -> None:
    drain_again_and_again(Trial(place, tmp_path, rows=[]))
