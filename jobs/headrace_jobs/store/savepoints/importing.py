"""Bringing a savepoint from another place, whole and with its manifest last."""

from __future__ import annotations

from headrace_jobs.store.errors import SavepointDamagedError, SavepointError
from headrace_jobs.store.interface import Store
from headrace_jobs.store.savepoints.claims import check_name
from headrace_jobs.store.savepoints.manifest import MANIFEST, Manifest, encode, read_manifest
from headrace_jobs.store.savepoints.objects import in_a_sentence, lying, object_problems, was_moved
from headrace_jobs.store.savepoints.restore import read


def import_savepoint(source: Store, path: str, store: Store, savepoint: str) -> Manifest:
    """A copy of it in `store`; what is copied stays where it is. Contents pass through this process.

    Broken off, it can be repeated: what lies there without a manifest is no savepoint.
    """
    check_name(savepoint)
    manifest = read_manifest(source, path)
    found = lying(source, path, manifest)
    problems = object_problems(manifest, found, moved=was_moved(source, path, manifest))
    if problems:
        raise SavepointDamagedError(
            f"{source.url}/{path} cannot be imported: {in_a_sentence(problems)}. Use another savepoint"
        )
    if MANIFEST in store.children(savepoint):
        raise SavepointError(f"there is a savepoint at {store.url}/{savepoint}: choose another name")
    for one in manifest.objects:
        store.put(f"{savepoint}/{manifest.data}/{one.key}", read(source, found[one.key]))
    if not store.put_if_absent(f"{savepoint}/{MANIFEST}", encode(manifest)):
        raise SavepointError(f"somebody else has made {store.url}/{savepoint} meanwhile: choose another name")
    return manifest
