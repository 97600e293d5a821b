"""A state store on S3 is loaded from many small files: they are read ahead, and what is read is the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark.checkpoint.jvmfiles import NOT_FOUND, JvmFiles, refused
from tests.spark.checkpoint.places import s3_place
from tests.spark.s3server import S3Server, by_operation

pytestmark = pytest.mark.full

STATE = "run-1/queries/q/state/0/0"
LARGE = 9 * 1024 * 1024  # more than is held in all


@pytest.fixture
def driver(s3_server: S3Server, s3_gateway: Any) -> JvmFiles:
    driver = JvmFiles(s3_gateway, s3_place(s3_server.new_bucket(), s3_server.options()), "run-1", 1)
    driver.claim(1)
    return driver


def content_of(name: str) -> bytes:
    return f"what {name} holds".encode()


def files_of(version: int, writer: str = "a") -> list[str]:
    return [f"{version}_{writer}.changelog", f"{version}_{writer}.changelog.crc"]


def write(driver: JvmFiles, *versions: int, writer: str = "a") -> None:
    for name in (name for version in versions for name in files_of(version, writer)):
        driver.create(f"{STATE}/{name}", content_of(name))


def replay(driver: JvmFiles, manager: Any, *versions: int) -> None:
    """As Spark does: each for its format, then for its content, with its checksum."""
    for name in (name for version in versions for name in files_of(version) * 2):
        assert driver.read(f"{STATE}/{name}", manager) == content_of(name)


def test_a_load_takes_one_listing_and_one_request_for_each_file(
    driver: JvmFiles, s3_server: S3Server
) -> None:
    write(driver, *range(1, 41))
    manager, begin = driver.manager(STATE), s3_server.log_position()
    replay(driver, manager, 40, *range(11, 41))
    requests = by_operation(s3_server.requests(begin, s3_server.log_position()))
    assert requests == {"ListObjectsV2": 1, "GetObject": 60}, "without reading ahead: 248"


def test_a_later_load_finds_what_was_written_since(driver: JvmFiles) -> None:
    write(driver, 1, 2)
    manager = driver.manager(STATE)
    replay(driver, manager, 2, 1, 2)
    write(driver, 3, 4)
    replay(driver, manager, 4, 3, 4)
    replay(driver, manager, 4, 1, 2, 3, 4)


def test_files_of_lost_attempts_beside_them_do_no_harm(driver: JvmFiles) -> None:
    write(driver, 1, 2, 3)
    write(driver, 2, 3, writer="lost")
    replay(driver, driver.manager(STATE), 3, 1, 2, 3)


def test_what_is_not_there_fails_as_it_always_did(driver: JvmFiles, s3_server: S3Server) -> None:
    write(driver, *range(1, 60))
    manager = driver.manager(STATE)
    replay(driver, manager, 1)
    gone = [f"{STATE}/{name}" for name in files_of(59)]
    driver.place.store.delete_many(gone)  # listed, and not yet fetched
    with refused(NOT_FOUND):
        driver.read(gone[0], manager)
    with refused(NOT_FOUND):
        driver.read(f"{STATE}/61_a.changelog", manager)


def test_files_too_large_to_be_held_are_read_as_ever(driver: JvmFiles) -> None:
    for version, letter in ((1, b"x"), (2, b"y")):
        driver.create(f"{STATE}/{version}_a.changelog", letter * LARGE)
    write(driver, 3)
    manager = driver.manager(STATE)
    for version, letter in ((1, b"x"), (2, b"y")):
        assert driver.read(f"{STATE}/{version}_a.changelog", manager) == letter * LARGE
    replay(driver, manager, 3)


def test_names_that_are_given_again_are_never_held(driver: JvmFiles) -> None:
    """State format 1: a version that is written again has the same name."""
    manager, name = driver.manager(STATE), f"{STATE}/1.changelog"
    for content in (b"first", b"again"):
        driver.create(name, content, overwrite=True)
        assert driver.read(name, manager) == content
