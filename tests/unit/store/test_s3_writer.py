"""A lost answer is known by the id that the object carries, whatever a proxy makes of its header's name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headrace_jobs.store.errors import NoConditionalPutError
from headrace_jobs.store.s3 import S3Store
from headrace_jobs.store.s3_options import S3Options

HEADER = "x-amz-meta-headrace-writer"


class Forgetful(ThreadingHTTPServer):
    """Keeps the first PUT, answers it with an error, and refuses the second: the object is there."""

    def __init__(self, shown_as: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.shown_as = shown_as
        self.writer: str | None = None


class Handler(BaseHTTPRequestHandler):
    server: Forgetful

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        first, self.server.writer = self.server.writer is None, self.server.writer or self.headers[HEADER]
        self._answer(500 if first else 412)

    def do_HEAD(self) -> None:
        self._answer(200, **{self.server.shown_as: self.server.writer or ""})

    def _answer(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forgetful]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with Forgetful(request.param) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("server", [HEADER], indirect=True)
def test_a_server_that_refuses_the_condition_itself_is_told_as_such(
    server: Forgetful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "do_PUT", lambda request: request._answer(501))
    options = S3Options(endpoint=f"http://127.0.0.1:{server.server_port}", path_style=True)
    with pytest.raises(NoConditionalPutError, match="does not heed If-None-Match"):
        S3Store("b", "x", options).put_if_absent("a", b"")


@pytest.mark.parametrize("server", [HEADER, "X-Amz-Meta-Headrace-Writer"], indirect=True)
def test_our_own_object_is_known_by_its_writer_in_any_case_of_letters(server: Forgetful) -> None:
    options = S3Options(endpoint=f"http://127.0.0.1:{server.server_port}", path_style=True)
    assert S3Store("b", "x", options).put_if_absent("a", b"")
