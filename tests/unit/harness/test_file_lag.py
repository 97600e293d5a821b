"""Unread files: the listing less the log, on this machine and elsewhere, and since when they wait."""

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace_jobs.harness.file_lag import FileLag
from headrace_jobs.harness.lag import LagMeter
from headrace_jobs.harness.offsets import LookFailed, PartitionOffsets, SourceOffsets, to_report
from headrace_jobs.harness.source_notes import NotNoted, SourceNotes
from headrace_jobs.store import Store, directory_url, open_store
from headrace_jobs.store.errors import NoBucketError
from tests.spark.harness.conftest import wait_for

IN_S3 = "s3a://bucket/in"


class Elsewhere:
    """A store that is no directory: what lies in one, behind another address."""

    def __init__(self, root: Path) -> None:
        self.inside, self.url, self.broken = open_store(root.as_uri()), "s3://bucket/jobs", False

    def children(self, prefix: str):
        if self.broken:
            raise NoBucketError("bucket")
        return self.inside.children(prefix)

    def get(self, key: str) -> bytes:
        return self.inside.get(key)


class Bucket:
    """Lists what it is told, when it may."""

    def __init__(self, files: Mapping[str, float]) -> None:
        self.files, self.asked, self.may = files, 0, threading.Event()
        self.may.set()

    def __call__(self, where: str) -> Mapping[str, float]:
        assert where == IN_S3
        self.asked += 1
        self.may.wait(10)
        return {f"{where}/{name}": changed for name, changed in self.files.items()}


def taken(root: Path, *urls: str, entry: str = "0") -> None:
    log = root / "run-1" / "queries" / "orders" / "sources" / "0"
    log.mkdir(parents=True, exist_ok=True)
    number = int(entry.removesuffix(".compact"))
    lines = [json.dumps({"path": url, "timestamp": 1, "batchId": number}) for url in urls]
    (log / entry).write_text("\n".join(["v1", *lines]))


def progress(where: str, *, read_to: int | None = 0) -> dict:
    end = None if read_to is None else {"logOffset": read_to}
    return {"sources": [{"description": f"FileStreamSource[{where}]", "endOffset": end}]}


def look(files: FileLag) -> SourceOffsets:
    return files.look("orders", 0, IN_S3)


@pytest.mark.parametrize("home", ["home", "my job é", "100%20"])
def test_unread_files_are_the_listing_minus_the_log(tmp_path, home):
    tmp_path = tmp_path / home
    source = tmp_path / "in put"
    (source / "day=1").mkdir(parents=True)
    for name in ["a.json", "day=1/b.json", "c.json", "_hidden.json", ".d.json", "e.json"]:
        (source / name).write_text("{}")
    store = open_store(directory_url(tmp_path))

    def counted(meter: LagMeter) -> int | None:
        return meter.measure("orders", progress(f"file:{source}", read_to=9)).files

    meter = LagMeter(files=FileLag(lambda: store, "run-1"))
    assert counted(meter) == 4
    taken(tmp_path, (source / "a.json").as_uri())
    assert counted(meter) == 3
    taken(tmp_path, *((source / name).as_uri() for name in ("a.json", "day=1/b.json")), entry="1.compact")
    taken(tmp_path, (source / "c.json").as_uri(), entry="2")
    (tmp_path / "run-1/queries/orders/sources/0/.2.tmp").write_text("")
    assert counted(meter) == 1
    assert counted(LagMeter(files=FileLag(lambda: store, "run-1"))) == 1
    lag = LagMeter(files=FileLag(lambda: store, "run-2")).measure("orders", progress(f"file:{source}/*.json"))
    assert lag.files == 3


def test_files_that_spark_will_never_take_do_not_wait(tmp_path):
    """`pathGlobFilter`: beside the data lie other files, and more of them every day."""
    source = tmp_path / "in"
    source.mkdir()
    for name in ("a.json", "b.json", "a.json.md5", "b.ctl"):
        (source / name).write_text("{}")
    store = open_store(tmp_path.as_uri())
    taken(tmp_path, (source / "a.json").as_uri())
    asked = []
    files = FileLag(lambda: store, "run-1", pattern_of=lambda *of: asked.append(of) or "*.json")
    assert LagMeter(files=files).measure("orders", progress(f"file:{source}")).files == 1
    assert set(asked) == {("orders", 0)}
    assert files.note("orders", 0, str(source))["pattern"] == "*.json"


