"""Two lines of Spark over one checkpoint: the newer one goes on from the older one, and back again."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace_jobs.store import last_batches
from headrace_jobs.store.formats import formats_of, newer
from tests.spark.checkpoint.attempts import Trial
from tests.spark.checkpoint.jobs import JOBS, write_input
from tests.spark.checkpoint.places import Place
from tests.spark.sparks import NEWEST, spark_of, use_spark

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]  # several JVMs each


@pytest.fixture(scope="module")
def newer_spark() -> Path:
    """As the tests on a cluster have it in an image."""
    return spark_of(NEWEST)


def run_on(trial: Trial, spark: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One attempt, by the Spark of this environment or by another one."""
    with monkeypatch.context() as patch:
        if spark is not None:
            use_spark(spark, patch)
        trial.packages = spark
        assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]


@pytest.mark.parametrize("job", JOBS)
def test_there_and_back_again(
    place: Place, tmp_path: Path, newer_spark: Path, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(place, tmp_path, write_input(tmp_path / "input", 2), job=job)
    run_on(trial, None, monkeypatch)
    before = formats_of(place.store, 1, "q")
    trial.add_input(2)
    run_on(trial, newer_spark, monkeypatch)
    assert newer(before, formats_of(place.store, 1, "q")) == []
    trial.add_input(2)
    run_on(trial, None, monkeypatch)
    trial.assert_exact()


def test_logs_of_a_newer_format_are_refused_in_the_words_that_a_rollback_knows(
    place: Place, tmp_path: Path
) -> None:
    trial = Trial(place, tmp_path, write_input(tmp_path / "input", 2), job="sums")
    assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
    commit = f"run-1/queries/q/commits/{last_batches(place.store, 1)['q'].commits}"
    place.store.put(commit, place.store.get(commit).replace(b"v2", b"v9", 1))
    trial.add_input(1)
    assert trial.run_to_end() == 3
    assert "produced by a newer version of Spark" in trial.error(trial.attempt)
