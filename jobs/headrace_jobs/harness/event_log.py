"""Spark's event log in the store: Spark wants its directory to be there, and nobody else removes old ones."""

from __future__ import annotations

from collections import defaultdict

from headrace_jobs.harness.conf import EVENT_LOGS
from headrace_jobs.harness.control import StoreUnavailable
from headrace_jobs.harness.run_store import store_of
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.store import Store, StoreError, run_directory

EVENT_LOGS_KEPT = 3
_LOG_PREFIX = "eventlog_v2_"


def prepare_event_log(run_file: RunFile) -> None:
    """Before the JVM starts. Raises StoreUnavailable."""
    try:
        store = store_of(run_file)
        place = f"{run_directory(run_file.run)}/{EVENT_LOGS}"
        # S3 has no empty directories. Spark's history server passes over names with a dot.
        store.put(f"{place}/.keep", b"")
        remove_old_event_logs(store, place)
    except StoreError as error:
        raise StoreUnavailable(str(error)) from error


def remove_old_event_logs(store: Store, place: str) -> None:
    """Room for one more: each attempt begins a log of its own."""
    logs: dict[str, list[str]] = defaultdict(list)
    newest: dict[str, float] = defaultdict(float)
    for entry in store.list(f"{place}/{_LOG_PREFIX}"):
        name = entry.key.removeprefix(f"{place}/").partition("/")[0]
        logs[name].append(entry.key)
        newest[name] = max(newest[name], entry.modified)
    by_age = sorted(logs, key=lambda name: newest[name])
    store.delete_many(key for name in by_age[: -(EVENT_LOGS_KEPT - 1)] for key in logs[name])
