"""State is split into another number of partitions between two runs, and nobody can tell from the output."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace_jobs.store import last_batches, seed_run
from headrace_jobs.store.partitions import is_later, states_of
from tests.spark.checkpoint.attempts import Trial
from tests.spark.checkpoint.jobs import JOBS, outcome, write_input
from tests.spark.checkpoint.places import Place
from tests.spark.savepoints.trials import continue_from, take

pytestmark = pytest.mark.timeout(900)  # several JVMs each

FILES = 3


def a_stopped_job(place: Place, directory: Path, job: str, **settings: object) -> Trial:
    """Run 1 with two partitions, at a clean boundary; more input waits."""
    trial = Trial(place, directory, write_input(directory / "input", FILES), job=job, settings=settings)
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
    trial.add_input(FILES)
    return trial


def next_run(trial: Trial, run: int, **changes: object) -> None:
    """Seeds it, makes all before it unreadable, and goes on: nothing may lean on them."""
    seed_run(trial.place.store, run - 1, run)
    trial.place.store.delete_tree(f"run-{run - 1}")
    trial.run = f"run-{run}"
    assert trial.run_to_end(**changes) == 0, trial.log.read_text()[-3000:] + trial.error(trial.attempt)


def partitions(trial: Trial) -> dict[str, int | None]:
    return {state.name: state.partitions for state in states_of(trial.place.store, trial.run)}


def assert_exact(trial: Trial, *splits: int) -> None:
    """Every row counted once; the only batches that no sink was told of are the splits."""
    job = JOBS[trial.job]
    differences = trial.output / "q" / "differences"
    assert not differences.exists(), differences.read_text()
    assert outcome(trial.batches().values(), job.output) == job.expected(trial.rows)
    last = last_batches(trial.place.store, trial.run)["q"]
    assert last.offsets == last.commits
    assert set(range((last.commits or 0) + 1)) - set(trial.batches()) == set(splits)


def split_twice(place: Place, directory: Path, job: str, format_version: int = 2) -> None:
    """To more and to fewer. The session's own setting stays 2, as that of an older version would be."""
    trial = a_stopped_job(place, directory, job, format_version=format_version)
    before = last_batches(place.store, 1)["q"].commits or 0
    next_run(trial, 2, repartition=5)
    assert partitions(trial) == {"q": 5}
    middle = last_batches(place.store, 2)["q"].commits or 0
    trial.add_input(FILES)
    next_run(trial, 3, repartition=3)
    assert partitions(trial) == {"q": 3}
    trial.add_input(FILES)
    next_run(trial, 4)
    assert partitions(trial) == {"q": 3}, "it stays"
    assert_exact(trial, before + 1, middle + 1)


def test_windows_over_unique_rows(place: Place, tmp_path: Path) -> None:
    split_twice(place, tmp_path, "windows")


@pytest.mark.full
@pytest.mark.parametrize("format_version", [1, 2])
@pytest.mark.parametrize("job", JOBS)
def test_every_kind_of_state(place: Place, tmp_path: Path, job: str, format_version: int) -> None:
    split_twice(place, tmp_path, job, format_version)


@pytest.mark.full
@pytest.mark.parametrize("version", ["1", "2"])
def test_both_layouts_of_aggregates(place: Place, tmp_path: Path, version: str) -> None:
    conf = {"spark.sql.streaming.aggregation.stateFormatVersion": version}
    trial = a_stopped_job(place, tmp_path, "sums", conf=conf)
    before = last_batches(place.store, 1)["q"].commits or 0
    next_run(trial, 2, repartition=5)
    assert_exact(trial, before + 1)


def cut_before_the_commit(trial: Trial, batch: int) -> None:
    """What a driver leaves that is killed in the last moment of a repartition."""
    trial.place.store.delete_many([f"{trial.run}/queries/q/commits/{batch}"])


def cut_before_the_state(trial: Trial, batch: int) -> None:
    """And in its first: nothing but the entry of the log."""
    cut_before_the_commit(trial, batch)
    prefix = f"{trial.run}/queries/q/"
    keys = [entry.key for entry in trial.place.store.list(prefix)]
    trial.place.store.delete_many([key for key in keys if is_later(key.removeprefix(prefix), batch - 1)])


