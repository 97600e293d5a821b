"""A real query whose checkpoint lies behind a bad network: it goes on exactly, or fails and says so.

What each single write does is in test_s3_faults.py; here it is Spark that makes them, in the driver and in
its tasks, and Spark that decides what an error means.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.checkpoint.attempts import Trial
from tests.spark.checkpoint.faultproxy import Fault, FaultProxy, fault_proxy
from tests.spark.checkpoint.jobs import write_input
from tests.spark.checkpoint.places import place_behind
from tests.spark.checkpoint.test_s3_faults import IN_LESS_TIME
from tests.spark.s3server import S3Server

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]  # several JVMs, and each fault is waited out

FILES = 5
QUICK = {f"spark.hadoop.{key}": value for key, value in IN_LESS_TIME}
# All that a batch asks of its checkpoint, once the query runs.
REQUESTS = {
    "the look at the claims": r"^GET .*_attempts",
    "the offsets": r"^PUT .*/offsets/1\b",
    "a changelog": r"^PUT .*/state/0/[01]/2_[^/]*\.changelog\b",
    "the commit": r"^PUT .*/commits/2\b",
    "the look for a commit": r"^HEAD .*/commits/3\b",
}
# In the order in which one run meets them, each a batch further.
WRITES = {
    "the offsets": r"^PUT .*/offsets/1\b",
    "a changelog": r"^PUT .*/state/0/[01]/3_[^/]*\.changelog\b",
    "the commit": r"^PUT .*/commits/3\b",
}
PASSING = [Fault.AWAY, Fault.RESET, Fault.STALL, Fault.SERVER_ERROR, Fault.SLOW_DOWN, Fault.LOSE_ANSWER]


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with fault_proxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def trial(s3_server: S3Server, proxy: FaultProxy, tmp_path: Path) -> Trial:
    rows = write_input(tmp_path / "input", FILES)
    return Trial(place_behind(proxy, s3_server), tmp_path, rows, settings={"conf": QUICK})


@pytest.mark.parametrize("fault", PASSING)
def test_a_query_goes_on_through_passing_faults(trial: Trial, proxy: FaultProxy, fault: Fault) -> None:
    rules = {what: proxy.on(pattern, fault) for what, pattern in REQUESTS.items()}
    assert trial.run_to_end() == 0, trial.error(1) or trial.log.read_text()[-3000:]
    assert [what for what, rule in rules.items() if rule.hits == 0] == [], "these were never asked for"
    trial.assert_exact()
    assert [call["batch"] for call in trial.calls()] == list(range(FILES)), "no batch was given twice"


@pytest.mark.parametrize("fault", [*PASSING, Fault.FORBIDDEN])
def test_a_lasting_fault_ends_the_query_with_its_cause_and_the_next_attempt_is_exact(
    trial: Trial, proxy: FaultProxy, fault: Fault
) -> None:
    for what, pattern in WRITES.items():
        proxy.clear()
        rule = proxy.on(pattern, fault, times=10_000)
        assert trial.run_to_end() == 3, f"{what}: {trial.log.read_text()[-3000:]}"
        said = trial.error(trial.attempt)
        assert rule.hits > 0, f"{what}: {said}"
        # A fault of the store, told as one: not another driver, nor a riddle about a batch.
        assert trial.place.uri in said or "s3a" in said, f"{what}: {said}"
        assert "CONCURRENT_STREAM_LOG_UPDATE" not in said
        assert "another driver" not in said
    proxy.clear()
    assert trial.run_to_end() == 0, trial.error(trial.attempt) or trial.log.read_text()[-3000:]
    trial.assert_exact()