def test_a_spark_that_does_not_tell_which_files_it_takes_makes_the_lag_unknown(tmp_path):
    def pattern_of(query: str, index: int) -> str:
        raise LookFailed(f"Spark does not tell which files it takes: {query}/{index}")

    files = FileLag(lambda: open_store(tmp_path.as_uri()), "run-1", pattern_of=pattern_of)
    lag = LagMeter(files=files).measure("orders", progress(f"file:{tmp_path}"))
    assert not lag.known and "does not tell which files it takes" in lag.why
    with pytest.raises(NotNoted, match="does not tell"):
        files.note("orders", 0, str(tmp_path))


def three_files(tmp_path):
    """Each one younger than the one before."""
    source = tmp_path / "in"
    source.mkdir()
    for name, changed in (("a", 100.0), ("b", 200.0), ("c", 300.0)):
        (source / name).write_text("")
        os.utime(source / name, (changed, changed))
    return source


def test_the_oldest_unread_file_tells_how_long_it_waits(tmp_path):
    source = three_files(tmp_path)
    taken(tmp_path, (source / "a").as_uri())
    meter = LagMeter(files=FileLag(lambda: open_store(tmp_path.as_uri()), "run-1"))
    lag = meter.measure("orders", progress(f"file:{source}"))
    assert (lag.rows, lag.files, lag.behind_since) == (None, 2, "1970-01-01T00:03:20.000Z")
    taken(tmp_path, *((source / name).as_uri() for name in "bc"), entry="1")
    assert meter.measure("orders", progress(f"file:{source}", read_to=1)).files == 0


def test_files_in_a_bucket_are_listed_by_spark_and_the_log_is_read_where_it_lies(tmp_path):
    taken(tmp_path, f"{IN_S3}/a%20b.json")
    store: Store = Elsewhere(tmp_path)  # type: ignore[assignment]
    bucket = Bucket({"a%20b.json": 100.0, "c.json": 250.0})
    lag = LagMeter(files=FileLag(lambda: store, "run-1", bucket)).measure("orders", progress(IN_S3))
    assert (lag.known, lag.files, lag.behind_since) == (True, 1, "1970-01-01T00:04:10.000Z")


