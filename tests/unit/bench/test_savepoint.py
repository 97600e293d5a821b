"""The bench of savepoints comes to its end, and keeps what it has measured where it does not."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import checkpoint, savepoint

from headrace.api import StreamSavepointSpec

SPARK_KEEPS = 99


class Query:
    """A batch ends whenever somebody looks; of old ones Spark forgets what they took."""

    def __init__(self) -> None:
        self.batch = 0

    @property
    def lastProgress(self) -> dict[str, Any]:
        self.batch += 1
        return self._progress(self.batch)

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return [self._progress(one) for one in range(max(1, self.batch - SPARK_KEEPS + 1), self.batch + 1)]

    def exception(self) -> None:
        return None

    def _progress(self, number: int) -> dict[str, Any]:
        return {"batchId": number, "durationMs": {"triggerExecution": number}}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "WAIT_SECONDS", 1)
    monkeypatch.setattr(checkpoint.time, "sleep", lambda _: None)


def test_a_window_ends_also_when_spark_has_forgotten_the_first_batches():
    query = Query()
    for _ in range(3 * SPARK_KEEPS // 10):
        before = query.batch + 1
        median = savepoint.window(query, 10)
        assert median == before + 1 + 5.5, "ten, without the one that had begun before"
    assert query.batch > 2 * SPARK_KEEPS


def test_what_was_measured_stays_when_a_later_part_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    @contextlib.contextmanager
    def no_server(_: Path) -> Iterator[None]:
        yield

    def measured(*_: object) -> savepoint.Measured:
        return savepoint.Measured(seconds=[2.0], bare_seconds=[1.0])

    def fails(*_: object) -> None:
        raise TimeoutError("no batches")

    monkeypatch.setattr(savepoint, "RESULTS", tmp_path / "results" / "savepoint.json")
    monkeypatch.setattr(savepoint, "versitygw", no_server)
    monkeypatch.setattr(savepoint, "measure_size", measured)
    monkeypatch.setattr(savepoint, "measure_slowdown", fails)
    monkeypatch.setattr("sys.argv", ["savepoint.py", "--sizes", "10mb", "--rounds", "1"])
    with pytest.raises(TimeoutError):
        savepoint.main()
    kept = [json.loads(line) for line in savepoint.RESULTS.read_text().splitlines()]
    assert [(one["figure"], one["value"]) for one in kept] == [
        ("savepoint.seconds_10mb", 2.0),
        ("savepoint.copy_rate_ratio_to_bare", 0.5),
    ]


def test_the_capped_figure_is_of_a_cap_that_a_savepoint_can_be_given():
    spec = StreamSavepointSpec.parse({"job": {"name": "clicks"}, "maxCopyRate": "16M"})
    assert spec.max_copy_rate is not None
    assert {"bytes_per_second": spec.max_copy_rate.bytes} == savepoint.CAP
