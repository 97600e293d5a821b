from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.jvm import jar_path
from headrace_jobs.jvm.build import spark_jars
from headrace_jobs.jvm.gateway import small_jvm
from headrace_jobs.jvm.jars import connector_jars
from tests.spark.checkpoint.places import Place, directory_place, s3_place
from tests.spark.s3server import ENVIRONMENT, S3Server, minio, versitygw

PLACES = ("directory", pytest.param("s3", marks=pytest.mark.full))
# The second opinion is for what talks to the server itself; what Spark makes of it is the same on both.
EVERY_PLACE = (*PLACES, pytest.param("minio", marks=pytest.mark.full))
_SERVERS = {"s3": "s3_server", "versitygw": "s3_server", "minio": "minio_server"}


@pytest.fixture(scope="session")
def s3_keys() -> Iterator[None]:
    """In the environment of this process and of what it starts: one pair for all servers."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def s3_server(s3_keys: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture(scope="session")
def minio_server(s3_keys: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with minio(tmp_path_factory.mktemp("minio")) as server:
        yield server


@pytest.fixture(params=["versitygw", "minio"])
def each_server(request: pytest.FixtureRequest) -> S3Server:
    return request.getfixturevalue(_SERVERS[request.param])


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place of each kind; the S3 one only in the full tier, because its server must be compiled."""
    return _empty_place(request, tmp_path)


@pytest.fixture(params=EVERY_PLACE)
def every_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """As `place`, and on each S3 server."""
    return _empty_place(request, tmp_path)


def _empty_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "directory":
        return directory_place(tmp_path / "store")
    server: S3Server = request.getfixturevalue(_SERVERS[request.param])
    return s3_place(server.new_bucket(), server.options())


@pytest.fixture(scope="module")
def gateway() -> Iterator[Any]:
    """A JVM with Headrace's jar and no Spark running in it: enough for the file manager itself."""
    with small_jvm(spark_jars(), [jar_path()]) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def s3_gateway(s3_keys: None) -> Iterator[Any]:
    with small_jvm(spark_jars(), [jar_path(), *connector_jars("s3a")]) as gateway:
        yield gateway
