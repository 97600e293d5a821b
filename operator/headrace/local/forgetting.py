"""`headrace dev --fresh`: the job begins anew, as after its deletion with all its checkpoints."""

from __future__ import annotations

import contextlib
import shutil

from headrace.local.layout import Layout
from headrace.local.processes import wait_for_orphans
from headrace_jobs.store import LINEAGES, StoreError, open_store, remove_runs
from headrace_jobs.store.savepoints import SAVEPOINTS

# Savepoints are what one takes so as not to lose it. How far lineages went is what a restore goes by.
_KEPT = (SAVEPOINTS, LINEAGES)


def forget(layout: Layout) -> None:
    """Never under the feet of a driver that an earlier, killed `headrace dev` left draining."""
    wait_for_orphans(layout)
    shutil.rmtree(layout.runs, ignore_errors=True)
    store = open_store(str(layout.store_root))
    for lineage in layout.store_root.glob("*/*/*"):
        if lineage.name in _KEPT:
            continue
        # What cannot be read is no reason to keep it: this is also the way out of a broken checkpoint.
        with contextlib.suppress(StoreError):
            remove_runs(store, lineage.relative_to(layout.store_root).as_posix())
        shutil.rmtree(lineage, ignore_errors=True)
    for path in (layout.streamjob, layout.restore):
        path.unlink(missing_ok=True)
