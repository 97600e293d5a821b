"""Code from S3: each run keeps what its first attempt found, whatever happens at its address later."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace_jobs.keeper.fetch import Source, SourceError, fetch_files
from headrace_jobs.store import Store, StoreError, open_store
from headrace_jobs.store.errors import NoBucketError, NoRightsError, UnavailableError

PROGRAM = Source("spec.application.file", "file/job.py", "s3://acme-jobs/clicks/job.py")
LIBRARY = Source("spec.application.pyFiles[0]", "pyFiles/0/lib.zip", "s3://acme-jars/lib.zip")
BOTH = (PROGRAM, LIBRARY)


@pytest.fixture
def buckets(tmp_path: Path) -> Path:
    for source, content in ((PROGRAM, "print(1)"), (LIBRARY, "library")):
        upload(tmp_path / "buckets", source, content)
    return tmp_path / "buckets"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store((tmp_path / "store").as_uri())


def upload(buckets: Path, source: Source, content: str) -> None:
    path = buckets / source.url.removeprefix("s3://")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def opener(buckets: Path) -> Callable[[str], Store]:
    return lambda url: open_store((buckets / url.removeprefix("s3://")).as_uri())


def fetched(
    store: Store, buckets: Path, pod: Path, *, run: int = 1, sources: tuple[Source, ...] = BOTH
) -> dict[str, str]:
    fetch_files(store, f"uid/run-{run}", sources, pod, opener(buckets))
    return {source.place: (pod / source.place).read_text() for source in sources}


def test_files_of_several_buckets_come_to_their_places(store: Store, buckets: Path, tmp_path: Path):
    found = fetched(store, buckets, tmp_path / "pod")
    assert found == {"file/job.py": "print(1)", "pyFiles/0/lib.zip": "library"}
    assert (tmp_path / "pod/file/job.py").stat().st_mode & 0o044 == 0o044  # the driver is another user


def test_a_later_attempt_never_gets_newer_code_and_the_next_run_does(
    store: Store, buckets: Path, tmp_path: Path
):
    before = fetched(store, buckets, tmp_path / "attempt-1")
    upload(buckets, PROGRAM, "print(2)")
    (buckets / "acme-jars/lib.zip").unlink()
    assert fetched(store, buckets, tmp_path / "attempt-2") == before
    upload(buckets, LIBRARY, "newer")
    assert fetched(store, buckets, tmp_path / "run-2", run=2) == {
        "file/job.py": "print(2)",
        "pyFiles/0/lib.zip": "newer",
    }


def test_what_was_corrected_before_anything_ran_is_fetched_anew(store: Store, buckets: Path, tmp_path: Path):
    (buckets / "acme-jars/lib.zip").unlink()
    with pytest.raises(SourceError):
        fetched(store, buckets, tmp_path / "attempt-1")
    upload(buckets, LIBRARY, "found")
    upload(buckets, PROGRAM, "print(2)")
    assert fetched(store, buckets, tmp_path / "attempt-2") == {
        "file/job.py": "print(2)",
        "pyFiles/0/lib.zip": "found",
    }


def test_of_two_attempts_at_once_both_run_what_the_first_has_kept(
    store: Store, buckets: Path, tmp_path: Path
):
    """A driver that was given up for lost may come to it late."""
    first: list[dict[str, str]] = []

    def overtaken(url: str) -> Store:
        if not first:
            first.append(fetched(store, buckets, tmp_path / "rival", sources=(PROGRAM,)))
            upload(buckets, PROGRAM, "print(2)")
        return opener(buckets)(url)

    fetch_files(store, "uid/run-1", (PROGRAM,), tmp_path / "pod", overtaken)
    assert first == [{"file/job.py": "print(1)"}]
    assert (tmp_path / "pod/file/job.py").read_text() == "print(1)"


def test_a_copy_that_somebody_replaced_is_not_run(store: Store, buckets: Path, tmp_path: Path):
    fetched(store, buckets, tmp_path / "attempt-1")
    (copy,) = [entry for entry in store.list("uid/run-1/_code/") if entry.key.endswith("job.py")]
    store.put(copy.key, b"print('evil')")
    with pytest.raises(StoreError, match="is not what was kept"):
        fetched(store, buckets, tmp_path / "attempt-2")


def test_a_missing_file_is_named_with_its_field(store: Store, buckets: Path, tmp_path: Path):
    (buckets / "acme-jars/lib.zip").unlink()
    with pytest.raises(SourceError) as told:
        fetched(store, buckets, tmp_path / "pod")
    assert str(told.value) == (
        "spec.application.pyFiles[0]: s3://acme-jars/lib.zip does not exist: upload it, or correct the field"
    )
    assert told.value.reason == "NotFound"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NoBucketError("acme-jobs"), "there is no bucket for s3://acme-jobs/clicks/job.py: create it"),
        (NoRightsError("read", "x", needed="y"), "not allowed to read s3://acme-jobs/clicks/job.py"),
        (UnavailableError("x", "503"), "s3://acme-jobs/clicks/job.py cannot be read: x does not answer"),
    ],
)
def test_a_place_that_refuses_is_named_with_its_field(
    error: StoreError, said: str, store: Store, tmp_path: Path
):
    def refuse(_url: str) -> Store:
        raise error

    with pytest.raises(SourceError) as told:
        fetch_files(store, "uid/run-1", BOTH, tmp_path, refuse)
    assert str(told.value).startswith(f"spec.application.file: {said}")
    assert told.value.reason == error.reason
