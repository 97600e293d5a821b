"""The most that store work may ask of a store, so that whoever shares it hardly notices.

A server's work is in its requests as much as in their bytes: S3 is priced and throttled by request, and a
checkpoint is thousands of small objects. So a request counts as at least REQUEST_BYTES of the rate, whatever
it carries.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from headrace_jobs.store.interface import Copy, Entry, OpenUpload, Store

REQUEST_BYTES = 1024 * 1024
# As many as S3 lists, and deletes, at once.
_KEYS_PER_REQUEST = 1000
# A wait is cut into pieces of this length: who waits must still be told of, and ended in time.
_LONGEST_SLEEP_SECONDS = 1.0


@dataclass
class Pace:
    """The most bytes and requests per second; None is no limit. One pace may serve several threads."""

    bytes_per_second: float | None = None
    objects_per_second: float | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_limited(self) -> bool:
        return bool(self.bytes_per_second or self.objects_per_second)

    def wait_for(self, size: int, meanwhile: Callable[[], None] | None = None) -> None:
        """Returns when a request for so many bytes may be made: when those before it are paid for.

        Nothing is saved up in a pause, so there is no burst after it. `meanwhile` is called about every
        second of a longer wait, and may end it by an exception.
        """
        cost = self._seconds(size)
        if cost == 0.0:
            return
        with self._lock:
            begin = max(self._free_at, self.clock())
            self._free_at = begin + cost
        while (delay := begin - self.clock()) > 0:
            self.sleep(min(delay, _LONGEST_SLEEP_SECONDS))
            if meanwhile is not None:
                meanwhile()

    def _seconds(self, size: int) -> float:
        return max(
            max(size, REQUEST_BYTES) / self.bytes_per_second if self.bytes_per_second else 0.0,
            1 / self.objects_per_second if self.objects_per_second else 0.0,
        )


def paced(store: Store, pace: Pace | None) -> Store:
    """The store, with every request at this pace but the copies: those are paid for where they are begun."""
    return _PacedStore(store, pace) if pace is not None and pace.is_limited else store


class _PacedStore:
    def __init__(self, store: Store, pace: Pace) -> None:
        self._store = store
        self._pace = pace

    @property
    def url(self) -> str:
        return self._store.url

    def list(self, prefix: str = "") -> Iterator[Entry]:
        entries = self._store.list(prefix)
        while True:
            self._wait()
            page = list(islice(entries, _KEYS_PER_REQUEST))
            yield from page
            if len(page) < _KEYS_PER_REQUEST:
                return

    def children(self, prefix: str) -> Sequence[str]:
        self._wait()
        return self._store.children(prefix)

    def get(self, key: str) -> bytes:
        self._wait()
        return self._store.get(key)

    def put(self, key: str, content: bytes) -> None:
        self._wait(len(content))
        self._store.put(key, content)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        self._wait(len(content))
        return self._store.put_if_absent(key, content)

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        return self._store.pieces(entry)

    def put_pieces(self, key: str, pieces: Iterable[bytes]) -> None:
        self._store.put_pieces(key, pieces)

    def download(self, key: str, path: Path) -> None:
        self._wait()
        self._store.download(key, path)

    def upload_if_absent(self, key: str, path: Path) -> bool:
        self._wait(path.stat().st_size)
        return self._store.upload_if_absent(key, path)

    def copy(self, copy: Copy) -> None:
        self._store.copy(copy)

    def copy_many(self, copies: Iterable[Copy]) -> None:
        def begun() -> Iterator[Copy]:
            for one in copies:
                self._wait(one.source.size)
                yield one

        self._store.copy_many(begun())

    def delete_many(self, keys: Iterable[str]) -> None:
        remaining = iter(keys)
        while batch := list(islice(remaining, _KEYS_PER_REQUEST)):
            self._wait()
            self._store.delete_many(batch)

    def delete_tree(self, prefix: str) -> None:
        self._wait()
        self._store.delete_tree(prefix)

    def open_uploads(self) -> Sequence[OpenUpload]:
        self._wait()
        return self._store.open_uploads()

    def abort_upload(self, upload: OpenUpload) -> None:
        self._wait()
        self._store.abort_upload(upload)

    def probe(self) -> None:
        self._store.probe()

    def _wait(self, size: int = 0) -> None:
        self._pace.wait_for(size)
