"""The file manager alone, in a JVM without Spark: each promise on a directory and on S3."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.spark.checkpoint.jvmfiles import (
    ALREADY_EXISTS,
    DRAINED,
    FENCED,
    NOT_FOUND,
    JvmFiles,
    class_of,
    refused,
)
from tests.spark.checkpoint.places import Place

OFFSETS = "run-1/queries/q/offsets"


@pytest.fixture
def files(every_place: Place, request: pytest.FixtureRequest) -> Iterator[JvmFiles]:
    gateway: Any = request.getfixturevalue("s3_gateway" if every_place.uri.startswith("s3a:") else "gateway")
    files = JvmFiles(gateway, every_place)
    yield files
    files.control.resume()


@pytest.fixture
def driver(files: JvmFiles) -> JvmFiles:
    """A driver that has claimed its run, as attempt 1."""
    driver = JvmFiles(files.gateway, files.place, run="run-1", attempt=1)
    driver.claim(1)
    return driver


def test_a_file_is_there_when_it_is_closed_and_not_before(files: JvmFiles) -> None:
    stream = files.begin(f"{OFFSETS}/0", b"v1\nhello")
    assert files.place.files() == []
    assert not files.manager().exists(files.path(f"{OFFSETS}/0"))
    stream.close()
    stream.close()
    assert files.place.files() == [f"{OFFSETS}/0"]
    assert files.read(f"{OFFSETS}/0") == b"v1\nhello"
    assert files.manager().exists(files.path(f"{OFFSETS}/0"))
    assert files.manager().exists(files.path(OFFSETS))


def test_a_cancelled_write_leaves_nothing(files: JvmFiles) -> None:
    stream = files.begin("run-1/queries/q/state/0/0/1.changelog", b"x" * 100_000, overwrite=True)
    stream.cancel()
    stream.cancel()
    stream.close()
    assert files.place.files() == []


def test_what_exists_is_not_replaced_unless_asked(files: JvmFiles) -> None:
    files.create(f"{OFFSETS}/0", b"first")
    with refused(ALREADY_EXISTS):
        files.create(f"{OFFSETS}/0", b"second")
    assert files.read(f"{OFFSETS}/0") == b"first"
    files.create("run-1/queries/q/state/0/0/1.changelog", b"first", overwrite=True)
    files.create("run-1/queries/q/state/0/0/1.changelog", b"second", overwrite=True)
    assert files.read("run-1/queries/q/state/0/0/1.changelog") == b"second"


def test_of_sixteen_racing_creators_one_wins(files: JvmFiles) -> None:
    for race in range(5):
        start = threading.Barrier(16)

        def create(racer: int, race: int = race, start: threading.Barrier = start) -> bool:
            stream = files.begin(f"{OFFSETS}/{race}", b"%d" % racer)
            start.wait(timeout=60)
            try:
                stream.close()
            except Py4JJavaError as error:
                assert class_of(error) == ALREADY_EXISTS
                stream.cancel()
                return False
            return True

        with ThreadPoolExecutor(16) as pool:
            won = [racer for racer, win in enumerate(pool.map(create, range(16))) if win]
        assert [files.read(f"{OFFSETS}/{race}")] == [b"%d" % racer for racer in won]
    assert len(files.place.files()) == 5


def test_sparks_other_questions_are_answered_as_its_own_managers_do(files: JvmFiles) -> None:
    manager = files.manager()
    assert not manager.exists(files.path("run-1/queries/q/state/0/0"))
    manager.mkdirs(files.path("run-1/queries/q/state/0/0"))
    assert manager.exists(files.path("run-1/queries/q/state/0/0"))
    with refused(NOT_FOUND):
        manager.list(files.path("run-1/nowhere"))
    with refused(NOT_FOUND):
        manager.open(files.path(f"{OFFSETS}/7"))
    files.create(f"{OFFSETS}/7")
    files.create("run-1/queries/q/state/0/0/1.zip")
    assert files.names(OFFSETS) == ["7"]
    for path in (f"{OFFSETS}/7", f"{OFFSETS}/7", "run-1/queries/q/state", "run-1/nowhere"):
        manager.delete(files.path(path))
    assert files.place.files() == []
    assert manager.createCheckpointDirectory().toString().endswith("run-1/queries/q")


def test_a_claimed_run_is_written_by_its_newest_attempt_only(driver: JvmFiles) -> None:
    driver.create(f"{OFFSETS}/0")
    successor = JvmFiles(driver.gateway, driver.place, run="run-1", attempt=2)
    successor.claim(2)
    for log in ("offsets/1", "commits/0", "sources/0/1", "sources/0/9.compact"):
        with refused(FENCED):
            driver.create(f"run-1/queries/q/{log}")
    assert sorted(driver.place.files()) == ["run-1/_attempts/1", "run-1/_attempts/2", f"{OFFSETS}/0"]
    successor.create(f"{OFFSETS}/1")
    assert successor.names(OFFSETS) == ["0", "1"]


def test_a_claim_is_made_once_and_never_behind_a_newer_one(driver: JvmFiles) -> None:
    for attempt in (1, 0):
        with refused(FENCED):
            driver.claim(attempt)
    driver.claim(12)
    with refused(FENCED):
        driver.claim(9)
    assert driver.place.store.children("run-1/_attempts") == ["1", "12"]


def test_without_its_claim_a_driver_writes_no_log(files: JvmFiles) -> None:
    unclaimed = JvmFiles(files.gateway, files.place, run="run-1", attempt=1)
    with refused(FENCED):
        unclaimed.create(f"{OFFSETS}/0")
    unclaimed.claim(1)
    unclaimed.create(f"{OFFSETS}/0")
    # The run is deleted under a driver that lives on: it must not bring it back.
    files.place.store.delete_tree("run-1")
    with refused(FENCED):
        unclaimed.create(f"{OFFSETS}/1")
    assert files.place.files() == []


def test_other_paths_are_not_fenced(driver: JvmFiles) -> None:
    JvmFiles(driver.gateway, driver.place, run="run-1", attempt=2).claim(2)
    manager = driver.manager("rehearsal-2/queries/q")
    manager.createAtomic(driver.path("rehearsal-2/queries/q/offsets/0"), False).close()
    # run-1 is a prefix of run-10, and is another run all the same.
    manager = driver.manager("run-10/queries/q")
    manager.createAtomic(driver.path("run-10/queries/q/offsets/0"), False).close()
    assert set(driver.place.files()) > {"rehearsal-2/queries/q/offsets/0", "run-10/queries/q/offsets/0"}


def test_a_draining_driver_begins_no_batch_and_ends_the_one_it_has(driver: JvmFiles) -> None:
    driver.create(f"{OFFSETS}/0")
    assert driver.control.drain(1000)
    assert driver.control.isDraining()
    for log in ("offsets/1", "sources/0/1"):
        with refused(DRAINED):
            driver.create(f"run-1/queries/q/{log}")
    driver.create("run-1/queries/q/state/0/0/1.changelog", overwrite=True)
    driver.create("run-1/queries/q/commits/0")
    run = f"{driver.place.uri}/run-1"
    assert driver.control.batches(run, driver.configuration()) == '{"q":{"offsets":0,"commits":0}}'
    driver.control.resume()
    driver.create(f"{OFFSETS}/1")
    assert driver.control.batches(run, driver.configuration()) == '{"q":{"offsets":1,"commits":0}}'


def test_batches_of_a_run_that_has_none(driver: JvmFiles) -> None:
    assert driver.control.batches(f"{driver.place.uri}/run-1", driver.configuration()) == "{}"
    driver.create("run-1/queries/q/metadata")
    assert (
        driver.control.batches(f"{driver.place.uri}/run-1", driver.configuration())
        == '{"q":{"offsets":-1,"commits":-1}}'
    )
