"""A request to go back to a savepoint, from another terminal: what an annotation is on a cluster."""

from __future__ import annotations

import fcntl
from datetime import datetime

from headrace.local.layout import Layout, read_json, write_json


def ask_to_restore(layout: Layout, savepoint: str, *, now: datetime) -> None:
    write_json(layout.restore, {"savepoint": savepoint, "askedAt": now.isoformat()})


def asked_restore(layout: Layout) -> str | None:
    """As the planner wants it: the name, and what makes it another request than the last."""
    asked = read_json(layout.restore)
    return f"{asked['savepoint']}@{asked['askedAt']}" if asked is not None else None


def is_running(layout: Layout) -> bool:
    """Whether a `headrace dev` has the job: the kernel knows, by its lock."""
    try:
        with layout.lock.open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
