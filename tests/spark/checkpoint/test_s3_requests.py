"""What each operation costs in requests. A growth here is paid for in every micro-batch of every job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.checkpoint.jvmfiles import JvmFiles
from tests.spark.checkpoint.places import s3_place
from tests.spark.s3server import S3Server, by_operation

pytestmark = pytest.mark.full

QUERY = "run-1/queries/q"
STATE_FILE = f"{QUERY}/state/0/0/5_a.changelog"


@pytest.fixture
def driver(s3_server: S3Server, s3_gateway: Any) -> JvmFiles:
    place = s3_place(s3_server.new_bucket(), s3_server.options())
    driver = JvmFiles(s3_gateway, place, run="run-1", attempt=1)
    driver.claim(1)
    for path in (f"{QUERY}/offsets/5", f"{QUERY}/commits/5", STATE_FILE, "out/_spark_metadata/5"):
        driver.create(path, overwrite=True)
    driver.manager()
    return driver


OPERATIONS: dict[str, tuple[Callable[[JvmFiles], Any], dict[str, int]]] = {
    "an entry of a log": (
        lambda driver: driver.create(f"{QUERY}/offsets/6"),
        {"ListObjectsV2": 1, "PutObject": 1},
    ),
    "a state file": (lambda driver: driver.create(STATE_FILE, overwrite=True), {"PutObject": 1}),
    "an entry of a file sink": (lambda driver: driver.create("out/_spark_metadata/6"), {"PutObject": 1}),
    "is a new entry there": (
        lambda driver: driver.manager().exists(driver.path(f"{QUERY}/commits/6")),
        {"HeadObject": 1},
    ),
    "is a log there": (
        lambda driver: driver.manager().exists(driver.path(f"{QUERY}/offsets")),
        {"ListObjectsV2": 1},
    ),
    "what is in a log": (lambda driver: driver.names(f"{QUERY}/offsets"), {"ListObjectsV2": 1}),
    "purge an entry": (
        lambda driver: driver.manager().delete(driver.path(f"{QUERY}/offsets/5")),
        {"DeleteObject": 1},
    ),
    "purge a state file of a name that is given again": (
        lambda driver: driver.manager().delete(driver.path(f"{QUERY}/state/0/0/5.changelog")),
        {"DeleteObject": 1},
    ),
    "purge thirty versions of a state": (lambda driver: purge_versions(driver, 30), {"DeleteObjects": 1}),
    "purge a version of a state": (lambda driver: purge_versions(driver, 1), {}),
}


def purge_versions(driver: JvmFiles, count: int) -> None:
    """As Spark does: a changelog and its checksum, one after the other."""
    manager = driver.manager()
    for version in range(count):
        for name in (f"{version}_a.changelog", f"{version}_a.changelog.crc"):
            manager.delete(driver.path(f"{QUERY}/state/0/0/{name}"))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_requests_of(operation: str, driver: JvmFiles, s3_server: S3Server) -> None:
    act, expected = OPERATIONS[operation]
    begin = s3_server.log_position()
    act(driver)
    assert by_operation(s3_server.requests(begin, s3_server.log_position())) == expected
