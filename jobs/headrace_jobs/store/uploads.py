"""Writes in parts that nobody will end: of a copier, or an executor, that was killed in the middle of one.

No listing shows them, and they are paid for until somebody aborts them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from headrace_jobs.store.interface import OpenUpload, Store


def broken_off_uploads(store: Store, *, older_than: timedelta, now: datetime) -> list[OpenUpload]:
    """Those that have shown no sign of life for so long. The limit must be longer than one part may take."""
    limit = now.timestamp() - older_than.total_seconds()
    return [one for one in store.open_uploads() if one.last_sign < limit]


def abort_broken_off_uploads(store: Store, *, older_than: timedelta, now: datetime) -> list[OpenUpload]:
    """Aborts them and says which they were."""
    found = broken_off_uploads(store, older_than=older_than, now=now)
    for upload in found:
        store.abort_upload(upload)
    return found
