"""Puts the end of a failed attempt's log into the store, beside the run: `run-<n>/_logs/attempt-<k>.log`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from headrace_jobs.harness.run_store import store_of
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.store import Store, StoreError, run_directory
from headrace_jobs.store.runs import Run

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
            store = store_of(run_file)
            store.put(log_key(run_file.directory, run_file.attempt), content)
            stored.set()
            remove_old_logs(store, run_file.directory, run_file.attempt)

    within(seconds, put)
    key = log_key(run_file.directory, run_file.attempt)
    return f"{run_file.store.rstrip('/')}/{key}" if stored.is_set() else None


def within(seconds: float, work: Callable[[], None]) -> None:
    """Does it, and does not wait for it any longer than this."""
    worker = threading.Thread(target=work, name="headrace-last-work", daemon=True)
    worker.start()
    worker.join(seconds)


def log_key(run: Run, attempt: int) -> str:
    return f"{run_directory(run)}/_logs/attempt-{attempt}.log"


def remove_old_logs(store: Store, run: Run, attempt: int) -> None:
    """Those before the last few. Never a newer one: a fenced driver ends after its successor began."""
    names = store.children(f"{run_directory(run)}/_logs")
    numbers = sorted(int(number) for name in names if (number := _number(name)).isdecimal())
    older = [number for number in numbers if number <= attempt]
    with contextlib.suppress(StoreError):
        store.delete_many([log_key(run, number) for number in older[:-LOGS_KEPT]])


def _number(name: str) -> str:
    return name.removeprefix("attempt-").removesuffix(".log")
