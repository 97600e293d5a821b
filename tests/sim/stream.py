"""A query in small: a checkpoint as Spark keeps it, a source that never ends, a sink that knows its batches.

Batches of different versions have different sizes, so that a batch number that comes again with other bounds
loses rows in the sink, as it would in earnest. Copies are made by the real code of the store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from headrace_jobs.store.errors import NotFoundError
from headrace_jobs.store.interface import Copy, Entry
from headrace_jobs.store.logs import read_offsets
from headrace_jobs.store.partitions import states_of, undo_unfinished
from headrace_jobs.store.runs import LastBatches, last_batches

QUERY = "q"
INCOMPATIBLE = "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"


@dataclass
class MemoryStore:
    """A store of its own: objects in a dictionary."""

    objects: dict[str, bytes] = field(default_factory=dict)
    url: str = "memory://store"

    def list(self, prefix: str = "") -> Iterator[Entry]:
        for key in sorted(self.objects):
            if key.startswith(prefix):
                content = self.objects[key]
                yield Entry(key, len(content), sha256(content).hexdigest(), 0.0)

    def children(self, prefix: str) -> Sequence[str]:
        below = [key.removeprefix(f"{prefix}/") for key in self.objects if key.startswith(f"{prefix}/")]
        return sorted({name.split("/")[0] + ("/" if "/" in name else "") for name in below})

    def get(self, key: str) -> bytes:
        if key not in self.objects:
            raise NotFoundError(key)
        return self.objects[key]

    def put(self, key: str, content: bytes) -> None:
        self.objects[key] = content

    def put_if_absent(self, key: str, content: bytes) -> bool:
        return self.objects.setdefault(key, content) is content

    def copy(self, copy: Copy) -> None:
        self.objects[copy.target] = self.objects[copy.source.key]

    def copy_many(self, copies: Iterable[Copy]) -> None:
        for copy in copies:
            self.copy(copy)

    def delete_many(self, keys: Iterable[str]) -> None:
        for key in list(keys):
            self.objects.pop(key, None)

    def delete_tree(self, prefix: str) -> None:
        self.delete_many([key for key in self.objects if key.startswith(f"{prefix}/")])

    def download(self, key: str, path: Path) -> None:
        raise NotImplementedError

    def upload_if_absent(self, key: str, path: Path) -> bool:
        raise NotImplementedError

    def probe(self) -> None:
        return


@dataclass
class Sink:
    """De-duplicates on (lineage, batch)."""

    batches: dict[tuple[str, int], range] = field(default_factory=dict)

    def write(self, lineage: str, batch: int, rows: range) -> None:
        self.batches.setdefault((lineage, batch), rows)

    def lost(self) -> list[int]:
        there = {row for rows in self.batches.values() for row in rows}
        return [row for row in range(max(there, default=-1)) if row not in there]

    def repeated(self) -> int:
        return sum(map(len, self.batches.values())) - len(set().union(*self.batches.values()))


@dataclass
class Stream:
    store: MemoryStore = field(default_factory=MemoryStore)
    sink: Sink = field(default_factory=Sink)

    def last(self, run: str) -> LastBatches:
        return last_batches(self.store, run).get(QUERY, LastBatches(None, None))

    def begin(self, run: str) -> None:
        """As a driver does: the lineage is made once, the run is claimed."""
        if f"{self._home(run)}/metadata" not in self.store.objects:
            lineage = json.dumps({"id": f"lineage-of-{run}"}).encode()
            self.store.put(f"{self._home(run)}/metadata", lineage)
        self.store.put(f"{run}/_attempts/1", b"{}")

    def can_read(self, run: str, state_format: str) -> bool:
        """The usual format everybody can."""
        there = self.store.objects.get(f"{self._home(run)}/state/format", b"usual").decode()
        return there in ("usual", state_format)

    def split(self, run: str, partitions: int, *, until: str = "commit") -> bool:
        """As a driver does before its queries start, or the part of it that it comes to; False: it cannot."""
        undo_unfinished(self.store, run)
        for state in states_of(self.store, run):
            if not state.stateful or state.partitions == partitions:
                continue
            if state.last.pending:
                return False
            number, home = (state.last.commits or 0) + 1, self._home(run)
            self.store.put(f"{home}/offsets/{number}", _entry(partitions, self._end(run, number - 1)))
            self.store.put(f"{home}/state/0/0/{number + 1}.zip", b"")
            if until == "commit":
                self.store.put(f"{home}/commits/{number}", b"v1\n{}")
        return True

    def partitions(self, run: str) -> int | None:
        return next((state.partitions for state in states_of(self.store, run)), None)

    def batch(
        self,
        run: str,
        *,
        size: int,
        state_format: str = "usual",
        until: str = "commit",
        partitions: int = 16,
    ) -> None:
        """One batch, or the part of it that a driver comes to: `offsets`, `sink`, `commit`. `partitions` is
        what the session says: only a checkpoint without a batch listens to it."""
        last, home = self.last(run), self._home(run)
        number = 0 if last.commits is None else last.commits + 1
        start = self._end(run, number - 1)
        if last.offsets != number:  # else it is pending, and its bounds are fixed
            entry = _entry(self.partitions(run) or partitions, start + size)
            self.store.put(f"{home}/offsets/{number}", entry)
        if until == "offsets":
            return
        lineage = json.loads(self.store.get(f"{home}/metadata"))["id"]
        self.sink.write(lineage, number, range(start, self._end(run, number)))
        if until == "sink":
            return
        if _is_split(self.store.get(f"{home}/offsets/{number}"), self._before(run, number)):
            raise AssertionError("STREAMING_UNFINISHED_REPARTITION_DETECTED")
        self.store.put(f"{home}/state/format", state_format.encode())
        self.store.put(f"{home}/commits/{number}", b"v1\n{}")

    def _before(self, run: str, number: int) -> bytes | None:
        return self.store.objects.get(f"{self._home(run)}/offsets/{number - 1}")

    def _end(self, run: str, batch: int) -> int:
        if batch < 0:
            return 0
        return int(self.store.get(f"{self._home(run)}/offsets/{batch}").splitlines()[2])

    def _home(self, run: str) -> str:
        return f"{run}/queries/{QUERY}"


def _entry(partitions: int, end: int) -> bytes:
    conf = json.dumps({"conf": {"spark.sql.shuffle.partitions": str(partitions)}})
    return f"v1\n{conf}\n{end}".encode()


def _is_split(entry: bytes, before: bytes | None) -> bool:
    return before is not None and read_offsets("", entry).repartitions(read_offsets("", before))
