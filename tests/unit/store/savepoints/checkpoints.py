"""Checkpoints as Spark writes them (state format v2), small and without Spark; and stores that fail."""

from __future__ import annotations

import io
import json
import struct
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace_jobs.store import Copy, Entry, Store
from headrace_jobs.store.checksums import crc32c
from headrace_jobs.store.directory import DirectoryStore
from headrace_jobs.store.savepoints import About, Manifest, take_savepoint

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
HERE = "_savepoints/s1"
CONF = {
    "spark.sql.streaming.stateStore.providerClass": "org.example.RocksDBStateStoreProvider",
    "spark.sql.shuffle.partitions": "2",
}


def take(store: Store, savepoint: str = HERE, **changes: Any) -> Manifest:
    about = About(owner=changes.pop("owner", "uid-1"), **changes.pop("about", {}))
    run = changes.pop("run", 1)
    return take_savepoint(store, run=run, savepoint=savepoint, about=about, now=NOW, **changes)


@dataclass(kw_only=True)
class FakeQuery:
    """One query's checkpoint, batch by batch."""

    store: Store
    run: str = "run-1"
    name: str = "orders"
    lineage: str = "q-1"
    format_version: int = 2
    partitions: int = 2
    begun: int = -1
    committed: int = -1

    def __post_init__(self) -> None:
        self.put("metadata", json.dumps({"id": self.lineage}).encode())

    def put(self, key: str, content: bytes) -> None:
        self.store.put(f"{self.run}/queries/{self.name}/{key}", content)

    def delete(self, *keys: str) -> None:
        self.store.delete_many(f"{self.run}/queries/{self.name}/{key}" for key in keys)

    def id_of(self, version: int, partition: int, attempt: int = 0) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.lineage} {version} {partition} {attempt}"))

    def file(self, version: int, partition: int, kind: str, attempt: int = 0) -> str:
        suffix = f"_{self.id_of(version, partition, attempt)}" if self.format_version == 2 else ""
        return f"state/0/{partition}/{version}{suffix}.{kind}"

    def begin(self) -> None:
        self.begun += 1
        self.put(f"sources/0/{self.begun}", b"v1\n{}")
        metadata = json.dumps({"batchWatermarkMs": self.begun, "conf": CONF})
        self.put(f"offsets/{self.begun}", f'v1\n{metadata}\n{{"logOffset":{self.begun}}}'.encode())

    def write_state(self, attempt: int = 0) -> None:
        for partition in range(self.partitions):
            key = self.file(self.begun + 1, partition, "changelog", attempt)
            self.put_summed(key, b"changes of %d" % (self.begun + 1))

    def commit(self) -> None:
        version = self.begun + 1
        ids = {"0": [[self.id_of(version, partition)] for partition in range(self.partitions)]}
        body: dict[str, object] = {"nextBatchWatermarkMs": version * 1000}
        if self.format_version == 2:
            body["stateUniqueIds"] = ids
        self.put(f"commits/{self.begun}", f"v{self.format_version}\n{json.dumps(body)}".encode())
        self.committed = self.begun

    def snapshot(self, version: int, attempt: int = 0, content: bytes = b"sst") -> None:
        for partition in range(self.partitions):
            sst = f"{version:06}-{self.id_of(version, partition, attempt)}.sst"
            self.put(f"state/0/{partition}/SSTs/{sst}", content)
            archive = io.BytesIO()
            with zipfile.ZipFile(archive, "w") as zipped:
                listed = {"sstFiles": [{"localFileName": "1.sst", "dfsSstFileName": sst, "sizeBytes": 3}]}
                zipped.writestr("metadata", "v1\n" + json.dumps(listed))
            self.put_summed(self.file(version, partition, "zip", attempt), archive.getvalue())

    def put_summed(self, key: str, content: bytes) -> None:
        """Spark keeps the checksum as a Java int, and only in the newer format."""
        self.put(key, content)
        if self.format_version == 2:
            (value,) = struct.unpack("<i", struct.pack("<I", crc32c([content])))
            self.put(f"{key}.crc", json.dumps({"algorithm": "CRC32C", "value": value}).encode())

    def batches(self, number: int) -> FakeQuery:
        for _ in range(number):
            self.begin()
            self.write_state()
            self.commit()
        return self

    def transform_with_state(self) -> None:
        """Metadata with the full path of a schema, as Spark writes it: file:/x, s3a://x."""
        schema = "state/0/_stateSchema/default/0_schema"
        self.put(schema, b"schema")
        root = self.store.url.replace("file://", "file:").replace("s3://", "s3a://")
        path = f"{root}/{self.run}/queries/{self.name}/{schema}"
        self.put(
            "state/0/_metadata/v2/0",
            b"v2\n" + json.dumps({"stateStoreInfo": [{"stateSchemaFilePaths": [path]}]}).encode(),
        )


class Killed(BaseException):
    """The process is gone: nothing after this happens."""


@dataclass
class Faults:
    """Counts the steps of a store, and does something at one of them."""

    at: int | None = None
    act: Callable[[str, str], None] | None = None
    steps: int = 0
    dead: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def step(self, operation: str, key: str) -> None:
        with self.lock:
            if self.dead:
                raise Killed
            number, self.steps = self.steps, self.steps + 1
        if number == self.at and self.act is not None:
            self.act(operation, key)

    def kill(self, *_: str) -> None:
        self.dead = True
        raise Killed


class FaultyStore(DirectoryStore):
    def __init__(self, root: Path, faults: Faults) -> None:
        super().__init__(root)
        self.faults = faults

    def list(self, prefix: str = "") -> Iterator[Entry]:
        self.faults.step("list", prefix)
        yield from super().list(prefix)

    def children(self, prefix: str) -> Sequence[str]:
        self.faults.step("list", prefix)
        return super().children(prefix)

    def get(self, key: str) -> bytes:
        self.faults.step("read", key)
        return super().get(key)

    def put(self, key: str, content: bytes) -> None:
        self.faults.step("write", key)
        super().put(key, content)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        self.faults.step("write", key)
        return super().put_if_absent(key, content)

    def copy(self, copy: Copy) -> None:
        self.faults.step("copy", copy.source.key)
        super().copy(copy)

    def delete_many(self, keys: object) -> None:
        self.faults.step("delete", "")
        super().delete_many(keys)  # type: ignore[arg-type]

    def delete_tree(self, prefix: str) -> None:
        self.faults.step("delete", prefix)
        super().delete_tree(prefix)
