"""Every kind of state, saved in every condition a job can be in, goes on to exactly the right output."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from headrace_jobs.store import LastBatches
from headrace_jobs.store.errors import LineageError
from headrace_jobs.store.savepoints import Pace, adopt_checkpoint, restore_savepoint
from tests.spark.checkpoint.jobs import JOBS
from tests.spark.checkpoint.places import Place
from tests.spark.savepoints.trials import (
    EAGER,
    HERE,
    a_trial,
    assert_continues_exactly,
    await_begun,
    continue_from,
    continued,
    freeze_in_mid_batch,
    running,
    take,
    thaw,
)


def test_of_a_running_query_in_mid_batch(place: Place, tmp_path: Path) -> None:
    """Strictly between two commits: the next batch has begun. State of it: see `after-state` below."""
    often = {"spark.sql.streaming.stateStore.maintenanceInterval": "300ms"}
    trial = a_trial(place, tmp_path, files=10, conf=often)
    with running(trial) as process:
        freeze_in_mid_batch(trial, process, batch=1)
        manifest = take(trial)
    assert manifest.queries[0].pending
    assert manifest.queries[0].batch >= 1
    assert_continues_exactly(trial)


@pytest.mark.full
def test_the_running_query_does_not_notice(place: Place, tmp_path: Path) -> None:
    trial = a_trial(place, tmp_path, files=10)
    with running(trial) as process:
        freeze_in_mid_batch(trial, process, batch=1)
        manifest = take(trial)
        thaw(trial)
        assert process.wait(timeout=180) == 0, trial.log.read_text()[-3000:]
    trial.assert_exact()
    # It went on, so its batch numbers are taken: the copy may only be a fork.
    with pytest.raises(LineageError, match="went on to batch"):
        restore_savepoint(place.store, savepoint=HERE, run=2, lineage="keep")
    after = assert_continues_exactly(trial, lineage="new")
    forked = json.loads(place.store.get(f"{after.run}/queries/q/metadata"))["id"]
    assert forked != manifest.queries[0].lineage


@pytest.mark.full
@pytest.mark.parametrize("format_version", [1, 2])
@pytest.mark.parametrize("job", JOBS)
def test_every_kind_of_state_from_a_crashed_job(
    place: Place, tmp_path: Path, job: str, format_version: int
) -> None:
    trial = a_trial(place, tmp_path, job, files=4, format_version=format_version)
    trial.run_until_killed("after-sink", 2)
    manifest = take(trial)
    (query,) = manifest.queries
    assert (query.batch, query.pending, query.state_format) == (1, True, format_version)
    assert_continues_exactly(trial)


@pytest.mark.full
@pytest.mark.parametrize("point", ["after-offsets", "after-one-changelog", "after-state"])
def test_at_every_point_of_a_batch(place: Place, tmp_path: Path, point: str) -> None:
    trial = a_trial(place, tmp_path)
    trial.run_until_killed(point, 3)
    assert take(trial).queries[0].batch == 2
    assert_continues_exactly(trial)


@pytest.mark.full
@pytest.mark.parametrize("job", JOBS)
def test_of_a_stopped_job_which_then_gets_more_input(place: Place, tmp_path: Path, job: str) -> None:
    trial = a_trial(place, tmp_path, job, files=3)
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
    assert not take(trial).queries[0].pending
    trial.add_input(files=2)
    assert_continues_exactly(trial)


@pytest.mark.full
@pytest.mark.parametrize("snapshots", [True, False])
def test_with_and_without_a_snapshot_in_it(place: Place, tmp_path: Path, snapshots: bool) -> None:
    often = {**EAGER, "spark.sql.streaming.minBatchesToRetain": "100"}
    trial = a_trial(place, tmp_path, files=8, conf=often if snapshots else {})
    trial.run_until_killed("after-sink", 6)
    manifest = take(trial)
    kept = {one.key.rpartition(".")[2] for one in manifest.objects if "/state/" in one.key}
    assert ("zip" in kept, "sst" in kept) == (snapshots, snapshots)
    assert_continues_exactly(trial)


@pytest.mark.full
def test_before_the_first_commit(place: Place, tmp_path: Path) -> None:
    trial = a_trial(place, tmp_path, files=3)
    trial.run_until_killed("after-state", 0)
    assert take(trial).queries[0].batch == -1
    assert_continues_exactly(trial)


@pytest.mark.full
@pytest.mark.timeout(900)  # many batches, several drivers
def test_with_files_of_attempts_that_lost(place: Place, tmp_path: Path) -> None:
    """Failed tasks, two actions per batch and killed drivers: several files of each version, one counts."""
    often = {**EAGER, "spark.sql.streaming.minBatchesToRetain": "100"}
    trial = a_trial(
        place, tmp_path, master="local[1, 3]", fail_first_task=True, actions=2, conf=often, files=6
    )
    trial.run_until_killed("after-state", 2)
    trial.run_until_killed("after-state", 4)
    there = [key for key in place.files() if key.endswith(".changelog") and "/state/0/0/4_" in key]
    assert len(there) > 1, "no attempt lost: the test shows nothing"
    saved = [one.key for one in take(trial).objects]
    assert len([key for key in saved if key.endswith((".changelog", ".zip")) and "/state/0/0/4_" in key]) == 1
    assert_continues_exactly(trial)


@pytest.mark.full
def test_several_queries_each_at_its_own_batch(place: Place, tmp_path: Path) -> None:
    trial = a_trial(place, tmp_path, "sums", queries=["first", "second one", "third-ü"])
    trial.run_until_killed("after-sink", 2)
    assert [query.name for query in take(trial).queries] == ["first", "second one", "third-ü"]
    assert_continues_exactly(trial)


@pytest.mark.full
def test_a_savepoint_of_a_job_that_began_from_one(place: Place, tmp_path: Path) -> None:
    """The second is taken before Spark wrote any snapshot of its own: all it has came with the first."""
    trial = a_trial(place, tmp_path, files=8)
    trial.run_until_killed("after-sink", 3)
    take(trial)
    second = continue_from(trial)
    second.run_until_killed("after-sink", 5)
    assert take(second, "_savepoints/s2").queries[0].batch == 4
    place.store.delete_tree("run-2")
    third = continue_from(second, "_savepoints/s2", run="run-3")
    assert third.run_to_end() == 0, third.log.read_text()[-3000:]
    third.assert_exact()


@pytest.mark.full
@pytest.mark.parametrize("job", ["windows", "transformWithState"])
def test_a_checkpoint_of_one_query_is_adopted_and_goes_on_exactly(
    place: Place, tmp_path: Path, job: str
) -> None:
    """As Spark alone leaves it: crashed in mid-batch, without a run around it; the original is gone then."""
    trial = a_trial(place, tmp_path, job, files=4)
    trial.run_until_killed("after-sink", 2)
    store = place.store
    seed = adopt_checkpoint(store, checkpoint="run-1/queries/q", run="run-2", lineage="auto")
    assert (seed.batches["q"], seed.lineage) == (LastBatches(2, 1), "keep")
    store.delete_tree("run-1")
    after = continued(trial, "run-2", {"q": 1})
    assert after.run_to_end() == 0, after.log.read_text()[-3000:]
    after.assert_exact()


@pytest.mark.full
@pytest.mark.timeout(900)  # many batches, several drivers
def test_racing_sparks_own_clean_up(place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Savepoints, quick and slow ones, of a query that keeps two batches: each is whole and goes on."""
    caplog.set_level(logging.INFO, "headrace")
    trial = a_trial(place, tmp_path, files=30, conf=EAGER)
    taken = []
    with running(trial) as process:
        for batch in range(4, 28, 4):
            await_begun(trial, batch)
            # At this pace a copy takes longer than the query keeps what is copied: it must catch up.
            pace = Pace(objects_per_second=80) if batch % 8 == 0 else None
            taken.append(take(trial, f"_savepoints/s{len(taken)}", pace=pace, tries=100))
        assert process.wait(timeout=240) == 0, trial.log.read_text()[-3000:]
    trial.assert_exact()
    assert "was faster than the savepoint" in caplog.text, "nothing was raced: the test shows nothing"
    assert len({manifest.queries[0].batch for manifest in taken}) > 2, "they were all of one moment"
    for number in (2, 5):  # a quick one and a slow one
        after = assert_continues_exactly(trial, f"_savepoints/s{number}", run=f"fork-{number}", lineage="new")
        if number == 2:
            assert min(call["batch"] for call in after.calls()) == taken[2].queries[0].batch + 1