def split_without_a_batch(trial: Trial, partitions: int) -> int:
    """Run 2, split and ended before it starts a query; the batch of the split."""
    seed_run(trial.place.store, 1, 2)
    trial.run = "run-2"
    batch = (last_batches(trial.place.store, 1)["q"].commits or 0) + 1
    assert trial.run_to_end(repartition=partitions, queries=[]) == 0, trial.error(trial.attempt)
    assert last_batches(trial.place.store, 2)["q"] == (batch, batch)
    return batch


@pytest.mark.parametrize(
    ("job", "cut"),
    [
        ("sums", cut_before_the_commit),
        pytest.param("transformWithState", cut_before_the_commit, marks=pytest.mark.full),
        pytest.param("join", cut_before_the_state, marks=pytest.mark.full),
        pytest.param("windows", cut_before_the_commit, marks=pytest.mark.full),
    ],
)
def test_half_of_it_is_done_again_from_the_beginning(
    place: Place, tmp_path: Path, job: str, cut: Callable[[Trial, int], None]
) -> None:
    trial = a_stopped_job(place, tmp_path, job)
    batch = split_without_a_batch(trial, 5)
    cut(trial, batch)
    # Another number than that of the half: the edit was corrected meanwhile.
    assert trial.run_to_end(repartition=4) == 0, trial.log.read_text()[-3000:] + trial.error(trial.attempt)
    assert partitions(trial) == {"q": 4}
    assert_exact(trial, batch)


@pytest.mark.full
def test_the_run_after_half_of_it_begins_with_the_whole_state(place: Place, tmp_path: Path) -> None:
    trial = a_stopped_job(place, tmp_path, "windows")
    cut_before_the_commit(trial, split_without_a_batch(trial, 5))
    next_run(trial, 3)
    assert partitions(trial) == {"q": 2}
    assert_exact(trial)


@pytest.mark.full
def test_killed_whenever_the_log_says_that_it_has_begun(place: Place, tmp_path: Path) -> None:
    trial = a_stopped_job(place, tmp_path, "windows")
    seed_run(place.store, 1, 2)
    trial.run = "run-2"
    begun = (last_batches(place.store, 1)["q"].offsets or 0) + 1
    process = trial.start(repartition=5)
    waiting = threading.Event()
    while (last_batches(place.store, 2)["q"].offsets or 0) < begun and process.poll() is None:
        waiting.wait(0.01)
    trial.kill(process)
    assert trial.run_to_end(repartition=5) == 0, trial.log.read_text()[-3000:] + trial.error(trial.attempt)
    assert partitions(trial) == {"q": 5}
    assert_exact(trial, begun)


@pytest.mark.full
@pytest.mark.parametrize("partitions_now", [1, 5])
def test_a_savepoint_after_it_is_one(place: Place, tmp_path: Path, partitions_now: int) -> None:
    trial = a_stopped_job(place, tmp_path, "windows")
    batch = split_without_a_batch(trial, partitions_now)
    place.store.delete_tree("run-1")
    manifest = take(trial)
    assert [query.partitions for query in manifest.queries] == [partitions_now]
    after = continue_from(trial, run="run-3")
    assert after.run_to_end() == 0, after.log.read_text()[-3000:]
    assert partitions(after) == {"q": partitions_now}
    assert_exact(after, batch)


def test_a_batch_that_has_begun_belongs_to_the_old_number(place: Place, tmp_path: Path) -> None:
    rows = write_input(tmp_path / "input", FILES)
    trial = Trial(place, tmp_path, rows, job="sums")
    trial.run_until_killed("after-sink", 1)
    seed_run(place.store, 1, 2)
    trial.run = "run-2"
    files = place.files()
    assert trial.run_to_end(repartition=5) == 3
    assert trial.error(trial.attempt).startswith(
        "CannotRepartition: query q: its state cannot be split into 5"
    )
    assert "batch 1 has begun and not ended" in trial.error(trial.attempt)
    assert [name for name in place.files() if "/_attempts/" not in name] == [
        name for name in files if "/_attempts/" not in name
    ], "nothing was touched"
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
    assert_exact(trial)
