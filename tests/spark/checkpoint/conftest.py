from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.jvm import jar_path
from headrace_jobs.jvm.build import spark_jars
from headrace_jobs.jvm.gateway import small_jvm
from headrace_jobs.jvm.jars import connector_jars
from tests.spark.checkpoint.places import Place, directory_place, s3_place
from tests.spark.s3server import ENVIRONMENT, S3Server, versitygw

PLACES = ("directory", pytest.param("s3", marks=pytest.mark.full))


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        before = {name: os.environ.get(name) for name in ENVIRONMENT}
        os.environ.update(ENVIRONMENT)
        yield server
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place of each kind; the S3 one only in the full tier, because its server must be compiled."""
    if request.param == "directory":
        return directory_place(tmp_path / "store")
    server: S3Server = request.getfixturevalue("s3_server")
    return s3_place(server.new_bucket(), server.options())


@pytest.fixture(scope="module")
def gateway() -> Iterator[Any]:
    """A JVM with Headrace's jar and no Spark running in it: enough for the file manager itself."""
    with small_jvm(spark_jars(), [jar_path()]) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def s3_gateway(s3_server: S3Server) -> Iterator[Any]:
    with small_jvm(spark_jars(), [jar_path(), *connector_jars("s3a")]) as gateway:
        yield gateway
