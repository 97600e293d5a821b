"""The keeper's tasks on savepoints, as the operator calls them: arguments in, a code and a result out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.keeper.main import main
from headrace_jobs.store import claim_attempt, last_batches, open_store, query_names
from headrace_jobs.store.savepoints.seeding import common_root
from headrace_jobs.store.seed import copy_ahead
from tests.unit.store.savepoints.checkpoints import FakeQuery

SAVEPOINT = "_savepoints/nightly-1a2b"


class Keeper:
    def __init__(self, directory: Path) -> None:
        self.root = directory / "checkpoints/shop/clicks"
        self.store = open_store(str(self.root))
        self.query = FakeQuery(store=self.store, run="uid/run-3").batches(3)
        self._result = directory / "result.json"

    def __call__(self, task: str, *flags: str, store: str | None = None) -> tuple[int, dict[str, Any]]:
        code = main([task, f"--store={store or self.root.as_uri()}", f"--result={self._result}", *flags])
        return code, json.loads(self._result.read_text())

    def take(self, *flags: str) -> tuple[int, dict[str, Any]]:
        given = ("--from=uid/run-3", f"--savepoint={SAVEPOINT}", "--owner=u1", "--job=shop/clicks")
        return self("savepoint", *given, *flags)


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(tmp_path)


def test_a_savepoint_is_taken_verified_listed_and_restored(keeper: Keeper) -> None:
    code, result = keeper.take("--spec-digest=abc", "--cause=Schedule")
    assert (code, result["reason"]) == (0, "Completed")
    told = result["savepoint"]
    assert told["queries"][0]["batch"] == 2
    assert (told["spec_digest"], told["cause"], told["run"]) == ("abc", "Schedule", "uid/run-3")
    assert told["spark_version"] is None, "of nobody: a keeper's own image says nothing of the job's"

    code, result = keeper("verify", f"--savepoint={SAVEPOINT}", "--level=State")
    assert (code, result["verified"]["level"]) == (0, "State")
    assert result["savepoint"]["queries"][0]["batch"] == 2  # all that somebody who imports it can know

    _, result = keeper("savepoints")
    (line,) = result["savepoints"]
    assert (line["path"], line["batches"], line["verified"]) == (SAVEPOINT, {"orders": 2}, "State")

    code, result = keeper("restore", f"--from={SAVEPOINT}", "--to=uid/run-4", "--lineage=keep")
    assert (code, result["seed"]["from_run"]) == (0, SAVEPOINT)
    assert last_batches(keeper.store, "uid/run-4") == {"orders": (2, 2)}


def test_the_version_of_spark_is_that_of_the_driver_that_wrote_the_run(keeper: Keeper) -> None:
    keeper.store.put("uid/run-3/_attempts/1", b'{"sparkVersion": "4.1.0"}')
    keeper.store.put("uid/run-3/_attempts/2", b'{"sparkVersion": "4.3.0-of-the-job"}')
    assert keeper.take()[1]["savepoint"]["spark_version"] == "4.3.0-of-the-job"


def test_a_damaged_one_is_told_with_what_is_wrong(keeper: Keeper) -> None:
    keeper.take()
    (keeper.root / SAVEPOINT / "data-1/queries/orders/commits/2").unlink()
    code, result = keeper("verify", f"--savepoint={SAVEPOINT}")
    assert (code, result["reason"]) == (66, "SavepointDamaged")
    assert "commits/2 is missing" in result["message"]
    assert keeper("savepoints")[1]["savepoints"][0]["verified"] == "None"


def test_a_fork_into_another_job_from_a_location_without_any_object_left(
    keeper: Keeper, tmp_path: Path
) -> None:
    keeper.take()
    location = (tmp_path / "checkpoints").as_uri()
    _, result = keeper("savepoints", "--everywhere", store=location)
    (line,) = result["savepoints"]
    assert (line["path"], line["job"]) == (f"shop/clicks/{SAVEPOINT}", "shop/clicks")
    other = tmp_path / "elsewhere/web/views"
    code, _ = keeper(
        "restore",
        f"--from={location}/{line['path']}",
        "--to=uid2/run-1",
        "--lineage=new",
        store=other.as_uri(),
    )
    assert code == 0
    assert last_batches(open_store(str(other)), "uid2/run-1") == {"orders": (2, 2)}


@pytest.mark.parametrize(
    ("one", "other", "root"),
    [
        ("s3://b/ckpt/shop/clicks", "s3://b/ckpt/shop/clicks", "s3://b/ckpt/shop/clicks"),
        ("s3://b/ckpt/shop/clicks", "s3://b/ckpt", "s3://b/ckpt"),
        ("s3://b/ckpt/shop/clicks", "s3://b/ckpt-old/shop/clicks", "s3://b"),
        ("s3://b/ckpt", "s3://c/ckpt", None),
        ("file:///data/one/a", "file:///data/two/a", "file:///data"),
        ("file:///data/a", "file:///backup/a", None),
        ("file:///data/a", "s3://b/data/a", None),
    ],
)
def test_the_server_copies_wherever_it_can_see_both(one: str, other: str, root: str | None) -> None:
    assert common_root(one, other) == root


def test_only_savepoints_left_is_no_earlier_lineage(keeper: Keeper) -> None:
    keeper.take()
    keeper.store.delete_tree("uid")
    assert keeper("check", "--lineage=uid2", "--run=1")[0] == 0


def test_what_was_copied_ahead_for_a_run_that_never_began_is_not_gone_on_from(keeper: Keeper) -> None:
    """A job that was deleted while a candidate waited: its state is in the run before."""
    claim_attempt(keeper.store, "uid/run-3", 1, {})
    copy_ahead(keeper.store, "uid/run-3", "uid/run-4")
    assert query_names(keeper.store, "uid/run-4") == ["orders"]
    _, result = keeper("check", "--lineage=uid2", "--run=1")
    assert result["earlier"] == {"uid": "uid", "lastRun": 3}
    claim_attempt(keeper.store, "uid/run-4", 1, {})
    _, result = keeper("check", "--lineage=uid2", "--run=1")
    assert result["earlier"] == {"uid": "uid", "lastRun": 4}


def test_refusals_have_a_class_of_their_own(keeper: Keeper) -> None:
    keeper.take()
    keeper.query.batches(1)
    code, result = keeper("restore", f"--from={SAVEPOINT}", "--to=uid/run-4", "--lineage=keep")
    assert (code, result["reason"], result["errorClass"]) == (64, "Refused", "Lineage")
    code, result = keeper("discard", "--savepoint=uid/run-3")
    assert (code, result["reason"]) == (66, "SavepointFailed")
    assert last_batches(keeper.store, "uid/run-3") == {"orders": (3, 3)}


def test_orphans_are_counted_before_they_are_removed(keeper: Keeper) -> None:
    keeper.take()
    orphan = keeper.root / "_savepoints/broken-off"
    keeper.store.put("_savepoints/broken-off/_claims/1", b"{}")
    keeper.store.put("_savepoints/broken-off/data-1/queries/orders/metadata", b"12345678")
    os.utime(orphan / "_claims/1", (1000, 1000))
    for flags, verb in ((("--dry-run",), "would be removed"), ((), "removed")):
        _, result = keeper("collect", *flags, "--known=nightly-1a2b")
        assert result["message"] == f"1 orphans with 2 objects and 10 bytes {verb}"
        assert [one["path"] for one in result["orphans"]] == ["_savepoints/broken-off"]
    assert not (orphan / "data-1").exists()
    _, result = keeper("discard", f"--savepoint={SAVEPOINT}")
    assert not (keeper.root / SAVEPOINT).exists()


def test_a_whole_savepoint_that_nobody_names_is_told_and_stays(keeper: Keeper) -> None:
    keeper.take()
    for flags in (("--dry-run",), ()):
        _, result = keeper("collect", *flags, "--known=another")
        (line,) = result["savepoints"]
        assert (line["path"], line["job"]) == (SAVEPOINT, "shop/clicks") and line["bytes"] > 0
        assert f"1 savepoints that no object names, with {line['bytes']} bytes, stay" in result["message"]
    assert keeper("collect", "--known=nightly-1a2b")[1]["savepoints"] == []
    assert keeper("verify", f"--savepoint={SAVEPOINT}")[0] == 0


def test_of_many_savepoints_the_newest_are_told_to_the_operator(keeper: Keeper) -> None:
    for number in range(40):
        keeper.take(f"--savepoint=_savepoints/nightly-{number:02}")
    keeper.store.put("_savepoints/a-broken-one/_claims/1", b"{}")
    _, whole = keeper("savepoints")
    _, fitting = keeper("savepoints", "--fitting")
    assert len(whole["savepoints"]) == 41
    assert len(json.dumps(fitting)) < 4096
    named = [one["path"] for one in fitting["savepoints"]]
    assert named[0] == "_savepoints/nightly-39" and 5 < len(named) < 41
    assert fitting["message"].startswith(f"41 savepoints, here the newest {len(named)}: ")


def test_the_result_fits_into_the_last_words_of_a_container(keeper: Keeper) -> None:
    metadata = json.dumps({"conf": {}})
    offsets = json.dumps({"clicks": {str(partition): 10**12 for partition in range(500)}})
    keeper.query.put("offsets/2", f"v1\n{metadata}\n{offsets}".encode())
    code, result = keeper.take()
    assert code == 0
    assert len(json.dumps(result)) < 4096
    assert result["savepoint"]["queries"][0]["offsets"] == {}
    assert result["savepoint"]["offsets_left_out"] == ["orders"]


def test_of_very_many_queries_the_first_ones_are_told(keeper: Keeper) -> None:
    for number in range(40):
        keeper.store.put(f"uid/run-3/queries/q-{number}/metadata", b'{"id": "0123456789-0123456789"}')
    code, result = keeper.take()
    assert code == 0
    assert len(json.dumps(result)) < 4096
    told = result["savepoint"]
    assert 1 < len(told["queries"]) < 41
    assert told["more_queries"] == 41 - len(told["queries"])


def test_a_run_without_queries_has_nothing_to_save(keeper: Keeper) -> None:
    code, result = keeper("savepoint", f"--savepoint={SAVEPOINT}", "--from=uid/run-9", "--owner=u1")
    assert (code, result["reason"]) == (66, "NothingToSave")
    assert "Start the job first" in result["message"]


def test_of_very_many_orphans_the_first_ones_are_told(keeper: Keeper) -> None:
    for number in range(60):
        keeper.store.put(f"_savepoints/broken-off-{number}/_claims/1", b"{}")
        os.utime(keeper.root / f"_savepoints/broken-off-{number}/_claims/1", (1000, 1000))
    _, result = keeper("collect", "--dry-run")
    assert result["objects"] == 60
    assert len(json.dumps(result)) < 4096


def test_a_time_limit_ends_it(keeper: Keeper) -> None:
    code, result = keeper.take("--time-limit-seconds=0")
    assert (code, result["reason"]) == (66, "TimeLimit")
    assert "raise timeLimit" in result["message"]
    assert keeper("savepoints")[1]["savepoints"][0]["problem"] == "it was never finished"
