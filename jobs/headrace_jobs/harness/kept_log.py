"""Puts the end of a failed attempt's log into the store, beside the run: `run-<n>/_logs/attempt-<k>.log`."""

from __future__ import annotations

import contextlib
import threading

from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.store import Store, StoreError, open_store, run_directory
from headrace_jobs.store.s3_options import options_in

# How many attempts of a run keep their log.
LOGS_KEPT = 5
# A store that does not answer must not keep a driver that ends.
_STORE_SECONDS = 5.0


def store_log(run_file: RunFile, content: bytes, *, seconds: float = _STORE_SECONDS) -> str | None:
    """Where it lies now; None where that is not known in time."""
    stored = threading.Event()

    def put() -> None:
        # Whatever goes wrong here is less than what the driver ends with.
        with contextlib.suppress(Exception):
            store = open_store(run_file.store, options_in(run_file.spark_conf))
            store.put(log_key(run_file.run, run_file.attempt), content)
            stored.set()
            remove_old_logs(store, run_file.run, run_file.attempt)

    worker = threading.Thread(target=put, name="headrace-log", daemon=True)
    worker.start()
    worker.join(seconds)
    return (
        f"{run_file.store.rstrip('/')}/{log_key(run_file.run, run_file.attempt)}" if stored.is_set() else None
    )


def log_key(run: int, attempt: int) -> str:
    return f"{run_directory(run)}/_logs/attempt-{attempt}.log"


def remove_old_logs(store: Store, run: int, attempt: int) -> None:
    """Those before the last few. Never a newer one: a fenced driver ends after its successor began."""
    names = store.children(f"{run_directory(run)}/_logs")
    numbers = sorted(int(number) for name in names if (number := _number(name)).isdecimal())
    older = [number for number in numbers if number <= attempt]
    with contextlib.suppress(StoreError):
        store.delete_many([log_key(run, number) for number in older[:-LOGS_KEPT]])


def _number(name: str) -> str:
    return name.removeprefix("attempt-").removesuffix(".log")
