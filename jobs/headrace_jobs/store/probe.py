"""Proves that a store can do what exactly-once stands on, before a run trusts it."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from headrace_jobs.store.errors import NoConditionalPutError

if TYPE_CHECKING:
    from headrace_jobs.store.interface import Store

_RACERS = 4


def probe_conditional_put(store: Store) -> None:
    """Some servers ignore If-None-Match and answer 200 to everybody; others look first and write later."""
    key = f"_probe/{uuid.uuid4()}"
    try:
        with ThreadPoolExecutor(_RACERS) as pool:
            wins = list(pool.map(lambda racer: store.put_if_absent(key, b"%d" % racer), range(_RACERS)))
        winner = wins.index(True) if True in wins else None
        if wins.count(True) != 1 or store.get(key) != b"%d" % winner:
            raise NoConditionalPutError(store.url)
    finally:
        store.delete_many([key])
