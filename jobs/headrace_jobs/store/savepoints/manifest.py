"""The manifest of a savepoint: written last, so that a savepoint without it is none.

    <savepoint>/_claims/<k>        who copies; a later claim is another try, with a directory of its own
    <savepoint>/data-<k>/queries/  the copy made under claim k
    <savepoint>/manifest.json      says which of them counts; made once, by a conditional write
    <savepoint>/verified.json      how far it was checked since

`manifest.json` may also be a tombstone: then the savepoint is being removed, and nobody can finish it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace_jobs.store.errors import NotFoundError, SavepointDamagedError, SavepointError
from headrace_jobs.store.interface import Entry, Store

FORMAT = 1
MANIFEST = "manifest.json"
CLAIMS = "_claims"


@dataclass(frozen=True, kw_only=True)
class SavedQuery:
    """One query in a savepoint."""

    name: str
    lineage: str
    batch: int
    """The last committed batch; -1 if there was none yet."""
    pending: bool
    watermark_ms: int | None
    offsets: dict[str, Any]
    """Of each source, by position or name, after that batch."""
    provider: str | None
    partitions: int | None
    state_format: int | None
    sink: str | None = None
    """What the query writes to, as Spark names it (`FileSink[…]`); None if nobody told."""

    @property
    def newest_offsets(self) -> int:
        return self.batch + self.pending


@dataclass(frozen=True, kw_only=True)
class SavedObject:
    key: str
    """Relative to the directory of the copy."""
    size: int
    etag: str


@dataclass(frozen=True, kw_only=True)
class About:
    """What only the caller knows."""

    owner: str
    """Whose savepoint this is, for ever: the uid of the StreamSavepoint, say. Another owner is refused."""
    job: str = ""
    cause: str = "Manual"
    spec_digest: str | None = None
    spark_version: str | None = None
    """For runs whose driver did not note it in its claim."""
    sinks: dict[str, str] = field(default_factory=dict)
    """By query: the description of its sink, from Spark's progress."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    owner: str
    job: str
    cause: str
    run: str
    path: str
    """Of the savepoint, from the same root as `run`."""
    url: str
    """Where the savepoint was made. Metadata in it names this place; elsewhere it was moved."""
    data: str
    taken_at: str
    spec_digest: str | None
    spark_version: str | None
    queries: tuple[SavedQuery, ...]
    objects: tuple[SavedObject, ...]

    @property
    def size_bytes(self) -> int:
        return sum(one.size for one in self.objects)

    def query(self, name: str) -> SavedQuery:
        return next(query for query in self.queries if query.name == name)

    def summary(self) -> dict[str, Any]:
        """Without the list of objects."""
        told = asdict(self)
        told["objects"], told["bytes"] = len(self.objects), self.size_bytes
        return told


def encode(manifest: Manifest) -> bytes:
    body = {"format": FORMAT, **asdict(manifest)}
    return json.dumps({**body, "digest": _digest(body)}, indent=1).encode()


def decode(where: str, content: bytes) -> Manifest | None:
    """None for a tombstone."""
    try:
        body = json.loads(content)
        if body.get("removed"):
            return None
        if body["format"] != FORMAT:
            raise SavepointError(
                f"{where} has format {body['format']}, this version of Headrace reads format {FORMAT}: "
                "use the version that wrote it, or a newer one"
            )
        if body.pop("digest") != _digest(body):
            raise SavepointDamagedError(
                f"{where} was altered: its digest does not fit. Use another savepoint"
            )
        del body["format"]
        body["queries"] = tuple(SavedQuery(**query) for query in body["queries"])
        body["objects"] = tuple(SavedObject(**one) for one in body["objects"])
        return Manifest(**body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SavepointDamagedError(
            f"{where} is not a manifest ({error}): it was cut off or altered. Use another savepoint"
        ) from None


def tombstone(why: str, *, finished_by: str | None = None) -> bytes:
    return json.dumps({"removed": True, "why": why, "data": finished_by}).encode()


def finished_copy(content: bytes) -> str | None:
    """Of a manifest, or of the tombstone in its place: the directory of the copy that was made to the end."""
    try:
        return json.loads(content).get("data")
    except (ValueError, AttributeError):
        return None


def find_manifest(store: Store, savepoint: str) -> Manifest | None:
    """None where there is none, or where it has been removed."""
    key = f"{savepoint}/{MANIFEST}"
    try:
        return decode(f"{store.url}/{key}", store.get(key))
    except NotFoundError:
        return None


def has_manifest(store: Store, path: str) -> bool:
    """Whether this is, or was, a savepoint. What it says of itself is another question."""
    return MANIFEST in store.children(path)


def read_manifest(store: Store, savepoint: str) -> Manifest:
    found = find_manifest(store, savepoint)
    if found is None:
        raise SavepointError(
            f"there is no savepoint at {store.url}/{savepoint}: it has no manifest, so it was never "
            "finished, or it was removed. List those there are"
        )
    return found


def saved(entry: Entry, root: str) -> SavedObject:
    return SavedObject(key=entry.key.removeprefix(root), size=entry.size, etag=entry.etag)


def _digest(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
