"""Spark claims a run, and the rest of Headrace must find the claim where it looks for the state."""

import dataclasses
import json
from pathlib import Path

import pytest

from headrace_jobs.harness.checkpoint_control import check_claim_is_seen
from headrace_jobs.harness.control import StoreUnavailable
from headrace_jobs.harness.runfile import RunFile, parse_run_file
from headrace_jobs.store import claim_attempt, open_store
from tests.unit.harness.samples import GOOD, REHEARSAL


def a_run_file(tmp_path: Path, sample: dict = GOOD) -> RunFile:
    return dataclasses.replace(parse_run_file(json.dumps(sample)), store=f"file://{tmp_path}")


@pytest.mark.parametrize(("sample", "run"), [(GOOD, "run-3"), (REHEARSAL, "rehearsal-4")])
def test_a_claim_that_is_there_is_fine(tmp_path, sample, run):
    run_file = a_run_file(tmp_path, sample)
    claim_attempt(open_store(run_file.store), run, run_file.attempt, {})
    check_claim_is_seen(run_file)


@pytest.mark.parametrize("earlier", [None, 1])
def test_a_claim_that_spark_has_made_elsewhere_ends_the_attempt_before_a_batch(tmp_path, earlier):
    run_file = a_run_file(tmp_path)
    if earlier is not None:
        claim_attempt(open_store(run_file.store), "run-3", earlier, {})
    with pytest.raises(StoreUnavailable, match="do not mean the same place"):
        check_claim_is_seen(run_file)
