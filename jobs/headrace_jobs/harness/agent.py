"""The agent: a small HTTP server in the driver, for the operator and for `headrace dev`.

Every call but /healthz carries the attempt's token, and the uid of the attempt it means: addresses are
reused, and a drain must not hit a stranger.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from headrace_jobs.harness.orders import NotInStandby, OrderInvalid

log = logging.getLogger("headrace")

_SLOWEST_CLIENT_SECONDS = 10
_LARGEST_BODY_BYTES = 524288
_OPEN_METRICS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Served:
    """What the agent answers from. Each of them must return at once, also while the JVM hangs."""

    status: Callable[[], dict[str, Any]]
    drain: Callable[[float | None, bool], dict[str, Any]]
    """With how long it may take, in seconds, where the caller says so; and with snapshots first, or not."""

    metrics: Callable[[], bytes]
    scaling: Callable[[], dict[str, Any] | None]
    """What the autoscaler has left here; None before it is known."""

    keep_scaling: Callable[[dict[str, Any]], None]
    """With what is new of it. Raises ValueError if it is not what it should be."""

    activate: Callable[[bytes], dict[str, Any]]
    """With the body of the call; raises OrderInvalid or NotInStandby."""


@dataclass(frozen=True)
class _Answer:
    code: HTTPStatus
    body: bytes
    content_type: str = "application/json"


class Agent:
    """Serves on a socket that listens already: who asks early waits a moment instead of being refused."""

    def __init__(self, listening: socket.socket, *, token: str, uid: str, served: Served) -> None:
        handler = type("Handler", (_Handler,), {"token": token.encode(), "uid": uid, "served": served})
        self._server = _Server(listening, handler)

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="headrace-agent", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listening: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(listening.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening


class _Handler(BaseHTTPRequestHandler):
    token: bytes
    uid: str
    served: Served
    protocol_version = "HTTP/1.1"
    server_version = "headrace"
    sys_version = ""
    timeout = _SLOWEST_CLIENT_SECONDS
    _body = b""

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def _answer(self, method: str) -> None:
        body = self._read_body()
        try:
            answer = self._route(method, body)
        except Exception:
            log.exception("the agent failed to answer %s %s", method, self.path)
            answer = _error(HTTPStatus.INTERNAL_SERVER_ERROR, "see the driver's log")
        self.send_response(answer.code)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _route(self, method: str, body: bytes) -> _Answer:  # noqa: PLR0911 - one per path
        path = self.path.partition("?")[0]
        if path == "/healthz":
            return _json({"status": "ok"}) if method == "GET" else _wrong_method("GET")
        refusal = self._refusal(uid_required=path != "/metrics")
        if refusal is not None:
            return refusal
        match method, path:
            case "GET", "/v1/status":
                return _json(self.served.status())
            case "POST", "/v1/drain" | "/v1/activate":
                return self._drain() if path == "/v1/drain" else self._activate(body)
            case "GET", "/v1/scaling":
                found = self.served.scaling()
                later = _error(HTTPStatus.SERVICE_UNAVAILABLE, "the store has not been read yet")
                return later if found is None else _json(found)
            case "POST", "/v1/scaling":
                return self._keep_scaling(body)
            case "GET", "/metrics":
                return _Answer(HTTPStatus.OK, self.served.metrics(), _OPEN_METRICS)
            case _, "/v1/status" | "/metrics":
                return _wrong_method("GET")
            case _, "/v1/drain" | "/v1/activate":
                return _wrong_method("POST")
            case _, "/v1/scaling":
                return _wrong_method("GET or POST")
            case _:
                paths = "/healthz, /v1/status, /v1/scaling, /v1/drain, /v1/activate and /metrics"
                return _error(HTTPStatus.NOT_FOUND, f"paths are {paths}")

    def _keep_scaling(self, body: bytes) -> _Answer:
        try:
            news = json.loads(body)
            if isinstance(news, dict):
                self.served.keep_scaling(news)
                return _json({"kept": True}, HTTPStatus.ACCEPTED)
            error = "not an object"
        except ValueError as wrong:
            error = str(wrong)
        return _error(HTTPStatus.BAD_REQUEST, f"the body must be decisions as JSON: {error}")

    def _drain(self) -> _Answer:
        given = parse_qs(self.path.partition("?")[2])
        try:
            limit = float(given["timeoutSeconds"][-1]) if "timeoutSeconds" in given else None
        except ValueError:
            limit = -1.0
        # Not a number is neither above nor below.
        if limit is not None and not 0 <= limit < float("inf"):
            return _error(HTTPStatus.BAD_REQUEST, "timeoutSeconds must be a number of seconds, 0 or more")
        snapshots_first = given.get("snapshots", ["false"])[-1]
        if snapshots_first not in ("true", "false"):
            return _error(HTTPStatus.BAD_REQUEST, "snapshots must be true or false")
        return _json(self.served.drain(limit, snapshots_first == "true"), HTTPStatus.ACCEPTED)

    def _activate(self, body: bytes) -> _Answer:
        try:
            return _json(self.served.activate(body), HTTPStatus.ACCEPTED)
        except OrderInvalid as error:
            return _error(HTTPStatus.BAD_REQUEST, str(error))
        except NotInStandby as error:
            return _error(HTTPStatus.CONFLICT, str(error))

    def _refusal(self, *, uid_required: bool) -> _Answer | None:
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not compare_digest(given, b"Bearer " + self.token):
            return _error(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong")
        uid = self.headers.get("X-Headrace-Uid")
        # A Prometheus server knows no uid; reading the numbers of the next attempt does no harm.
        if uid == self.uid or (uid is None and not uid_required):
            return None
        asked = uid or "(no X-Headrace-Uid given)"
        return _error(HTTPStatus.CONFLICT, f"this is attempt {self.uid}, not {asked}")

    def _read_body(self) -> bytes:
        """Nothing of one that is too large, whose connection ends."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _LARGEST_BODY_BYTES:
            self.close_connection = True
            return b""
        return self.rfile.read(int(length))

    def log_message(self, format: str, *args: Any) -> None:
        log.debug("agent: " + format, *args)


def _json(content: dict[str, Any], code: HTTPStatus = HTTPStatus.OK) -> _Answer:
    return _Answer(code, json.dumps(content).encode())


def _error(code: HTTPStatus, message: str) -> _Answer:
    return _json({"error": code.phrase.title().replace(" ", ""), "message": message}, code)


def _wrong_method(allowed: str) -> _Answer:
    return _error(HTTPStatus.METHOD_NOT_ALLOWED, f"use {allowed}")
