"""What a savepoint cannot do with Spark's file sink; and Spark reading the state of a savepoint."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.store import is_seeded
from headrace_jobs.store.errors import LineageError
from headrace_jobs.store.runs import tell_sink
from headrace_jobs.store.savepoints import restore_savepoint
from tests.spark.checkpoint.attempts import ROOT, Trial, environment_for
from tests.spark.checkpoint.jobs import JOBS
from tests.spark.checkpoint.places import Place
from tests.spark.savepoints.trials import HERE, a_trial, take

pytestmark = pytest.mark.full


def answers(trial: Trial, module: str, *arguments: str, **changes: Any) -> list[dict[str, Any]]:
    trial.attempt += 1
    trial.output.mkdir(parents=True, exist_ok=True)
    spec = trial.spec(**changes).write(trial.directory / f"spec-{trial.attempt}.json")
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.spark.savepoints.{module}", spec, *arguments],
        cwd=ROOT,
        env=environment_for(trial.place),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def test_a_file_sink_goes_forward_past_its_compaction_and_is_never_forked(
    place: Place, tmp_path: Path
) -> None:
    trial = a_trial(place, tmp_path, files=4, conf={"spark.sql.streaming.fileSink.log.compactInterval": "3"})
    (first,) = answers(trial, "filesink")
    assert first["rows"] == JOBS["windows"].expected(trial.rows)
    tell_sink(place.store, 1, "q", first["sink"])
    assert take(trial).queries[0].sink == first["sink"]

    with pytest.raises(LineageError, match="Spark's file sink"):
        restore_savepoint(place.store, savepoint=HERE, run="fork", lineage="new")
    assert not is_seeded(place.store, "fork")

    restore_savepoint(place.store, savepoint=HERE, run=2, lineage="keep")
    place.store.delete_tree("run-1")
    trial.add_input(files=5)
    trial.run = "run-2"
    (second,) = answers(trial, "filesink")
    assert second["rows"] == JOBS["windows"].expected(trial.rows)


@pytest.mark.parametrize("job", JOBS)
def test_spark_reads_every_kind_of_state_of_a_savepoint(place: Place, tmp_path: Path, job: str) -> None:
    trial = a_trial(place, tmp_path, job, files=3)
    trial.run_until_killed("after-sink", 2)
    manifest = take(trial)
    place.store.delete_tree("run-1")
    (answer,) = answers(trial, "reader", f"{place.uri}/{HERE}/{manifest.data}/queries/q")
    assert "stores" in answer, answer
    assert sum(answer["stores"].values()) > 0
    stores = {"sums": 1, "windows": 2, "dedup": 1, "join": 4, "transformWithState": 1}
    assert len(answer["stores"]) == stores[job]


def test_spark_cannot_read_a_savepoint_that_lost_a_file(place: Place, tmp_path: Path) -> None:
    trial = a_trial(place, tmp_path, "sums", files=3)
    trial.run_until_killed("after-sink", 2)
    manifest = take(trial)
    changelog = next(one.key for one in manifest.objects if one.key.endswith(".changelog"))
    place.store.delete_many([f"{HERE}/{manifest.data}/{changelog}"])
    (answer,) = answers(trial, "reader", f"{place.uri}/{HERE}/{manifest.data}/queries/q")
    assert "error" in answer
