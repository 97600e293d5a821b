"""Checkpoints of plain Spark, with its own defaults, under the settings that Headrace pins.

What is refused is refused for what Spark does: each of these tests also asks Spark, so that the day on which
it can go on is noticed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace_jobs.store import LastBatches
from headrace_jobs.store.errors import SavepointError
from headrace_jobs.store.savepoints import adopt_checkpoint
from tests.spark.checkpoint.attempts import Trial
from tests.spark.checkpoint.places import Place, directory_place
from tests.spark.savepoints.trials import a_trial, continued

pytestmark = pytest.mark.full

# What Spark does unless it is told otherwise; but snapshots after few batches, so that there are some.
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
DEFAULTS = {
    "spark.sql.streaming.stateStore.providerClass": HDFS,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "300ms",
}
ROCKSDB = {key: value for key, value in DEFAULTS.items() if "providerClass" not in key}
CHANGELOGS = {key: value for key, value in ROCKSDB.items() if "changelog" not in key}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return directory_place(tmp_path / "store")


def plain(place: Place, directory: Path, *, format_version: int, conf: dict[str, str]) -> Trial:
    """Spark alone, crashed in mid-batch: the rows of batch 3 are in the sink, its commit is not there."""
    trial = a_trial(place, directory, files=6, format_version=format_version, conf=conf)
    trial.run_until_killed("after-sink", 3)
    return trial


@pytest.mark.parametrize(
    ("conf", "says", "spark_says"),
    [
        (DEFAULTS, "with HDFSBackedStateStoreProvider", "STATE_STORE_CHECKPOINT_IDS_NOT_SUPPORTED"),
        (ROCKSDB, "in format v1", "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT"),
        (CHANGELOGS, "in format v1", "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT"),
    ],
    ids=["default provider", "RocksDB", "RocksDB with changelogs"],
)
def test_state_that_spark_cannot_go_on_with_is_refused(
    place: Place, tmp_path: Path, conf: dict[str, str], says: str, spark_says: str
) -> None:
    trial = plain(place, tmp_path, format_version=1, conf=conf)
    with pytest.raises(SavepointError, match=f"keeps its state {says}"):
        adopt_checkpoint(place.store, checkpoint="run-1/queries/q", run="run-2", lineage="auto")
    assert place.store.children("run-2") == []
    trial.settings = {}
    assert trial.run_to_end() != 0
    assert spark_says in (trial.output / f"error-{trial.attempt}").read_text()


def test_state_of_rocksdb_in_the_newer_format_goes_on_exactly(place: Place, tmp_path: Path) -> None:
    """Without changelogs and through Spark's own file manager: of the settings only these may differ."""
    trial = plain(place, tmp_path, format_version=2, conf=ROCKSDB)
    seed = adopt_checkpoint(place.store, checkpoint="run-1/queries/q", run="run-2", lineage="auto")
    assert (seed.batches["q"], seed.lineage) == (LastBatches(3, 2), "keep")
    place.store.delete_tree("run-1")
    after = continued(trial, "run-2", {"q": 2})
    after.settings = {}
    assert after.run_to_end() == 0, after.log.read_text()[-3000:]
    after.assert_exact()
