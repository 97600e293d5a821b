"""The application's files, from S3 into the driver's pod: pinned by the first attempt of a run.

Whatever changes at their addresses later, another attempt of the run gets the same bytes. `pinned.json` is
the moment at which that is decided; before it nothing has run, and a file that was replaced meanwhile is
simply fetched anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace_jobs.store import Store, StoreError
from headrace_jobs.store.errors import NoBucketError, NoRightsError, NotFoundError


@dataclass(frozen=True)
class Source:
    field: str
    """Of the manifest, for messages: spec.application.pyFiles[0]."""

    place: str
    """Where it goes, below the directory that the driver finds it in."""

    url: str

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


class SourceError(StoreError):
    """A file of the application cannot be had."""

    def __init__(self, source: Source, error: StoreError) -> None:
        super().__init__(f"{source.field}: {_what_to_do(source, error)}")
        self.reason = error.reason


def fetch_files(
    store: Store, run: str, sources: Sequence[Source], target: Path, open_source: Callable[[str], Store]
) -> dict[str, str]:
    """Puts every file into its place below `target`; what each of them is, by its sha256."""
    code = f"{run}/_code"
    pinned = _pinned(store, code)
    if pinned is None:
        fresh = {source.place: _fetch(store, code, source, target, open_source) for source in sources}
        store.put_if_absent(f"{code}/pinned.json", json.dumps({"files": fresh}).encode())
        # Ours, or that of a rival who was quicker.
        pinned = _pinned(store, code)
        assert pinned is not None  # somebody has put it, and nobody removes it
    for source in sources:
        _place(store, code, source, pinned, target)
    return {source.place: pinned[source.place] for source in sources}


def _pinned(store: Store, code: str) -> dict[str, str] | None:
    try:
        return json.loads(store.get(f"{code}/pinned.json"))["files"]
    except NotFoundError:
        return None


def _fetch(store: Store, code: str, source: Source, target: Path, open_source: Callable[[str], Store]) -> str:
    path = _path(target, source)
    bucket, _, key = source.url.removeprefix("s3://").partition("/")
    try:
        open_source(f"s3://{bucket}").download(key, path)
    except StoreError as error:
        raise SourceError(source, error) from error
    digest = _sha256(path)
    store.upload_if_absent(f"{code}/{digest}/{source.name}", path)
    return digest


def _place(store: Store, code: str, source: Source, pinned: dict[str, str], target: Path) -> None:
    path, digest = _path(target, source), pinned[source.place]
    if not path.exists() or _sha256(path) != digest:
        store.download(f"{code}/{digest}/{source.name}", path)
    if _sha256(path) != digest:
        raise StoreError(f"{store.url}/{code}/{digest}/{source.name} is not what was kept: was it replaced?")
    # The driver is another user.
    path.chmod(0o644)


def _path(target: Path, source: Source) -> Path:
    path = target / source.place
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _what_to_do(source: Source, error: StoreError) -> str:
    match error:
        case NotFoundError():
            return f"{source.url} does not exist: upload it, or correct the field"
        case NoBucketError():
            return f"there is no bucket for {source.url}: create it, or correct the field"
        case NoRightsError():
            return (
                f"not allowed to read {source.url}: give the job's credentials s3:GetObject there. S3 says "
                "the same of a file that does not exist to those who may not list its bucket"
            )
    return f"{source.url} cannot be read: {error}"
