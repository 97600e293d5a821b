"""What Headrace needs of a place that keeps checkpoints. Keys are relative to the store's root."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# S3 takes no smaller parts than 5 MiB, and no more than 10,000 of them.
PIECE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Entry:
    """One object. Two objects of one store with equal size and etag have equal content."""

    key: str
    size: int
    etag: str
    modified: float
    """Seconds since the epoch, by the store's clock."""


@dataclass(frozen=True)
class Copy:
    """One copy to make: the object as it was listed, and where it goes in the same store."""

    source: Entry
    target: str
    immutable: bool = False
    """Nobody ever writes into the source: a store that can may let both names share one content."""


@dataclass(frozen=True)
class OpenUpload:
    """An object that somebody began to write in parts and has not ended: no object yet, and paid for."""

    key: str
    id: str
    last_sign: float
    """Of life: when it was begun, or its newest part was written. Seconds since the epoch, as above."""
    size: int
    """Of the parts that are there."""


class Store(Protocol):
    @property
    def url(self) -> str:
        """The root, without a slash at the end: file:///data/jobs or s3://bucket/prefix."""
        ...

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """All objects whose keys begin with the prefix, in key order. Temporary files are not objects."""
        ...

    def children(self, prefix: str) -> Sequence[str]:
        """The names directly below `prefix/`, sorted; those of directories end in a slash."""
        ...

    def get(self, key: str) -> bytes:
        """Raises NotFoundError."""
        ...

    def put(self, key: str, content: bytes) -> None:
        """Creates or replaces, atomically."""
        ...

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Atomic among any number of writers: exactly one of them is told True."""
        ...

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        """The content of an object as it was listed, none larger than PIECE_BYTES.

        Raises SourceChangedError, perhaps after some of them.
        """
        ...

    def put_pieces(self, key: str, pieces: Iterable[bytes]) -> None:
        """As put, with two of them in memory at most. An error out of `pieces` leaves what was there.

        All but the last are of PIECE_BYTES, or there is only one.
        """
        ...

    def download(self, key: str, path: Path) -> None:
        """Into a file, however large the object is. Raises NotFoundError."""
        ...

    def upload_if_absent(self, key: str, path: Path) -> bool:
        """As put_if_absent, from a file."""
        ...

    def copy(self, copy: Copy) -> None:
        """Raises SourceChangedError when the source is not what was listed."""
        ...

    def copy_many(self, copies: Iterable[Copy]) -> None:
        """In parallel. The first error ends it; what is done stays done."""
        ...

    def delete_many(self, keys: Iterable[str]) -> None:
        """In batches. Keys that are not there are fine."""
        ...

    def delete_tree(self, prefix: str) -> None:
        """Everything below `prefix/`, also what is not listed (markers, leftovers of killed writers)."""
        ...

    def open_uploads(self) -> Sequence[OpenUpload]:
        """All of this store. None where objects are not written in parts."""
        ...

    def abort_upload(self, upload: OpenUpload) -> None:
        """Gives its parts back, and its writer an error. One that has ended meanwhile is fine."""
        ...

    def probe(self) -> None:
        """Proves that this place can be listed, written and read, and that put_if_absent is atomic."""
        ...
