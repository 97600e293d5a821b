"""Whether the objects of a savepoint lie where its manifest says, as it says."""

from __future__ import annotations

from headrace_jobs.store.interface import Entry, Store
from headrace_jobs.store.savepoints.manifest import Manifest

_SHOWN = 5


def was_moved(store: Store, savepoint: str, manifest: Manifest) -> bool:
    return f"{store.url}/{savepoint}" != manifest.url


def lying(store: Store, savepoint: str, manifest: Manifest) -> dict[str, Entry]:
    """What is there, by the manifest's keys."""
    root = f"{savepoint}/{manifest.data}/"
    return {entry.key.removeprefix(root): entry for entry in store.list(root)}


def object_problems(manifest: Manifest, found: dict[str, Entry], *, moved: bool) -> list[str]:
    """Whoever moved a savepoint may have given everything other etags: then sizes must do."""
    problems: list[str] = []
    for one in manifest.objects:
        entry = found.get(one.key)
        if entry is None:
            problems.append(f"{one.key} is missing")
        elif entry.size != one.size:
            problems.append(f"{one.key} has {entry.size} bytes instead of {one.size}")
        elif entry.etag != one.etag and not moved:
            problems.append(f"{one.key} was altered")
    surplus = found.keys() - {one.key for one in manifest.objects}
    return problems + [f"{key} does not belong to it" for key in sorted(surplus)]


def in_a_sentence(problems: list[str]) -> str:
    more = f", and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return "; ".join(problems[:_SHOWN]) + more
