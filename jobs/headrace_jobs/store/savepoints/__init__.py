"""Savepoints: copies of a run's checkpoints at committed batches. See docs/concepts/savepoints.md."""

from headrace_jobs.store.savepoints.adopt import adopt_checkpoint
from headrace_jobs.store.savepoints.importing import import_savepoint
from headrace_jobs.store.savepoints.inventory import (
    SAVEPOINTS,
    Found,
    Orphan,
    collect,
    delete_savepoint,
    find_savepoints,
    list_savepoints,
    orphans,
)
from headrace_jobs.store.savepoints.lineage import Wish
from headrace_jobs.store.savepoints.manifest import (
    About,
    Manifest,
    SavedObject,
    SavedQuery,
    find_manifest,
    has_manifest,
    read_manifest,
)
from headrace_jobs.store.savepoints.pacing import Pace
from headrace_jobs.store.savepoints.restore import restore_savepoint
from headrace_jobs.store.savepoints.seeding import seed_from
from headrace_jobs.store.savepoints.take import take_savepoint
from headrace_jobs.store.savepoints.transfer import Progress
from headrace_jobs.store.savepoints.verify import Verification, record, recorded, verify_savepoint

__all__ = [
    "SAVEPOINTS",
    "About",
    "Found",
    "Manifest",
    "Orphan",
    "Pace",
    "Progress",
    "SavedObject",
    "SavedQuery",
    "Verification",
    "Wish",
    "adopt_checkpoint",
    "collect",
    "delete_savepoint",
    "find_manifest",
    "find_savepoints",
    "has_manifest",
    "import_savepoint",
    "list_savepoints",
    "orphans",
    "read_manifest",
    "record",
    "recorded",
    "restore_savepoint",
    "seed_from",
    "take_savepoint",
    "verify_savepoint",
]
