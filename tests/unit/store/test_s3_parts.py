"""Objects that are written in parts: one part at a time, and nothing that is paid for stays behind."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from headrace_jobs.store.errors import NoRightsError, NoSpaceError, SourceChangedError
from headrace_jobs.store.interface import PIECE_BYTES, Copy, Entry
from headrace_jobs.store.retry import RetryPolicy
from headrace_jobs.store.s3 import DEFAULT_SINGLE_COPY_BYTES, SILENCE_SECONDS, S3Store
from headrace_jobs.store.s3_options import S3Options

LARGE = Copy(Entry(key="a", size=25, etag="x", modified=0), "b")


def refusal(status: int, code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "x")  # type: ignore[arg-type]


class Server:
    """The client, as far as parts go. What is named in `refuses` fails so; a list, one after the other."""

    def __init__(self, refuses: dict[str, Any]) -> None:
        self.refuses = refuses
        self.asked: list[str] = []
        self.metadata: dict[str, str] = {}

    def __getattr__(self, operation: str) -> Any:
        def ask(**request: Any) -> dict[str, Any]:
            self.asked.append(operation)
            refusal = self.refuses.get(operation)
            if isinstance(refusal, list):
                refusal = refusal.pop(0) if refusal else None
            if refusal is not None:
                raise refusal
            if operation == "create_multipart_upload":
                self.metadata = request["Metadata"]
            if operation == "head_object":
                return {"Metadata": self.metadata}
            etag = f"e{request.get('PartNumber')}"
            return {"UploadId": "1", "ETag": etag, "CopyPartResult": {"ETag": etag}}

        return ask


def a_store(refuses: dict[str, Any], *, patience_seconds: float = 0) -> tuple[S3Store, Server]:
    somewhere = S3Options(endpoint="http://127.0.0.1:9", path_style=True)
    quick = RetryPolicy(deadline_seconds=patience_seconds, first_delay_seconds=0)
    store, server = S3Store("bucket", "", somewhere, policy=quick, single_copy_bytes=10), Server(refuses)
    store._client = server
    return store, server


@pytest.mark.parametrize("abort", [refusal(403, "AccessDenied"), refusal(500, "InternalError")])
def test_an_upload_that_cannot_be_aborted_does_not_hide_why_it_had_to_be(
    abort: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store, server = a_store(
        {"upload_part_copy": refusal(507, "XMinioStorageFull"), "abort_multipart_upload": abort}
    )
    with caplog.at_level(logging.WARNING), pytest.raises(NoSpaceError):
        store.copy(LARGE)
    assert server.asked[-1] == "abort_multipart_upload"
    assert "s3://bucket/b stay behind (upload 1)" in caplog.text


def test_a_failed_upload_is_aborted() -> None:
    store, server = a_store({"complete_multipart_upload": refusal(403, "AccessDenied")})
    with pytest.raises(NoRightsError):
        store.copy(LARGE)
    assert server.asked.count("upload_part_copy") == 3
    assert server.asked[-1] == "abort_multipart_upload"


def test_no_request_to_copy_takes_so_long_that_a_slow_server_would_be_given_up() -> None:
    store, server = a_store({})
    store._single_copy_bytes = DEFAULT_SINGLE_COPY_BYTES
    store.copy(Copy(Entry(key="a", size=2 * 1024**3, etag="x", modified=0), "b"))
    assert server.asked.count("upload_part_copy") == 4
    disk_of_a_slow_server = 20e6
    assert DEFAULT_SINGLE_COPY_BYTES / disk_of_a_slow_server < SILENCE_SECONDS


LOST_ANSWER = [ReadTimeoutError(endpoint_url="x", error="lost"), refusal(404, "NoSuchUpload")]


def test_an_upload_whose_end_was_not_heard_of_has_ended() -> None:
    """MinIO does not know it any more when it is asked to end it again."""
    store, server = a_store({"complete_multipart_upload": [*LOST_ANSWER]}, patience_seconds=30)
    store.copy(LARGE)
    assert server.asked[-1] == "head_object"


def test_an_upload_that_somebody_aborted_is_no_object_of_ours() -> None:
    store, server = a_store({"complete_multipart_upload": [*LOST_ANSWER]}, patience_seconds=30)
    server.__dict__["head_object"] = lambda **_: {"Metadata": {"headrace-writer": "another"}}
    with pytest.raises(SourceChangedError):
        store.copy(LARGE)


def test_each_piece_is_sent_before_the_one_after_the_next_is_asked_for() -> None:
    store, server = a_store({})
    sent_when_asked = []

    def pieces() -> Iterator[bytes]:
        for _ in range(5):
            sent_when_asked.append(server.asked.count("upload_part"))
            yield bytes(PIECE_BYTES)

    store.put_pieces("large", pieces())
    assert sent_when_asked == [0, 0, 2, 3, 4]
    assert server.asked[-1] == "complete_multipart_upload"
