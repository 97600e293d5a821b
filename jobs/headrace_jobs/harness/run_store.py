"""The store of the run, opened once for all who ask: a client of S3 takes a tenth of a second to make, which
counts in a handover, where nobody writes meanwhile."""

from __future__ import annotations

import functools

from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.store import Store, open_store
from headrace_jobs.store.s3_options import S3Options, options_in


def store_of(run_file: RunFile) -> Store:
    """From any thread. Opening does no I/O."""
    return _opened(run_file.store, options_in(run_file.spark_conf))


@functools.lru_cache(maxsize=4)
def _opened(url: str, options: S3Options) -> Store:
    return open_store(url, options)