def test_a_checkpoint_in_s3_hides_no_files_of_this_machine(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    (source / "a").write_text("")
    store: Store = Elsewhere(tmp_path)  # type: ignore[assignment]
    lag = LagMeter(files=FileLag(lambda: store, "run-1")).measure("orders", progress(f"file:{source}"))
    assert (lag.known, lag.files) == (True, 1)


def test_a_bucket_is_not_listed_at_every_look(tmp_path):
    now = [1000.0]
    bucket = Bucket({"a": 1.0})
    files = FileLag(lambda: open_store(tmp_path.as_uri()), "run-1", bucket, clock=lambda: now[0])
    assert look(files).at == 1000.0
    now[0] += 8
    assert (look(files).at, bucket.asked) == (1000.0, 1)
    now[0] += 30
    wait_for(lambda: look(files).at == 1038.0, "it is never listed again")
    assert bucket.asked == 2


def test_a_bucket_that_does_not_answer_holds_up_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace_jobs.harness.file_lag._FIRST_ANSWER_SECONDS", 0.01)
    bucket = Bucket({"a": 1.0})
    bucket.may.clear()
    files = FileLag(lambda: open_store(tmp_path.as_uri()), "run-1", bucket)
    for _ in range(3):
        with pytest.raises(LookFailed, match="still being listed"):
            look(files)
    assert bucket.asked == 1
    bucket.may.set()

    def answered() -> bool:
        try:
            return look(files).behind == 1
        except LookFailed:
            return False

    wait_for(answered, "its answer is never taken")


def test_a_log_that_cannot_be_read_makes_the_lag_unknown(tmp_path):
    store = Elsewhere(tmp_path)
    store.broken = True
    meter = LagMeter(files=FileLag(lambda: store, "run-1", Bucket({})))  # type: ignore[arg-type, return-value]
    lag = meter.measure("orders", progress(IN_S3))
    assert (lag.known, lag.files) == (False, None) and "cannot be told" in lag.why


def test_a_bucket_without_spark_to_list_it_is_unknown(tmp_path):
    meter = LagMeter(files=FileLag(lambda: open_store(tmp_path.as_uri()), "run-1"))
    lag = meter.measure("orders", progress(IN_S3))
    assert not lag.known and "local directories only" in lag.why


@pytest.mark.parametrize(("where", "able"), [("file:/in", True), (IN_S3, False)])
def test_a_directory_can_be_looked_at_in_the_drivers_place_and_a_bucket_cannot(tmp_path, where, able):
    store: Store = Elsewhere(tmp_path)  # type: ignore[assignment]
    noted = SourceNotes(lambda: open_store(tmp_path.as_uri()), 1)
    meter = LagMeter(files=FileLag(lambda: store, "run-1", Bucket({})), notes=noted)
    lag = meter.measure("orders", progress(where))
    assert (lag.no_lookout is None) == able
    assert able or IN_S3 in (lag.no_lookout or "")


def test_files_of_the_batch_that_runs_are_not_read_yet(tmp_path):
    """Spark's source notes what a batch takes when it is planned: a batch of an hour would hide its files."""
    source = three_files(tmp_path)
    taken(tmp_path, (source / "a").as_uri())
    taken(tmp_path, (source / "b").as_uri(), entry="1")
    meter = LagMeter(files=FileLag(lambda: open_store(tmp_path.as_uri()), "run-1"))
    lag = meter.measure("orders", progress(f"file:{source}"))
    assert (lag.files, lag.behind_since) == (2, "1970-01-01T00:03:20.000Z")
    assert lag.offsets is not None
    assert lag.offsets.partitions["files/0"] == PartitionOffsets(3, 1, unread_since=200.0)
    assert meter.measure("orders", progress(f"file:{source}", read_to=1)).files == 1
    taken(tmp_path, (source / "a").as_uri(), entry="2.compact")
    # Nobody has ended a batch since this driver began: what the log says is all that is known.
    assert meter.measure("orders", progress(f"file:{source}", read_to=None)).files == 1


def test_files_of_a_batch_that_runs_are_told_between_two_listings_too(tmp_path):
    now = [1000.0]
    taken(tmp_path, f"{IN_S3}/a", entry="4")
    bucket = Bucket({"a": 1.0, "b": 2.0})
    store = open_store(tmp_path.as_uri())
    meter = LagMeter(files=FileLag(lambda: store, "run-1", bucket, clock=lambda: now[0]))
    assert meter.measure("orders", progress(IN_S3, read_to=3)).files == 2
    now[0] += 8
    assert meter.measure("orders", progress(IN_S3, read_to=4)).files == 1
    assert bucket.asked == 1


def test_files_become_as_many_tasks_as_there_is_work_for(tmp_path):
    files = FileLag(lambda: open_store(tmp_path.as_uri()), "run-1", Bucket({"a": 1.0}))
    assert to_report(look(files))["divisible"] is True


def test_directories_are_named_by_a_pattern_as_hadoop_reads_it(tmp_path):
    for name in ("a/in", "b/in", "c/in"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "one").write_text("")
    meter = LagMeter(files=FileLag(lambda: open_store(tmp_path.as_uri()), "run-1"))
    for pattern, files in (("*/in", 3), ("{a,b}/in", 2), ("{a,{b,c}}/i?", 3), ("{a,x}/in", 1), ("x*/in", 0)):
        assert meter.measure("orders", progress(f"file:{tmp_path}/{pattern}")).files == files


def test_a_directory_that_cannot_be_seen_is_not_an_empty_one(tmp_path, monkeypatch):
    meter = LagMeter(files=FileLag(lambda: open_store(tmp_path.as_uri()), "run-1"))
    gone = meter.measure("orders", progress(f"file:{tmp_path}/in"))
    assert (gone.known, gone.files) == (False, None) and "No such file" in gone.why
    (tmp_path / "in").mkdir()

    def refused(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.scandir", refused)
    lag = meter.measure("orders", progress(f"file:{tmp_path}/in"))
    assert (lag.known, lag.files) == (False, None) and "Permission denied" in lag.why
