"""Removing a job from the store: its runs go; its savepoints stay, and how far its lineages have gone."""

from __future__ import annotations

import posixpath
import re

from headrace_jobs.store.interface import Store
from headrace_jobs.store.lineages import reached_in, remember

# What a job keeps of its runs. Whatever else lies beside them is not ours to remove.
_OF_RUNS = re.compile(r"^((run|rehearsal)-\d+|_probe|_scaling)/$")


def remove_runs(store: Store, lineage: str) -> list[str]:
    """The directories that were removed. May be called again at any time: it goes on where it was."""
    found = [name.rstrip("/") for name in store.children(lineage) if _OF_RUNS.match(name)]
    for name in found:
        if name.startswith("run-"):  # what a rehearsal writes reaches no sink
            for reached in reached_in(store, f"{lineage}/{name}"):
                remember(store, posixpath.dirname(lineage), reached)
    for name in found:
        store.delete_tree(f"{lineage}/{name}")
    return found
