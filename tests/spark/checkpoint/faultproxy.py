"""A proxy before an S3 server that does to chosen requests what networks and servers do.

Knows just enough HTTP/1.1 to take requests apart; one request per connection to the server. Signatures stay
valid because the Host header, which names the proxy, is passed on as it is; what is changed is signed again.
"""

from __future__ import annotations

import contextlib
import enum
import re
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.spark.s3server import ACCESS_KEY, SECRET_KEY

_STALL_LIMIT_SECONDS = 120
# Far below the patience of an S3A with the short pauses that tests give it: busy cores make it longer.
_AWAY_SECONDS = 0.2
_CONFLICT_SECONDS = 1.0


_NOT_SIGNED_AGAIN = {"if-none-match", "authorization", "x-amz-date"}


class Fault(enum.Enum):
    LOSE_ANSWER = "the server does it, the client never hears of it"
    RESET = "the connection breaks before the server sees the request"
    STALL = "no answer, no error, until the block ends"
    AWAY = "the server goes: no connection is accepted, until it is back a moment later"
    IGNORE_CONDITION = "the server does not know If-None-Match and does what it is asked without it"
    CONFLICT = "409: the server is still at what it was asked, and does it a moment later"
    FORBIDDEN = "403"
    SERVER_ERROR = "500"
    SLOW_DOWN = "503 SlowDown"


_ANSWERS = {
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
    Fault.FORBIDDEN: (403, "AccessDenied"),
    Fault.SERVER_ERROR: (500, "InternalError"),
    Fault.SLOW_DOWN: (503, "SlowDown"),
}


@dataclass
class Rule:
    """Applies a fault to the first `times` requests whose "METHOD /path" matches."""

    pattern: str
    fault: Fault
    times: int = 1
    hits: int = 0


@dataclass
class FaultProxy:
    endpoint: str
    rules: list[Rule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _away: threading.Event = field(default_factory=threading.Event)

    def on(self, pattern: str, fault: Fault, *, times: int = 1) -> Rule:
        rule = Rule(pattern, fault, times)
        with self._lock:
            self.rules.append(rule)
        return rule

    def clear(self) -> None:
        with self._lock:
            self.rules.clear()

    def fault_for(self, request: str) -> Fault | None:
        with self._lock:
            for rule in self.rules:
                if rule.hits < rule.times and re.search(rule.pattern, request):
                    rule.hits += 1
                    return rule.fault
        return None


@contextlib.contextmanager
def fault_proxy(server_endpoint: str) -> Iterator[FaultProxy]:
    # Bound as long as the proxy lives and never listening: nobody is given the port while the server is away.
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keeper.bind(("127.0.0.1", 0))
        yield from _proxy_at(keeper.getsockname(), server_endpoint)


def _proxy_at(address: tuple[str, int], server_endpoint: str) -> Iterator[FaultProxy]:
    listener = _listen(address)
    proxy = FaultProxy(f"http://127.0.0.1:{address[1]}")
    target = urlsplit(server_endpoint)
    server = (str(target.hostname), int(target.port or 80))
    accepting = threading.Thread(target=_accept, args=(listener, server, proxy), daemon=True)
    accepting.start()
    try:
        yield proxy
    finally:
        proxy._ended.set()
        accepting.join(timeout=10)


def _accept(listener: socket.socket, server: tuple[str, int], proxy: FaultProxy) -> None:
    address = listener.getsockname()
    while not proxy._ended.is_set():
        with listener:
            listener.settimeout(0.05)
            while not proxy._ended.is_set() and not proxy._away.is_set():
                with contextlib.suppress(TimeoutError):
                    client, _ = listener.accept()
                    client.settimeout(None)
                    threading.Thread(target=_serve, args=(client, server, proxy), daemon=True).start()
        if proxy._ended.wait(_AWAY_SECONDS):
            return
        proxy._away.clear()
        listener = _listen(address)


def _listen(address: tuple[str, int]) -> socket.socket:
    return socket.create_server(address, backlog=128, reuse_port=True)


def _serve(client: socket.socket, server: tuple[str, int], proxy: FaultProxy) -> None:
    with contextlib.suppress(OSError, EOFError), client:
        head, body = _read_request(client)
        request_line = head.split(b"\r\n", 1)[0].decode()
        match proxy.fault_for(request_line):
            case None:
                _relay(head, body, server, client)
            case Fault.LOSE_ANSWER:
                _relay(head, body, server, None)
                _break(client)
            case Fault.RESET:
                _break(client)
            case Fault.STALL:
                proxy._ended.wait(_STALL_LIMIT_SECONDS)
            case Fault.AWAY:
                proxy._away.set()
                _break(client)
            case Fault.IGNORE_CONDITION:
                _relay(_unconditional(head, body), body, server, client)
            case Fault.CONFLICT:
                _answer(client, *_ANSWERS[Fault.CONFLICT], with_body=True)
                proxy._ended.wait(_CONFLICT_SECONDS)
                _relay(head, body, server, None)
            case fault:
                _answer(client, *_ANSWERS[fault], with_body=not request_line.startswith("HEAD"))


def _read_request(client: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _receive(client)
    head, _, body = data.partition(b"\r\n\r\n")
    if re.search(rb"(?im)^expect: *100-continue", head):
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    while len(body) < int(length[1] if length else 0):
        body += _receive(client)
    # The server must not wait for a "continue" that was given already, and must close when it is done.
    head = re.sub(rb"(?im)^(expect|connection):.*\r\n", b"", head + b"\r\n") + b"Connection: close"
    return head, body


def _receive(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise EOFError
    return data


def _relay(head: bytes, body: bytes, server: tuple[str, int], client: socket.socket | None) -> None:
    with socket.create_connection(server, timeout=60) as upstream:
        upstream.sendall(head + b"\r\n\r\n" + body)
        while data := upstream.recv(65536):
            if client is not None:
                client.sendall(data)


def _unconditional(head: bytes, body: bytes) -> bytes:
    """The same request without its If-None-Match, which is part of what the client has signed."""
    request_line, *lines = head.decode().split("\r\n")
    method, path, version = request_line.split(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    kept = {name: value for name, value in headers.items() if name.lower() not in _NOT_SIGNED_AGAIN}
    host = next(value for name, value in headers.items() if name.lower() == "host")
    request = AWSRequest(method, f"http://{host}{path}", headers=kept, data=body)
    S3SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "s3", "us-east-1").add_auth(request)
    signed = [f"{name}: {value}" for name, value in request.headers.items()]
    return "\r\n".join([f"{method} {path} {version}", *signed]).encode()


def _break(client: socket.socket) -> None:
    # Linger 0 turns the close into a reset, which is what a dying machine or a firewall looks like.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def _answer(client: socket.socket, status: int, code: str, *, with_body: bool) -> None:
    body = f"<Error><Code>{code}</Code><Message>injected by the test</Message></Error>".encode()
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    client.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + (body if with_body else b""))
