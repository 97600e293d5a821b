"""Two drivers, one run: only the newest attempt writes, also when the older one was frozen for long."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from headrace_jobs.store import last_batches, newest_claim
from tests.spark.checkpoint.attempts import Trial, await_condition
from tests.spark.checkpoint.jobs import write_input
from tests.spark.checkpoint.places import Place

pytestmark = pytest.mark.timeout(900)  # several JVMs each

RETAINED = {"spark.sql.streaming.minBatchesToRetain": "2"}
FROZEN_IN = 2


def stands_still(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


# In a batch, not between a look for a newer claim and the write after it: there the sink's epoch fences.
@pytest.mark.parametrize("point", ["after-sink", pytest.param("after-offsets", marks=pytest.mark.full)])
def test_a_driver_that_was_frozen_while_its_successor_went_on_writes_no_batch(
    place: Place, tmp_path: Path, point: str
) -> None:
    rows = write_input(tmp_path / "input", files=30, rows_per_file=10)
    trial = Trial(place, tmp_path, rows, settings={"conf": RETAINED})
    frozen = trial.start(freeze=(point, FROZEN_IN))
    try:
        first = trial.attempt
        pids = trial.pids(first)
        await_condition(lambda: all(map(stands_still, pids)), "attempt 1 is frozen")
        before = len(trial.calls())
        assert last_batches(place.store, 1)["q"].offsets == FROZEN_IN

        # The successor ends the input. It retains two batches, so the frozen one's next names are free again.
        assert trial.run_to_end() == 0, trial.log.read_text()[-3000:]
        offsets = [int(name) for name in place.store.children("run-1/queries/q/offsets")]
        assert min(offsets) > FROZEN_IN + 1, (
            "the frozen driver's next batch number must be free for it to take"
        )
        ended = place.files()

        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        assert frozen.wait(timeout=120) != 0
        assert "dev.headrace.FencedException: attempt 2 has taken over" in trial.error(first)
        assert [key for key in place.files() if "/state/" not in key] == [
            key for key in ended if "/state/" not in key
        ]
        # The batch it was frozen in may still reach the sink, which is what epochs are for. No other may.
        late = [call for call in trial.calls()[before:] if call["attempt"] == first]
        assert len(late) <= 1
        assert {call["batch"] for call in late} <= {FROZEN_IN}
        assert newest_claim(place.store, 1) == 2
    finally:
        for pid in trial.pids(1):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        frozen.kill()
        frozen.wait(timeout=30)
    trial.assert_exact()
