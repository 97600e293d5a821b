"""A run seeded from another one goes on as if it were the same: also from the middle of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace_jobs.store import is_seeded, last_batches, seed_run
from tests.spark.checkpoint.attempts import Trial
from tests.spark.checkpoint.jobs import JOBS, write_input
from tests.spark.checkpoint.places import Place

pytestmark = pytest.mark.timeout(900)  # several JVMs each


def continue_in_next_run(trial: Trial) -> None:
    """Seeds run 2, makes run 1 unreadable so that nothing can lean on it, and goes on."""
    seed_run(trial.place.store, 1, 2)
    assert is_seeded(trial.place.store, 2)
    assert last_batches(trial.place.store, 2) == last_batches(trial.place.store, 1)
    trial.place.store.delete_tree("run-1")
    trial.run = "run-2"
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]


def seed_from_a_killed_driver(place: Place, directory: Path, job: str, format_version: int = 2) -> None:
    rows = write_input(directory / "input", files=5)
    trial = Trial(place, directory, rows, job=job, settings={"format_version": format_version})
    trial.run_until_killed("after-sink", 2)
    assert last_batches(place.store, 1)["q"] == (2, 1)
    continue_in_next_run(trial)
    trial.assert_exact()
    assert [call["batch"] for call in trial.calls()].count(2) == 2


@pytest.mark.full
@pytest.mark.parametrize("format_version", [1, 2])
@pytest.mark.parametrize("job", JOBS)
def test_every_kind_of_state_can_be_seeded_from_a_killed_driver(
    place: Place, tmp_path: Path, job: str, format_version: int
) -> None:
    seed_from_a_killed_driver(place, tmp_path, job, format_version)


@pytest.mark.full
def test_a_run_that_ended_well_is_seeded_and_takes_new_input(place: Place, tmp_path: Path) -> None:
    rows = write_input(tmp_path / "input", files=3)
    trial = Trial(place, tmp_path, rows, job="windows")
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
    trial.add_input(files=3)
    continue_in_next_run(trial)
    trial.assert_exact()
