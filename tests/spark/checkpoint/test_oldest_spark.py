"""The oldest line of Spark that Headrace says it works with: the file manager, in it, keeps its promises.

The jar is the one that was compiled against the locked Spark, as it is when an init container brings it into
an image with another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.checkpoint.attempts import Trial
from tests.spark.checkpoint.jobs import write_input
from tests.spark.checkpoint.places import Place
from tests.spark.checkpoint.test_drain import drain_again_and_again
from tests.spark.checkpoint.test_recovery import POINTS, kill_at_each
from tests.spark.sparks import OLDEST, spark_of, use_spark

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture
def oldest_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    packages = spark_of(OLDEST)
    with monkeypatch.context() as patch:
        use_spark(packages, patch)
        yield packages


@pytest.mark.parametrize("job", ["sums", "transformWithState"])
def test_a_driver_killed_at_any_point_of_a_batch_recovers(
    place: Place, tmp_path: Path, oldest_spark: Path, job: str
) -> None:
    trial = Trial(place, tmp_path, write_input(tmp_path / "input", 6), job=job, packages=oldest_spark)
    kill_at_each(POINTS, trial)
    trial.assert_exact()
    assert trial.spark_version() == "4.1.4"


def test_it_drains_as_every_other(place: Place, tmp_path: Path, oldest_spark: Path) -> None:
    drain_again_and_again(Trial(place, tmp_path, rows=[], packages=oldest_spark))
