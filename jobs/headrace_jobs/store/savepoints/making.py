"""One try to make a savepoint, taken or imported: under a claim of its own, in a directory of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from headrace_jobs.store.errors import SavepointError, StoreError
from headrace_jobs.store.interface import Store
from headrace_jobs.store.savepoints.claims import claim, give_up
from headrace_jobs.store.savepoints.manifest import MANIFEST, Manifest, encode, find_manifest


@dataclass(frozen=True)
class Making:
    store: Store
    savepoint: str
    number: int
    owner: str

    @property
    def data(self) -> str:
        return f"data-{self.number}"

    @property
    def root(self) -> str:
        return f"{self.savepoint}/{self.data}/"

    @property
    def url(self) -> str:
        return f"{self.store.url}/{self.savepoint}"


def make_savepoint(store: Store, savepoint: str, owner: str, copy: Callable[[Making], Manifest]) -> Manifest:
    """`copy` makes it and says what it is. Repeated by the same owner, it answers with what there is."""
    number = claim(store, savepoint, owner)
    if number is None:
        done = find_manifest(store, savepoint)
        assert done is not None, "claim() found it"
        return done
    making = Making(store, savepoint, number, owner)
    try:
        manifest = copy(making)
    except StoreError:
        # A full disk above all wants this back. What cannot be removed now, the collector removes.
        with contextlib.suppress(StoreError):
            store.delete_tree(making.root.rstrip("/"))
            give_up(store, savepoint, number, owner)
            other = find_manifest(store, savepoint)
            if other is not None:
                return other  # another copier of the same owner was faster, and swept our copy away
        raise
    return _publish(making, manifest)


def _publish(making: Making, manifest: Manifest) -> Manifest:
    """The one step that makes it a savepoint. Of several copiers one wins; the others clean up after them."""
    store, savepoint = making.store, making.savepoint
    won = store.put_if_absent(f"{savepoint}/{MANIFEST}", encode(manifest))
    winner = manifest if won else find_manifest(store, savepoint)
    if not won:
        with contextlib.suppress(StoreError):
            give_up(store, savepoint, making.number, making.owner)
    for other in store.children(savepoint):
        if other.startswith("data-") and (winner is None or other.rstrip("/") != winner.data):
            with contextlib.suppress(StoreError):
                store.delete_tree(f"{savepoint}/{other.rstrip('/')}")
    if winner is None:
        raise SavepointError(f"{making.url} was removed while it was copied: take another one")
    return winner
