"""What only directories need: links and their replacement, leftovers, checksums; and what is refused."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.spark.checkpoint.jvmfiles import ALREADY_EXISTS, JvmFiles, class_of, refused
from tests.spark.checkpoint.places import directory_place

OFFSETS = "run-1/queries/q/offsets"


@pytest.fixture
def local(gateway: Any, tmp_path: Path) -> JvmFiles:
    return JvmFiles(gateway, directory_place(tmp_path / "store"), run="run-1", attempt=1)


def test_no_hadoop_checksum_and_no_temporary_file_is_left(local: JvmFiles, tmp_path: Path) -> None:
    local.claim(1)
    local.create(f"{OFFSETS}/0")
    local.create("run-1/queries/q/state/0/0/1.zip", overwrite=True)
    local.begin("run-1/queries/q/state/0/0/2.zip", overwrite=True).cancel()
    with refused(ALREADY_EXISTS):
        local.create(f"{OFFSETS}/0")
    assert list((tmp_path / "store").rglob(".*")) == []


def test_checksums_that_spark_left_go_with_their_file(local: JvmFiles, tmp_path: Path) -> None:
    ssts = tmp_path / "store/run-1/queries/q/state/0/0/SSTs"
    ssts.mkdir(parents=True)
    for name in ("1.sst", ".1.sst.crc", ".2.sst.0b7e.tmp"):
        (ssts / name).write_text("x")
    assert local.names("run-1/queries/q/state/0/0/SSTs") == ["1.sst"]
    local.manager().delete(local.path("run-1/queries/q/state/0/0/SSTs/1.sst"))
    assert [path.name for path in ssts.iterdir()] == [".2.sst.0b7e.tmp"]


def test_a_name_that_was_given_though_the_answer_was_lost_is_ours(local: JvmFiles, tmp_path: Path) -> None:
    """As NFS does it: the answer to the first try is lost, and the second is refused by its result."""
    local.claim(1)
    stream = local.begin(f"{OFFSETS}/0", b"ours")
    (temporary,) = (tmp_path / "store" / OFFSETS).iterdir()
    (tmp_path / "store" / OFFSETS / "0").hardlink_to(temporary)
    stream.close()
    assert local.read(f"{OFFSETS}/0") == b"ours"
    assert local.names(OFFSETS) == ["0"]
    assert not temporary.exists()


def test_a_claim_sweeps_up_after_killed_writers(local: JvmFiles, tmp_path: Path) -> None:
    local.claim(1)
    local.create(f"{OFFSETS}/0")
    left = tmp_path / "store" / OFFSETS / ".1.5f2c.tmp"
    left.write_text("half an entry")
    JvmFiles(local.gateway, local.place, run="run-1", attempt=2).claim(2)
    assert not left.exists()
    assert local.names(OFFSETS) == ["0"]


def test_without_hard_links_creates_are_still_atomic(gateway: Any, tmp_path: Path) -> None:
    no_links = (("headrace.directory.links", "false"),)
    files = JvmFiles(gateway, directory_place(tmp_path / "store"), extra=no_links)
    start = threading.Barrier(16)

    def create(racer: int) -> bool:
        stream = files.begin(f"{OFFSETS}/0", b"%d" % racer)
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
    assert [files.read(f"{OFFSETS}/0")] == [b"%d" % racer for racer in won]
    assert files.names(OFFSETS) == ["0"]
    assert [path.name for path in tmp_path.rglob(".*")] == [".headrace.lock"]


def test_a_write_that_fails_on_close_says_so_and_leaves_nothing(local: JvmFiles, tmp_path: Path) -> None:
    stream = local.begin("run-1/queries/q/state/0/0/1.zip", overwrite=True)
    # What a vanished mount looks like to a writer: its directory is not there any more.
    (temporary,) = (tmp_path / "store").rglob(".*.tmp")
    temporary.unlink()
    with pytest.raises(Py4JJavaError, match="NoSuchFileException"):
        stream.close()
    stream.cancel()
    assert local.place.files() == []


def test_a_file_sinks_log_may_lie_where_only_spark_itself_can_write(gateway: Any, tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    elsewhere = directory_place(tmp_path / "output")
    mount = ("fs.viewfs.mounttable.default.link./data", f"file://{tmp_path}/output")
    files = JvmFiles(gateway, elsewhere, run="run-1", attempt=1, extra=(mount,))
    path = gateway.jvm.org.apache.hadoop.fs.Path
    manager = gateway.jvm.dev.headrace.HeadraceCheckpointFileManager(
        path("viewfs:///data/_spark_metadata"), files.configuration()
    )
    manager.mkdirs(path("viewfs:///data/_spark_metadata"))
    stream = manager.createAtomic(path("viewfs:///data/_spark_metadata/0"), False)
    stream.write(b"v1")
    stream.close()
    assert manager.exists(path("viewfs:///data/_spark_metadata/0"))
    assert (tmp_path / "output/_spark_metadata/0").read_bytes() == b"v1"


def test_places_that_cannot_keep_the_promises_are_refused_for_checkpoints(gateway: Any) -> None:
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration()
    with pytest.raises(
        Py4JJavaError, match=r"keeps checkpoints in a directory or in S3 with conditional writes"
    ):
        gateway.jvm.dev.headrace.CheckpointControl.claim("webhdfs://127.0.0.1:1/run-1", 1, "{}", conf)
