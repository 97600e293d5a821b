"""kill -9 at each point of a batch: every restart recovers, and the results are exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.store import last_batches, seed_run
from tests.spark.checkpoint.attempts import Trial
from tests.spark.checkpoint.jobs import JOBS, write_input
from tests.spark.checkpoint.places import Place
from tests.spark.checkpoint.standalone import two_hosts

pytestmark = pytest.mark.timeout(900)  # several JVMs each

POINTS = ("after-offsets", "after-one-changelog", "after-state", "after-sink")


def a_trial(place: Place, directory: Path, job: str = "sums", *, files: int = 6, **settings: Any) -> Trial:
    rows = write_input(directory / "input", files)
    return Trial(place, directory, rows, job=job, settings=settings)


def kill_at_each(points: tuple[str, ...], trial: Trial) -> None:
    """One run through all points, a batch further each time, so that each restart meets a used checkpoint."""
    for number, point in enumerate(points):
        trial.run_until_killed(point, number + 1)
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]


def test_a_driver_killed_at_any_point_of_a_batch_recovers(place: Place, tmp_path: Path) -> None:
    """The last recovery is in a run that was seeded from the killed one, with its batch still pending."""
    trial = a_trial(place, tmp_path)
    for batch, point in enumerate(POINTS):
        trial.run_until_killed(point, batch)
    assert last_batches(place.store, 1)["q"] == (3, 2)
    seed_run(place.store, 1, 2)
    place.store.delete_tree("run-1")
    trial.run = "run-2"
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
    trial.assert_exact()
    called = sorted(call["batch"] for call in trial.calls())
    assert called == [0, 1, 2, 3, 3, 4, 5], "only the batch killed after its sink was given twice"


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_inside_its_first_batch_recovers(place: Place, tmp_path: Path, point: str) -> None:
    trial = a_trial(place, tmp_path, files=3)
    trial.run_until_killed(point, 0)
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
    trial.assert_exact()


@pytest.mark.full
@pytest.mark.parametrize("format_version", [1, 2])
@pytest.mark.parametrize("job", JOBS)
def test_every_kind_of_state_recovers_in_both_formats(
    place: Place, tmp_path: Path, job: str, format_version: int
) -> None:
    trial = a_trial(place, tmp_path, job, format_version=format_version)
    kill_at_each(("after-one-changelog", "after-sink"), trial)
    trial.assert_exact()


@pytest.mark.full
def test_state_that_is_committed_twice_in_one_batch_recovers(place: Place, tmp_path: Path) -> None:
    """Two actions in foreachBatch run the state's tasks twice."""
    trial = a_trial(place, tmp_path, actions=2)
    kill_at_each(POINTS, trial)
    trial.assert_exact()


@pytest.mark.full
def test_a_task_that_fails_after_its_state_was_committed_is_retried(place: Place, tmp_path: Path) -> None:
    trial = a_trial(place, tmp_path, master="local[1, 3]", fail_first_task=True)
    trial.run_until_killed("after-state", 2)
    before = trial.retried()
    assert before >= 3, "in each of the batches 0 to 2 a task was to fail and to be run again"
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
    assert trial.retried() - before >= 4, "and in each of the batches 2 to 5"
    trial.assert_exact()


@pytest.mark.full
def test_speculative_copies_of_a_task_do_not_harm(place: Place, tmp_path: Path) -> None:
    """Executors on two hosts and a slow task: two tasks commit the same partition's state of a batch."""
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.locality.wait": "0s",  # the copy runs where the state is not
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
    }
    with two_hosts(place, tmp_path / "cluster") as master:
        trial = a_trial(place, tmp_path, master=master, conf=speculation, slow_first_task=True)
        trial.run_until_killed("after-state", 3)
        before = trial.speculated()
        assert before >= 4, "in each of the batches 0 to 3 a task was to be run twice"
        assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
    assert trial.speculated() - before >= 3, "and in each of the batches 3 to 5"
    trial.assert_exact()


@pytest.mark.full
def test_several_queries_of_one_driver_recover_each(place: Place, tmp_path: Path) -> None:
    trial = a_trial(place, tmp_path, queries=["first", "second one", "third-ü"])
    kill_at_each(("after-one-changelog", "after-sink"), trial)
    for query in ("first", "second one", "third-ü"):
        trial.assert_exact(query)
