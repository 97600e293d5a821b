"""The termination message: complete, JSON, and never longer than Kubernetes keeps."""

import json
from pathlib import Path

import pytest

from headrace_jobs.harness.failure import Failure, UserFrame
from headrace_jobs.harness.termination import LARGEST_MESSAGE_BYTES, Reason, Termination, write_json


def test_all_that_is_known_is_told():
    failure = Failure("ValueError", "ValueError: x", UserFrame("/app/job.py", 3, "int(x)"))
    queries = {"q": {"batch": 4, "id": "i", "runId": "r"}}
    told = json.loads(Termination("u", Reason.QUERY_FAILED, "it failed", failure, queries=queries).to_json())
    assert told == {
        "uid": "u",
        "reason": "QueryFailed",
        "exitCode": 66,
        "message": "it failed",
        "errorClass": "ValueError",
        "userFrame": {"file": "/app/job.py", "line": 3, "code": "int(x)"},
        "clean": True,
        "queries": queries,
        "logFile": None,
    }


@pytest.mark.parametrize("letter", ["x", "ü", "\n", "😀"])
def test_it_fits_into_what_kubernetes_keeps(letter):
    failure = Failure("E" * 3000, "m", UserFrame("/" + letter * 3000, 1, letter * 3000))
    queries = {f"query-{i}": {"batch": i, "id": "0" * 36, "runId": "0" * 36} for i in range(100)}
    text = Termination("u", Reason.QUERY_FAILED, letter * 9000, failure, queries=queries).to_json()
    assert len(text.encode()) <= LARGEST_MESSAGE_BYTES
    assert json.loads(text)["reason"] == "QueryFailed"


def test_it_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "termination.json"
    target.write_text("old")
    write_json(str(target), "new")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_that_cannot_be_replaced_is_written_in_place(tmp_path, monkeypatch):
    target = tmp_path / "termination-log"
    target.write_text("")
    inode = target.stat().st_ino

    def refuse(_self, _target):
        raise OSError("Device or resource busy")

    monkeypatch.setattr(Path, "replace", refuse)
    write_json(str(target), "told")
    assert target.read_text() == "told"
    assert target.stat().st_ino == inode
    assert list(tmp_path.iterdir()) == [target]


def a_rehearsal(queries: int):
    told = {"from": 1, "replayed": [2, 3, 4], "batchSeconds": [0.1, 0.2, 0.3]}
    return {
        "outcome": "Failed",
        "queries": {f"query-{number}": told for number in range(queries)},
        "differences": ["query q: sum(amount) became max(amount)"],
        "notes": ["a note"] * queries,
    }


def test_the_result_of_a_rehearsal_is_told_as_far_as_it_fits():
    small = Termination("u", Reason.MEANING_CHANGED, "sum became max", rehearsal=a_rehearsal(2))
    assert json.loads(small.to_json())["rehearsal"] == a_rehearsal(2)
    large = Termination("u", Reason.MEANING_CHANGED, "sum became max", rehearsal=a_rehearsal(200))
    told = json.loads(large.to_json())
    assert told["message"] == "sum became max"
    assert told["rehearsal"] == a_rehearsal(0)
