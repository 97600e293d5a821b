"""Bringing a savepoint from another place.

Here it is as good as one that was taken here: nothing in it names the place it came from, and it is checked
before it is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace_jobs.store.errors import (
    NotFoundError,
    SavepointDamagedError,
    SavepointError,
    SourceChangedError,
)
from headrace_jobs.store.interface import Copy, Entry, Store
from headrace_jobs.store.mirror import Wanted, is_equal, mirror
from headrace_jobs.store.savepoints.between import copier_between
from headrace_jobs.store.savepoints.making import Making, make_savepoint
from headrace_jobs.store.savepoints.manifest import Manifest, find_manifest, read_manifest, saved
from headrace_jobs.store.savepoints.objects import in_a_sentence, lying, object_problems, was_moved
from headrace_jobs.store.savepoints.restore import read
from headrace_jobs.store.savepoints.take import check_tree
from headrace_jobs.store.savepoints.transfer import paced_copy
from headrace_jobs.store.savepoints.verify import state_problems
from headrace_jobs.store.statefiles import is_state
from headrace_jobs.store.statepaths import names_paths, with_paths_moved


def import_savepoint(source: Store, path: str, store: Store, savepoint: str) -> Manifest:
    """A copy of it in `store`; what is copied stays where it is. Contents pass through this process.

    Broken off, it can be repeated: what lies there without a manifest is no savepoint. Another one cannot be
    imported under the same name.
    """
    manifest = read_manifest(source, path)
    found = lying(source, path, manifest)
    _refuse_if(source, path, object_problems(manifest, found, moved=was_moved(source, path, manifest)))
    if find_manifest(store, savepoint) is not None:
        raise SavepointError(f"there is a savepoint at {store.url}/{savepoint}: choose another name")

    def copy(making: Making) -> Manifest:
        wanted = [_wanted(source, found[one.key], manifest, making, one.key) for one in manifest.objects]

        def copier(copies: Sequence[Copy]) -> None:
            paced_copy(store, copies, copy=copier_between(source, store))

        try:
            mirror(store, wanted, making.root, copier, same=is_equal)
            entries = check_tree(store, making.root, wanted)
        except (NotFoundError, SourceChangedError) as error:
            raise SavepointDamagedError(
                f"{source.url}/{path} changed while it was imported ({error}): import it again"
            ) from None
        _refuse_if(source, path, _problems_here(making, entries, manifest))
        objects = tuple(saved(entry, making.root) for entry in entries)
        return replace(manifest, owner=making.owner, url=making.url, data=making.data, objects=objects)

    return make_savepoint(store, savepoint, f"import of {source.url}/{path}", copy)


def _wanted(source: Store, entry: Entry, manifest: Manifest, making: Making, key: str) -> Wanted:
    own, content = key.removeprefix("queries/"), None
    if names_paths(own):
        # It names the place where the savepoint was made, wherever that lies now.
        urls = f"{manifest.url}/{manifest.data}", f"{making.url}/{making.data}"
        content = with_paths_moved(read(source, entry), *urls)
    return Wanted(entry, making.root + key, content, is_state(own))


def _problems_here(making: Making, entries: Sequence[Entry], manifest: Manifest) -> list[str]:
    found: Mapping[str, Entry] = {entry.key.removeprefix(making.root): entry for entry in entries}
    return state_problems(making.store, making.root, found, manifest.queries)


def _refuse_if(source: Store, path: str, problems: list[str]) -> None:
    if problems:
        raise SavepointDamagedError(
            f"{source.url}/{path} cannot be imported: {in_a_sentence(problems)}. Use another savepoint"
        )
