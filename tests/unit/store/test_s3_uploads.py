"""Writes in parts that somebody broke off: which are found, which are aborted, what cannot be known."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from headrace_jobs.keeper import savepoints as keeper
from headrace_jobs.keeper.main import main
from headrace_jobs.store.directory import DirectoryStore
from headrace_jobs.store.errors import NoRightsError
from headrace_jobs.store.interface import OpenUpload
from headrace_jobs.store.retry import RetryPolicy
from headrace_jobs.store.s3 import S3Store
from headrace_jobs.store.s3_options import S3Options
from headrace_jobs.store.uploads import abort_broken_off_uploads, broken_off_uploads

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
DAY = timedelta(days=1)


def hours_ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def refusal(status: int, code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "x")  # type: ignore[arg-type]


class Server:
    """A bucket, one upload to a page and one part to a page. Keys to the uploads' beginning and parts."""

    def __init__(self, uploads: dict[str, tuple[datetime, list[datetime]]], *, prefixes: bool = True) -> None:
        self.uploads = uploads
        self.prefixes = prefixes
        self.refuses_whole_bucket = False
        self.ends: set[str] = set()

    def list_multipart_uploads(self, **asked: Any) -> dict[str, Any]:
        prefix, after = asked["Prefix"], asked.get("KeyMarker", "")
        if self.refuses_whole_bucket and not prefix:
            raise refusal(403, "AccessDenied")
        fitting = [key for key in sorted(self.uploads) if key.startswith(prefix) and key > after]
        if prefix and not self.prefixes:
            fitting = [key for key in fitting if key == prefix]
        page = [
            {"Key": key, "UploadId": f"u {key}", "Initiated": self.uploads[key][0]} for key in fitting[:1]
        ]
        last = fitting[0] if fitting else ""
        return {
            "Uploads": page,
            "IsTruncated": len(fitting) > 1,
            "NextKeyMarker": last,
            "NextUploadIdMarker": f"u {last}",
        }

    def list_parts(self, **asked: Any) -> dict[str, Any]:
        key, number = asked["Key"], asked.get("PartNumberMarker", 0)
        assert asked["UploadId"] == f"u {key}"
        if key in self.ends:
            raise refusal(404, "NoSuchUpload")
        parts = self.uploads[key][1]
        here = [{"Size": 10, "LastModified": parts[number]}] if parts else []
        after = number + 1
        return {"Parts": here, "IsTruncated": after < len(parts), "NextPartNumberMarker": after}

    def abort_multipart_upload(self, **asked: Any) -> None:
        if self.uploads.pop(asked["Key"], None) is None or asked["UploadId"] != f"u {asked['Key']}":
            raise refusal(404, "NoSuchUpload")


def a_store(server: Server, *, endpoint: str | None = "http://127.0.0.1:9") -> S3Store:
    options = S3Options(endpoint=endpoint, region="us-east-1", path_style=True)
    store = S3Store("bucket", "ns/job", options, policy=RetryPolicy(deadline_seconds=0))
    store._client = server
    return store


OLD, YOUNG = hours_ago(30), hours_ago(2)


@pytest.mark.parametrize("prefixes", [True, False], ids=["prefixes", "no prefixes, as MinIO"])
def test_of_all_pages_below_the_own_prefix_only(prefixes: bool) -> None:
    places = {
        "ns/job/a": (OLD, []),
        "ns/job/b": (YOUNG, [YOUNG] * 3),
        "ns/job-2/c": (OLD, []),
        "x": (OLD, []),
    }
    found = a_store(Server(places, prefixes=prefixes)).open_uploads()
    assert [(one.key, one.size) for one in found] == [("a", 0), ("b", 30)]


def test_amazon_is_asked_for_the_prefix_alone() -> None:
    server = Server({"other/a": (OLD, [])})
    server.refuses_whole_bucket = True
    assert a_store(server, endpoint=None).open_uploads() == []


def test_who_may_see_the_own_prefix_only_is_told_of_that() -> None:
    server = Server({"ns/job/a": (OLD, [])}, prefixes=False)
    server.refuses_whole_bucket = True
    assert a_store(server).open_uploads() == []


def test_one_that_ended_meanwhile_is_none() -> None:
    server = Server({"ns/job/a": (OLD, []), "ns/job/b": (OLD, [])})
    server.ends = {"ns/job/a"}
    assert [one.key for one in a_store(server).open_uploads()] == ["b"]


def test_only_one_without_any_sign_of_life_is_aborted() -> None:
    server = Server(
        {"ns/job/dead": (OLD, [OLD]), "ns/job/young": (YOUNG, []), "ns/job/long": (OLD, [OLD, YOUNG])}
    )
    store = a_store(server)
    assert [one.key for one in broken_off_uploads(store, older_than=DAY, now=NOW)] == ["dead"]
    assert len(server.uploads) == 3, "a look aborts nothing"
    assert [one.key for one in abort_broken_off_uploads(store, older_than=DAY, now=NOW)] == ["dead"]
    assert sorted(server.uploads) == ["ns/job/long", "ns/job/young"]


class Forgetful(DirectoryStore):
    """With uploads, as S3 has them."""

    uploads: tuple[OpenUpload, ...] = ()
    refused = False

    def open_uploads(self) -> tuple[OpenUpload, ...]:
        if self.refused:
            raise NoRightsError("list uploads in", self.url, needed="rights")
        return self.uploads

    def abort_upload(self, upload: OpenUpload) -> None:
        self.uploads = tuple(one for one in self.uploads if one != upload)


@pytest.fixture
def forgetful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forgetful:
    store = Forgetful(tmp_path)
    store.uploads = (OpenUpload("uid/run-1/x", "1", 1000.0, 70), OpenUpload("y", "2", 2e10, 5))
    monkeypatch.setattr(keeper, "open_store", lambda *_: store)
    return store


def collect(tmp_path: Path, *flags: str) -> dict[str, Any]:

    result = tmp_path / "result.json"
    assert main(["collect", "--store=s3://b/ns/job", f"--result={result}", *flags]) == 0
    return json.loads(result.read_text())


def test_the_collector_counts_them_before_it_aborts_them(forgetful: Forgetful, tmp_path: Path) -> None:
    for flags, verb in ((("--dry-run",), "would be aborted"), ((), "aborted")):
        assert len(forgetful.uploads) == 2
        told = collect(tmp_path, *flags)
        assert told["message"].endswith(f"; 1 uploads that were broken off, with 70 bytes, {verb}")
        assert (told["uploads"], told["bytes"]) == ([{"key": "uid/run-1/x", "size_bytes": 70}], 70)
    assert [one.key for one in forgetful.uploads] == ["y"]
    assert "uploads" not in collect(tmp_path)["message"]


def test_without_the_right_to_see_them_everything_else_is_collected(
    forgetful: Forgetful, tmp_path: Path
) -> None:
    forgetful.refused = True
    message = collect(tmp_path)["message"]
    assert message.startswith("0 orphans") and "s3:ListBucketMultipartUploads" in message


def test_a_directory_has_none(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.put("a", b"1")
    assert abort_broken_off_uploads(store, older_than=-DAY, now=NOW) == []
