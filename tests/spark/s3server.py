"""A real S3 server on loopback for tests: versitygw, compiled once from pinned Go modules into the cache."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.config import Config

from headrace_jobs.store.s3_options import S3Options
from tests.cluster.binaries import ensure

_START_SECONDS = 30
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    access_key: str
    secret_key: str
    access_log: Path
    ca_file: Path | None = None

    def options(self, *, endpoint: str | None = None) -> S3Options:
        """How to reach it; by another endpoint when a proxy stands before it."""
        return S3Options(endpoint=endpoint or self.endpoint, path_style=True, ca_file=self.ca_file)

    @property
    def environment(self) -> dict[str, str]:
        """Keys for processes that use the default chain, shielded from the tester's own AWS settings."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def new_bucket(self) -> str:
        name = f"bucket-{uuid.uuid4()}"
        boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name="us-east-1",
            verify=str(self.ca_file) if self.ca_file else None,
            config=Config(s3={"addressing_style": "path"}),
        ).create_bucket(Bucket=name)
        return name

    def log_position(self) -> int:
        return self.access_log.stat().st_size if self.access_log.exists() else 0

    def requests(self, begin: int, end: int) -> list[Request]:
        """What the server was asked between two positions of its log."""
        with self.access_log.open("rb") as log:
            log.seek(begin)
            lines = log.read(end - begin).decode().splitlines()
        return [Request(*match.groups()) for line in lines if (match := _REQUEST.search(line))]


_REQUEST = re.compile(r" s3_(\w+) (\S+) (\S+) \d+ ")


@dataclass(frozen=True)
class Request:
    operation: str
    key: str
    uri: str

    @property
    def path(self) -> str:
        """The key, or for listings the prefix that was asked for."""
        if self.key != "-":
            return self.key
        return re.sub(r".*[?&]prefix=([^&]*).*", r"\1", self.uri).replace("%2F", "/")


def by_operation(requests: list[Request]) -> Counter[str]:
    return Counter(request.operation for request in requests)


@contextlib.contextmanager
def versitygw(directory: Path, *, certificate: tuple[Path, Path] | None = None) -> Iterator[S3Server]:
    """Runs for the length of the block. With a certificate (file, key) it speaks TLS."""
    program = ensure(("versitygw",))["versitygw"]
    for name in ("data", "iam"):
        (directory / name).mkdir(parents=True)
    port = _free_port()
    scheme = "https" if certificate else "http"
    server = S3Server(
        endpoint=f"{scheme}://127.0.0.1:{port}",
        access_key="testroot",
        secret_key=f"secret-{uuid.uuid4()}",
        access_log=directory / "access.log",
        ca_file=certificate[0] if certificate else None,
    )
    command = [program, "--port", f"127.0.0.1:{port}", "--region", "us-east-1", "--keep-alive", "--quiet"]
    command += ["--iam-dir", directory / "iam", "--iam-cache-ttl", "1", "--access-log", server.access_log]
    command += ["--health", "/healthz"]
    if certificate:
        command += ["--cert", certificate[0], "--key", certificate[1]]
    command += ["posix", directory / "data"]
    keys = {"ROOT_ACCESS_KEY": server.access_key, "ROOT_SECRET_KEY": server.secret_key}
    with (directory / "output.log").open("wb") as output:
        process = subprocess.Popen(
            command,
            env=os.environ | keys,
            stdout=output,
            stderr=output,
            preexec_fn=_die_with_parent,  # noqa: PLW1509  (one system call, nothing that takes a lock)
        )
        try:
            _await_listening(process, port, directory / "output.log")
            yield server
        finally:
            process.terminate()
            process.wait(timeout=10)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _await_listening(process: subprocess.Popen[bytes], port: int, output: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the S3 server ended at once:\n{output.read_text()}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"the S3 server did not listen within {_START_SECONDS} s:\n{output.read_text()}")
