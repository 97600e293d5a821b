"""Making one tree of objects equal to another: what differs is copied, what does not belong is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headrace_jobs.store.interface import Copy, Entry, Store

Copier = Callable[[Sequence[Copy]], None]


@dataclass(frozen=True)
class Wanted:
    """One object of the target: a copy of its source, or the content that is written instead."""

    source: Entry
    target: str
    content: bytes | None = None
    immutable: bool = False


def mirror(
    store: Store,
    wanted: Iterable[Wanted],
    target: str,
    copier: Copier | None = None,
    *,
    same: Callable[[Entry | None, Entry], bool] | None = None,
    existing: Iterable[Entry] | None = None,
) -> None:
    """Makes the objects below `target` exactly those that are wanted. May be repeated at any time.

    `same` says whether what lies there is a copy of its source already. `existing` is what lies there, where
    the caller has listed it.
    """
    same = same or is_copy
    wanted = list(wanted)
    there = {entry.key: entry for entry in (store.list(target) if existing is None else existing)}
    copies: list[Copy] = []
    for one in wanted:
        if one.content is not None:
            store.put(one.target, one.content)
        elif not same(there.get(one.target), one.source):
            copies.append(Copy(one.source, one.target, one.immutable))
    (copier or store.copy_many)(copies)
    # Left by an earlier, broken-off try: the source has purged them since.
    store.delete_many(there.keys() - {one.target for one in wanted})


def is_equal(existing: Entry | None, source: Entry) -> bool:
    """By content alone: what lies there may be the copy of something else."""
    return existing is not None and (existing.size, existing.etag) == (source.size, source.etag)


def is_copy(existing: Entry | None, source: Entry) -> bool:
    if existing is None or existing.size != source.size:
        return False
    # Encryption with KMS gives equal content different etags. A copy made strictly after the source was
    # last written is a copy of it; S3 lists whole seconds, so equal times prove nothing.
    return existing.etag == source.etag or existing.modified > source.modified
