"""Every object that we write asks for the encryption of the spec: also a copy, which inherits none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headrace_jobs.store.interface import Copy, Entry
from headrace_jobs.store.s3 import S3Store
from headrace_jobs.store.s3_options import S3Options

_ASKED = "x-amz-server-side-encryption"
_KEY = f"{_ASKED}-aws-kms-key-id"
_COPIED = b"<CopyObjectResult><ETag>x</ETag></CopyObjectResult>"
_UPLOAD = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"


class Bucket(ThreadingHTTPServer):
    """Takes everything, and remembers who asked for which encryption: (operation, algorithm, key)."""

    def __init__(self) -> None:
        self.writes: list[tuple[str, str | None, str | None]] = []
        super().__init__(("127.0.0.1", 0), _Request)


class _Request(BaseHTTPRequestHandler):
    server: Bucket

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        copies = "x-amz-copy-source" in self.headers
        if "uploadId" not in self.path:  # a part is encrypted as the upload that it is of
            self._remember("copy" if copies else "put")
        self._answer(_COPIED.replace(b"Object", b"Part") if "uploadId" in self.path else _COPIED)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("uploads"):
            self._remember("copy in parts")
        self._answer(_UPLOAD if self.path.endswith("uploads") else b"<CompleteMultipartUploadResult/>")

    def _remember(self, what: str) -> None:
        self.server.writes.append((what, self.headers.get(_ASKED), self.headers.get(_KEY)))

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with Bucket() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("encryption", "kms_key", "asked"),
    [
        (None, None, (None, None)),
        ("SSE-S3", None, ("AES256", None)),
        ("SSE-KMS", None, ("aws:kms", None)),
        ("SSE-KMS", "alias/streams", ("aws:kms", "alias/streams")),
    ],
)
def test_every_write_asks_for_it(
    bucket: Bucket, encryption: str | None, kms_key: str | None, asked: tuple[str | None, str | None]
) -> None:
    options = S3Options(
        endpoint=f"http://127.0.0.1:{bucket.server_port}",
        path_style=True,
        encryption=encryption,
        kms_key=kms_key,
    )
    store = S3Store("streams", "checkpoints", options, single_copy_bytes=10)
    store.put("a", b"content")
    store.put_if_absent("b", b"content")
    store.copy(Copy(Entry(key="a", size=7, etag="x", modified=0), "c"))
    store.copy(Copy(Entry(key="a", size=17, etag="x", modified=0), "d"))
    assert bucket.writes == [(what, *asked) for what in ("put", "put", "copy", "copy in parts")]
