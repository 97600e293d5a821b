"""Checkpoint stores: a directory or S3, behind one small interface."""

from headrace_jobs.store.errors import StoreError
from headrace_jobs.store.interface import Copy, Entry, Store
from headrace_jobs.store.lineages import LINEAGES
from headrace_jobs.store.opening import directory_url, local_directory, open_store
from headrace_jobs.store.remove import remove_runs
from headrace_jobs.store.rollback import seed_after_trial
from headrace_jobs.store.runs import (
    LastBatches,
    claim_attempt,
    last_batches,
    newest_claim,
    query_names,
    read_claim,
    run_directory,
)
from headrace_jobs.store.seed import Seed, SeedError, is_seeded, newest_run, read_seed, seed_run

__all__ = [
    "LINEAGES",
    "Copy",
    "Entry",
    "LastBatches",
    "Seed",
    "SeedError",
    "Store",
    "StoreError",
    "claim_attempt",
    "directory_url",
    "is_seeded",
    "last_batches",
    "local_directory",
    "newest_claim",
    "newest_run",
    "open_store",
    "query_names",
    "read_claim",
    "read_seed",
    "remove_runs",
    "run_directory",
    "seed_after_trial",
    "seed_run",
]
