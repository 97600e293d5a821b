"""Real S3 servers on loopback for tests: compiled once from pinned Go modules, kept in the user's cache.

versitygw is the one for all tests; MinIO is the second opinion of the full tier.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from headrace_jobs.store.s3_options import S3Options
from tests.cluster.binaries import ensure

# One pair for all servers: a test may use two of them through one environment.
ACCESS_KEY = "testroot"
SECRET_KEY = "the-secret-of-the-test-servers"
# Keys for processes that use the default chain, shielded from the tester's own AWS settings.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_EC2_METADATA_DISABLED": "true",
}
REGION = "us-east-1"
_START_SECONDS = 30
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    access_log: Path
    ca_file: Path | None = None
    region: str = REGION

    @property
    def address(self) -> str:
        return self.endpoint.partition("://")[2]

    def options(self, *, endpoint: str | None = None) -> S3Options:
        """How to reach it; by another endpoint when a proxy stands before it."""
        return S3Options(endpoint=endpoint or self.endpoint, path_style=True, ca_file=self.ca_file)

    def client(self) -> Any:
        """boto3 itself, as the server's owner."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name=self.region,
            verify=str(self.ca_file) if self.ca_file else None,
            config=Config(s3={"addressing_style": "path"}),
        )

    def new_bucket(self) -> str:
        name = f"bucket-{uuid.uuid4()}"
        where = (
            {}
            if self.region == REGION
            else {"CreateBucketConfiguration": {"LocationConstraint": self.region}}
        )
        self.client().create_bucket(Bucket=name, **where)
        return name

    def open_uploads(self, bucket: str) -> list[Any]:
        return self.client().list_multipart_uploads(Bucket=bucket).get("Uploads", [])

    def allow(self, bucket: str, *users: str) -> None:
        """All rights on the bucket, for these users only."""
        resources = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
        grant = {"Effect": "Allow", "Principal": {"AWS": users}, "Action": "s3:*", "Resource": resources}
        self.client().put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Statement": [grant]}))

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
def versitygw(
    directory: Path, *, certificate: tuple[Path, Path] | None = None, region: str = REGION
) -> Iterator[S3Server]:
    """Runs for the length of the block. With a certificate (file, key) it speaks TLS."""
    for name in ("data", "iam"):
        (directory / name).mkdir(parents=True)
    scheme = "https" if certificate else "http"
    server = _new_server(directory, scheme, certificate[0] if certificate else None, region)
    command = [ensure(("versitygw",))["versitygw"], "--port", server.address, "--region", region]
    command += ["--keep-alive", "--quiet", "--access-log", server.access_log]
    command += ["--iam-dir", directory / "iam", "--iam-cache-ttl", "1"]
    if certificate:
        command += ["--cert", certificate[0], "--key", certificate[1]]
    command += ["posix", directory / "data"]
    keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    with _running(command, keys, server, directory / "output.log"):
        yield server


def add_user(server: S3Server, name: str) -> dict[str, str]:
    """A versitygw user with no rights on anything, as environment variables."""
    secret = f"secret-{uuid.uuid4()}"
    command = [ensure(("versitygw",))["versitygw"], "admin", "--endpoint-url", server.endpoint]
    command += ["create-user", "--access", name, "--secret", secret, "--role", "user"]
    keys = {"ADMIN_ACCESS_KEY": ACCESS_KEY, "ADMIN_SECRET_KEY": SECRET_KEY}
    subprocess.run(command, env=os.environ | keys, check=True, capture_output=True)
    return {"AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": secret}


@contextlib.contextmanager
def minio(directory: Path, *, region: str = REGION) -> Iterator[S3Server]:
    server = _new_server(directory, "http", None, region)
    command = [
        ensure(("minio",))["minio"],
        "server",
        "--quiet",
        "--address",
        server.address,
        directory / "data",
    ]
    keys = {"MINIO_ROOT_USER": ACCESS_KEY, "MINIO_ROOT_PASSWORD": SECRET_KEY}
    # Nothing but the API: no console, no look for updates.
    keys |= {"MINIO_BROWSER": "off", "MINIO_UPDATE": "off", "MINIO_SITE_REGION": region}
    with _running(command, keys, server, directory / "output.log"):
        yield server


def _new_server(directory: Path, scheme: str, ca_file: Path | None, region: str) -> S3Server:
    return S3Server(
        endpoint=f"{scheme}://127.0.0.1:{_free_port()}",
        access_log=directory / "access.log",
        ca_file=ca_file,
        region=region,
    )


@contextlib.contextmanager
def _running(
    command: Sequence[Any], environment: dict[str, str], server: S3Server, output: Path
) -> Iterator[None]:
    with output.open("wb") as log:
        process = subprocess.Popen(
            command,
            env=os.environ | environment,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509  (one system call, nothing that takes a lock)
        )
        try:
            _await_listening(process, server, output)
            yield
        finally:
            process.terminate()
            process.wait(timeout=10)


def die_with_parent() -> None:
    """For `preexec_fn`: a test that is killed leaves nothing running."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _await_listening(process: subprocess.Popen[bytes], server: S3Server, output: Path) -> None:
    host, port = server.address.split(":")
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the S3 server ended at once:\n{output.read_text()}")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"the S3 server did not listen within {_START_SECONDS} s:\n{output.read_text()}")
