"""Copies between two stores, which no server can make: contents pass through this process, in pieces.

A keeper has little memory and state files may be large, so it holds a few pieces at a time, however many
threads copy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext

from headrace_jobs.store.interface import Copy, Store

# Most objects are small, and many of those at once hold less than one piece of a large one.
_LARGE_BYTES = 256 * 1024
_LARGE_AT_ONCE = 6


def copier_between(source: Store, target: Store) -> Callable[[Copy], None]:
    """May be called from any number of threads."""
    places = threading.BoundedSemaphore(_LARGE_AT_ONCE)

    def copy(one: Copy) -> None:
        with places if one.source.size > _LARGE_BYTES else nullcontext():
            target.put_pieces(one.target, source.pieces(one.source))

    return copy
